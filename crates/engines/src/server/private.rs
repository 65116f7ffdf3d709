//! Private servers: started in a temporary directory on a free loopback port,
//! owned by this process, and ended with it.
//!
//! A server must not outlive Isolde, however Isolde ends. On a normal end, a
//! panic or Ctrl-C the destructor stops it. For the case of SIGKILL each server
//! asks the kernel for a signal when its parent dies. The kernel means the
//! parent *thread*, so all servers are spawned by one thread that never ends.

use super::process::{children, exit_status, give_away, signal, spawn_guarded, tail};
use super::scratch::{Scratch, scratch_dir};
use crate::engine::{EngineError, EngineResult};
use crate::fetch::install::{Cache, Install};
use rustix::process::{Signal, kill_process};
use std::fs::{self, File};
use std::io;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Time limit for a server's start.
const START_LIMIT: Duration = Duration::from_secs(90);

/// How many ports are tried before a server counts as not starting.
const PORTS: usize = 4;

pub struct PrivateServer {
    child: Child,
    stop_signal: Signal,
    log: PathBuf,
    pub port: u16,
    pub data: PathBuf,
    // Last, so that the directory is removed after the process has ended.
    _dir: Scratch,
}

/// How one kind of server is initialised and started.
pub struct Recipe<'a> {
    pub install: &'a Install,
    /// The name of the prepared data directory. Different results of
    /// `initialise` need different names.
    pub template: String,
    /// Fills an empty data directory. The result is kept as a template, so this
    /// runs once per version.
    pub initialise: &'a dyn Fn(&Path) -> Vec<Command>,
    /// The server's command for a data directory and a port.
    pub start: &'a dyn Fn(&Path, u16) -> Command,
    /// The signal that stops it at once without leaving anything behind.
    pub stop_signal: Signal,
}

impl PrivateServer {
    /// Starts a server and waits until `ready` can talk to it. If another
    /// program takes the port first, the server is started again on another.
    pub fn start<T>(
        recipe: &Recipe<'_>,
        cache: &Cache,
        ready: impl Fn(&PrivateServer) -> EngineResult<T>,
    ) -> EngineResult<(PrivateServer, T)> {
        PrivateServer::start_on(recipe, cache, ready, free_port)
    }

    fn start_on<T>(
        recipe: &Recipe<'_>,
        cache: &Cache,
        ready: impl Fn(&PrivateServer) -> EngineResult<T>,
        mut port: impl FnMut() -> io::Result<u16>,
    ) -> EngineResult<(PrivateServer, T)> {
        for _ in 1..PORTS {
            match PrivateServer::start_once(recipe, cache, &ready, &mut port) {
                Err(error) if is_port_taken(&error) => {}
                result => return result,
            }
        }
        PrivateServer::start_once(recipe, cache, &ready, &mut port)
    }

    fn start_once<T>(
        recipe: &Recipe<'_>,
        cache: &Cache,
        ready: &impl Fn(&PrivateServer) -> EngineResult<T>,
        port: &mut impl FnMut() -> io::Result<u16>,
    ) -> EngineResult<(PrivateServer, T)> {
        let name = format!("{} {}", recipe.install.engine, recipe.install.version);
        let failed = |what: &str, e: &dyn std::fmt::Display| {
            EngineError::Unreachable(format!("{name}: {what}: {e}"))
        };
        let template = template(recipe, cache)?;
        let dir = scratch_dir(&recipe.install.engine)
            .map_err(|e| failed("no temporary directory", &e))?;
        give_away(dir.path()).map_err(|e| failed("cannot hand over the directory", &e))?;
        let data = dir.path().join("data");
        copy_tree(&template, &data).map_err(|e| failed("cannot copy the data directory", &e))?;
        let log = dir.path().join("server.log");
        let port = port().map_err(|e| failed("no free port", &e))?;
        let file = File::create(&log).map_err(|e| failed("cannot write a log", &e))?;
        let mut command = (recipe.start)(&data, port);
        let copy = file.try_clone().map_err(|e| failed("cannot write a log", &e))?;
        command.stdin(Stdio::null()).stdout(copy).stderr(file).current_dir(dir.path());
        let child = spawn_guarded(command, recipe.stop_signal)
            .map_err(|e| failed(&format!("cannot run {}", recipe.install.server.display()), &e))?;
        let stop_signal = recipe.stop_signal;
        let mut server = PrivateServer { child, stop_signal, log, port, data, _dir: dir };
        let client = server.wait_until(&name, ready)?;
        Ok((server, client))
    }

