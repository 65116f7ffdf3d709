//! `isolde server` and `isolde shell` on real servers.

use isolde_testing::processes::{assert_nothing_left, signal, wait_until};
use isolde_testing::program::{self, command, isolde, stderr, text};
use isolde_testing::servers::{self, tool};
use isolde_testing::terminal::Terminal;
use isolde_testing::user_server::UserServer;
use rustix::process::Signal;
use std::process::{Command, Stdio};
use std::time::Duration;

#[test]
fn the_printed_client_command_reaches_the_server() {
    let folder = tempfile::tempdir().unwrap();
    let setup = folder.path().join("setup.sql");
    std::fs::write(&setup, "create table t (id int);\ninsert into t values (41), (1);\n").unwrap();
    for target in servers::available(&["sqlite", "postgres", "mariadb"]) {
        let mut server = UserServer::start(target, &["--setup", text(&setup)]);
        let printed = &server.printed;
        if target != "sqlite" {
            assert!(printed["port"].as_u64().is_some_and(|p| p > 1023), "{printed}");
            assert_eq!(printed["user"], "isolde");
        }
        let client = printed["client"].as_str().unwrap();
        let program = client.split(' ').find(|word| !word.contains('=')).unwrap();
        if tool(program).is_some() {
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
    let mut terminal = Terminal::start(command(&["server", "sqlite"]));
    let process = terminal.id();
    terminal.expect("sqlite3 -box");
    terminal.expect("Enter or Ctrl-C");
    terminal.keys("\r");
    assert_eq!(terminal.ends().code(), Some(0));
    assert_nothing_left(process);

    let folder = tempfile::tempdir().unwrap();
    let setup = folder.path().join("setup.sql");
    std::fs::write(&setup, "create table t (id int);\n\ninsert int t;\n").unwrap();
    let output = isolde(&["server", "sqlite", "--setup", text(&setup)]);
    assert_eq!(output.status.code(), Some(5));
    assert!(stderr(&output).contains("setup.sql: line 3"));
    std::fs::write(&setup, "case: x\nsetup:\n  create table t (id int)\n").unwrap();
    let output = isolde(&["server", "sqlite", "--setup", text(&setup)]);
    assert_eq!(output.status.code(), Some(5));
    assert!(stderr(&output).contains("line 3, column"));
}

/// A tmux server of the test, in which `isolde shell` runs its own.
struct Screen(String);

impl Screen {
    fn tmux(&self, arguments: &[&str]) -> String {
        let mut command = Command::new("tmux");
        command.args(["-L", &self.0, "-f", "/dev/null"]).args(arguments).env_remove("TMUX");
        String::from_utf8_lossy(&command.output().unwrap().stdout).into_owned()
    }

    fn text(&self) -> String {
        self.tmux(&["capture-pane", "-p"])
    }

    fn line(&self, text: &str) {
        // A ; at the end of an argument would end tmux's own command.
        let text = text.strip_suffix(';').map_or(text.into(), |t| format!("{t}\\;"));
        self.tmux(&["send-keys", "-l", &text]);
        self.tmux(&["send-keys", "Enter"]);
    }

    #[track_caller]
    fn expect(&self, words: &str) {
        wait_until(&format!("`{words}` appears"), || self.text().contains(words));
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        self.tmux(&["kill-server"]);
        let folder = std::env::var("TMUX_TMPDIR").unwrap_or_else(|_| "/tmp".into());
        let user = rustix::process::getuid().as_raw();
        let _ = std::fs::remove_file(format!("{folder}/tmux-{user}/{}", self.0));
    }
}

#[test]
fn shell_shows_clients_side_by_side_and_ends_with_them() {
    if tool("tmux").is_none() {
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
        if !servers::is_available(target) || tool(client).is_none() {
            continue;
        }
        let screen = Screen(format!("isolde-test-{}-{target}", std::process::id()));
        let command = format!(
            "{} shell 2 {target} --setup {}; echo ENDED $?; sleep 60",
            program::path().display(),
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
        // The update is blocked: the statement after it has no result yet.
        std::thread::sleep(Duration::from_millis(500));
        assert!(!screen.text().contains("123457"), "{target}");
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
fn shell_without_tmux_prints_its_commands() {
    if tool("sqlite3").is_none() {
        return;
    }
    let mut child = command(&["shell", "2", "sqlite"]).stderr(Stdio::null()).spawn().unwrap();
    let mut reader = std::io::BufReader::new(child.stdout.take().unwrap());
    let mut text = String::new();
    while text.matches("-cmd '.prompt").count() < 2 {
        assert_ne!(std::io::BufRead::read_line(&mut reader, &mut text).unwrap(), 0, "{text}");
    }
    assert!(text.contains("\"s2> \""), "{text}");
    signal(child.id(), Signal::TERM);
    assert_eq!(child.wait().unwrap().code(), Some(0));
    assert_nothing_left(child.id());

    let empty = tempfile::tempdir().unwrap();
    let output = command(&["shell", "2", "sqlite"]).env("PATH", empty.path()).output().unwrap();
    assert_eq!(output.status.code(), Some(4));
    let errors = stderr(&output);
    assert!(errors.contains("`sqlite3` is not installed"), "{errors}");
}
