//! `isolde repl` as people use it: on real servers, at a terminal and through
//! pipes.

mod terminal;

use serde_json::Value;
use std::path::Path;
use terminal::Terminal;
use terminal::at_hand::{assert_nothing_left, isolde, pipe, signal, targets};

fn repl_terminal(target: &str, state: &Path) -> Terminal {
    let mut command = isolde(&["repl", target]);
    command.env("XDG_STATE_HOME", state);
    let mut terminal = Terminal::start(command);
    terminal.expect("waits for s1, until you commit;");
    terminal
}

#[test]
fn a_wait_is_shown_at_the_prompt_and_ends_when_the_holder_commits() {
    for target in targets() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("wait.case");
        let mut terminal = repl_terminal(target, folder.path());
        let process = terminal.id();
        terminal.line("create table t (id int primary key, v int);");
        terminal.expect("s1.1  ok");
        terminal.line("insert into t values (1, 10), (2, 20);");
        terminal.expect("2 rows changed");
        terminal.line("begin;");
        terminal.expect("s1.3  transaction open");
        terminal.line("update t set v = 11 where id = 1;");
        terminal.expect("1 row changed");
        terminal.line("s2> update t set v = 12 where id = 1;");
        terminal.expect("s2.1  waits for s1");
        // The prompt is back with the holder, and works.
        terminal.expect("s1*>");
        terminal.line("select v from t where id = 1;");
        terminal.expect("v = 11");
        // Before the prompt, Ctrl-C would be for the statement.
        terminal.expect("s1*>");
        terminal.keys("half a statem\x03");
        terminal.expect("(Ctrl-D or .quit ends)");
        terminal.expect("s1*>");
        terminal.line(".sessions");
        terminal.expect("transaction open");
        terminal.expect("waits for s1");
        terminal.line("commit;");
        terminal.expect("s1.6  committed");
        terminal.expect("s2.1  1 row changed");
        terminal.expect("after waiting");
        let sleep = match target {
            "postgres" => Some("select 'done', pg_sleep(2);"),
            "mariadb" => Some("select 'done', sleep(2);"),
            _ => None,
        };
        if let Some(sleep) = sleep {
            terminal.line(&format!("s3> {sleep}"));
            terminal.expect("works on it");
            // Typed but not sent: the answer comes above it, and it stays.
            terminal.keys("select v from t whe");
            terminal.expect("s3.1  ('done'");
            terminal.keys("re id = 1;\r");
            terminal.expect("v = 12");
        }
        terminal.line(&format!(".save {}", file.display()));
        terminal.expect("isolde replay");
        terminal.line(".schedule");
        terminal.expect("s1> commit;");
        terminal.line(".tables");
        terminal.expect("t  (1, 12) (2, 20)");
        terminal.expect("s1> ");
        terminal.keys("\x04");
        assert_eq!(terminal.ends().code(), Some(0), "{target}");
        assert_nothing_left(process);
        let history = std::fs::read_to_string(folder.path().join("isolde/repl-history")).unwrap();
        assert!(history.contains("update t set v = 12"), "{history}");
        let replayed =
            isolde(&["replay", file.to_str().unwrap(), "--on", target]).output().unwrap();
        let replayed = String::from_utf8(replayed.stdout).unwrap();
        let line = replayed.lines().find(|l| l.contains("s2> update")).unwrap();
        assert!(line.contains("waits") && line.contains("then 1 row"), "{replayed}");
    }
}

#[test]
fn a_wait_that_ends_by_itself_is_shown_while_the_prompt_is_idle() {
    for target in targets() {
        let timeout = match target {
            "postgres" => "set lock_timeout = '1500ms';",
            "mariadb" => "set innodb_lock_wait_timeout = 2;",
            _ => continue,
        };
        let folder = tempfile::tempdir().unwrap();
        let mut terminal = repl_terminal(target, folder.path());
        terminal.line("setup> create table t (id int primary key, v int);");
        terminal.expect("setup  ok");
        terminal.line("setup> insert into t values (1, 10);");
        terminal.line("begin; update t set v = 11;");
        terminal.expect("s1.2  1 row changed");
        terminal.line(&format!("s2> {timeout}"));
        terminal.expect("s2.1  ok");
        terminal.line("s2> begin; update t set v = 12;");
        terminal.expect("s2.3  waits for s1");
        terminal.expect("s2.3  error");
        let effect = if target == "postgres" { "takes only a rollback" } else { "goes on" };
        terminal.expect(effect);
        // A signal at the prompt ends it, too, and tidies up.
        let process = terminal.id();
        signal(process, libc::SIGTERM);
        assert_eq!(terminal.ends().code(), Some(130));
        assert_nothing_left(process);
    }
}

