//! `isolde server`, `shell` and `repl` as people use them: on real servers, at
//! a terminal and through pipes.

mod terminal;

use serde_json::Value;
use std::io::Write;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};
use terminal::{PATIENCE, Terminal};

fn isolde(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_isolde"));
    command.args(arguments).env("NO_COLOR", "1");
    command
}

/// SQLite always; the servers unless ISOLDE_TEST_QUICK is set or they are not
/// installed.
fn targets() -> Vec<&'static str> {
    let mut all = vec!["sqlite"];
    if std::env::var_os("ISOLDE_TEST_QUICK").is_some() {
        println!("skipped on servers: ISOLDE_TEST_QUICK is set");
        return all;
    }
    let output = isolde(&["servers", "--json"]).output().unwrap();
    let known: Value = serde_json::from_slice(&output.stdout).unwrap();
    for engine in ["postgres", "mariadb"] {
        let there = ["machine", "cache"].iter().any(|place| {
            known[place].as_array().is_some_and(|all| all.iter().any(|i| i["engine"] == engine))
        });
        match there {
            true => all.push(engine),
            false => println!("skipped on {engine}: it is not installed"),
        }
    }
    all
}

fn installed(program: &str) -> bool {
    let there = std::env::var_os("PATH")
        .is_some_and(|path| std::env::split_paths(&path).any(|dir| dir.join(program).is_file()));
    if !there {
        println!("skipped: {program} is not installed");
    }
    there
}

fn pipe(arguments: &[&str], input: &[u8]) -> Output {
    let mut command = isolde(arguments);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    // A repl that quits early does not read the rest.
    let _ = child.stdin.take().unwrap().write_all(input);
    child.wait_with_output().unwrap()
}

/// The directories of a process and of the servers that it started.
fn leftovers(process: u32) -> Vec<String> {
    let mine = format!("isolde-{process}-");
    let names = |folder: &Path| -> Vec<String> {
        let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
        entries.map(|e| e.file_name().to_string_lossy().into_owned()).collect()
    };
    let folders = [Path::new("/dev/shm").to_path_buf(), std::env::temp_dir()];
    let mut left: Vec<String> = folders.iter().flat_map(|f| names(f)).collect();
    left.retain(|name| name.starts_with(&mine));
    for process in names(Path::new("/proc")) {
        let line = std::fs::read(format!("/proc/{process}/cmdline")).unwrap_or_default();
        let line = String::from_utf8_lossy(&line).replace('\0', " ");
        if line.contains(&mine) {
            left.push(line);
        }
    }
    left
}

#[track_caller]
fn assert_nothing_left(process: u32) {
    // A killed server takes a moment to leave the table of processes.
    let end = Instant::now() + PATIENCE;
    while !leftovers(process).is_empty() && Instant::now() < end {
        std::thread::sleep(Duration::from_millis(50));
    }
    assert_eq!(leftovers(process), Vec::<String>::new());
}

fn signal(child: u32, signal: i32) {
    let id = i32::try_from(child).unwrap();
    // SAFETY: a signal to a child of ours that was not waited for yet.
    assert_eq!(unsafe { libc::kill(id, signal) }, 0);
}

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

/// Starts `isolde server --json` and reads what it prints.
fn start_server(target: &str, setup: &Path) -> (Child, Value) {
    let mut command = isolde(&["--json", "server", target, "--setup", setup.to_str().unwrap()]);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = command.spawn().unwrap();
    let mut line = String::new();
    let mut reader = std::io::BufReader::new(child.stdout.take().unwrap());
    std::io::BufRead::read_line(&mut reader, &mut line).unwrap();
    (child, serde_json::from_str(&line).unwrap_or_else(|e| panic!("{e}: {line}")))
}

#[test]
fn a_server_can_be_reached_with_the_command_it_prints_and_is_removed() {
    let folder = tempfile::tempdir().unwrap();
    let setup = folder.path().join("setup.sql");
    std::fs::write(&setup, "create table t (id int);\ninsert into t values (41), (1);\n").unwrap();
    for target in targets() {
        let (mut child, said) = start_server(target, &setup);
        if target != "sqlite" {
            assert!(said["port"].as_u64().is_some_and(|p| p > 1023), "{said}");
            assert_eq!(said["user"], "isolde");
        }
        let client = said["client"].as_str().unwrap();
        if installed(client.split(' ').next().unwrap()) {
            let asked = format!("echo 'select sum(id) from t;' | {client}");
            let answer = Command::new("sh").args(["-c", &asked]).output().unwrap();
            let text = String::from_utf8_lossy(&answer.stdout).into_owned();
            assert!(text.contains("42"), "{target}: {text}");
        }
        signal(child.id(), libc::SIGTERM);
        assert_eq!(child.wait().unwrap().code(), Some(0), "{target}");
        assert_nothing_left(child.id());
    }
}

