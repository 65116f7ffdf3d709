//! A case as a mysqltest script.
//!
//! mysqltest blocks until a statement returns, unless `send` submitted it. So a
//! statement that the case expects to wait is submitted with `send` and reaped
//! before the next statement of its session.

use super::{Unsupported, ended, general_setup, remarks};
use isolde_model::Level;
use isolde_model::case::{Case, Claim, Expectation, Expected, Subject};

/// The number of statements that wait for a row lock, a table lock or a metadata lock.
const LOCK_WAITS: &str = "select (select count(*) from information_schema.innodb_trx \
    where trx_state = 'LOCK WAIT') + (select count(*) from information_schema.processlist \
    where state like 'Waiting for%lock%' or state = 'User lock')";

pub fn write_mtr(case: &Case) -> Result<String, Unsupported> {
    let mut out = remarks(case, "#");
    out.push_str("--source include/have_innodb.inc\n\n");
    if let Some(setup) = general_setup(case)? {
        for statement in &setup.statements {
            push(&mut out, &statement.sql, statement.line.0)?;
        }
    }
    let sessions = case.sessions();
    for session in sessions.iter().filter(|s| **s != "default") {
        out.push_str(&format!("--connect ({session},localhost,root,,)\n"));
    }
    let mut current = String::new();
    for session in &sessions {
        if let Some(level) = case.session_level(session, None) {
            let level = known_level(level).ok_or_else(|| Unsupported::key("level", NO_SNAPSHOT))?;
            go_to(&mut out, &mut current, session);
            out.push_str(&format!("set session transaction isolation level {level};\n"));
        }
    }
    let mut sent: Vec<(String, Option<String>)> = Vec::new();
    for (i, step) in case.steps.iter().enumerate() {
        go_to(&mut out, &mut current, &step.session);
        reap(&mut out, &mut sent, &step.session);
        for note in &step.notes {
            out.push_str(format!("# {note}").trim_end());
            out.push('\n');
        }
        if let Some(level) = step.level {
            let level =
                known_level(level).ok_or_else(|| Unsupported::at(step.line.0, NO_SNAPSHOT))?;
            out.push_str(&format!("set transaction isolation level {level};\n"));
        }
        let Claimed { waits, error, not_sent } = claimed(case, i);
        if not_sent {
            // mysqltest would send it, and outside of the transaction it would count.
            out.push_str("# a statement of a transaction that has ended is left out here\n");
            continue;
        }
        if waits {
            out.push_str("send\n");
            push(&mut out, &step.sql, step.line.0)?;
            sent.push((step.session.clone(), error));
            // No connection takes a query between send and reap.
            go_to(&mut out, &mut current, "default");
            out.push_str(&format!("let $wait_condition= {LOCK_WAITS} >= {};\n", sent.len()));
            out.push_str("--source include/wait_condition.inc\n");
        } else {
            say_error(&mut out, error.as_deref());
            push(&mut out, &step.sql, step.line.0)?;
        }
    }
    for session in sent.iter().map(|(s, _)| s.clone()).collect::<Vec<_>>() {
        go_to(&mut out, &mut current, &session);
        reap(&mut out, &mut sent, &session);
    }
    go_to(&mut out, &mut current, "default");
    for statement in &case.finals {
        push(&mut out, &statement.sql, statement.line.0)?;
    }
    for session in sessions.iter().filter(|s| **s != "default") {
        out.push_str(&format!("--disconnect {session}\n"));
    }
    Ok(out)
}

pub(super) const NO_SNAPSHOT: &str = "MySQL has no level snapshot";

pub(super) fn known_level(level: Level) -> Option<String> {
    (level != Level::Snapshot).then(|| level.name().to_lowercase())
}

pub(super) fn go_to(out: &mut String, current: &mut String, session: &str) {
    if current != session {
        out.push_str(&format!("--connection {session}\n"));
        *current = session.into();
    }
}

fn reap(out: &mut String, sent: &mut Vec<(String, Option<String>)>, session: &str) {
    if let Some(at) = sent.iter().position(|(s, _)| s == session) {
        let (_, error) = sent.remove(at);
        say_error(out, error.as_deref());
        out.push_str("--reap\n");
    }
}

fn say_error(out: &mut String, code: Option<&str>) {
    if let Some(code) = code {
        out.push_str(&format!("--error {code}\n"));
    }
}

/// mysqltest would run a line of a statement that looks like a command as a command.
pub(super) fn push(out: &mut String, sql: &str, line: usize) -> Result<(), Unsupported> {
    let sql = ended(sql);
    if sql.lines().any(|l| l.trim_start().starts_with("--") || l.trim_start().starts_with('#')) {
        let message = "mysqltest would take a comment line of this statement for a command";
        return Err(Unsupported::at(line, message));
    }
    out.push_str(&format!("{sql}\n"));
    Ok(())
}

/// What the case expects of a step.
#[derive(Default)]
struct Claimed {
    waits: bool,
    error: Option<String>,
    not_sent: bool,
}

fn claimed(case: &Case, step: usize) -> Claimed {
    let label = case.label(step);
    let mut claimed = Claimed::default();
    let about = |subject: &Subject| matches!(subject, Subject::Step { session, nth } if format!("{session}.{nth}") == label);
    let like_mysql = ["mysql", "mariadb", "tidb"];
    let is_ours = |e: &Expectation| {
        e.on.is_empty() || e.on.iter().any(|s| like_mysql.contains(&s.engine.as_str()))
    };
    for expectation in &case.expectations {
        let ours = is_ours(expectation);
        // Only a claim that all alternative outcomes share is certain.
        let sure = |c: &&Claim| expectation.or.iter().all(|other| other.contains(c));
        for claim in expectation.claims.iter().filter(sure).filter(|c| ours && about(&c.subject)) {
            match &claim.expected {
                Expected::Waits | Expected::WaitsFor(_) => claimed.waits = true,
                Expected::Error(Some(code)) if code.parse::<u32>().is_ok() => {
                    claimed.error = Some(code.clone());
                }
                _ => {}
            }
        }
    }
    let ours = case.expectations.iter().filter(|e| is_ours(e));
    let mut outcomes = ours.flat_map(|e| e.outcomes()).peekable();
    let not_sent = |claims: &[Claim]| {
        claims.iter().any(|c| about(&c.subject) && c.expected == Expected::NotSent)
    };
    claimed.not_sent =
        !case.steps[step].anyway && outcomes.peek().is_some() && outcomes.all(not_sent);
    claimed
}