const MIXED: &str = "\
setup> create table t (id int primary key, v int);
setup> insert into t values (1, 10), (2, 20);
insert into t values (0, 0);
.level serializable
.level s2 serializable
begin; update t set v = 11 where id = 1;
s2> begin;
update t set v = v + 1 where id = 1;
select * from t;
s3: insert into t
  values (3, 30);
s1> commit;
s2> rollback;
.level s1 serializable
s1> begin; select v from t where id = 2;
update nowhere set x = 1;
rollback;
";

/// On the servers: two transactions that each want what the other has.
const DEADLOCK: &str = "\
s1> begin; update t set v = 1 where id = 1;
s2> begin; update t set v = 2 where id = 2;
s1> update t set v = 3 where id = 2;
s2> update t set v = 4 where id = 1;
s2(anyway)> update t set v = 5 where id = 2;
s2> commit;
s1> commit;
";

#[test]
fn what_was_saved_replays_to_the_same_history() {
    for target in targets() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("mixed.case");
        let file = file.to_str().unwrap();
        let more = if target == "sqlite" { "" } else { DEADLOCK };
        let typed = format!("{MIXED}{more}.save {file}\n");
        let output = pipe(&["--json", "repl", target], typed.as_bytes());
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let typed: Value = serde_json::from_slice(&output.stdout).unwrap();
        let output = isolde(&["--json", "replay", file, "--on", target]).output().unwrap();
        let replayed: Value = serde_json::from_slice(&output.stdout).unwrap();
        let replayed = &replayed["runs"][0]["history"];
        for part in ["level", "steps", "events", "transactions"] {
            assert_eq!(typed[part], replayed[part], "{part} on {target}");
        }
        let waits = |e: &&Value| e["event"] == "waiting";
        let waited = typed["events"].as_array().unwrap().iter().filter(waits).count();
        assert!(waited > 0, "{target}: nothing waited");
    }
}

#[test]
fn when_every_session_waits_the_way_out_is_said() {
    let typed = "\
create table t (v int); insert into t values (1);
begin; select v from t;
s2> begin; select v from t;
s1> update t set v = 2; commit;
s2> update t set v = 3;
.cancel s2
.cancel s2
s1> select v from t;
";
    let output = pipe(&["repl"], typed.as_bytes());
    let text = String::from_utf8(output.stdout).unwrap();
    for part in [
        "s1.6  waits for s2",
        "s2.3  waits for s1",
        "Every session waits",
        ".cancel s2 ends",
        "cancelled by hand",
        "its transaction was rolled back",
        "s1.6  committed",
        "v = 2",
    ] {
        assert!(text.contains(part), "no `{part}` in\n{text}");
    }
    let errors = String::from_utf8(output.stderr).unwrap();
    assert!(errors.contains("s2 has no statement under way"), "{errors}");
    assert_eq!(output.status.code(), Some(2));
}

