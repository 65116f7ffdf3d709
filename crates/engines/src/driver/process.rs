//! A driver's process: lines in, lines out, and the reason when it ends.
//!
//! Two threads serve it. The writer keeps a driver that does not read from
//! blocking Isolde; the reader turns lines into answers and, when there are no
//! more, determines why. The reader is also the thread that starts the process:
//! Linux sends the parent-death signal when the *thread* that forked ends, so a
//! driver started from a short-lived worker would die with that worker.

use super::command::DriverCommand;
use super::exit;
use super::message::{Message, read_line};
use crate::engine::{EngineError, EngineResult};
use crate::server::kill_with_parent;
use crate::server::scratch::Scratch;
use rustix::process::{Pid, Signal, kill_process_group};
use serde_json::{Value as Json, json};
use std::collections::HashMap;
use std::fs::OpenOptions;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, ChildStdin, ChildStdout, Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// The longest accepted line: a driver that prints without end is cut off.
const LONGEST_LINE: u64 = 256 << 20;
const LINE_SHOWN: usize = 300;

pub struct DriverProcess {
    shared: Arc<Shared>,
    lines: Mutex<Sender<String>>,
    /// The driver's TMPDIR: a killed driver cannot remove its own files.
    _home: Scratch,
}

struct Shared {
    state: Mutex<State>,
    changed: Condvar,
    stderr: PathBuf,
}

#[derive(Default)]
struct State {
    next_id: u64,
    /// None while the request is in flight.
    requests: HashMap<u64, Option<Message>>,
    /// Requests whose answers will not be read, kept to distinguish an answer
    /// from a stray line, and to let later requests wait for them.
    unwatched: HashMap<u64, ()>,
    /// Lines sent that are not requests; their answers carry no id.
    unaddressed_due: usize,
    unaddressed: Vec<Message>,
    child: Option<Child>,
    /// Why there will be no more answers.
    end: Option<String>,
    exit: Option<ExitStatus>,
    killed: bool,
}

impl DriverProcess {
    pub fn spawn(command: &DriverCommand) -> EngineResult<DriverProcess> {
        let unreachable = |what: &str, e: &dyn std::fmt::Display| {
            EngineError::Unreachable(format!("{what} `{command}`: {e}"))
        };
        let home = crate::server::scratch::scratch_dir("driver");
        let home = home.map_err(|e| unreachable("no folder for", &e))?;
        let stderr = home.path().join("stderr");
        let shared = Arc::new(Shared { state: Mutex::default(), changed: Condvar::new(), stderr });
        let (started, result) = mpsc::channel();
        let (lines, to_write) = mpsc::channel();
        let mut command_of_reader = command.clone();
        command_of_reader.env.push(("TMPDIR".into(), home.path().display().to_string()));
        let shared_of_reader = Arc::clone(&shared);
        let reader = move || match shared_of_reader.start(&command_of_reader) {
            Ok((stdin, stdout)) => {
                let writer = thread::Builder::new().name("driver-writer".into());
                let writing = writer.spawn(move || write_lines(stdin, to_write));
                let _ = started.send(writing.map(|_| ()));
                shared_of_reader.read(stdout);
            }
            Err(error) => drop(started.send(Err(error))),
        };
        thread::Builder::new()
            .name("driver-reader".into())
            .spawn(reader)
            .map_err(|e| unreachable("no thread for", &e))?;
        match result.recv() {
            Ok(Ok(())) => Ok(DriverProcess { shared, lines: Mutex::new(lines), _home: home }),
            Ok(Err(error)) => Err(unreachable("cannot start", &error)),
            Err(error) => Err(unreachable("cannot start", &error)),
        }
    }

    /// Sends a request and returns its id, also when the driver has ended: the
    /// answer then says so.
    pub fn send(&self, mut request: Json) -> u64 {
        let mut state = self.shared.lock();
        state.next_id += 1;
        let id = state.next_id;
        state.requests.insert(id, None);
        drop(state);
        request["id"] = json!(id);
        self.write(request.to_string());
        id
    }

