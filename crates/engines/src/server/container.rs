//! A server in a container: started by the runtime's command, then used like a
//! user's server, through its URL.
//!
//! The development machines have no container engine; the tests cover the
//! command line (see `via`) and its failure.

use crate::connect::url::ServerUrl;
use crate::engine::*;
use crate::named_engine::NamedEngine;
use crate::secret::Secret;
use crate::server::via::{Runtime, container_command, password_variables, stop_command};
use crate::server::{free_port, spawn_guarded};
use isolde_model::history::TargetInfo;
use isolde_model::{Level, Profile};
use rustix::process::Signal;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Pulling an image may take long.
const START_LIMIT: Duration = Duration::from_secs(600);

/// A running container, which is stopped when this is dropped.
struct Container {
    child: Child,
    runtime: Runtime,
    name: String,
    log: tempfile::NamedTempFile,
}

impl Drop for Container {
    fn drop(&mut self) {
        // Ending the client process does not end the container.
        let words = stop_command(self.runtime, &self.name);
        let _ = Command::new(&words[0])
            .args(&words[1..])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status();
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Opens an engine on a server, by its URL, under the given target name.
pub type OpenUrl<'a> = &'a dyn Fn(&ServerUrl, &str) -> EngineResult<Box<dyn Engine>>;

/// Starts a container with the named engine and connects to it.
pub fn open(
    runtime: Runtime,
    named: &NamedEngine,
    open_url: OpenUrl<'_>,
) -> EngineResult<Box<dyn Engine>> {
    let target = named.to_string();
    let unreachable =
        |why: String| EngineError::Unreachable(format!("{target} via {runtime}: {why}"));
    let port = free_port().map_err(|e| unreachable(e.to_string()))?;
    let name = format!("isolde-{}-{port}", std::process::id());
    let words = container_command(runtime, &named.engine, named.version.as_deref(), port, &name)
        .map_err(|e| EngineError::Refused(e.to_string()))?;
    let log = tempfile::NamedTempFile::new().map_err(|e| unreachable(e.to_string()))?;
    let output = || log.reopen().map_err(|e| unreachable(e.to_string()));
    let password = Secret::random();
    let variables = password_variables(&named.engine);
    let mut command = Command::new(&words[0]);
    command.envs(variables.iter().map(|name| (name, password.reveal())));
    command.args(&words[1..]).stdin(Stdio::null()).stdout(output()?).stderr(output()?);
    let child = spawn_guarded(command, Signal::TERM)
        .map_err(|e| unreachable(format!("cannot run {}: {e}", words[0])))?;
    let mut container = Container { child, runtime, name, log };
    let scheme = &named.engine;
    let user = if scheme == "postgres" { "postgres" } else { "root" };
    let mut url =
        ServerUrl::parse(&format!("{scheme}://{user}@127.0.0.1:{port}")).map_err(unreachable)?;
    if !variables.is_empty() {
        url.password = Some(password.clone());
    }
    let since = Instant::now();
    loop {
        if let Ok(Some(status)) = container.child.try_wait() {
            let tail = crate::server::tail(container.log.path(), 2000).unwrap_or_default();
            return Err(unreachable(format!("it ended ({status}): {tail}")));
        }
        match open_url(&url, &target) {
            // Its image starts without a password; set one before anything
            // else.
            Ok(mut inner) if named.engine == "tidb" && url.password.is_none() => {
                inner.control(&format!("set password = '{}'", password.reveal()))?;
                url.password = Some(password.clone());
            }
            Ok(inner) => return Ok(Box::new(Contained { inner, container })),
            Err(error) if since.elapsed() > START_LIMIT => {
                return Err(unreachable(error.to_string()));
            }
            Err(_) => std::thread::sleep(Duration::from_millis(200)),
        }
    }
}

/// An engine on a server in a container, which is stopped with it.
struct Contained {
    // First, so that its database is dropped while the server still runs.
    inner: Box<dyn Engine>,
    container: Container,
}

impl Engine for Contained {
    fn info(&self) -> &TargetInfo {
        self.inner.info()
    }
    fn profile(&self) -> &Profile {
        self.inner.profile()
    }
    fn open(&mut self) -> EngineResult<Box<dyn Session>> {
        self.inner.open()
    }
    fn level_sql(&self, level: Level) -> Vec<String> {
        self.inner.level_sql(level)
    }
    fn begin_at_sql(&self, begin: &str, level: Level) -> Vec<String> {
        self.inner.begin_at_sql(begin, level)
    }
    fn waiting(&mut self, sessions: &[SessionId]) -> EngineResult<Vec<WaitState>> {
        self.inner.waiting(sessions)
    }
    fn cancel(&mut self, session: SessionId) -> EngineResult<()> {
        self.inner.cancel(session)
    }
    fn control(&mut self, sql: &str) -> EngineResult<Outcome> {
        self.inner.control(sql)
    }
    fn batch(&mut self, statements: &[String]) -> EngineResult<Outcome> {
        self.inner.batch(statements)
    }
    fn clear(&mut self) -> EngineResult<()> {
        self.inner.clear()
    }
    fn tables(&mut self) -> EngineResult<Vec<String>> {
        self.inner.tables()
    }
    fn breaks_deadlocks_within(&self) -> Option<Duration> {
        self.inner.breaks_deadlocks_within()
    }
    fn client_address(&self) -> Option<ClientAddress> {
        self.inner.client_address().map(|address| match address {
            ClientAddress::Server(info) => {
                ClientAddress::Server(ClientInfo { private: true, ..info })
            }
            file => file,
        })
    }
    fn server_control(&mut self) -> Option<&mut dyn ServerControl> {
        Some(self)
    }
    fn spec_connections(&mut self) -> Option<&mut dyn SpecConnections> {
        self.inner.spec_connections()
    }
}

impl ServerControl for Contained {
    fn revive(&mut self) -> EngineResult<()> {
        self.inner.revive()
    }
    fn exit_status(&mut self, patience: Duration) -> Option<String> {
        let status = crate::server::exit_status(&mut self.container.child, patience)?;
        Some(format!("its container ended ({status})"))
    }
    fn log_tail(&self) -> Option<String> {
        crate::server::tail(self.container.log.path(), 4000).ok()
    }
}
