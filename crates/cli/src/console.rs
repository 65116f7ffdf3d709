//! What people see: colours where they help, progress on long work, nothing
//! but results on stdout.

use isolde_engines::url::without_passwords;
use std::io::{IsTerminal, Write, stderr, stdout};

pub struct Console {
    quiet: bool,
    colour: bool,
    progress: bool,
}

#[derive(Clone, Copy)]
pub enum Style {
    Good,
    Bad,
    Doubt,
    Dim,
    Strong,
}

impl Console {
    pub fn new(quiet: bool) -> Console {
        let plain = std::env::var_os("NO_COLOR").is_some_and(|v| !v.is_empty());
        Console {
            quiet,
            colour: stdout().is_terminal() && !plain,
            progress: stderr().is_terminal() && !quiet,
        }
    }

    pub fn paint(&self, style: Style, text: &str) -> String {
        if !self.colour {
            return text.into();
        }
        let code = match style {
            Style::Good => "32",
            Style::Bad => "31",
            Style::Doubt => "33",
            Style::Dim => "2",
            Style::Strong => "1",
        };
        format!("\x1b[{code}m{text}\x1b[0m")
    }

    /// How wide the screen is; none when stdout is no screen.
    pub fn width(&self) -> Option<usize> {
        let (width, _) = terminal_size::terminal_size_of(stdout())?;
        Some(usize::from(width.0))
    }

    /// A result. A reader that went away (`| head`) is no reason to panic.
    pub fn print(&self, text: &str) {
        let mut out = stdout().lock();
        let _ = out.write_all(text.as_bytes());
        if !text.ends_with('\n') {
            let _ = out.write_all(b"\n");
        }
        let _ = out.flush();
    }

    /// A piece of a result whose every byte counts.
    pub fn print_exactly(&self, text: &str) {
        let mut out = stdout().lock();
        let _ = out.write_all(text.as_bytes());
        let _ = out.flush();
    }

    /// Commentary that `--quiet` drops.
    pub fn say(&self, text: &str) {
        if !self.quiet {
            self.print(text);
        }
    }

    /// Whether a line that is replaced has a terminal to stand on.
    pub fn shows_progress(&self) -> bool {
        self.progress
    }

    /// One line on the terminal that the next one replaces.
    pub fn progress(&self, text: &str) {
        if self.progress {
            let cut: String = text.chars().take(100).collect();
            let _ = write!(stderr(), "\r\x1b[K{cut}");
            let _ = stderr().flush();
        }
    }

    pub fn end_progress(&self) {
        if self.progress {
            let _ = write!(stderr(), "\r\x1b[K");
            let _ = stderr().flush();
        }
    }

    /// Progress of long work where each line is worth keeping.
    pub fn note(&self, text: &str) {
        if !self.quiet {
            let _ = writeln!(stderr(), "{text}");
        }
    }

    /// An error may quote what was typed, and that may be a URL.
    pub fn error(&self, text: &str) {
        self.end_progress();
        let _ = writeln!(stderr(), "isolde: {}", without_passwords(text));
    }
}
