//! Engines behind a driver process: the example passes `driver-check`, broken
//! drivers get an explanation, and the death of a driver is an outcome.

use isolde_engines::driver::check::{CheckResult, check};
use isolde_engines::driver::shipped::program;
use isolde_engines::driver::{DriverCommand, DriverEngine};
use isolde_engines::engine::{
    Engine, EngineError, Outcome, Reply, ServerControl, Session, TxStatus, WaitState,
};
use isolde_engines::fetch::install;
use isolde_model::Value;
use isolde_model::history::{ErrorClass, ErrorEffect};
use isolde_testing::servers;
use std::path::Path;
use std::time::Duration;
use tempfile::TempDir;

const LIMIT: Duration = Duration::from_secs(10);

/// A minimal driver. Tests replace `special`, which handles a request first;
/// requests that it does not handle get the response `ok`.
const SKELETON: &str = r#"
import json, os, signal, sys, time
HELLO = {"reply": "hello", "protocol": 1, "name": "broken", "version": "1", "profile": {
    "levels": [{"level": "SERIALIZABLE"}], "default_level": "SERIALIZABLE", "waiting": "never"}}
def say(id, **reply):
    print(json.dumps({"id": id, **reply}), flush=True)
def special(r):
    pass
#SPECIAL
for line in sys.stdin:
    r = json.loads(line)
    if special(r):
        continue
    if r["request"] == "hello":
        say(r["id"], **HELLO)
    elif r["request"] == "tables":
        say(r["id"], reply="tables", tables=[])
    else:
        say(r["id"], reply="ok")
"#;

fn broken(folder: &TempDir, special: &str) -> DriverCommand {
    let path = folder.path().join("broken.py");
    std::fs::write(&path, SKELETON.replace("#SPECIAL", special)).unwrap();
    DriverCommand::new("python3", &[path.to_str().unwrap()])
}

fn shipped(name: &str, python: &str, folder: &Path, mode: &str) -> DriverCommand {
    let program = program(name).unwrap();
    let path = program.write_to(folder).unwrap();
    let mut command = DriverCommand::new(python, &[path.to_str().unwrap()]);
    command.args.extend(program.mode(mode).unwrap().iter().map(|a| a.to_string()));
    command
}

fn example(folder: &TempDir) -> DriverCommand {
    shipped("sqlite3", "python3", folder.path(), "")
}

fn run(session: &mut dyn Session, sql: &str) -> Reply {
    session.start(sql);
    session.reply(LIMIT).unwrap_or_else(|| panic!("no answer to {sql}"))
}

fn lost_message(reply: &Reply) -> String {
    let error = reply.error().unwrap_or_else(|| panic!("{reply:?}"));
    assert_eq!((error.class, error.effect), (ErrorClass::Lost, ErrorEffect::Lost), "{error}");
    error.message.clone()
}

fn assert_all_ok(results: &[CheckResult]) {
    assert_eq!(results.len(), 15);
    for result in results {
        assert!(result.ok, "{}: {}", result.name, result.detail);
    }
}

fn detail<'a>(results: &'a [CheckResult], name: &str) -> &'a str {
    let result = results.iter().find(|r| r.name == name);
    let result = result.unwrap_or_else(|| panic!("no check `{name}` in {results:#?}"));
    assert!(!result.ok, "`{name}` passed: {}", result.detail);
    assert!(result.detail.contains("docs/driver-protocol.md"), "{}", result.detail);
    &result.detail
}

#[test]
fn the_example_driver_passes_every_check() {
    let folder = tempfile::tempdir().unwrap();
    assert_all_ok(&check(&example(&folder)));
}

