//! `isolde repl` on real servers, at a terminal and through pipes.

use isolde_testing::processes::{assert_nothing_left, children, signal};
use isolde_testing::program::{command, isolde, isolde_with_input, stderr, stdout, text};
use isolde_testing::servers;
use isolde_testing::terminal::Terminal;
use rustix::process::Signal;
use serde_json::Value;
use std::path::Path;

fn repl_terminal(target: &str, state: &Path) -> Terminal {
    let mut command = command(&["repl", target]);
    command.env("XDG_STATE_HOME", state);
    let mut terminal = Terminal::start(command);
    terminal.expect("blocks until s1 commits");
    terminal
}

#[test]
fn a_lock_wait_is_shown_at_the_prompt_and_ends_when_the_holder_commits() {
    for target in servers::available(&["sqlite", "postgres", "mariadb"]) {
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
        // The prompt returns to the session of the lock holder.
        terminal.expect("s1*>");
        terminal.line("select v from t where id = 1;");
        terminal.expect("v = 11");
        // Ctrl-C before the prompt would cancel the statement.
        terminal.expect("s1*>");
        terminal.keys("half a statem\x03");
        terminal.expect("(Ctrl-D or .quit exits)");
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
            terminal.expect("is running");
            // Typed but not sent: the result appears above, and the line stays.
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
        let replayed = stdout(&isolde(&["replay", text(&file), "--on", target]));
        let line = replayed.lines().find(|l| l.contains("s2> update")).unwrap();
        assert!(line.contains("waits") && line.contains("then 1 row"), "{replayed}");
    }
}

