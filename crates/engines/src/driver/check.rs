//! `isolde driver-check`: whether a driver keeps the protocol.
//!
//! The checks know what the protocol promises and nothing of the database
//! behind it, so they use only SQL that every database understands. They do
//! not test isolation: what a driver's database does wrong is what Isolde's
//! cases are for.

use super::command::DriverCommand;
use super::conflict::conflict;
use super::lab::{Fault, Found, Lab, PATIENCE, fault, is_conflict};
use super::message::Message;
use crate::engine::TxStatus;
use isolde_core::value::show_row;
use isolde_core::{Level, Value};
use serde_json::json;
use std::time::Duration;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CheckResult {
    pub name: &'static str,
    pub ok: bool,
    /// What was seen; for a failure also what was expected and what the
    /// protocol's page says.
    pub detail: String,
}

type Check = fn(&mut Lab) -> Found<String>;

/// Name, the sentence of the page that it stands for, and the check.
const CHECKS: [(&str, &str, Check); 14] = [
    ("two sessions are two connections", "every `open` makes a connection of its own", independent),
    ("values come back typed", "a cell keeps the type that the database gave it", typed),
    (
        "affected rows are counted",
        "a statement that changes rows is answered with `affected`, or always with `ok`",
        counted,
    ),
    (
        "an error leaves the session alive",
        "a statement that fails is answered with `error`; the session goes on",
        survives_error,
    ),
    (
        "the transaction's status is true",
        "`tx` says where the session stands after the statement",
        status,
    ),
    ("a rollback undoes", "statements run as they are, without a commit of the driver's", rollback),
    (
        "a transaction's rows stay its own until it commits",
        "statements run as they are, without a commit of the driver's",
        invisible,
    ),
    (
        "several statements are in flight",
        "each reply carries the id of its request; no session holds up another",
        in_flight,
    ),
    ("a conflict shows as the profile says", "how to report waiting", conflict),
    ("close rolls back", "`close` ends the session and rolls its transaction back", closes),
    ("tables are sorted and clear empties", "`tables` is sorted; `clear` leaves none", tables),
    (
        "what is not understood is answered with an error",
        "an unknown request gets an `error` with its id, a line that is no request one with null",
        not_understood,
    ),
    (
        "an unknown session is an error",
        "a session that is not open is answered with `error`",
        unknown_session,
    ),
    ("bye ends with code 0", "`bye` is answered with `ok`; the driver then exits with code 0", bye),
];

pub fn check(command: &DriverCommand) -> Vec<CheckResult> {
    let name = "hello is well formed";
    let mut lab = match Lab::new(command) {
        Ok(lab) => lab,
        Err(why) => {
            let page = "`hello` is answered within 20 s with name, version and profile";
            let detail = format!("expected a hello; came: {why}; {}", cite(page));
            return vec![CheckResult { name, ok: false, detail }];
        }
    };
    let hello = &lab.hello;
    let levels: Vec<&str> = hello.profile.level_names().into_iter().map(Level::name).collect();
    let detail = format!("{} {}, {}", hello.name, hello.version, levels.join(", "));
    let mut results = vec![CheckResult { name, ok: true, detail }];
    for (name, page, check) in CHECKS {
        let found = lab.fresh().and_then(|()| check(&mut lab));
        results.push(match found {
            Ok(detail) => CheckResult { name, ok: true, detail },
            Err(Fault { expected, came }) => {
                // What the failed check left open must not disturb the next.
                lab.forget_process();
                let detail = format!("expected {expected}; came: {came}; {}", cite(page));
                CheckResult { name, ok: false, detail }
            }
        });
    }
    results
}

fn cite(page: &str) -> String {
    format!("docs/driver-protocol.md: {page}")
}

fn ints(rows: &[&[i64]]) -> Vec<Vec<Value>> {
    rows.iter().map(|row| row.iter().map(|i| Value::Int(*i)).collect()).collect()
}

fn independent(lab: &mut Lab) -> Found<String> {
    let (one, two) = (lab.open()?, lab.open()?);
    lab.table(one)?;
    lab.begin(one)?;
    lab.rows(one, "select v from isolde_check")?;
    // On one shared connection this is a transaction within a transaction.
    lab.begin(two)?;
    lab.expect_rows(two, "select v from isolde_check", &ints(&[&[10], &[20]]))?;
    lab.run(one, "rollback")?;
    let last = lab.run(two, "commit")?;
    lab.expect_tx(&last, "commit", TxStatus::Idle)?;
    Ok("each has a transaction of its own".into())
}