    /// Sends a request whose answer only [`DriverProcess::settle`] waits for.
    pub fn send_unwatched(&self, request: Json) {
        let id = self.send(request);
        let mut state = self.shared.lock();
        // The answer may have arrived before the mark was set.
        if let Some(None) = state.requests.remove(&id) {
            state.unwatched.insert(id, ());
        }
        drop(state);
        self.shared.changed.notify_all();
    }

    /// Sends a line that is not a request; its answer carries no id.
    pub fn send_raw(&self, line: &str) {
        self.shared.lock().unaddressed_due += 1;
        self.write(line.to_string());
    }

    fn write(&self, line: String) {
        // A closed channel means that the writer found a closed pipe; the
        // reader finds the same end and reports it better.
        let _ = self.lines.lock().unwrap_or_else(PoisonError::into_inner).send(line);
    }

    /// The answer to a request, if it arrives in time; an error when none can
    /// arrive any more.
    pub fn wait(&self, id: u64, patience: Duration) -> Option<Result<Message, String>> {
        self.shared.wait_until(patience, |state| {
            if let Some(Some(_)) = state.requests.get(&id) {
                return state.requests.remove(&id).flatten().map(Ok);
            }
            state.end.clone().map(Err)
        })
    }

    /// The answer to a line sent with [`DriverProcess::send_raw`].
    pub fn wait_unaddressed(&self, patience: Duration) -> Option<Result<Message, String>> {
        self.shared.wait_until(patience, |state| {
            state.unaddressed.pop().map(Ok).or_else(|| state.end.clone().map(Err))
        })
    }

    /// Waits until all requests without a reader are answered.
    pub fn settle(&self, patience: Duration) -> bool {
        let settled =
            |state: &mut State| (state.unwatched.is_empty() || state.end.is_some()).then_some(());
        self.shared.wait_until(patience, settled).is_some()
    }

    /// Runs one request to its end. A driver that does not answer is killed: a
    /// late answer could not be distinguished from that to the next request.
    pub fn ask(&self, request: Json, patience: Duration) -> EngineResult<Message> {
        let what = request["request"].as_str().unwrap_or("a request").to_string();
        let id = self.send(request);
        match self.wait(id, patience) {
            Some(answer) => answer.map_err(EngineError::Lost),
            None => {
                let why = format!("the driver did not answer `{what}` within {patience:?}");
                self.shared.finish(why.clone());
                self.kill();
                Err(EngineError::Hangs(why))
            }
        }
    }

    /// Describes a violation of the protocol beyond a single line.
    pub fn violation(&self, what: &str) -> String {
        let why = format!("the driver broke the protocol: {what}");
        self.shared.finish(why.clone());
        self.kill();
        why
    }

    /// Waits for the process to end by itself.
    pub fn wait_exit(&self, patience: Duration) -> Option<ExitStatus> {
        let exited = |state: &mut State| {
            state.end.as_ref()?;
            state.exit
        };
        self.shared.wait_until(patience, exited)
    }

    /// Why the process is unusable, if it becomes so within `patience`.
    pub fn end(&self, patience: Duration) -> Option<String> {
        self.shared.wait_until(patience, |state| state.end.clone())
    }

    pub fn kill(&self) {
        self.shared.kill();
    }

    /// The end of the driver's stderr.
    pub fn stderr_tail(&self) -> Option<String> {
        self.shared.stderr_tail()
    }
}

impl Drop for DriverProcess {
    fn drop(&mut self) {
        self.kill();
    }
}

