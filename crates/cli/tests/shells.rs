//! `isolde server` and `isolde shell` as people use them, on real servers.

mod servers;
mod terminal;

use servers::Server;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use terminal::at_hand::{assert_nothing_left, installed, isolde, signal, targets};
use terminal::{PATIENCE, Terminal};

#[test]
fn a_server_can_be_reached_with_the_command_it_prints_and_is_removed() {
    let folder = tempfile::tempdir().unwrap();
    let setup = folder.path().join("setup.sql");
    std::fs::write(&setup, "create table t (id int);\ninsert into t values (41), (1);\n").unwrap();
    for target in targets() {
        let mut server = Server::start(target, &["--setup", setup.to_str().unwrap()]);
        let said = &server.said;
        if target != "sqlite" {
            assert!(said["port"].as_u64().is_some_and(|p| p > 1023), "{said}");
            assert_eq!(said["user"], "isolde");
        }
        let client = said["client"].as_str().unwrap();
        let program = client.split(' ').find(|word| !word.contains('=')).unwrap();
        if installed(program) {
            let asked = format!("echo 'select sum(id) from t;' | {client}");
            let answer = Command::new("sh").args(["-c", &asked]).output().unwrap();
            let text = String::from_utf8_lossy(&answer.stdout).into_owned();
            assert!(text.contains("42"), "{target}: {text}");
        }
        assert_eq!(server.end(), Some(0), "{target}");
        assert_nothing_left(server.child.id());
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
        screen.expect("s1>");
        screen.expect("s2>");
        screen.line("begin;");
        screen.line("update t set v = 11 where id = 1;");
        screen.line("select 654321 + 1;");
        screen.expect("654322");
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
