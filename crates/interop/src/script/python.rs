//! A recorded run as a short Python program with the engine's own client, for
//! engines that live in a library: SQLite, DuckDB, Turso.
//!
//! The program is self-contained. It prints the result of each statement next to
//! the recorded and the expected result. It exits with 1 when the deviation
//! occurs again, and with 0 when it does not.

use super::recorded::Recorded;
use super::{Deviation, Spot, Unsupported, ended, remarks_of_run};
use isolde_model::history::{EventKind, History};
use isolde_model::value::{Row, show_row};
use isolde_model::{Case, Level};

const OUTCOME: &str = include_str!("python/outcome.py");
const COMMON: &str = include_str!("python/common.py");
const SQLITE: &str = include_str!("python/sqlite.py");
const DUCKDB: &str = include_str!("python/duckdb.py");
const TURSO: &str = include_str!("python/turso.py");

/// Whether there is a program for this engine: a name with its mode.
pub fn has_python(engine: &str) -> bool {
    client(engine).is_some()
}

fn client(engine: &str) -> Option<&'static str> {
    match engine.split('+').next()? {
        "sqlite" => Some(SQLITE),
        "duckdb" => Some(DUCKDB),
        "turso" => Some(TURSO),
        _ => None,
    }
}

pub fn python_of_run(
    case: &Case,
    history: &History,
    deviations: &[Deviation],
) -> Result<String, Unsupported> {
    let on = &history.on;
    let Some(client) = client(&on.engine) else {
        let message =
            format!("programs are for sqlite, duckdb and turso; this run is of {}", on.engine);
        return Err(Unsupported::key("engines", message));
    };
    let run = Recorded::of(case, history)?;
    let mut out = String::from("#!/usr/bin/env python3\n");
    out.push_str(&remarks_of_run(case, history, "#"));
    out.push_str("# It exits with 1 when the deviation shows, with 0 when it does not, with 2 when it cannot run.\n");
    out.push_str(&format!("{client}{OUTCOME}\n\nMODE = {}\n", quoted(&mode(history))));
    out.push_str("SETUP = [\n");
    for statement in case.setup_for(&on.engine, &on.version) {
        out.push_str(&format!("    {},\n", quoted(&statement.sql)));
    }
    out.push_str("]\nLEVELS = {");
    let level = |s: &&str| case.session_level(s, history.level).map(|l| (s.to_string(), l));
    let levels: Vec<String> = run
        .sessions()
        .iter()
        .filter_map(level)
        .filter(|(_, level)| *level == Level::ReadUncommitted)
        .map(|(session, level)| format!("{}: {}", quoted(&session), quoted(level.name())))
        .collect();
    out.push_str(&levels.join(", "));
    out.push_str(
        "}\n# session, label, statement, what was recorded, what is expected instead\nSTEPS = [\n",
    );
    for (i, turn) in run.turns.iter().enumerate() {
        for (_, step, why) in run.not_sent.iter().filter(|(before, ..)| *before == i) {
            out.push_str(&format!("    # {} is left out: {why}\n", case.label(*step)));
        }
        let recorded = if turn.waits { "WAITS".into() } else { outcome(turn.reply) };
        let spot = turn.step.map(Spot::Step).filter(|_| !turn.waits);
        push_step(&mut out, &run, i, &recorded, expected(deviations, spot));
        for answered in turn.answered.iter().filter(|t| **t != i) {
            let other = &run.turns[*answered];
            let spot = other.step.map(Spot::Step);
            push_step(&mut out, &run, *answered, &outcome(other.reply), expected(deviations, spot));
        }
    }
    out.push_str("]\nFINAL = [\n");
    for (i, rows) in history.final_state.iter().enumerate() {
        let instead = expected(deviations, Some(Spot::Final(i)));
        let query = quoted(&rows.query);
        out.push_str(&format!("    ({query}, {}, {instead}),\n", row_list(&rows.rows)));
    }
    out.push_str("]\n");
    out.push_str(COMMON);
    Ok(out)
}

fn push_step(out: &mut String, run: &Recorded<'_>, turn: usize, recorded: &str, instead: String) {
    let (session, label) = (quoted(run.turns[turn].session), quoted(&run.label(turn)));
    let sql = quoted(ended(run.turns[turn].sql).trim_end_matches(';'));
    out.push_str(&format!("    ({session}, {label}, {sql}, {recorded}, {instead}),\n"));
}

/// The journal or the cache that the client has to ask for.
fn mode(history: &History) -> String {
    if history.on.engine.ends_with("+shared-cache") {
        return "shared-cache".into();
    }
    history.on.settings.get("journal_mode").cloned().unwrap_or_default()
}

fn expected(deviations: &[Deviation], spot: Option<Spot>) -> String {
    let found = deviations.iter().find(|d| Some(d.spot) == spot);
    found.map_or("None".into(), |d| quoted(&d.expected))
}

fn outcome(reply: Option<&EventKind>) -> String {
    match reply {
        Some(EventKind::Rows { rows, .. }) => row_list(rows),
        Some(EventKind::Affected { count }) => quoted(&format!("affected {count}")),
        Some(EventKind::Error(error)) => format!("Failed({})", quoted(&error.code)),
        _ => "OK".into(),
    }
}

fn row_list(rows: &[Row]) -> String {
    let all: Vec<String> = rows.iter().map(|r| quoted(&show_row(r))).collect();
    format!("[{}]", all.join(", "))
}

/// A Python literal.
fn quoted(text: &str) -> String {
    let mut out = String::from("\"");
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            c if c.is_control() => out.push_str(&format!("\\u{:04x}", u32::from(c))),
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

/// What the statements that a case's condition is about came to: a run in
/// which the condition holds deviates there.
pub fn deviations_of_case(case: &Case, history: &History) -> Vec<Deviation> {
    use isolde_model::case::Subject;
    use isolde_model::expectations::holds;
    let met = case.when_it_shows().iter().find(|condition| {
        (condition.levels.is_empty()
            || history.level.is_some_and(|l| condition.levels.contains(&l)))
            && condition.claims.iter().all(|claim| holds(claim, case, history).is_ok())
    });
    let mut found: Vec<Deviation> = Vec::new();
    for claim in met.map_or(&[][..], |condition| &condition.claims) {
        let spot = match &claim.subject {
            Subject::Step { session, nth } => case.step_of_label(session, *nth).map(Spot::Step),
            Subject::Final(nth) => Some(Spot::Final(nth - 1)),
            Subject::Session(_) | Subject::Setup => None,
        };
        if let Some(spot) = spot.filter(|s| found.iter().all(|d| d.spot != *s)) {
            found.push(Deviation { spot, expected: "not this".into() });
        }
    }
    found
}
