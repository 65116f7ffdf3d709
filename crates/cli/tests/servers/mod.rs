//! Servers for tests: ones that `isolde server` has started, so that a second
//! Isolde can get to know them by their URL, as if they were a user's.

use serde_json::Value;
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

pub struct Server {
    pub child: Child,
    /// What `isolde --json server` has said.
    pub said: Value,
}

impl Server {
    pub fn start(target: &str, more: &[&str]) -> Server {
        let mut command = Command::new(env!("CARGO_BIN_EXE_isolde"));
        command.args(["--json", "server", target]).args(more);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut line = String::new();
        let mut reader = BufReader::new(child.stdout.take().unwrap());
        reader.read_line(&mut line).unwrap();
        let said = serde_json::from_str(&line).unwrap_or_else(|e| {
            let mut errors = String::new();
            let mut stderr = child.stderr.take().unwrap();
            let _ = std::io::Read::read_to_string(&mut stderr, &mut errors);
            panic!("{target}: {e}: {line}{errors}")
        });
        Server { child, said }
    }

    pub fn text(&self, name: &str) -> &str {
        self.said[name].as_str().unwrap_or_default()
    }

    /// With a login as it stands before the @ of a URL.
    pub fn url_for(&self, login: &str) -> String {
        let scheme = self.text("engine").split('+').next().unwrap_or_default().to_string();
        let database = if scheme == "postgres" { "postgres" } else { "" };
        format!("{scheme}://{login}@127.0.0.1:{}/{database}", self.said["port"])
    }

    #[allow(dead_code)]
    pub fn url(&self) -> String {
        self.url_for(&format!("{}:{}", self.text("user"), self.text("password")))
    }

    /// Ends it as Ctrl-C would, and answers how it ended.
    #[allow(dead_code)]
    pub fn end(&mut self) -> Option<i32> {
        let process = self.child.id().to_string();
        let sent = Command::new("kill").args(["-TERM", &process]).status().unwrap();
        assert!(sent.success());
        self.child.wait().unwrap().code()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