#[test]
fn a_lock_timeout_is_shown_while_the_prompt_is_idle() {
    for target in servers::available(&["sqlite", "postgres", "mariadb"]) {
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
        let effect = if target == "postgres" { "accepts only ROLLBACK" } else { "stays open" };
        terminal.expect(effect);
        // A signal at the prompt ends the program, which removes its server.
        let process = terminal.id();
        signal(process, Signal::TERM);
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

/// For servers: two transactions that deadlock.
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
fn a_saved_session_replays_to_the_same_history() {
    for target in servers::available(&["sqlite", "postgres", "mariadb"]) {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("mixed.case");
        let file = file.to_str().unwrap();
        let more = if target == "sqlite" { "" } else { DEADLOCK };
        let typed = format!("{MIXED}{more}.save {file}\n");
        let output = isolde_with_input(&["--json", "repl", target], typed.as_bytes());
        assert!(output.status.success(), "{}", stderr(&output));
        let typed: Value = serde_json::from_slice(&output.stdout).unwrap();
        let output = isolde(&["--json", "replay", file, "--on", target]);
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
fn when_every_session_waits_the_repl_suggests_cancel() {
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
    let output = isolde_with_input(&["repl"], typed.as_bytes());
    let text = stdout(&output);
    for part in [
        "s1.6  waits for s2",
        "s2.3  waits for s1",
        "Every session is blocked",
        ".cancel s2 ends",
        "cancelled by hand",
        "transaction was rolled back",
        "s1.6  committed",
        "v = 2",
    ] {
        assert!(text.contains(part), "no `{part}` in\n{text}");
    }
    let errors = stderr(&output);
    assert!(errors.contains("s2 has no running statement"), "{errors}");
    assert_eq!(output.status.code(), Some(2));
}

#[test]
fn dot_commands_load_save_replay_and_reset() {
    let folder = tempfile::tempdir().unwrap();
    let case = Path::new(env!("CARGO_MANIFEST_DIR")).join("cases/hermitage/g-single-write.case");
    let kept = folder.path().join("kept.case");
    let typed = format!(
        ".help\n.load {}\n.schedule\n.tables\n.save {}\n.replay {}\n.reset\n.tables\n.levels\n.target sqlite+wal\nselect 1;\n.quit\nnever;\n",
        case.display(),
        kept.display(),
        kept.display()
    );
    let output = isolde_with_input(&["repl"], typed.as_bytes());
    let text = stdout(&output);
    for part in [".cancel s1", "setup> ", "s1.1  ", "steps to", "No tables.", "sqlite+wal", "(1)"] {
        assert!(text.contains(part), "no `{part}` in\n{text}");
    }
    assert!(!text.contains("never"));
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
}

#[test]
fn why_explains_the_session_while_transactions_are_open() {
    for (target, rule) in [("sqlite+wal", "S2"), ("postgres", "P7")] {
        if !servers::is_available(target) {
            continue;
        }
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
        let output = isolde_with_input(&["repl", target], typed.as_bytes());
        let text = stdout(&output);
        let expected =
            format!("inside {rule} one snapshot per transaction: does not see what s2 committed");
        for part in ["No steps yet.", &expected, "Consistent: ", "[1] https://"] {
            assert!(text.contains(part), "{target}: no `{part}` in\n{text}");
        }
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    }
}

#[test]
fn nonsense_in_the_repl_is_an_error_and_never_a_panic() {
    let mut input: Vec<u8> = b".nothing\n.level\n.level s1 chaos\n.load /nowhere\n.save\n.cancel\n.\n;\n;;\ns1(\ns1(rr)> x;\ns1>\n>;\nsetup>;\n.target what\n'".to_vec();
    let mut dice: u64 = 7;
    for _ in 0..4000 {
        dice = dice.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        let letters = b"s1>:;.'\"$-/*\n (levt)\xc3\xa9\0";
        input.push(letters[usize::try_from(dice >> 33).unwrap() % letters.len()]);
    }
    let output = isolde_with_input(&["repl"], &input);
    let errors = stderr(&output);
    assert!(matches!(output.status.code(), Some(2 | 5)), "{:?}\n{errors}", output.status);
    assert!(errors.contains("unknown command .nothing"), "{errors}");
    assert!(errors.contains("`chaos` is not an isolation level"), "{errors}");
}

#[test]
fn a_forgotten_semicolon_and_an_early_save_get_a_message() {
    let folder = tempfile::tempdir().unwrap();
    let mut terminal = repl_terminal("sqlite", folder.path());
    terminal.line(".save early.case");
    terminal.expect("no steps yet; there is nothing to save");
    terminal.line("select 1");
    terminal.expect("...>");
    terminal.line("s2> select 2 as two;");
    terminal.expect("(dropped the statement without a ;)");
    terminal.expect("s2.1  two = 2");
    // A comparison is not taken for a prompt.
    terminal.line("select 3 as s1 where 5");
    terminal.expect("...>");
    terminal.line("  > 4;");
    terminal.expect("s1 = 3");
    terminal.expect("s2>");
    terminal.keys("\x04");
    assert!(terminal.ends().success());
}

#[test]
fn a_dead_server_is_reported_and_reset_starts_another() {
    for target in servers::available(&["postgres", "mariadb"]) {
        let folder = tempfile::tempdir().unwrap();
        let mut terminal = repl_terminal(target, folder.path());
        let process = terminal.id();
        terminal.line("create table t (v int); insert into t values (1);");
        terminal.expect("s1.2  1 row changed");
        terminal.line("begin; update t set v = 2;");
        terminal.expect("s1.4  1 row changed");
        terminal.line("s2> update t set v = 3;");
        terminal.expect("s2.1  waits for s1");
        signal(children(process)[0], Signal::KILL);
        terminal.expect("s2.1  error lost");
        terminal.expect("the connection is lost; .reset starts over");
        terminal.line(".reset");
        terminal.expect("Reset: no tables");
        terminal.line("select 7 as seven;");
        terminal.expect("s1.1  seven = 7");
        terminal.expect("s1>");
        terminal.keys("\x04");
        assert!(terminal.ends().success());
        assert_nothing_left(process);
    }
}
