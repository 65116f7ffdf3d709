//! A program in a pseudo-terminal: a test types, and waits for text to appear.

use crate::processes::PATIENCE;
use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

pub struct Terminal {
    child: Child,
    keys: File,
    screen: Receiver<Vec<u8>>,
    /// All that was shown so far, without colours and cursor movements.
    pub text: String,
    /// The length of `text` up to the end of the last match of `expect`.
    matched: usize,
    raw: Vec<u8>,
}

impl Terminal {
    /// Starts a program on a screen of 150 columns.
    pub fn start(command: Command) -> Terminal {
        Terminal::start_with(command, 150)
    }

    /// Starts a program on a screen of this many columns.
    pub fn start_with(mut command: Command, columns: u16) -> Terminal {
        let (mut master, mut slave) = (0, 0);
        let size = libc::winsize { ws_row: 40, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
        // SAFETY: the two numbers have room for the descriptors, the size is
        // only read, and the other pointers may be null.
        let made = unsafe {
            libc::openpty(
                &raw mut master,
                &raw mut slave,
                std::ptr::null_mut(),
                std::ptr::null(),
                &raw const size,
            )
        };
        assert_eq!(made, 0, "no pseudo-terminal");
        // SAFETY: both were just opened and have no other owner.
        let (master, slave) = unsafe { (File::from_raw_fd(master), OwnedFd::from_raw_fd(slave)) };
        // The child must not hold the other end, or it would never see it close.
        // SAFETY: plain system call on a descriptor of ours.
        unsafe { libc::fcntl(master.as_raw_fd(), libc::F_SETFD, libc::FD_CLOEXEC) };
        command
            .stdin(Stdio::from(slave.try_clone().unwrap()))
            .stdout(Stdio::from(slave.try_clone().unwrap()))
            .stderr(Stdio::from(slave))
            .env("TERM", "xterm-256color")
            .env_remove("NO_COLOR");
        // SAFETY: only calls that are allowed between fork and exec.
        unsafe {
            command.pre_exec(|| {
                libc::setsid();
                libc::ioctl(0, libc::TIOCSCTTY, 0);
                Ok(())
            });
        }
        let child = command.spawn().unwrap();
        drop(command);
        let (send, screen) = channel();
        let mut reader = master.try_clone().unwrap();
        std::thread::spawn(move || {
            let mut buffer = [0; 4096];
            while let Ok(count) = reader.read(&mut buffer) {
                if count == 0 || send.send(buffer[..count].to_vec()).is_err() {
                    break;
                }
            }
        });
        Terminal { child, keys: master, screen, text: String::new(), matched: 0, raw: Vec::new() }
    }

    /// The texts that were drawn from the left of a line, in order.
    pub fn lines_drawn(&self) -> Vec<String> {
        let text = String::from_utf8_lossy(&self.raw).into_owned();
        text.split(['\r', '\n']).map(plain).collect()
    }

    /// The id of the program's process.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Types keys.
    pub fn keys(&mut self, keys: &str) {
        self.keys.write_all(keys.as_bytes()).unwrap();
    }

    /// Types a line and Enter.
    pub fn line(&mut self, line: &str) {
        self.keys(&format!("{line}\r"));
    }

    /// Waits until the words appear after the last match.
    #[track_caller]
    pub fn expect(&mut self, words: &str) {
        let end = Instant::now() + PATIENCE;
        loop {
            if let Some(at) = self.text[self.matched..].find(words) {
                self.matched += at + words.len();
                return;
            }
            let left = end.saturating_duration_since(Instant::now());
            match self.screen.recv_timeout(left) {
                Ok(bytes) => {
                    self.raw.extend(bytes);
                    self.text = plain(&String::from_utf8_lossy(&self.raw));
                }
                Err(_) => panic!("`{words}` did not appear; the screen:\n{}", self.text),
            }
        }
    }

    /// Waits until the program ends.
    #[track_caller]
    pub fn ends(mut self) -> ExitStatus {
        let end = Instant::now() + PATIENCE;
        while Instant::now() < end {
            if let Some(status) = self.child.try_wait().unwrap() {
                return status;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        let _ = self.child.kill();
        panic!("the program did not end; the screen:\n{}", self.text);
    }
}

/// The text without escape sequences and carriage returns.
fn plain(text: &str) -> String {
    let mut out = String::new();
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        match c {
            '\x1b' => {
                if chars.next() == Some('[') {
                    chars.by_ref().find(|c| c.is_ascii_alphabetic());
                }
            }
            '\r' => {}
            c => out.push(c),
        }
    }
    out
}