#[test]
fn a_driver_is_an_engine_like_any_other() {
    let folder = tempfile::tempdir().unwrap();
    let mut engine = DriverEngine::start(&example(&folder), "driver:example").unwrap();
    assert_eq!(engine.info().engine, "python-sqlite3");
    assert_eq!(engine.info().target, "driver:example");
    engine.control("create table t (id integer primary key, v integer)").unwrap();
    assert_eq!(engine.control("insert into t values (1, 10)").unwrap(), Outcome::Affected(1));
    let (mut one, mut two) = (engine.open().unwrap(), engine.open().unwrap());
    assert_eq!(run(&mut *one, "begin").tx, Some(TxStatus::Open));
    assert_eq!(run(&mut *one, "update t set v = 11").outcome, Outcome::Affected(1));
    let busy = run(&mut *two, "update t set v = 12");
    assert_eq!(busy.error().unwrap().class, ErrorClass::Busy);
    assert_eq!(busy.error().unwrap().effect, ErrorEffect::Statement);
    assert_eq!(run(&mut *one, "commit").tx, Some(TxStatus::Idle));
    let Outcome::Rows { rows, .. } = run(&mut *two, "select v from t").outcome else { panic!() };
    assert_eq!(rows, [[Value::Int(11)]]);
    assert_eq!(engine.tables().unwrap(), ["t"]);

    // The lock of a dropped session must be released before the database is cleared.
    run(&mut *one, "begin immediate");
    drop(one);
    engine.clear().unwrap();
    assert!(engine.tables().unwrap().is_empty());
}

#[test]
fn a_driver_that_is_killed_in_mid_statement_is_lost_and_can_be_revived() {
    let folder = tempfile::tempdir().unwrap();
    let mut engine = DriverEngine::start(&example(&folder), "driver:example").unwrap();
    engine.control("create table t (id integer)").unwrap();
    let mut session = engine.open().unwrap();
    session.start(
        "with recursive n(i) as (select 1 union all select i + 1 from n) select count(*) from n",
    );
    assert!(session.reply(Duration::from_millis(200)).is_none(), "it runs without end");
    engine.kill().unwrap();
    let message = lost_message(&session.reply(LIMIT).unwrap());
    assert!(message.contains("killed"), "{message}");
    lost_message(&run(&mut *session, "select 1"));
    assert!(engine.control("select 1").is_err());
    assert!(engine.log_tail().is_none(), "it had nothing to say");

    engine.revive().unwrap();
    assert!(engine.tables().unwrap().is_empty(), "it comes back empty");
    let mut session = engine.open().unwrap();
    assert!(matches!(run(&mut *session, "select 1").outcome, Outcome::Rows { .. }));
}

#[test]
fn cancel_ends_the_statement_or_else_the_driver() {
    let endless =
        "with recursive n(i) as (select 1 union all select i + 1 from n) select count(*) from n";
    let folder = tempfile::tempdir().unwrap();
    let mut engine = DriverEngine::start(&example(&folder), "driver:example").unwrap();
    let mut session = engine.open().unwrap();
    session.start(endless);
    assert!(session.reply(Duration::from_millis(200)).is_none());
    engine.cancel(session.id()).unwrap();
    let reply = session.reply(LIMIT).unwrap();
    assert_eq!(reply.error().unwrap().class, ErrorClass::Cancelled);
    assert!(run(&mut *session, "select 1").error().is_none());

    let hangs = r#"
def special(r):
    return r["request"] == "execute"
"#;
    let mut engine = DriverEngine::start(&broken(&folder, hangs), "driver:broken").unwrap();
    let mut session = engine.open().unwrap();
    session.start("select 1");
    assert!(session.reply(Duration::from_millis(200)).is_none());
    let error = engine.cancel(session.id()).unwrap_err();
    assert!(matches!(error, EngineError::Hangs(_)), "{error}");
    lost_message(&session.reply(LIMIT).unwrap());
}

#[test]
fn a_driver_that_ends_in_mid_statement_says_how_it_ended() {
    for (end, printed) in [
        ("print('the disk is on fire', file=sys.stderr); os._exit(7)", "exited with code 7"),
        ("print('the disk is on fire', file=sys.stderr); sys.stderr.flush(); os.abort()", "abort"),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let special =
            format!("def special(r):\n    if r['request'] == 'execute':\n        {end}\n");
        let mut engine = DriverEngine::start(&broken(&folder, &special), "driver:x").unwrap();
        let (mut one, mut two) = (engine.open().unwrap(), engine.open().unwrap());
        let message = lost_message(&run(&mut *one, "select 1"));
        assert!(message.contains(printed), "{message}");
        assert!(message.contains("the disk is on fire"), "{message}");
        lost_message(&run(&mut *two, "select 1"));
        assert!(engine.log_tail().unwrap().contains("the disk is on fire"));
    }
}

