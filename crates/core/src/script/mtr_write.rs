//! A case as a mysqltest script.
//!
//! mysqltest hangs on a statement that waits unless it was sent, so what the
//! case expects to wait goes out with `send` and is reaped before the next
//! statement of its session.

use super::{Unsayable, ended, general_setup, remarks};
use crate::Level;
use crate::case::{Case, Claim, Expected, Subject};

const WAIT_FOR_LOCK: &str = "let $wait_condition = select count(*) > 0 from \
    information_schema.innodb_trx where trx_state = 'LOCK WAIT';\n\
    --source include/wait_condition.inc\n";

pub fn write_mtr(case: &Case) -> Result<String, Unsayable> {
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
            let level = known_level(level).ok_or_else(|| Unsayable::key("level", NO_SNAPSHOT))?;
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
                known_level(level).ok_or_else(|| Unsayable::at(step.line.0, NO_SNAPSHOT))?;
            out.push_str(&format!("set transaction isolation level {level};\n"));
        }
        let (waits, error) = claimed(case, i);
        if waits {
            out.push_str("send\n");
            push(&mut out, &step.sql, step.line.0)?;
            out.push_str(WAIT_FOR_LOCK);
            sent.push((step.session.clone(), error));
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

const NO_SNAPSHOT: &str = "MySQL has no level snapshot";

fn known_level(level: Level) -> Option<String> {
    (level != Level::Snapshot).then(|| level.name().to_lowercase())
}

fn go_to(out: &mut String, current: &mut String, session: &str) {
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

/// A line of a statement that looks like a command would be taken for one.
fn push(out: &mut String, sql: &str, line: usize) -> Result<(), Unsayable> {
    let sql = ended(sql);
    if sql.lines().any(|l| l.trim_start().starts_with("--") || l.trim_start().starts_with('#')) {
        let message = "mysqltest would take a comment line of this statement for a command";
        return Err(Unsayable::at(line, message));
    }
    out.push_str(&format!("{sql}\n"));
    Ok(())
}

/// Whether the case expects a step to wait, and with which error it ends.
fn claimed(case: &Case, step: usize) -> (bool, Option<String>) {
    let label = case.label(step);
    let mut waits = false;
    let mut error = None;
    let about = |subject: &Subject| matches!(subject, Subject::Step { session, nth } if format!("{session}.{nth}") == label);
    let like_mysql = ["mysql", "mariadb", "tidb"];
    for expectation in &case.expectations {
        let ours = expectation.on.is_empty()
            || expectation.on.iter().any(|s| like_mysql.contains(&s.engine.as_str()));
        // What only may happen cannot be reaped as certain.
        let sure = |c: &&Claim| expectation.or.iter().all(|other| other.contains(c));
        for claim in expectation.claims.iter().filter(sure).filter(|c| ours && about(&c.subject)) {
            match &claim.expected {
                Expected::Waits | Expected::WaitsFor(_) => waits = true,
                Expected::Error(Some(code)) if code.parse::<u32>().is_ok() => {
                    error = Some(code.clone());
                }
                _ => {}
            }
        }
    }
    (waits, error)
}