fn typed(lab: &mut Lab) -> Found<String> {
    let session = lab.open()?;
    lab.run(
        session,
        "create table isolde_types (i integer, f double precision, t varchar(9), n varchar(9))",
    )?;
    lab.run(session, "insert into isolde_types values (7, 1.5, 'null', null)")?;
    let rows = lab.rows(session, "select i, f, t, n from isolde_types")?;
    let wanted = "(7, 1.5, 'null', null) as number, number, text and null";
    match rows.first().map(Vec::as_slice) {
        Some([Value::Int(7) | Value::Decimal(_), Value::Float(f), Value::Text(t), Value::Null])
            if *f == 1.5 && t == "null" => {}
        Some(row) => return fault(wanted, show_row(row)),
        None => return fault(wanted, "no row"),
    }
    let bytes = Value::Bytes(vec![0xc0, 0xff]);
    for literal in ["x'c0ff'", r"'\xC0\xFF'::blob", r"'\xc0ff'::bytea"] {
        if let Message::Rows { rows, .. } = lab.execute(session, &format!("select {literal}"))?
            && rows.first().and_then(|row| row.first()) == Some(&bytes)
        {
            return Ok("numbers, text, null and bytes".into());
        }
    }
    Ok("numbers, text and null; no literal for bytes was understood".into())
}

fn counted(lab: &mut Lab) -> Found<String> {
    let session = lab.open()?;
    lab.run(session, "create table isolde_check (id integer primary key, v integer)")?;
    let statements = [
        ("insert into isolde_check values (1, 10), (2, 20)", 2),
        ("update isolde_check set v = 5 where id = 1", 1),
        ("update isolde_check set v = 5 where id = 9", 0),
        ("delete from isolde_check", 2),
    ];
    let mut uncounted = 0;
    for (sql, wanted) in statements {
        match lab.run(session, sql)? {
            Message::Affected { count, .. } if count == wanted => {}
            // All or none: a count that comes and goes cannot be compared.
            Message::Ok { .. } if wanted == 2 || uncounted > 0 => uncounted += 1,
            other => return fault(format!("`affected` {wanted} to `{sql}`"), other.describe()),
        }
    }
    if uncounted == statements.len() {
        return Ok("not counted by this database".into());
    }
    if uncounted > 0 {
        return fault("`affected` to every change or to none", "`ok` to some");
    }
    Ok("insert, update and delete".into())
}

fn survives_error(lab: &mut Lab) -> Found<String> {
    let session = lab.open()?;
    lab.table(session)?;
    for sql in ["selec nonsense", "select nothing from isolde_check_missing"] {
        match lab.execute(session, sql)? {
            Message::Error { .. } => {}
            other => return fault(format!("`error` to `{sql}`"), other.describe()),
        }
    }
    match lab.execute(session, "insert into isolde_check values (1, 11)")? {
        Message::Error { .. } => {}
        other => return fault("`error` to a second row with the same key", other.describe()),
    }
    lab.expect_rows(session, "select v from isolde_check where id = 1", &ints(&[&[10]]))?;
    Ok("syntax, missing table and duplicate key".into())
}

fn status(lab: &mut Lab) -> Found<String> {
    let session = lab.open()?;
    lab.table(session)?;
    let begun = lab.begin(session)?;
    lab.expect_tx(&begun, "begin", TxStatus::Open)?;
    let written = lab.run(session, "update isolde_check set v = 11 where id = 1")?;
    lab.expect_tx(&written, "a write in a transaction", TxStatus::Open)?;
    let committed = lab.run(session, "commit")?;
    lab.expect_tx(&committed, "commit", TxStatus::Idle)?;
    lab.begin(session)?;
    let rolled_back = lab.run(session, "rollback")?;
    lab.expect_tx(&rolled_back, "rollback", TxStatus::Idle)?;
    lab.expect_rows(session, "select v from isolde_check where id = 1", &ints(&[&[11]]))?;
    Ok(match begun.tx() {
        Some(_) => "open after begin, idle after commit and rollback".into(),
        None => "not reported; Isolde infers it from the statements".into(),
    })
}

fn rollback(lab: &mut Lab) -> Found<String> {
    let session = lab.open()?;
    lab.table(session)?;
    lab.begin(session)?;
    lab.run(session, "update isolde_check set v = 99")?;
    lab.expect_rows(session, "select v from isolde_check", &ints(&[&[99], &[99]]))?;
    lab.run(session, "rollback")?;
    lab.expect_rows(session, "select v from isolde_check", &ints(&[&[10], &[20]]))?;
    Ok("the old rows are back".into())
}

