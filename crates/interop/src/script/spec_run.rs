//! A recorded run as a spec, with what isolationtester prints of it.
//!
//! isolationtester proceeds in the order of the recorded run, so its output
//! follows from the recording. Two things have to be fixed in the spec: the
//! victim of a deadlock (the session that checks first, after 1 ms as on
//! Isolde's servers, where it is the session whose wait closed the cycle), and
//! the order of final rows.

use super::recorded::{Recorded, Turn};
use super::shown::{as_record, in_postgres, looks_dated};
use super::spec_write::{FINAL, check, drop_of};
use super::sql_write::{LevelWords, session_level};
use super::{Export, Unsupported, ended, remarks_of_run};
use crate::spec;
use crate::spec::{
    Block, Blocker, Permutation, PermutationStep, Spec, SpecSession, SpecStep, StepId, print_table,
};
use isolde_model::case::{Case, Line};
use isolde_model::history::{EventKind, FinalRows, History};
use isolde_model::value::Row;
use isolde_model::{Level, Value};
use isolde_sql as sql;
use isolde_sql::Kind;

const DEADLOCK: &str = "40P01";

pub fn spec_of_run(case: &Case, history: &History) -> Result<Export, Unsupported> {
    let run = Recorded::of(case, history)?;
    let mut spec = Spec::default();
    set_up(&mut spec, &run)?;
    let settings = settings(&run);
    for name in run.sessions() {
        if name == FINAL {
            let line = case.steps.iter().find(|s| s.session == name).map_or(0, |s| s.line.0);
            return Err(Unsupported::at(line, "a spec needs the session name `final` for itself"));
        }
        let level = case.session_level(name, history.level);
        if level == Some(Level::Snapshot) {
            return Err(Unsupported::key("level", "PostgreSQL has no level snapshot"));
        }
        let level = level.map(|l| session_level(LevelWords::Postgres, l));
        let all: Vec<String> = settings.iter().cloned().chain(level).collect();
        spec.sessions.push(session(name, &all));
    }
    let mut ids = Vec::new();
    for (i, turn) in run.turns.iter().enumerate() {
        check(turn.sql, turn.step.map_or(0, |s| case.steps[s].line.0))?;
        let session = spec.sessions.iter().position(|s| s.name == turn.session).unwrap_or(0);
        let name = run.label(i).replace('.', "_");
        ids.push(add(&mut spec, session, &name, turn.sql));
    }
    let mut order: Vec<PermutationStep> =
        ids.iter().map(|id| PermutationStep { id: *id, blockers: Vec::new() }).collect();
    pin_deadlocks(&run, &ids, &mut order)?;
    if !history.final_state.is_empty() {
        spec.sessions.push(session(FINAL, &settings));
        for (i, rows) in history.final_state.iter().enumerate() {
            let session = spec.sessions.len() - 1;
            let query = ordered(rows);
            check(&query, 0)?;
            let id = add(&mut spec, session, &format!("{FINAL}_{}", i + 1), &query);
            order.push(PermutationStep { id, blockers: Vec::new() });
        }
    }
    spec.permutations.push(Permutation { steps: order, line: Line(0) });
    let mut text = remarks_of_run(case, history, "#");
    for (_, step, why) in &run.not_sent {
        text.push_str(&format!("# {} is left out: {why}\n", case.label(*step)));
    }
    text.push_str(&format!("\n{}", spec::format(&spec)));
    Ok(Export { text, result: output(&spec, &run, &ids) })
}

fn set_up(spec: &mut Spec, run: &Recorded<'_>) -> Result<(), Unsupported> {
    let on = &run.history.on;
    let statements = run.case.setup_for(&on.engine, &on.version);
    for statement in &statements {
        check(&statement.sql, statement.line.0)?;
        if sql::kind(&statement.sql) == Kind::Select {
            let message = "isolationtester would print the rows of this setup, which are not known";
            return Err(Unsupported::at(statement.line.0, message));
        }
    }
    if statements.is_empty() {
        return Ok(());
    }
    let body: String = statements.iter().map(|s| format!("\n  {}", ended(&s.sql))).collect();
    spec.setups.push(Block { sql: body + "\n", line: Line(0) });
    // In the opposite order: a table may refer to those made before it.
    let drops: String = statements.iter().rev().filter_map(|s| drop_of(&s.sql)).collect();
    if !drops.is_empty() {
        spec.teardown = Some(Block { sql: drops + "\n", line: Line(0) });
    }
    Ok(())
}

fn session(name: &str, settings: &[String]) -> SpecSession {
    let setup: String = settings.iter().map(|s| format!("\n  {s};")).collect();
    let block = |sql: String| Block { sql: sql + "\n", line: Line(0) };
    SpecSession {
        name: name.into(),
        setup: (!setup.is_empty()).then(|| block(setup)),
        steps: Vec::new(),
        teardown: None,
    }
}

fn add(spec: &mut Spec, session: usize, name: &str, sql: &str) -> StepId {
    let own = &mut spec.sessions[session];
    let taken = own.steps.iter().filter(|s| s.name.starts_with(name)).count();
    let name =
        if name.ends_with("_end") && taken > 0 { format!("{name}{taken}") } else { name.into() };
    own.steps.push(SpecStep { name, sql: ended(sql), line: Line(0) });
    StepId { session, step: own.steps.len() - 1 }
}

/// The settings that make the output of every session the same as in the recording.
fn settings(run: &Recorded<'_>) -> Vec<String> {
    let mut all: Vec<String> = Vec::new();
    if run.turns.iter().any(is_victim) {
        all.push("set deadlock_timeout = '1ms'".into());
    }
    if run.may_warn() {
        all.push("set client_min_messages = error".into());
    }
    let rows = run.turns.iter().filter_map(|t| t.reply.and_then(EventKind::rows));
    let finals = run.history.final_state.iter().map(|f| f.rows.as_slice());
    if rows.chain(finals).flatten().flatten().any(looks_dated) {
        all.push("set datestyle = iso".into());
    }
    all
}