#[test]
fn a_garbage_line_of_a_driver_is_quoted_in_the_error() {
    for (garbage, why) in [
        ("print('Segfault imminent', flush=True)", "not JSON"),
        ("print('{\"id\": 99, \"reply\": \"ok\"}', flush=True)", "never sent"),
        ("sys.stdout.buffer.write(b'\\xff\\xfe\\n'); sys.stdout.flush()", "not UTF-8"),
        ("say(r['id'], reply='rows', columns=['a'], rows=[[{'what': '1'}]])", "reply `rows`"),
        ("say(r['id'], reply='tables', tables=[])", "answered `execute` with `tables`"),
        ("print('[' * 100000, flush=True)", "not JSON"),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let special = format!(
            "def special(r):\n    if r['request'] == 'execute':\n        {garbage}; return 1\n"
        );
        let mut engine = DriverEngine::start(&broken(&folder, &special), "driver:x").unwrap();
        let mut session = engine.open().unwrap();
        let message = lost_message(&run(&mut *session, "select 1"));
        assert!(message.contains("broke the protocol"), "{message}");
        assert!(message.contains(why), "{message}");
        if garbage.contains("imminent") {
            assert!(message.contains("Segfault imminent"), "{message}");
        }
    }
}

#[test]
fn a_program_that_cannot_be_a_driver_is_refused_with_the_reason() {
    let folder = tempfile::tempdir().unwrap();
    let refusal = |command: &DriverCommand| {
        let error = DriverEngine::start(command, "driver:x").err().expect("it must not start");
        error.to_string()
    };
    let error = refusal(&DriverCommand::new("/nonexistent/driver", &[]));
    assert!(error.contains("cannot start `/nonexistent/driver`"), "{error}");
    let error = refusal(&DriverCommand::new("false", &[]));
    assert!(error.contains("exited with code 1"), "{error}");
    for (special, printed) in [
        ("HELLO['protocol'] = 2", "speaks protocol 2"),
        ("del HELLO['profile']", "missing field `profile`"),
        ("HELLO['profile']['levels'] = []", "profile.levels is empty"),
        ("HELLO['profile']['default_level'] = 'SNAPSHOT'", "is not in profile.levels"),
        ("HELLO['profile']['waiting'] = 'probe'", "does not list \"waiting\""),
        ("HELLO = {'reply': 'error', 'code': 'x', 'message': 'no such wheel'}", "no such wheel"),
    ] {
        let error = refusal(&broken(&folder, special));
        assert!(error.contains(printed), "{special}: {error}");
    }
}

#[test]
fn a_driver_that_never_answers_hello_is_given_up() {
    let folder = tempfile::tempdir().unwrap();
    let command = broken(&folder, "def special(r):\n    return True\n");
    let limit = Duration::from_millis(500);
    let error = isolde_engines::driver::start_driver(&command, limit).err().unwrap().to_string();
    assert!(error.contains("did not answer `hello` within 500ms"), "{error}");
}

#[test]
fn driver_check_detects_swapped_ids() {
    let folder = tempfile::tempdir().unwrap();
    let text = program("sqlite3").unwrap().text;
    // The driver holds back every second plain SELECT and answers it under the
    // id of the next one.
    let swapping = text.replace(
        "def answer(id, reply):",
        "held = []\ndef answer(id, reply):\n    global held\n    if reply['reply'] == 'rows' and reply['columns'][0].isdigit():\n        held.append((id, reply))\n        if len(held) < 3:\n            return\n        (a, x), (b, y), (c, z) = held\n        held = []\n        for i, w in ((a, y), (b, z), (c, x)):\n            print(json.dumps({\"id\": i, **w}), flush=True)\n        return",
    );
    assert_ne!(text, swapping);
    let path = folder.path().join("swapping.py");
    std::fs::write(&path, swapping).unwrap();
    let results = check(&DriverCommand::new("python3", &[path.to_str().unwrap()]));
    let printed = detail(&results, "several statements are in flight");
    assert!(printed.contains("to `select") && printed.contains("came: `rows`"), "{printed}");
}