#[test]
fn enter_ends_a_server_at_a_terminal_and_a_bad_setup_names_its_line() {
    let mut terminal = Terminal::start(isolde(&["server", "sqlite"]));
    let process = terminal.id();
    terminal.expect("sqlite3 -box");
    terminal.expect("Enter or Ctrl-C");
    terminal.keys("\r");
    assert_eq!(terminal.ends().code(), Some(0));
    assert_nothing_left(process);

    let folder = tempfile::tempdir().unwrap();
    let setup = folder.path().join("setup.sql");
    std::fs::write(&setup, "create table t (id int);\n\ninsert int t;\n").unwrap();
    let output =
        isolde(&["server", "sqlite", "--setup", setup.to_str().unwrap()]).output().unwrap();
    assert_eq!(output.status.code(), Some(5));
    assert!(String::from_utf8_lossy(&output.stderr).contains("setup.sql: line 3"));
    std::fs::write(&setup, "case: x\nsetup:\n  create table t (id int)\n").unwrap();
    let output =
        isolde(&["server", "sqlite", "--setup", setup.to_str().unwrap()]).output().unwrap();
    assert_eq!(output.status.code(), Some(5));
    assert!(String::from_utf8_lossy(&output.stderr).contains("line 3, column"));
}

/// A tmux server of the test's own around the one of `isolde shell`.
struct Screen(String);

impl Screen {
    fn tmux(&self, arguments: &[&str]) -> String {
        let mut command = Command::new("tmux");
        command.args(["-L", &self.0, "-f", "/dev/null"]).args(arguments).env_remove("TMUX");
        String::from_utf8_lossy(&command.output().unwrap().stdout).into_owned()
    }

    fn line(&self, text: &str) {
        // A ; at the end of an argument would end tmux's own command.
        let text = text.strip_suffix(';').map_or(text.into(), |t| format!("{t}\\;"));
        self.tmux(&["send-keys", "-l", &text]);
        self.tmux(&["send-keys", "Enter"]);
    }

    #[track_caller]
    fn expect(&self, words: &str) {
        let end = Instant::now() + PATIENCE;
        while Instant::now() < end {
            if self.tmux(&["capture-pane", "-p"]).contains(words) {
                return;
            }
            std::thread::sleep(Duration::from_millis(100));
        }
        panic!("`{words}` did not appear; the screen:\n{}", self.tmux(&["capture-pane", "-p"]));
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        self.tmux(&["kill-server"]);
        let folder = std::env::var("TMUX_TMPDIR").unwrap_or_else(|_| "/tmp".into());
        // SAFETY: getuid has no preconditions and cannot fail.
        let user = unsafe { libc::getuid() };
        let _ = std::fs::remove_file(format!("{folder}/tmux-{user}/{}", self.0));
    }
}

#[test]
fn a_shell_shows_its_clients_side_by_side_and_ends_with_them() {
    if !installed("tmux") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let setup = folder.path().join("setup.sql");
    std::fs::write(
        &setup,
        "create table t (id int primary key, v int);\ninsert into t values (1, 10);\n",
    )
    .unwrap();
    for (target, client) in [("sqlite", "sqlite3"), ("postgres", "psql"), ("mariadb", "mariadb")] {
        if !targets().contains(&target) || !installed(client) {
            continue;
        }
        let screen = Screen(format!("isolde-test-{}-{target}", std::process::id()));
        let command = format!(
            "{} shell 2 {target} --setup {}; echo ENDED $?; sleep 60",
            env!("CARGO_BIN_EXE_isolde"),
            setup.display()
        );
        screen.tmux(&["new-session", "-d", "-x", "160", "-y", "40", &command]);
        screen.expect("s2>");
        screen.line("begin;");
        screen.line("update t set v = 11 where id = 1;");
        screen.tmux(&["send-keys", "C-b", "Right"]);
        screen.line("update t set v = 12 where id = 1;");
        screen.line("select 123456 + 1;");
        // It waits: what was typed behind it has no answer yet.
        std::thread::sleep(Duration::from_millis(500));
        assert!(!screen.tmux(&["capture-pane", "-p"]).contains("123457"), "{target}");
        screen.tmux(&["send-keys", "C-b", "Left"]);
        screen.line("commit;");
        screen.expect("123457");
        screen.line("select v * 100000 from t;");
        screen.expect("1200000");
        let quit = if client == "mariadb" {
            "quit"
        } else if client == "psql" {
            "\\q"
        } else {
            ".quit"
        };
        screen.line(quit);
        std::thread::sleep(Duration::from_millis(500));
        screen.line(quit);
        screen.expect("ENDED 0");
    }
}

#[test]
fn without_tmux_a_shell_prints_its_commands_and_a_missing_client_is_said() {
    if !installed("sqlite3") {
        return;
    }
    let mut command = isolde(&["shell", "2", "sqlite"]);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = command.spawn().unwrap();
    let mut reader = std::io::BufReader::new(child.stdout.take().unwrap());
    let mut text = String::new();
    while text.matches("-cmd '.prompt").count() < 2 {
        assert_ne!(std::io::BufRead::read_line(&mut reader, &mut text).unwrap(), 0, "{text}");
    }
    assert!(text.contains("\"s2> \""), "{text}");
    signal(child.id(), libc::SIGTERM);
    assert_eq!(child.wait().unwrap().code(), Some(0));
    assert_nothing_left(child.id());

    let empty = tempfile::tempdir().unwrap();
    let output = isolde(&["shell", "2", "sqlite"]).env("PATH", empty.path()).output().unwrap();
    assert_eq!(output.status.code(), Some(4));
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(errors.contains("`sqlite3` is not installed"), "{errors}");
}
