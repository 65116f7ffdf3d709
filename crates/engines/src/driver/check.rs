//! `isolde driver-check`: checks that a driver follows the protocol.
//!
//! The checks depend on the protocol alone and not on the database behind it,
//! so they use only SQL that every database understands. They do not test
//! isolation: errors of the database are what Isolde's cases are for.

use super::command::DriverCommand;
use super::conflict::conflict;
use super::harness::{CheckOutcome, Harness, PATIENCE, Violation, unexpected};
use super::message::Message;
use crate::engine::TxStatus;
use isolde_model::value::show_row;
use isolde_model::{Level, Value};
use serde_json::json;
use std::time::Duration;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CheckResult {
    pub name: &'static str,
    pub ok: bool,
    /// What was observed; for a failure also what was expected and the sentence
    /// of the protocol's documentation.
    pub detail: String,
}

type Check = fn(&mut Harness) -> CheckOutcome<String>;

/// Name, sentence of the documentation, and the check.
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
    let mut harness = match Harness::new(command) {
        Ok(harness) => harness,
        Err(why) => {
            let page = "`hello` is answered within 20 s with name, version and profile";
            let detail = format!("expected a hello; came: {why}; {}", cite(page));
            return vec![CheckResult { name, ok: false, detail }];
        }
    };
    let hello = &harness.hello;
    let levels: Vec<&str> = hello.profile.level_names().into_iter().map(Level::name).collect();
    let detail = format!("{} {}, {}", hello.name, hello.version, levels.join(", "));
    let mut results = vec![CheckResult { name, ok: true, detail }];
    for (name, page, check) in CHECKS {
        let found = harness.fresh().and_then(|()| check(&mut harness));
        results.push(match found {
            Ok(detail) => CheckResult { name, ok: true, detail },
            Err(Violation { expected, came }) => {
                // Sessions left open by the failed check must not disturb the
                // next.
                harness.forget_process();
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

fn independent(harness: &mut Harness) -> CheckOutcome<String> {
    let (one, two) = (harness.open()?, harness.open()?);
    harness.table(one)?;
    harness.begin(one)?;
    harness.rows(one, "select v from isolde_check")?;
    // On one shared connection this is a transaction within a transaction.
    harness.begin(two)?;
    harness.expect_rows(two, "select v from isolde_check", &ints(&[&[10], &[20]]))?;
    harness.run(one, "rollback")?;
    let last = harness.run(two, "commit")?;
    harness.expect_tx(&last, "commit", TxStatus::Idle)?;
    Ok("each has a transaction of its own".into())
}

fn typed(harness: &mut Harness) -> CheckOutcome<String> {
    let session = harness.open()?;
    harness.run(
        session,
        "create table isolde_types (i integer, f double precision, t varchar(9), n varchar(9))",
    )?;
    harness.run(session, "insert into isolde_types values (7, 1.5, 'null', null)")?;
    let rows = harness.rows(session, "select i, f, t, n from isolde_types")?;
    let wanted = "(7, 1.5, 'null', null) as number, number, text and null";
    match rows.first().map(Vec::as_slice) {
        Some([Value::Int(7) | Value::Decimal(_), Value::Float(f), Value::Text(t), Value::Null])
            if *f == 1.5 && t == "null" => {}
        Some(row) => return unexpected(wanted, show_row(row)),
        None => return unexpected(wanted, "no row"),
    }
    let bytes = Value::Bytes(vec![0xc0, 0xff]);
    for literal in ["x'c0ff'", r"'\xC0\xFF'::blob", r"'\xc0ff'::bytea"] {
        if let Message::Rows { rows, .. } =
            harness.execute(session, &format!("select {literal}"))?
            && rows.first().and_then(|row| row.first()) == Some(&bytes)
        {
            return Ok("numbers, text, null and bytes".into());
        }
    }
    Ok("numbers, text and null; no literal for bytes was understood".into())
}

fn counted(harness: &mut Harness) -> CheckOutcome<String> {
    let session = harness.open()?;
    harness.run(session, "create table isolde_check (id integer primary key, v integer)")?;
    let statements = [
        ("insert into isolde_check values (1, 10), (2, 20)", 2),
        ("update isolde_check set v = 5 where id = 1", 1),
        ("update isolde_check set v = 5 where id = 9", 0),
        ("delete from isolde_check", 2),
    ];
    let mut uncounted = 0;
    for (sql, wanted) in statements {
        match harness.run(session, sql)? {
            Message::Affected { count, .. } if count == wanted => {}
            // All or none: counts that come only sometimes cannot be compared.
            Message::Ok { .. } if wanted == 2 || uncounted > 0 => uncounted += 1,
            other => {
                return unexpected(format!("`affected` {wanted} to `{sql}`"), other.describe());
            }
        }
    }
    if uncounted == statements.len() {
        return Ok("not counted by this database".into());
    }
    if uncounted > 0 {
        return unexpected("`affected` to every change or to none", "`ok` to some");
    }
    Ok("insert, update and delete".into())
}

fn survives_error(harness: &mut Harness) -> CheckOutcome<String> {
    let session = harness.open()?;
    harness.table(session)?;
    for sql in ["selec nonsense", "select nothing from isolde_check_missing"] {
        match harness.execute(session, sql)? {
            Message::Error { .. } => {}
            other => return unexpected(format!("`error` to `{sql}`"), other.describe()),
        }
    }
    match harness.execute(session, "insert into isolde_check values (1, 11)")? {
        Message::Error { .. } => {}
        other => return unexpected("`error` to a second row with the same key", other.describe()),
    }
    harness.expect_rows(session, "select v from isolde_check where id = 1", &ints(&[&[10]]))?;
    Ok("syntax, missing table and duplicate key".into())
}

fn status(harness: &mut Harness) -> CheckOutcome<String> {
    let session = harness.open()?;
    harness.table(session)?;
    let begun = harness.begin(session)?;
    harness.expect_tx(&begun, "begin", TxStatus::Open)?;
    let written = harness.run(session, "update isolde_check set v = 11 where id = 1")?;
    harness.expect_tx(&written, "a write in a transaction", TxStatus::Open)?;
    let committed = harness.run(session, "commit")?;
    harness.expect_tx(&committed, "commit", TxStatus::Idle)?;
    harness.begin(session)?;
    let rolled_back = harness.run(session, "rollback")?;
    harness.expect_tx(&rolled_back, "rollback", TxStatus::Idle)?;
    harness.expect_rows(session, "select v from isolde_check where id = 1", &ints(&[&[11]]))?;
    Ok(match begun.tx() {
        Some(_) => "open after begin, idle after commit and rollback".into(),
        None => "not reported; Isolde infers it from the statements".into(),
    })
}

fn rollback(harness: &mut Harness) -> CheckOutcome<String> {
    let session = harness.open()?;
    harness.table(session)?;
    harness.begin(session)?;
    harness.run(session, "update isolde_check set v = 99")?;
    harness.expect_rows(session, "select v from isolde_check", &ints(&[&[99], &[99]]))?;
    harness.run(session, "rollback")?;
    harness.expect_rows(session, "select v from isolde_check", &ints(&[&[10], &[20]]))?;
    Ok("the old rows are back".into())
}

fn invisible(harness: &mut Harness) -> CheckOutcome<String> {
    let (writer, reader) = (harness.open()?, harness.open()?);
    harness.table(writer)?;
    harness.begin(writer)?;
    harness.run(writer, "update isolde_check set v = 99 where id = 1")?;
    let read = harness.start(reader, "select v from isolde_check where id = 1")?;
    let seen = harness.answer(read, PATIENCE / 5)?;
    harness.run(writer, "rollback")?;
    let weakest = harness.hello.profile.default_level == Level::ReadUncommitted;
    match seen {
        Some(Message::Rows { rows, .. }) if rows == ints(&[&[10]]) => Ok("the old row".into()),
        Some(Message::Rows { rows, .. }) if rows == ints(&[&[99]]) && weakest => {
            Ok("visible, as READ UNCOMMITTED allows".into())
        }
        Some(message) => match harness.classify(&message, TxStatus::Idle) {
            Some(error) if error.class.is_conflict() => Ok("the reader is turned away".into()),
            _ => unexpected("the old row (10), or an error of class busy", message.describe()),
        },
        None => match harness.answer(read, PATIENCE)? {
            Some(_) => Ok("the reader waited for the writer".into()),
            None => unexpected("an answer after the writer's rollback", "none"),
        },
    }
}

fn in_flight(harness: &mut Harness) -> CheckOutcome<String> {
    let sessions = [harness.open()?, harness.open()?, harness.open()?];
    for round in 0..5 {
        let mut sent = Vec::new();
        for session in sessions {
            let number = (session * 100 + round) as i64;
            sent.push((harness.start(session, &format!("select {number}"))?, number));
        }
        // Read in another order than they were sent.
        for (id, number) in sent.into_iter().rev() {
            match harness.answer(id, PATIENCE)? {
                Some(Message::Rows { rows, .. }) if rows == ints(&[&[number]]) => {}
                Some(other) => {
                    return unexpected(
                        format!("({number}) to `select {number}`"),
                        other.describe(),
                    );
                }
                None => return unexpected(format!("an answer to `select {number}`"), "none"),
            }
        }
    }
    Ok("three sessions, each with its own answer".into())
}

fn closes(harness: &mut Harness) -> CheckOutcome<String> {
    let (one, two) = (harness.open()?, harness.open()?);
    harness.table(one)?;
    harness.begin(one)?;
    harness.run(one, "update isolde_check set v = 99")?;
    harness.close(one)?;
    harness.run(two, "update isolde_check set v = v + 1 where id = 1")?;
    harness.expect_rows(two, "select v from isolde_check", &ints(&[&[11], &[20]]))?;
    Ok("its writes are gone and its locks free".into())
}

fn tables(harness: &mut Harness) -> CheckOutcome<String> {
    let session = harness.open()?;
    for table in ["isolde_b", "isolde_a", "isolde_c"] {
        harness.run(session, &format!("create table {table} (id integer primary key)"))?;
    }
    let found = harness.tables()?;
    if found != ["isolde_a", "isolde_b", "isolde_c"] {
        return unexpected("isolde_a, isolde_b, isolde_c", format!("{found:?}"));
    }
    harness.fresh()?;
    match harness.tables()? {
        left if left.is_empty() => Ok("three tables, then none".into()),
        left => unexpected("no tables after `clear`", format!("{left:?}")),
    }
}

fn not_understood(harness: &mut Harness) -> CheckOutcome<String> {
    match harness.ask(json!({"request": "isolde-check-unknown"}))? {
        Message::Error { .. } => {}
        other => return unexpected("`error` to an unknown request", other.describe()),
    }
    for line in ["this is not JSON", "[1, 2]", r#"{"request":"tables"}"#] {
        harness.process()?.send_raw(line);
        match harness.process()?.wait_unaddressed(PATIENCE) {
            Some(Ok(Message::Error { .. })) => {}
            Some(Ok(other)) => return unexpected(format!("`error` to {line}"), other.describe()),
            Some(Err(end)) => return unexpected(format!("`error` to {line}"), end),
            None => return unexpected(format!("`error` with \"id\":null to {line}"), "nothing"),
        }
    }
    harness.tables()?;
    Ok("an unknown request and three lines that are none".into())
}

fn unknown_session(harness: &mut Harness) -> CheckOutcome<String> {
    for request in [
        json!({"request": "execute", "session": 999_999, "sql": "select 1"}),
        json!({"request": "close", "session": 999_999}),
    ] {
        match harness.ask(request.clone())? {
            Message::Error { .. } => {}
            other => return unexpected(format!("`error` to {request}"), other.describe()),
        }
    }
    Ok("execute and close".into())
}

fn bye(harness: &mut Harness) -> CheckOutcome<String> {
    match harness.ask(json!({"request": "bye"}))? {
        Message::Ok { .. } => {}
        other => return unexpected("`ok` to `bye`", other.describe()),
    }
    match harness.process()?.wait_exit(PATIENCE.max(Duration::from_secs(1))) {
        Some(status) if status.success() => Ok("the driver has ended".into()),
        Some(status) => unexpected("exit code 0", status.to_string()),
        None => unexpected("the driver to end", "it still runs"),
    }
}
