//! A recorded run as a bug report in Markdown: version, settings, what to do in
//! which session, what came back, what is expected and why.
//!
//! A report contains only what it is given: the reasons come from the oracle
//! that judged the run.

use super::recorded::Recorded;
use super::{Deviation, Spot, ended};
use isolde_model::Case;
use isolde_model::history::{EventKind, History};
use isolde_model::transcript::{reply_text, summary};
use isolde_model::value::show_rows;
use isolde_sql as sql;

/// The contents of a report besides the run itself.
#[derive(Clone, Debug, Default)]
pub struct ReportContext {
    pub title: String,
    /// What is wrong, one sentence per deviation.
    pub differs: Vec<String>,
    /// Why that is wrong: rules, pages, evidence.
    pub why: Vec<String>,
    /// How often it happens, where that was tried.
    pub rate: Option<String>,
    /// The files that accompany the report, and how each is run.
    pub files: Vec<(String, String)>,
    /// Files that could not be written, and why.
    pub left_out: Vec<(String, String)>,
    pub found_by: Vec<String>,
}

pub fn report_of_run(
    case: &Case,
    history: &History,
    deviations: &[Deviation],
    context: &ReportContext,
) -> String {
    let mut out = format!("# {}\n\n", one_line(&context.title));
    environment(&mut out, case, history);
    let on = &history.on;
    let setup = case.setup_for(&on.engine, &on.version);
    if !setup.is_empty() {
        let text: String = setup.iter().map(|s| ended(&s.sql) + "\n").collect();
        section(&mut out, "Schema and rows", &fenced("sql", &text));
    }
    let steps = match Recorded::of(case, history) {
        Ok(run) => steps(&run, deviations),
        Err(_) => steps_in_case(case, history, deviations),
    };
    section(&mut out, "Steps", &steps);
    if !history.final_state.is_empty() {
        section(&mut out, "Rows at the end", &finals(history, deviations));
    }
    if let Some(death) = &history.death {
        section(
            &mut out,
            "What became of the server",
            &format!("{}\n", one_line(&death.to_string())),
        );
    }
    if !context.differs.is_empty() {
        section(&mut out, "What is wrong", &list(&context.differs));
    }
    if !context.why.is_empty() {
        section(&mut out, "Why", &list(&context.why));
    }
    if let Some(rate) = &context.rate {
        section(&mut out, "How often", &format!("{rate}\n"));
    }
    let mut run_it: Vec<String> =
        context.files.iter().map(|(name, how)| format!("`{name}`: {how}")).collect();
    run_it.extend(
        context.left_out.iter().map(|(name, why)| format!("No `{name}`: {}.", one_line(why))),
    );
    if !run_it.is_empty() {
        section(&mut out, "How to run it", &bullets(&run_it));
    }
    if !context.found_by.is_empty() {
        section(&mut out, "Found by", &list(&context.found_by));
    }
    out
}

fn section(out: &mut String, title: &str, body: &str) {
    out.push_str(&format!("## {title}\n\n{body}\n"));
}

fn environment(out: &mut String, case: &Case, history: &History) {
    let on = &history.on;
    let mut rows =
        vec![("Engine".to_string(), on.engine.clone()), ("Version".into(), on.version.clone())];
    let level = history.level.or(case.level);
    rows.push(("Isolation level".into(), level.map_or("the default".into(), |l| l.to_string())));
    for (session, level) in &case.session_levels {
        rows.push((format!("Isolation level of {session}"), level.to_string()));
    }
    if !case.server_options.is_empty() {
        rows.push(("Server options".into(), case.server_options.join(" ")));
    }
    let settings = on.settings.iter().filter(|(name, _)| !name.starts_with("planted_"));
    rows.extend(settings.map(|(name, value)| (name.clone(), value.clone())));
    out.push_str("| | |\n|---|---|\n");
    for (name, value) in rows {
        out.push_str(&format!("| {} | {} |\n", cell(&name), cell(&value)));
    }
    if let Some(fault) = on.settings.get("planted_fault") {
        out.push_str(&format!(
            "\n**This is no bug of the engine: the fault `{fault}` was planted between Isolde and it.**\n"
        ));
    }
    out.push('\n');
}

const HEAD: &str =
    "| # | session | statement | what came back | expected |\n|---|---|---|---|---|\n";

