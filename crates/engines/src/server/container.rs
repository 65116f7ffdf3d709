//! A server in a container: started by the runtime's command, then used like
//! a user's server, through its URL.
//!
//! No container engine runs where Isolde is developed; what is tested is the
//! command that is built (see `via`) and what happens when it fails.

use crate::connect::secret::Secret;
use crate::connect::url::ServerUrl;
use crate::engine::*;
use crate::server::via::{Runtime, container_command, password_variables, stop_command};
use crate::server::{free_port, spawn_guarded};
use crate::spec::PgLinks;
use crate::target::{Named, Target};
use isolde_core::history::TargetInfo;
use isolde_core::{Level, Profile};
use rustix::process::Signal;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Pulling an image takes its time.
const START_LIMIT: Duration = Duration::from_secs(600);

/// The container goes with it.
struct Container {
    child: Child,
    runtime: Runtime,
    name: String,
    log: tempfile::NamedTempFile,
}

impl Drop for Container {
    fn drop(&mut self) {
        // The client's end does not end the container.
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

pub fn open(runtime: Runtime, named: &Named) -> EngineResult<Box<dyn Engine>> {
    let target = Target::Named(named.clone()).to_string();
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
        match Target::Url(url.clone()).open_as(&target) {
            // Its image starts without a password; it gets one before anything else.
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

/// An engine whose server goes when it goes.
struct Contained {
    // First, so that its database is dropped while there is a server.
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
    fn revive(&mut self) -> EngineResult<()> {
        self.inner.revive()
    }
    fn client(&self) -> Option<ClientInfo> {
        self.inner.client().map(|place| ClientInfo { private: true, ..place })
    }
    fn spec_links(&mut self, test: &str, sessions: &[String]) -> EngineResult<Option<PgLinks>> {
        self.inner.spec_links(test, sessions)
    }
    fn server_ended(&mut self, patience: Duration) -> Option<String> {
        let status = crate::server::exit_status(&mut self.container.child, patience)?;
        Some(format!("its container ended ({status})"))
    }
    fn log_tail(&self) -> Option<String> {
        crate::server::tail(self.container.log.path(), 4000).ok()
    }
}