fn write_lines(mut stdin: ChildStdin, lines: Receiver<String>) {
    for mut line in lines {
        line.push('\n');
        if stdin.write_all(line.as_bytes()).and_then(|()| stdin.flush()).is_err() {
            return;
        }
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait_until<T>(
        &self,
        patience: Duration,
        mut look: impl FnMut(&mut State) -> Option<T>,
    ) -> Option<T> {
        let deadline = Instant::now() + patience;
        let mut state = self.lock();
        loop {
            if let Some(found) = look(&mut state) {
                return Some(found);
            }
            let left = deadline.checked_duration_since(Instant::now())?;
            let waited = self.changed.wait_timeout(state, left);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    fn start(&self, command: &DriverCommand) -> std::io::Result<(ChildStdin, ChildStdout)> {
        let stderr = OpenOptions::new().append(true).create(true).open(&self.stderr)?;
        let mut process = Command::new(&command.program);
        process
            .args(&command.args)
            .envs(command.env.iter().map(|(name, value)| (name, value)))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(stderr)
            .process_group(0);
        kill_with_parent(&mut process, Signal::KILL);
        let mut child = process.spawn()?;
        let pipes = child.stdin.take().zip(child.stdout.take());
        self.lock().child = Some(child);
        pipes.ok_or_else(|| std::io::Error::other("the pipes are missing"))
    }

    /// The body of the reader thread.
    fn read(&self, stdout: ChildStdout) {
        let mut stdout = BufReader::new(stdout);
        let end = loop {
            let mut line = Vec::new();
            match (&mut stdout).take(LONGEST_LINE).read_until(b'\n', &mut line) {
                Ok(0) => break None,
                Ok(_) if line.ends_with(b"\n") => {
                    if let Err(why) = self.accept(&line) {
                        break Some(why);
                    }
                }
                // A line without its end comes from a dying process.
                Ok(n) if (n as u64) < LONGEST_LINE => break None,
                Ok(_) => break Some(violation("its line does not end", &line)),
                Err(error) => break Some(format!("the driver cannot be read: {error}")),
            }
        };
        match end {
            Some(why) => {
                self.finish(why);
                self.kill();
            }
            None => {
                let status = self.reap();
                let why = self.tell_end(status);
                self.finish(why);
            }
        }
    }

    fn accept(&self, line: &[u8]) -> Result<(), String> {
        let text = std::str::from_utf8(line).map_err(|_| violation("it is not UTF-8", line))?;
        let (id, message) = read_line(text).map_err(|why| violation(&why, line))?;
        let mut state = self.lock();
        match id {
            Some(id) if state.unwatched.remove(&id).is_some() => {}
            Some(id) => match state.requests.get_mut(&id) {
                Some(slot @ None) => *slot = Some(message),
                _ => {
                    let why = format!("request {id} was never sent or is answered already");
                    return Err(violation(&why, line));
                }
            },
            None if state.unaddressed_due > 0 => {
                state.unaddressed_due -= 1;
                state.unaddressed.push(message);
            }
            None => return Err(violation("its `id` is null, but every request had one", line)),
        }
        drop(state);
        self.changed.notify_all();
        Ok(())
    }

    /// Collects the exit status; a driver that closed its stdout and keeps
    /// running gets a moment to end, and is killed then.
    fn reap(&self) -> Option<ExitStatus> {
        for _ in 0..100 {
            let mut state = self.lock();
            let status = state.child.as_mut().and_then(|c| c.try_wait().ok().flatten());
            if let Some(status) = status {
                state.child = None;
                state.exit = Some(status);
                return Some(status);
            }
            if state.child.is_none() {
                return state.exit;
            }
            drop(state);
            thread::sleep(Duration::from_millis(10));
        }
        self.kill();
        None
    }

    fn tell_end(&self, status: Option<ExitStatus>) -> String {
        let killed = self.lock().killed && status.is_some();
        exit::describe_exit(status, killed, self.stderr_tail())
    }

    fn finish(&self, why: String) {
        self.lock().end.get_or_insert(why);
        self.changed.notify_all();
    }

    fn kill(&self) {
        let mut state = self.lock();
        if let Some(mut child) = state.child.take() {
            // Kills its process group, so that the driver's child processes
            // end, too. The child is not reaped yet, so its number has not been
            // reused.
            let _ = kill_process_group(Pid::from_child(&child), Signal::KILL);
            let _ = child.kill();
            state.killed = true;
            state.exit = child.wait().ok();
        }
        drop(state);
        self.changed.notify_all();
    }

    fn stderr_tail(&self) -> Option<String> {
        exit::tail(&self.stderr)
    }
}

fn violation(why: &str, line: &[u8]) -> String {
    let shown = String::from_utf8_lossy(&line[..line.len().min(LINE_SHOWN)]);
    format!("the driver broke the protocol: {why}; the line: {}", shown.trim_end())
}