fn steps(run: &Recorded<'_>, deviations: &[Deviation]) -> String {
    let mut out = String::from(HEAD);
    let mut number = 0;
    let mut line = |session: &str, text: &str, came: &str, instead: &str| {
        number += 1;
        out.push_str(&format!(
            "| {number} | {} | {text} | {} | {} |\n",
            cell(session),
            cell(came),
            cell(instead)
        ));
    };
    for (i, turn) in run.turns.iter().enumerate() {
        for (_, step, why) in run.not_sent.iter().filter(|(before, ..)| *before == i) {
            let step = &run.case.steps[*step];
            line(&step.session, &format!("({})", code(&step.sql)), &format!("not sent: {why}"), "");
        }
        let came = if turn.waits { "waits".into() } else { answer(run, i) };
        let instead = if turn.waits { String::new() } else { expected(deviations, turn.step) };
        line(turn.session, &code(turn.sql), &came, &instead);
        for other in turn.answered.iter().filter(|t| **t != i) {
            let text = format!("… {} goes on", run.label(*other));
            let instead = expected(deviations, run.turns[*other].step);
            line(run.turns[*other].session, &text, &answer(run, *other), &instead);
        }
    }
    out
}

/// For a run that did not complete: the outcome of each step, in the case's order.
fn steps_in_case(case: &Case, history: &History, deviations: &[Deviation]) -> String {
    let mut out = String::from(HEAD);
    for (i, step) in case.steps.iter().enumerate() {
        let came = if i < history.steps.len() { summary(history, i) } else { String::new() };
        let instead = expected(deviations, Some(i));
        let (session, came, instead) = (cell(&step.session), cell(&came), cell(&instead));
        out.push_str(&format!(
            "| {} | {session} | {} | {came} | {instead} |\n",
            i + 1,
            code(&step.sql)
        ));
    }
    out
}

/// The answer in full where it is an error: its message is what one looks for.
fn answer(run: &Recorded<'_>, turn: usize) -> String {
    let turn = &run.turns[turn];
    let ended = turn.step.and_then(|step| {
        run.history.events.iter().find_map(|e| match e.what {
            EventKind::Ended { how, .. } if e.step == Some(step) => Some(how.name()),
            _ => None,
        })
    });
    let kind = sql::kind(turn.sql);
    match (turn.reply, ended) {
        (Some(EventKind::Error(error)), _) => format!("error {}: {}", error.code, error.message),
        (Some(EventKind::Done), Some(how)) if kind.ends_transaction() => how.into(),
        (Some(what), _) => reply_text(what),
        (None, _) => "no answer".into(),
    }
}

fn expected(deviations: &[Deviation], step: Option<usize>) -> String {
    let found = deviations.iter().find(|d| step.map(Spot::Step) == Some(d.spot));
    found.map_or(String::new(), |d| d.expected.clone())
}

fn finals(history: &History, deviations: &[Deviation]) -> String {
    let mut out = String::from("| query | what came back | expected |\n|---|---|---|\n");
    for (i, rows) in history.final_state.iter().enumerate() {
        let came = match &rows.error {
            Some(error) => format!("error {error}"),
            None => show_rows(&rows.rows),
        };
        let instead = deviations.iter().find(|d| d.spot == Spot::Final(i));
        let instead = instead.map_or(String::new(), |d| d.expected.clone());
        out.push_str(&format!(
            "| {} | {} | {} |\n",
            code(&rows.query),
            cell(&came),
            cell(&instead)
        ));
    }
    out
}

fn list(items: &[String]) -> String {
    bullets(&items.iter().map(|i| escaped(&one_line(i))).collect::<Vec<_>>())
}

fn bullets(items: &[String]) -> String {
    items.iter().map(|i| format!("- {i}\n")).collect()
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Text with the characters escaped that Markdown would interpret as markup.
fn escaped(text: &str) -> String {
    text.replace('<', "&lt;").replace('*', "\\*").replace('_', "\\_")
}

fn cell(text: &str) -> String {
    escaped(&one_line(text)).replace('|', "\\|")
}

/// Code in a cell; the fence is longer than any in the text.
fn code(text: &str) -> String {
    let text = one_line(text).replace('|', "\\|");
    let longest = text.split(|c| c != '`').map(str::len).max().unwrap_or(0);
    let fence = "`".repeat(longest + 1);
    let blank = if longest > 0 { " " } else { "" };
    format!("{fence}{blank}{text}{blank}{fence}")
}

fn fenced(language: &str, text: &str) -> String {
    let longest = text.split(|c| c != '`').map(str::len).max().unwrap_or(0).max(2);
    let fence = "`".repeat(longest + 1);
    format!("{fence}{language}\n{text}{fence}\n")
}