    fn wait_until<T>(
        &mut self,
        name: &str,
        ready: impl Fn(&PrivateServer) -> EngineResult<T>,
    ) -> EngineResult<T> {
        let since = Instant::now();
        let mut last = String::from("it never answered");
        while since.elapsed() < START_LIMIT {
            if let Ok(Some(status)) = self.child.try_wait() {
                return Err(EngineError::Unreachable(format!(
                    "{name} did not start ({status}); its log ends:\n{}",
                    self.log_tail()
                )));
            }
            match ready(self) {
                Ok(client) => return Ok(client),
                // Another server listens on the port: never touch it.
                Err(EngineError::Refused(why)) => return Err(EngineError::Refused(why)),
                Err(error) => last = error.to_string(),
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        let tail = self.log_tail();
        Err(EngineError::Unreachable(format!(
            "{name} did not answer: {last}; its log ends:\n{tail}"
        )))
    }

    pub fn log_tail(&self) -> String {
        tail(&self.log, 4000).unwrap_or_else(|e| format!("(no log: {e})"))
    }

    pub fn is_running(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(None))
    }

    /// How its process ended, if it does within `patience`.
    pub fn ended(&mut self, patience: Duration) -> Option<String> {
        let status = exit_status(&mut self.child, patience)?;
        Some(format!("its process ended ({status})"))
    }

    /// Whether the process that listens on the port is the one that was
    /// started. For servers that do not report their data directory.
    pub fn owns_its_port(&self) -> bool {
        let sockets: Vec<String> = ["/proc/net/tcp", "/proc/net/tcp6"]
            .iter()
            .filter_map(|path| fs::read_to_string(path).ok())
            .flat_map(|table| listening_sockets(&table, self.port))
            .collect();
        let Ok(files) = fs::read_dir(format!("/proc/{}/fd", self.child.id())) else { return false };
        files.flatten().filter_map(|file| fs::read_link(file.path()).ok()).any(|link| {
            sockets.iter().any(|s| link.as_os_str() == format!("socket:[{s}]").as_str())
        })
    }

    /// Kills it as a crash would, together with its child processes: a stopped
    /// child would never notice that the server is gone.
    pub fn kill(&mut self) {
        if self.is_running() {
            // A stopped server neither starts more children nor reaps those
            // that end.
            signal(&self.child, Signal::STOP);
            for child in children(self.child.id()) {
                // The number stays the child's until its parent, which is
                // stopped, reaps it.
                let _ = kill_process(child, Signal::KILL);
            }
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    /// Stops it, even if it hangs.
    pub fn stop(&mut self) {
        if !self.is_running() {
            return;
        }
        signal(&self.child, self.stop_signal);
        signal(&self.child, Signal::CONT);
        let since = Instant::now();
        while self.is_running() {
            if since.elapsed() > Duration::from_secs(10) {
                return self.kill();
            }
            std::thread::sleep(Duration::from_millis(2));
        }
    }
}

impl Drop for PrivateServer {
    fn drop(&mut self) {
        self.stop();
    }
}

/// A data directory from the server's own tool, prepared once.
fn template(recipe: &Recipe<'_>, cache: &Cache) -> EngineResult<PathBuf> {
    let install = recipe.install;
    let name = &recipe.template;
    let failed = |e: &dyn std::fmt::Display| {
        let server = format!("{} {}", install.engine, install.version);
        EngineError::Unreachable(format!("cannot prepare a data directory for {server}: {e}"))
    };
    let root = cache.folder("templates").map_err(|e| failed(&e))?;
    let ready = root.join(name);
    if ready.exists() {
        return Ok(ready);
    }
    // Another process may prepare the same one: each works in its own
    // directory, and the first one to finish renames it.
    let work = tempfile::Builder::new()
        .prefix(&format!(".{name}-"))
        .tempdir_in(&root)
        .map_err(|e| failed(&e))?;
    give_away(work.path()).map_err(|e| failed(&e))?;
    let data = work.path().join("data");
    fs::create_dir(&data).and_then(|()| give_away(&data)).map_err(|e| failed(&e))?;
    for mut command in (recipe.initialise)(&data) {
        command.current_dir(work.path()).stdin(Stdio::null());
        let output = command.output().map_err(|e| failed(&format!("{command:?}: {e}")))?;
        if !output.status.success() {
            let text = [output.stdout, output.stderr].concat();
            return Err(failed(&String::from_utf8_lossy(&text)));
        }
    }
    match fs::rename(&data, &ready) {
        Ok(()) => Ok(ready),
        Err(_) if ready.exists() => Ok(ready),
        Err(e) => Err(failed(&e)),
    }
}

fn copy_tree(from: &Path, to: &Path) -> io::Result<()> {
    let status = Command::new("cp").arg("-a").arg("--reflink=auto").arg(from).arg(to).status()?;
    if status.success() { Ok(()) } else { Err(io::Error::other(format!("cp ended with {status}"))) }
}

/// Whether a server did not start because another program has its port: it
/// answers there, or the server's log says so.
fn is_port_taken(error: &EngineError) -> bool {
    match error {
        EngineError::Refused(_) => true,
        EngineError::Unreachable(why) => why.to_ascii_lowercase().contains("already in use"),
        _ => false,
    }
}

/// A port without a listener. Another program may take it before the server
/// does; then the server fails to start, or another server answers, which its
/// data directory reveals.
pub fn free_port() -> io::Result<u16> {
    Ok(TcpListener::bind(("127.0.0.1", 0))?.local_addr()?.port())
}

/// The sockets that listen on a port, from the kernel's table.
fn listening_sockets(table: &str, port: u16) -> Vec<String> {
    const LISTEN: &str = "0A";
    table
        .lines()
        .skip(1)
        .filter_map(|line| {
            let fields: Vec<&str> = line.split_whitespace().collect();
            let (_, local_port) = fields.get(1)?.rsplit_once(':')?;
            let ours =
                u16::from_str_radix(local_port, 16) == Ok(port) && fields.get(3) == Some(&LISTEN);
            ours.then(|| fields.get(9).map(|inode| inode.to_string())).flatten()
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_whose_port_is_taken_starts_on_another() {
        let dir = tempfile::tempdir().unwrap();
        let taken = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let taken_port = taken.local_addr().unwrap().port();
        let install = Install {
            engine: "listener".into(),
            version: "1".into(),
            source: "python3".into(),
            basedir: dir.path().into(),
            server: "python3".into(),
            launcher: Vec::new(),
            env: Vec::new(),
            init: None,
        };
        let listen = |_: &Path, port: u16| {
            let mut command = Command::new("python3");
            let program = format!(
                "import socket, time; s = socket.socket(); s.bind(('127.0.0.1', {port})); \
                 s.listen(); time.sleep(60)"
            );
            command.arg("-c").arg(program);
            command
        };
        let recipe = Recipe {
            install: &install,
            template: "listener-1".into(),
            initialise: &|_| Vec::new(),
            start: &listen,
            stop_signal: Signal::TERM,
        };
        let ready = |server: &PrivateServer| match server.owns_its_port() {
            true => Ok(()),
            false => Err(EngineError::Unreachable("it does not listen yet".into())),
        };
        let cache = Cache::at(dir.path());
        let mut ports = vec![free_port().unwrap(), taken_port, taken_port];
        let next = || Ok(ports.pop().expect("no more than three attempts"));
        let (server, ()) = PrivateServer::start_on(&recipe, &cache, ready, next).unwrap();
        assert_ne!(server.port, taken_port);
        assert!(ports.is_empty(), "two attempts failed");
        // A port that stays taken is an error with the server's own words.
        let always = || Ok(taken_port);
        let error = PrivateServer::start_on(&recipe, &cache, ready, always).err().unwrap();
        assert!(error.to_string().contains("already in use"), "{error}");
    }

    #[test]
    fn a_listening_socket_is_found_by_its_port() {
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        let table = fs::read_to_string("/proc/net/tcp").unwrap();
        assert_eq!(listening_sockets(&table, port).len(), 1);
        drop(listener);
        let table = fs::read_to_string("/proc/net/tcp").unwrap();
        assert!(listening_sockets(&table, port).is_empty());
    }
}
