//! A server started by `isolde server`. A second Isolde reaches it by its URL,
//! as it reaches the server of a user.

use crate::processes::signal;
use crate::program::command;
use rustix::process::Signal;
use serde_json::Value;
use std::io::{BufRead, BufReader};
use std::process::Child;

pub struct UserServer {
    pub child: Child,
    /// What `isolde --json server` has printed: address, user, password.
    pub printed: Value,
}

impl UserServer {
    /// Starts a server and waits until it can be reached.
    pub fn start(target: &str, more: &[&str]) -> UserServer {
        let mut child = command(&["--json", "server", target]).args(more).spawn().unwrap();
        let mut line = String::new();
        let mut reader = BufReader::new(child.stdout.take().unwrap());
        reader.read_line(&mut line).unwrap();
        let printed = serde_json::from_str(&line).unwrap_or_else(|e| {
            let mut errors = String::new();
            let mut stderr = child.stderr.take().unwrap();
            let _ = std::io::Read::read_to_string(&mut stderr, &mut errors);
            panic!("{target}: {e}: {line}{errors}")
        });
        UserServer { child, printed }
    }

    /// A field of what the command has printed.
    pub fn text(&self, name: &str) -> &str {
        self.printed[name].as_str().unwrap_or_default()
    }

    /// The URL with another login: the part before the `@`.
    pub fn url_for(&self, login: &str) -> String {
        let scheme = self.text("engine").split('+').next().unwrap_or_default().to_string();
        let database = if scheme == "postgres" { "postgres" } else { "" };
        format!("{scheme}://{login}@127.0.0.1:{}/{database}", self.printed["port"])
    }

    /// The URL with the server's own login.
    pub fn url(&self) -> String {
        self.url_for(&format!("{}:{}", self.text("user"), self.text("password")))
    }

    /// Ends the command by SIGTERM. Returns its exit code.
    pub fn end(&mut self) -> Option<i32> {
        signal(self.child.id(), Signal::TERM);
        self.child.wait().unwrap().code()
    }
}

impl Drop for UserServer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