fn invisible(lab: &mut Lab) -> Found<String> {
    let (writer, reader) = (lab.open()?, lab.open()?);
    lab.table(writer)?;
    lab.begin(writer)?;
    lab.run(writer, "update isolde_check set v = 99 where id = 1")?;
    let read = lab.start(reader, "select v from isolde_check where id = 1")?;
    let seen = lab.answer(read, PATIENCE / 5)?;
    lab.run(writer, "rollback")?;
    let weakest = lab.hello.profile.default_level == Level::ReadUncommitted;
    match seen {
        Some(Message::Rows { rows, .. }) if rows == ints(&[&[10]]) => Ok("the old row".into()),
        Some(Message::Rows { rows, .. }) if rows == ints(&[&[99]]) && weakest => {
            Ok("visible, as READ UNCOMMITTED allows".into())
        }
        Some(message) => match lab.classify(&message, TxStatus::Idle) {
            Some(error) if is_conflict(error.class) => Ok("the reader is turned away".into()),
            _ => fault("the old row (10), or an error of class busy", message.describe()),
        },
        None => match lab.answer(read, PATIENCE)? {
            Some(_) => Ok("the reader waited for the writer".into()),
            None => fault("an answer after the writer's rollback", "none"),
        },
    }
}

fn in_flight(lab: &mut Lab) -> Found<String> {
    let sessions = [lab.open()?, lab.open()?, lab.open()?];
    for round in 0..5 {
        let mut sent = Vec::new();
        for session in sessions {
            let number = (session * 100 + round) as i64;
            sent.push((lab.start(session, &format!("select {number}"))?, number));
        }
        // Asked for in another order than they were sent.
        for (id, number) in sent.into_iter().rev() {
            match lab.answer(id, PATIENCE)? {
                Some(Message::Rows { rows, .. }) if rows == ints(&[&[number]]) => {}
                Some(other) => {
                    return fault(format!("({number}) to `select {number}`"), other.describe());
                }
                None => return fault(format!("an answer to `select {number}`"), "none"),
            }
        }
    }
    Ok("three sessions, each with its own answer".into())
}

fn closes(lab: &mut Lab) -> Found<String> {
    let (one, two) = (lab.open()?, lab.open()?);
    lab.table(one)?;
    lab.begin(one)?;
    lab.run(one, "update isolde_check set v = 99")?;
    lab.close(one)?;
    lab.run(two, "update isolde_check set v = v + 1 where id = 1")?;
    lab.expect_rows(two, "select v from isolde_check", &ints(&[&[11], &[20]]))?;
    Ok("its writes are gone and its locks free".into())
}

fn tables(lab: &mut Lab) -> Found<String> {
    let session = lab.open()?;
    for table in ["isolde_b", "isolde_a", "isolde_c"] {
        lab.run(session, &format!("create table {table} (id integer primary key)"))?;
    }
    let found = lab.tables()?;
    if found != ["isolde_a", "isolde_b", "isolde_c"] {
        return fault("isolde_a, isolde_b, isolde_c", format!("{found:?}"));
    }
    lab.fresh()?;
    match lab.tables()? {
        left if left.is_empty() => Ok("three tables, then none".into()),
        left => fault("no tables after `clear`", format!("{left:?}")),
    }
}

fn not_understood(lab: &mut Lab) -> Found<String> {
    match lab.ask(json!({"request": "isolde-check-unknown"}))? {
        Message::Error { .. } => {}
        other => return fault("`error` to an unknown request", other.describe()),
    }
    for line in ["this is not JSON", "[1, 2]", r#"{"request":"tables"}"#] {
        lab.process()?.send_raw(line);
        match lab.process()?.wait_unaddressed(PATIENCE) {
            Some(Ok(Message::Error { .. })) => {}
            Some(Ok(other)) => return fault(format!("`error` to {line}"), other.describe()),
            Some(Err(end)) => return fault(format!("`error` to {line}"), end),
            None => return fault(format!("`error` with \"id\":null to {line}"), "nothing"),
        }
    }
    lab.tables()?;
    Ok("an unknown request and three lines that are none".into())
}

fn unknown_session(lab: &mut Lab) -> Found<String> {
    for request in [
        json!({"request": "execute", "session": 999_999, "sql": "select 1"}),
        json!({"request": "close", "session": 999_999}),
    ] {
        match lab.ask(request.clone())? {
            Message::Error { .. } => {}
            other => return fault(format!("`error` to {request}"), other.describe()),
        }
    }
    Ok("execute and close".into())
}

fn bye(lab: &mut Lab) -> Found<String> {
    match lab.ask(json!({"request": "bye"}))? {
        Message::Ok { .. } => {}
        other => return fault("`ok` to `bye`", other.describe()),
    }
    match lab.process()?.wait_exit(PATIENCE.max(Duration::from_secs(1))) {
        Some(status) if status.success() => Ok("the driver has ended".into()),
        Some(status) => fault("exit code 0", status.to_string()),
        None => fault("the driver to end", "it still runs"),
    }
}