#[test]
fn driver_check_detects_wrong_types_and_accepted_unknown_sessions() {
    let folder = tempfile::tempdir().unwrap();
    let text = program("sqlite3").unwrap().text;
    let sloppy = text
        .replace("    return ({\"bytes\"", "    return str(value)\n    return ({\"bytes\"")
        .replace(
            "answer(id, error(\"session\"",
            "answer(id, {\"reply\": \"ok\"} or error(\"session\"",
        )
        .replace(
            "{**reply, \"tx\": \"open\" if connection.in_transaction else \"idle\"}",
            "{**reply, \"tx\": \"idle\"}",
        );
    let path = folder.path().join("sloppy.py");
    std::fs::write(&path, sloppy).unwrap();
    let results = check(&DriverCommand::new("python3", &[path.to_str().unwrap()]));
    let printed = detail(&results, "values come back typed");
    assert!(printed.contains("('7', '1.5', 'null', 'None')"), "{printed}");
    assert!(detail(&results, "an unknown session is an error").contains("came: `ok`"));
    assert!(
        detail(&results, "the transaction's status is true").contains("\"tx\" Open after begin")
    );
    assert!(results.iter().any(|r| r.name == "bye ends with code 0" && r.ok), "the rest goes on");
}

#[test]
fn driver_check_of_an_idle_driver_fails_and_ends() {
    let folder = tempfile::tempdir().unwrap();
    let results = check(&broken(&folder, ""));
    assert!(detail(&results, "values come back typed").contains("expected `rows`"));
    assert!(detail(&results, "what is not understood is answered with an error").contains("`ok`"));
    let results = check(&broken(&folder, "sys.exit(3)"));
    assert_eq!(results.len(), 1, "nothing to check without a hello");
    assert!(detail(&results, "hello is well formed").contains("exited with code 3"));
}

/// The example driver, changed so that its statements block.
fn blocking(folder: &TempDir, waiting: &str) -> DriverCommand {
    let text = program("sqlite3").unwrap().text;
    let mut changed = text.to_string();
    for (old, new) in [
        ("sqlite3.connect(path, 0,", "sqlite3.connect(path, 60,"),
        ("\"waiting\": \"retry\"", &format!("\"waiting\": \"{waiting}\"")),
        ("\"can\": [\"cancel\"]", "\"can\": [\"cancel\", \"waiting\"]"),
        (
            "        answer(id, execute(connection, sql))",
            "        running.add(connection)\n        reply = execute(connection, sql)\n        \
             running.discard(connection)\n        answer(id, reply)",
        ),
        (
            "    if kind == \"open\":",
            "    if kind == \"waiting\":\n        who = [{\"session\": n} for n in \
             request[\"sessions\"] if sessions[n][0] in running]\n        return answer(id, \
             {\"reply\": \"waiting\", \"sessions\": who})\n    if kind == \"open\":",
        ),
        ("own, sessions = connect(), {}", "own, sessions, running = connect(), {}, set()"),
    ] {
        assert!(changed.contains(old), "the example has no {old}");
        changed = changed.replace(old, new);
    }
    let path = folder.path().join(format!("{waiting}.py"));
    std::fs::write(&path, changed).unwrap();
    DriverCommand::new("python3", &[path.to_str().unwrap()])
}

#[test]
fn a_driver_with_blocking_statements_answers_other_sessions() {
    let folder = tempfile::tempdir().unwrap();
    for waiting in ["probe", "timeout"] {
        assert_all_ok(&check(&blocking(&folder, waiting)));
    }
    let results = check(&blocking(&folder, "never"));
    let printed = detail(&results, "a conflict shows as the profile says");
    assert!(printed.contains("the statement blocks"), "{printed}");

    let mut engine = DriverEngine::start(&blocking(&folder, "probe"), "driver:x").unwrap();
    engine.control("create table t (id integer)").unwrap();
    let (mut one, mut two) = (engine.open().unwrap(), engine.open().unwrap());
    run(&mut *one, "begin immediate");
    two.start("insert into t values (1)");
    assert!(two.reply(Duration::from_millis(200)).is_none());
    let states = engine.waiting(&[two.id(), one.id()]).unwrap();
    assert_eq!(states, [WaitState::Waiting(vec![]), WaitState::Free]);
    run(&mut *one, "rollback");
    assert_eq!(two.reply(LIMIT).unwrap().outcome, Outcome::Affected(1));
}

/// The Python interpreter that `isolde fetch` installed for an engine.
fn venv(engine: &str, version: &str) -> Option<String> {
    servers::is_available(&format!("{engine}@{version}")).then(|| {
        let found = install::find(engine, Some(version), &install::Cache::open());
        found.unwrap().server.display().to_string()
    })
}

#[test]
fn the_turso_driver_passes_every_check_in_both_modes() {
    let Some(python) = venv("turso", "0.8.3") else { return };
    let folder = tempfile::tempdir().unwrap();
    for mode in ["", "mvcc"] {
        assert_all_ok(&check(&shipped("turso", &python, folder.path(), mode)));
    }
}

