//! Output for people: results on stdout, progress and notes on stderr, colours
//! on terminals, and no control character from foreign text.

use crate::table;
use crate::visible::{push_visible, visible};
use anstream::{AutoStream, ColorChoice};
use isolde_engines::connect::url::without_passwords;
use std::io::{ErrorKind, IsTerminal, Write, stderr, stdout};
use std::sync::OnceLock;

/// Painted text carries noncharacters, which Unicode reserves for the internal
/// use of a program, until it is printed. Only these become ANSI codes; every
/// escape character in the text is foreign and made visible. A row of a
/// database that contains a noncharacter changes a colour, nothing else.
const END_OF_PAINT: char = '\u{fdd5}';

pub struct Console {
    quiet: bool,
    colour: bool,
    progress: bool,
    /// Why a result could not be written to stdout.
    write_error: OnceLock<std::io::Error>,
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
        // Respects NO_COLOR, CLICOLOR and terminals without colours.
        let colours = AutoStream::choice(&stdout());
        Console {
            quiet,
            colour: colours != ColorChoice::Never,
            progress: stderr().is_terminal() && !quiet,
            write_error: OnceLock::new(),
        }
    }

    /// Marks a text to be printed in a style.
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

    /// The text for the terminal: painted parts become coloured, and all other
    /// control characters become visible.
    pub fn rendered(&self, text: &str) -> String {
        let mut rendered = String::with_capacity(text.len());
        for c in text.chars() {
            let code = match c {
                '\u{fdd0}' => "32",
                '\u{fdd1}' => "31",
                '\u{fdd2}' => "33",
                '\u{fdd3}' => "2",
                '\u{fdd4}' => "1",
                END_OF_PAINT => "0",
                c => {
                    push_visible(&mut rendered, c);
                    continue;
                }
            };
            if self.colour {
                rendered.push_str(&format!("\x1b[{code}m"));
            }
        }
        rendered
    }

    /// The width of the terminal; none if stdout is not a terminal.
    pub fn width(&self) -> Option<usize> {
        let (width, _) = terminal_size::terminal_size_of(stdout())?;
        Some(usize::from(width.0))
    }

    /// Prints a result.
    pub fn print(&self, text: &str) {
        self.write(&self.rendered(text));
        if !text.ends_with('\n') {
            self.write("\n");
        }
    }

    /// Prints a result byte for byte; on a terminal control characters become
    /// visible.
    pub fn print_exactly(&self, text: &str) {
        match stdout().is_terminal() {
            true => self.write(&visible(text)),
            false => self.write(text),
        }
    }

    fn write(&self, text: &str) {
        let mut out = stdout().lock();
        let written = out.write_all(text.as_bytes()).and_then(|()| out.flush());
        // A closed pipe (`| head`) is no error: the reader has what it wanted.
        if let Err(error) = written
            && error.kind() != ErrorKind::BrokenPipe
        {
            let _ = self.write_error.set(error);
        }
    }

    /// Why not all results were written to stdout; none if they were.
    pub fn write_error(&self) -> Option<&std::io::Error> {
        self.write_error.get()
    }

    /// Prints a comment on the results, unless `--quiet`.
    pub fn comment(&self, text: &str) {
        if !self.quiet {
            self.print(text);
        }
    }

    /// Whether there is a terminal for a progress line.
    pub fn shows_progress(&self) -> bool {
        self.progress
    }

    /// Shows a line on the terminal that the next one replaces. It is cut before
    /// the last column: a line that wraps cannot be replaced.
    pub fn progress(&self, text: &str) {
        if self.progress {
            let text = visible(text);
            let cut = table::cut(&text, progress_width());
            let _ = write!(stderr(), "\r\x1b[K{cut}");
            let _ = stderr().flush();
        }
    }

    /// Shows as many of the facts as fit into a progress line, in their order.
    pub fn progress_facts(&self, facts: &[String]) {
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

    /// Prints a note to stderr, unless `--quiet`.
    pub fn note(&self, text: &str) {
        if !self.quiet {
            let _ = writeln!(stderr(), "{}", self.rendered(text));
        }
    }

    /// Prints an error. It may quote a URL from the command line, so passwords
    /// are removed.
    pub fn error(&self, text: &str) {
        self.end_progress();
        let _ = writeln!(stderr(), "isolde: {}", visible(&without_passwords(text)));
    }
}

/// The width of a progress line.
fn progress_width() -> usize {
    const DEFAULT: usize = 80;
    let screen = terminal_size::terminal_size_of(stderr()).map(|(width, _)| usize::from(width.0));
    screen.filter(|w| *w > 0).unwrap_or(DEFAULT) - 1
}