fn is_victim(turn: &Turn<'_>) -> bool {
    turn.reply.and_then(EventKind::error).is_some_and(|e| e.code == DEADLOCK)
}

/// A step that closes a cycle is announced as waiting regardless of the time it
/// takes, and the steps that it unblocks are reported after it. This applies only
/// where the next step has to wait for one of them, which it would otherwise overtake.
fn pin_deadlocks(
    run: &Recorded<'_>,
    ids: &[StepId],
    order: &mut [PermutationStep],
) -> Result<(), Unsupported> {
    for (i, turn) in run.turns.iter().enumerate() {
        for victim in turn.answered.iter().filter(|t| is_victim(&run.turns[**t])) {
            if *victim != i {
                let line = run.turns[*victim].step.map_or(0, |s| run.case.steps[s].line.0);
                let message = "the victim of the deadlock is not the session that closed the \
                               cycle: which one isolationtester would see fail is not certain";
                return Err(Unsupported::at(line, message));
            }
            let next = run.turns.get(i + 1).map(|t| t.session);
            let freed = || turn.answered.iter().filter(|t| **t != i);
            let waits =
                next == Some(turn.session) || freed().any(|t| next == Some(run.turns[*t].session));
            if waits {
                order[i].blockers.push(Blocker::Once);
                for other in freed() {
                    order[*other].blockers.push(Blocker::Step(ids[i]));
                }
            }
        }
    }
    Ok(())
}

/// The query, with an order where there are rows to be ordered: by a key, by
/// all columns, or by the text of the row where a collation could matter.
fn ordered(rows: &FinalRows) -> String {
    if rows.rows.len() < 2 {
        return rows.query.clone();
    }
    let inner = sql::without_trailing_comment(&rows.query);
    match order_of(rows) {
        Order::Numbers(columns) => {
            let places: Vec<String> = (1..=columns).map(|c| c.to_string()).collect();
            format!("select * from ({inner}) as f order by {}", places.join(", "))
        }
        Order::Text => format!("select * from ({inner}) as f order by f::text collate \"C\""),
    }
}

enum Order {
    /// By so many of the first columns, which hold integers.
    Numbers(usize),
    Text,
}

fn order_of(rows: &FinalRows) -> Order {
    let integers =
        |column: usize| rows.rows.iter().all(|r| matches!(r.get(column), Some(Value::Int(_))));
    let width = rows.columns.len();
    let distinct = |columns: usize| {
        let keys: Vec<&[Value]> = rows.rows.iter().map(|r| &r[..columns]).collect();
        (1..keys.len()).all(|i| keys[..i].iter().all(|k| *k != keys[i]))
    };
    let leading = (0..width).take_while(|c| integers(*c)).count();
    match (1..=leading).find(|c| distinct(*c)) {
        Some(columns) => Order::Numbers(columns),
        None if leading == width => Order::Numbers(width),
        None => Order::Text,
    }
}

fn sorted(rows: &FinalRows) -> Vec<Row> {
    let mut all = rows.rows.clone();
    match order_of(rows) {
        // As the recording has them: it sorts by the columns from the left.
        Order::Numbers(_) => {}
        Order::Text => all.sort_by_key(as_record),
    }
    all
}

/// What isolationtester prints.
fn output(spec: &Spec, run: &Recorded<'_>, ids: &[StepId]) -> String {
    let permutation = &spec.permutations[0].steps;
    let names: Vec<&str> = permutation.iter().map(|s| spec.step(s.id).name.as_str()).collect();
    let mut out = format!("Parsed test spec with {} sessions\n", spec.sessions.len());
    out.push_str(&format!("\nstarting permutation: {}\n", names.join(" ")));
    // Annotated ones are announced though they do not wait.
    let announced =
        |turn: usize| run.turns[turn].waits || permutation[turn].blockers.contains(&Blocker::Once);
    for (i, turn) in run.turns.iter().enumerate() {
        let step = spec.step(ids[i]);
        let waiting = if announced(i) { " <waiting ...>" } else { "" };
        out.push_str(&format!("step {}: {}{waiting}\n", step.name, step.sql));
        // The statement that was sent is looked at first, then the others.
        let own = turn.answered.iter().filter(|t| **t == i);
        for answered in own.chain(turn.answered.iter().filter(|t| **t != i)) {
            if *answered != i || announced(i) {
                out.push_str(&format!(
                    "step {}: <... completed>\n",
                    spec.step(ids[*answered]).name
                ));
            }
            push_reply(&mut out, run.turns[*answered].reply);
        }
    }
    for (rows, step) in run.history.final_state.iter().zip(&permutation[ids.len()..]) {
        let step = spec.step(step.id);
        out.push_str(&format!("step {}: {}\n", step.name, step.sql));
        out.push_str(&table(&rows.columns, &sorted(rows)));
    }
    out
}

fn push_reply(out: &mut String, reply: Option<&EventKind>) {
    match reply {
        Some(EventKind::Rows { columns, rows }) => out.push_str(&table(columns, rows)),
        Some(EventKind::Error(error)) => out.push_str(&format!("ERROR:  {}\n", error.message)),
        _ => {}
    }
}

fn table(columns: &[String], rows: &[Row]) -> String {
    let cells: Vec<Vec<Option<String>>> =
        rows.iter().map(|row| row.iter().map(in_postgres).collect()).collect();
    print_table(columns, &cells)
}
