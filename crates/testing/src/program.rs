//! The `isolde` program: run with arguments, and its output.

use crate::processes::wait_until;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

/// The program that Cargo has built next to the tests.
pub fn path() -> PathBuf {
    let test = std::env::current_exe().unwrap();
    let folder = test.parent().and_then(Path::parent).expect("tests are built in `deps`");
    let program = folder.join("isolde");
    assert!(program.exists(), "{} is not built", program.display());
    program
}

/// A command with pipes for its output, and no input. No variable of the
/// environment colours its output or provides a password.
pub fn command(arguments: &[&str]) -> Command {
    let mut command = Command::new(path());
    command.args(arguments);
    for variable in ["NO_COLOR", "PGPASSWORD", "PGPASSFILE", "MYSQL_PWD"] {
        command.env_remove(variable);
    }
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// Runs the program to its end.
pub fn isolde(arguments: &[&str]) -> Output {
    command(arguments).output().unwrap()
}

/// Runs the program to its end with this input.
pub fn isolde_with_input(arguments: &[&str], input: &[u8]) -> Output {
    let mut child = command(arguments).stdin(Stdio::piped()).spawn().unwrap();
    // A program that quits early does not read the rest.
    let _ = child.stdin.take().unwrap().write_all(input);
    child.wait_with_output().unwrap()
}

/// Starts a hunt on SQLite that goes on until it is killed, and waits until it
/// has written its summary for the first time.
pub fn hunting(out: &Path, more: &[&str]) -> Child {
    let arguments = ["hunt", "sqlite", "--time", "10m", "--out", text(out)];
    let mut command = command(&[&arguments, more].concat());
    let child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    wait_until("the hunt writes hunt.json", || out.join("hunt.json").exists());
    child
}

pub fn stdout(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

pub fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// The text of both streams, stdout first.
pub fn all_output(output: &Output) -> String {
    stdout(output) + &stderr(output)
}

/// A path as an argument.
pub fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}
