//! Writes a case in its one canonical form. Formatting twice changes nothing.

use super::{Case, CaseKind, Claim, Condition, Selector, Statement};
use crate::Level;
use isolde_sql as sql;

pub fn format(case: &Case) -> String {
    let mut out = String::new();
    header(&mut out, case);
    for setup in &case.setups {
        section(&mut out, &setup.notes, &joined("setup", &setup.on));
        statements(&mut out, &setup.statements);
    }
    if !case.steps.is_empty() {
        out.push('\n');
    }
    for step in &case.steps {
        notes(&mut out, &step.notes);
        line(&mut out, &format!("{} {}", step.prompt(), ended(&step.sql)));
    }
    if !case.finals.is_empty() {
        section(&mut out, &case.final_notes, "final");
        statements(&mut out, &case.finals);
    }
    // Before the recordings, which can be long.
    conditions(&mut out, "shows when", &case.shows_when);
    for expectation in &case.expectations {
        let title = joined("expect", &expectation.on) + &at(&expectation.levels);
        section(&mut out, &expectation.notes, &title);
        claims(&mut out, &expectation.claims);
        for other in &expectation.or {
            line(&mut out, "or:");
            claims(&mut out, other);
        }
    }
    conditions(&mut out, "possible when", &case.possible_when);
    if !case.trailing_notes.is_empty() {
        out.push('\n');
        notes(&mut out, &case.trailing_notes);
    }
    out
}

fn header(out: &mut String, case: &Case) {
    // Above everything: below the header they would belong to what comes next.
    notes(out, &case.notes);
    line(out, &format!("case: {}", case.id));
    let mut key = |name: &str, value: Option<String>| {
        if let Some(value) = value {
            line(out, &format!("{name}: {value}"));
        }
    };
    key("title", (!case.title.is_empty()).then(|| case.title.clone()));
    key("link", case.link.clone());
    key("reported", case.reported.clone());
    key("rebuilt", case.rebuilt.clone());
    key("engines", (!case.engines.is_empty()).then(|| list(&case.engines)));
    let kind_name = |kind: CaseKind| {
        CaseKind::ALL.iter().find(|(_, k)| *k == kind).map(|(name, _)| (*name).to_string())
    };
    key("kind", case.kind.and_then(kind_name));
    key("anomaly", case.anomaly.map(|a| a.to_string()));
    key("variant", case.variant.map(|v| format!("{v:?}").to_lowercase()));
    key("level", case.level.map(|l| l.name().to_lowercase()));
    for (session, level) in &case.session_levels {
        key(&format!("level {session}"), Some(level.name().to_lowercase()));
    }
    if !case.server_options.is_empty() {
        line(out, &format!("server options: {}", case.server_options.join(" ")));
    }
    for (name, text) in [("about", &case.about), ("reporter", &case.reporter)] {
        if !text.is_empty() {
            line(out, &format!("{name}:"));
            for text in text.lines() {
                line(out, &format!("  {text}"));
            }
        }
    }
}

fn section(out: &mut String, comments: &[String], title: &str) {
    out.push('\n');
    notes(out, comments);
    line(out, &format!("{title}:"));
}

fn joined(word: &str, on: &[Selector]) -> String {
    if on.is_empty() { word.into() } else { format!("{word} {}", list(on)) }
}

fn list(selectors: &[Selector]) -> String {
    selectors.iter().map(Selector::to_string).collect::<Vec<_>>().join(", ")
}

fn statements(out: &mut String, statements: &[Statement]) {
    for statement in statements {
        line(out, &format!("  {}", ended(&statement.sql)));
    }
}

fn conditions(out: &mut String, title: &str, conditions: &[Condition]) {
    for condition in conditions {
        section(out, &condition.notes, &format!("{title}{}", at(&condition.levels)));
        claims(out, &condition.claims);
    }
}

fn at(levels: &[Level]) -> String {
    if levels.is_empty() {
        return String::new();
    }
    let names: Vec<String> = levels.iter().map(|l| l.name().to_lowercase()).collect();
    format!(" at {}", names.join(", "))
}

fn claims(out: &mut String, claims: &[Claim]) {
    for claim in claims {
        line(out, &format!("  {claim}"));
    }
}

fn notes(out: &mut String, notes: &[String]) {
    for note in notes {
        line(out, &if note.is_empty() { "#".into() } else { format!("# {note}") });
    }
}

/// The statement with its semicolon, which must not land in a comment.
fn ended(sql: &str) -> String {
    let text = sql.replace('\n', "\n    ");
    let comment = sql::without_trailing_comment(sql) != sql;
    if comment { format!("{text}\n    ;") } else { format!("{text};") }
}

fn line(out: &mut String, text: &str) {
    out.push_str(text.trim_end());
    out.push('\n');
}