#[test]
fn a_write_conflict_in_turso_ends_the_transaction_at_once() {
    let Some(python) = venv("turso", "0.8.3") else { return };
    let folder = tempfile::tempdir().unwrap();
    let command = shipped("turso", &python, folder.path(), "mvcc");
    let mut engine = DriverEngine::start(&command, "turso+mvcc").unwrap();
    engine.control("create table t (id integer primary key, v integer)").unwrap();
    engine.control("insert into t values (1, 10), (2, 20)").unwrap();
    let (mut one, mut two) = (engine.open().unwrap(), engine.open().unwrap());
    run(&mut *one, "begin concurrent");
    run(&mut *two, "begin concurrent");
    run(&mut *one, "update t set v = 11 where id = 1");
    run(&mut *two, "update t set v = 21 where id = 2");
    let reply = run(&mut *two, "update t set v = 12 where id = 1");
    let error = reply.error().unwrap();
    assert_eq!((error.class, error.effect), (ErrorClass::WriteConflict, ErrorEffect::RolledBack));
    assert_eq!(reply.tx, Some(TxStatus::Idle));
    run(&mut *one, "commit");
    let Outcome::Rows { rows, .. } = engine.control("select v from t order by id").unwrap() else {
        panic!()
    };
    assert_eq!(rows, [[Value::Int(11)], [Value::Int(20)]]);
}

/// In pyturso 0.1 ROLLBACK TO panics, and the wheel turns a panic into an abort.
#[test]
fn a_driver_whose_engine_aborts_can_be_revived() {
    let Some(python) = venv("turso", "0.1.5") else { return };
    let folder = tempfile::tempdir().unwrap();
    let command = shipped("turso", &python, folder.path(), "");
    let mut engine = DriverEngine::start(&command, "turso").unwrap();
    for _ in 0..2 {
        engine.control("create table t (id integer primary key, v integer)").unwrap();
        engine.control("insert into t values (1, 10)").unwrap();
        engine.clear().unwrap();
        assert!(engine.tables().unwrap().is_empty());
    }
    let mut session = engine.open().unwrap();
    run(&mut *session, "begin");
    let message = lost_message(&run(&mut *session, "rollback to s"));
    assert!(message.contains("abort") && message.contains("panicked at"), "{message}");
    assert!(engine.log_tail().unwrap().contains("panicked at"));
    engine.revive().unwrap();
    assert!(engine.tables().unwrap().is_empty());
}

#[test]
fn the_duckdb_driver_passes_every_check() {
    let Some(python) = venv("duckdb", "2") else { return };
    let folder = tempfile::tempdir().unwrap();
    assert_all_ok(&check(&shipped("duckdb", &python, folder.path(), "")));
}

#[test]
fn a_write_conflict_in_duckdb_poisons_the_transaction() {
    let Some(python) = venv("duckdb", "2") else { return };
    let folder = tempfile::tempdir().unwrap();
    let command = shipped("duckdb", &python, folder.path(), "");
    let mut engine = DriverEngine::start(&command, "duckdb").unwrap();
    engine.control("create table t (id integer primary key, v integer)").unwrap();
    engine.control("insert into t values (1, 10), (2, 20)").unwrap();
    let (mut one, mut two) = (engine.open().unwrap(), engine.open().unwrap());
    run(&mut *one, "begin");
    run(&mut *two, "begin");
    run(&mut *one, "update t set v = 11 where id = 1");
    run(&mut *two, "update t set v = 21 where id = 2");
    let reply = run(&mut *two, "update t set v = 12 where id = 1");
    let error = reply.error().unwrap();
    assert_eq!((error.class, error.effect), (ErrorClass::WriteConflict, ErrorEffect::Poisoned));
    assert_eq!(reply.tx, Some(TxStatus::Failed));
    let poisoned = run(&mut *two, "select v from t");
    assert_eq!(poisoned.error().unwrap().class, ErrorClass::Poisoned);
    let commit = run(&mut *two, "commit");
    assert!(commit.commit_rolled_back, "{commit:?}");
    run(&mut *one, "commit");
    let Outcome::Rows { rows, .. } = engine.control("select v from t order by id").unwrap() else {
        panic!()
    };
    assert_eq!(rows, [[Value::Int(11)], [Value::Int(20)]]);
}
