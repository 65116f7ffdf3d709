//! What people see: colours where they help, progress on long work, nothing
//! but results on stdout, and no control character that somebody else wrote.

use crate::table;
use crate::visible::{push_visible, visible};
use anstream::{AutoStream, ColorChoice};
use isolde_engines::connect::url::without_passwords;
use std::io::{ErrorKind, IsTerminal, Write, stderr, stdout};
use std::sync::OnceLock;

/// Marks of a painted text are codes that Unicode keeps for a program's own
/// use: rows of a database have none, and if they do, they are but coloured.
const END_OF_PAINT: char = '\u{fdd5}';

pub struct Console {
    quiet: bool,
    colour: bool,
    progress: bool,
    /// Why a result did not reach stdout.
    lost: OnceLock<std::io::Error>,
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
        // Knows NO_COLOR, CLICOLOR and terminals that have no colours.
        let colours = AutoStream::choice(&stdout());
        Console {
            quiet,
            colour: colours != ColorChoice::Never,
            progress: stderr().is_terminal() && !quiet,
            lost: OnceLock::new(),
        }
    }

    pub fn paint(&self, style: Style, text: &str) -> String {
        if !self.colour {
            return text.into();
        }
        let mark = match style {
            Style::Good => '\u{fdd0}',
            Style::Bad => '\u{fdd1}',
            Style::Doubt => '\u{fdd2}',
            Style::Dim => '\u{fdd3}',
            Style::Strong => '\u{fdd4}',
        };
        format!("{mark}{text}{END_OF_PAINT}")
    }

    /// A text as it goes to the terminal: our own marks become colours, and
    /// what else could steer a terminal becomes visible.
    pub fn shown(&self, text: &str) -> String {
        let mut shown = String::with_capacity(text.len());
        for c in text.chars() {
            let code = match c {
                '\u{fdd0}' => "32",
                '\u{fdd1}' => "31",
                '\u{fdd2}' => "33",
                '\u{fdd3}' => "2",
                '\u{fdd4}' => "1",
                END_OF_PAINT => "0",
                c => {
                    push_visible(&mut shown, c);
                    continue;
                }
            };
            if self.colour {
                shown.push_str(&format!("\x1b[{code}m"));
            }
        }
        shown
    }

    /// How wide the screen is; none when stdout is no screen.
    pub fn width(&self) -> Option<usize> {
        let (width, _) = terminal_size::terminal_size_of(stdout())?;
        Some(usize::from(width.0))
    }

    /// A result.
    pub fn print(&self, text: &str) {
        self.write(&self.shown(text));
        if !text.ends_with('\n') {
            self.write("\n");
        }
    }

    /// A piece of a result whose every byte counts, unless a terminal gets it.
    pub fn print_exactly(&self, text: &str) {
        match stdout().is_terminal() {
            true => self.write(&visible(text)),
            false => self.write(text),
        }
    }

    fn write(&self, text: &str) {
        let mut out = stdout().lock();
        let written = out.write_all(text.as_bytes()).and_then(|()| out.flush());
        // A reader that went away (`| head`) has what it wanted.
        if let Err(error) = written
            && error.kind() != ErrorKind::BrokenPipe
        {
            let _ = self.lost.set(error);
        }
    }

    /// Why not all results reached stdout; none if they did.
    pub fn lost(&self) -> Option<&std::io::Error> {
        self.lost.get()
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

    /// One line on the terminal that the next one replaces. It must not reach
    /// the last column: what wraps is not replaced.
    pub fn progress(&self, text: &str) {
        if self.progress {
            let text = visible(text);
            let cut = table::cut(&text, progress_width());
            let _ = write!(stderr(), "\r\x1b[K{cut}");
            let _ = stderr().flush();
        }
    }

    /// The same of several facts, the most important first: as many as fit.
    pub fn progress_of(&self, facts: &[String]) {
        let width = progress_width();
        let mut line = String::new();
        for fact in facts {
            let longer = if line.is_empty() { fact.clone() } else { format!("{line}, {fact}") };
            if !line.is_empty() && table::width(&longer) > width {
                break;
            }
            line = longer;
        }
        self.progress(&line);
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
            let _ = writeln!(stderr(), "{}", self.shown(text));
        }
    }

    /// An error may quote what was typed, and that may be a URL.
    pub fn error(&self, text: &str) {
        self.end_progress();
        let _ = writeln!(stderr(), "isolde: {}", visible(&without_passwords(text)));
    }
}

/// The columns that a line of progress may take.
fn progress_width() -> usize {
    const USUAL: usize = 80;
    let screen = terminal_size::terminal_size_of(stderr()).map(|(width, _)| usize::from(width.0));
    screen.filter(|w| *w > 0).unwrap_or(USUAL) - 1
}