#[test]
fn commands_load_reset_and_explain() {
    let folder = tempfile::tempdir().unwrap();
    let case =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../cases/hermitage/g-single-write.case");
    let kept = folder.path().join("kept.case");
    let typed = format!(
        ".help\n.load {}\n.schedule\n.tables\n.save {}\n.replay {}\n.reset\n.tables\n.levels\n.target sqlite+wal\nselect 1;\n.quit\nnever;\n",
        case.display(),
        kept.display(),
        kept.display()
    );
    let output = pipe(&["repl"], typed.as_bytes());
    let text = String::from_utf8(output.stdout).unwrap();
    for part in [".cancel s1", "setup> ", "s1.1  ", "steps in", "No tables.", "sqlite+wal", "(1)"] {
        assert!(text.contains(part), "no `{part}` in\n{text}");
    }
    assert!(!text.contains("never"));
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn why_explains_what_was_typed_while_transactions_are_open() {
    for (target, rule) in [("sqlite+wal", "S2 a snapshot"), ("postgres", "P7 a snapshot")] {
        let typed = "\
.why
create table t (id int primary key, v int); insert into t values (1, 10);
.level serializable
begin; select v from t;
s2> update t set v = 11;
s1> select v from t;
.why
s1> commit;
";
        let output = pipe(&["repl", target], typed.as_bytes());
        let text = String::from_utf8(output.stdout).unwrap();
        let expected = format!("inside {rule} a transaction: does not see what s2 committed");
        for part in ["Nothing was done yet.", &expected, "consistent: ", "[1] https://"] {
            assert!(text.contains(part), "{target}: no `{part}` in\n{text}");
        }
        assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    }
}

#[test]
fn nonsense_is_told_and_never_a_panic() {
    let mut input: Vec<u8> = b".nothing\n.level\n.level s1 chaos\n.load /nowhere\n.save\n.cancel\n.\n;\n;;\ns1(\ns1(rr)> x;\ns1>\n>;\nsetup>;\n.target what\n'".to_vec();
    let mut dice: u64 = 7;
    for _ in 0..4000 {
        dice = dice.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        let letters = b"s1>:;.'\"$-/*\n (levt)\xc3\xa9\0";
        input.push(letters[usize::try_from(dice >> 33).unwrap() % letters.len()]);
    }
    let output = pipe(&["repl"], &input);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(matches!(output.status.code(), Some(2 | 5)), "{:?}\n{errors}", output.status);
    assert!(errors.contains("there is no command .nothing"), "{errors}");
    assert!(errors.contains("`chaos` is not an isolation level"), "{errors}");
}

#[test]
fn a_forgotten_semicolon_and_an_early_save_are_met_with_sense() {
    let folder = tempfile::tempdir().unwrap();
    let mut terminal = repl_terminal("sqlite", folder.path());
    terminal.line(".save early.case");
    terminal.expect("nothing was done yet, so there is nothing to save");
    terminal.line("select 1");
    terminal.expect("...>");
    terminal.line("s2> select 2 as two;");
    terminal.expect("(the statement without its ; is dropped)");
    terminal.expect("s2.1  two = 2");
    // A comparison is no prompt.
    terminal.line("select 3 as s1 where 5");
    terminal.expect("...>");
    terminal.line("  > 4;");
    terminal.expect("s1 = 3");
    terminal.expect("s2>");
    terminal.keys("\x04");
    assert!(terminal.ends().success());
}

#[test]
fn a_server_that_dies_is_said_and_reset_brings_another() {
    for target in targets().into_iter().filter(|t| *t != "sqlite") {
        let folder = tempfile::tempdir().unwrap();
        let mut terminal = repl_terminal(target, folder.path());
        let process = terminal.id();
        terminal.line("create table t (v int); insert into t values (1);");
        terminal.expect("s1.2  1 row changed");
        terminal.line("begin; update t set v = 2;");
        terminal.expect("s1.4  1 row changed");
        terminal.line("s2> update t set v = 3;");
        terminal.expect("s2.1  waits for s1");
        signal(server_of(process), libc::SIGKILL);
        terminal.expect("s2.1  error lost");
        terminal.expect("the connection is gone; .reset starts over");
        terminal.line(".reset");
        terminal.expect("Empty again");
        terminal.line("select 7 as seven;");
        terminal.expect("s1.1  seven = 7");
        terminal.expect("s1>");
        terminal.keys("\x04");
        assert!(terminal.ends().success());
        assert_nothing_left(process);
    }
}

/// Servers are the children of one thread of Isolde's.
fn server_of(process: u32) -> u32 {
    let threads = std::fs::read_dir(format!("/proc/{process}/task")).unwrap().flatten();
    let first = |path: std::path::PathBuf| -> Option<u32> {
        std::fs::read_to_string(path).ok()?.split_whitespace().next()?.parse().ok()
    };
    threads.map(|t| t.path().join("children")).find_map(first).expect("the server is a child")
}
