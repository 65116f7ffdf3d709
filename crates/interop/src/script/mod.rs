//! Scripts of other tools, read into cases and written from them.
//!
//! ```text
//!   ReplBug ─┐                 ┌─► case
//!   mysqltest ┼──►  Case  ──►──┼─► spec
//!   spec ────┘                 ├─► mysqltest
//!   case ────┘                 └─► annotated SQL
//!
//!   Case + History ──► spec + what isolationtester prints, mysqltest + its result,
//!                      a Python program, a bug report
//! ```
//!
//! A property of the run that a format cannot express is an error that names the
//! line; it is never dropped silently. Claims about results become comments
//! where the format has no syntax for them.

mod mtr_read;
mod mtr_run;
mod mtr_words;
mod mtr_write;
mod python;
mod recorded;
mod replbug;
mod report;
mod shown;
mod spec_read;
mod spec_run;
mod spec_write;
mod sql_write;

pub use mtr_read::read_mtr;
pub use mtr_run::mtr_of_run;
pub use mtr_write::write_mtr;
pub use python::{deviations_of_case, has_python, python_of_run};
pub use replbug::read_replbug;
pub use report::{ReportContext, report_of_run};
pub use spec_read::case_of_spec;
pub use spec_run::spec_of_run;
pub use spec_write::spec_of_case;
pub use sql_write::{Results, write_sql, write_sql_with};

use isolde_model::case::{Case, ParseError, Setup};
use isolde_model::{History, Level};
use isolde_sql as sql;

/// A test in another tool's language, and the output that the tool prints for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Export {
    pub text: String,
    pub result: String,
}

/// Where a recorded run went wrong, and what is expected there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Deviation {
    pub spot: Spot,
    pub expected: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Spot {
    /// By its place in the case.
    Step(usize),
    /// By its place among the final reads.
    Final(usize),
}

/// A part of a test that the target format cannot express.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unsupported {
    pub place: Place,
    pub message: String,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// Counted from 1; 0 where there is none.
    Line(usize),
    /// The line of the case's header that starts with this key.
    Key(&'static str),
}

impl Unsupported {
    fn at(line: usize, message: impl Into<String>) -> Unsupported {
        Unsupported { place: Place::Line(line), message: message.into() }
    }

    fn key(key: &'static str, message: impl Into<String>) -> Unsupported {
        Unsupported { place: Place::Key(key), message: message.into() }
    }

    /// The error with the line of the text that it is about.
    pub fn in_text(&self, text: &str) -> ParseError {
        let line = match self.place {
            Place::Line(line) => line.max(1),
            Place::Key(key) => text.lines().position(|l| l.starts_with(key)).map_or(1, |i| i + 1),
        };
        error_on_line(text, line, 0, self.message.clone())
    }
}

/// An error so many bytes into a line, counted from 1.
fn error_on_line(text: &str, line: usize, byte: usize, message: impl Into<String>) -> ParseError {
    let source = text.lines().nth(line.saturating_sub(1)).unwrap_or("");
    let column = source.char_indices().take_while(|(i, _)| *i < byte).count() + 1;
    ParseError { line, column, message: message.into(), source_line: source.trim_end().into() }
}

/// An id that a case may have, made from a file's or a bug's name.
pub fn fitting_id(name: &str) -> String {
    let fits = |c: char| c.is_ascii_alphanumeric() || "-_./#".contains(c);
    let id: String = name.trim().chars().map(|c| if fits(c) { c } else { '-' }).collect();
    if id.is_empty() { "script".into() } else { id }
}

/// A session name that a case may have.
fn fitting_session(name: &str) -> String {
    let fits = |c: char| if c.is_ascii_alphanumeric() || c == '_' { c } else { '_' };
    let fitted: String = name.chars().map(fits).collect();
    match fitted.starts_with(|c: char| c.is_ascii_alphabetic()) {
        true => fitted,
        false => format!("s{fitted}"),
    }
}

/// The one setup that is not for certain engines only.
fn general_setup(case: &Case) -> Result<Option<&Setup>, Unsupported> {
    if let Some(own) = case.setups.iter().find(|s| !s.on.is_empty()) {
        let line = own.statements.first().map_or(0, |s| s.line.0);
        return Err(Unsupported::at(
            line,
            "a setup for some engines only cannot be expressed here",
        ));
    }
    Ok(case.setups.first())
}

/// The statements of a text whose last one may lack its semicolon, each with
/// its offset; none when a quote or comment stays open.
fn statements(text: &str) -> Option<Vec<(usize, String)>> {
    let split = sql::split(&format!("{text}\n;"));
    let clean = |(at, sql): (usize, String)| (at, sql::without_trailing_comment(&sql).to_string());
    (!split.unfinished).then(|| split.statements.into_iter().map(clean).collect())
}

/// The statement as it is written, with the semicolon that ends it.
fn ended(sql: &str) -> String {
    format!("{};", sql::without_trailing_comment(sql))
}

/// The level that `set session transaction isolation level …` and PostgreSQL's
/// `set session characteristics as transaction …` name.
fn session_level_of(statement: &str) -> Option<Level> {
    let words: Vec<String> = statement.split_whitespace().map(str::to_ascii_lowercase).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let rest = match words.as_slice() {
        ["set", "session", "transaction", "isolation", "level", rest @ ..] => rest,
        [
            "set",
            "session",
            "characteristics",
            "as",
            "transaction",
            "isolation",
            "level",
            rest @ ..,
        ] => rest,
        _ => return None,
    };
    rest.join(" ").parse().ok()
}

/// Whether a statement only cleans up: every run starts from an empty database.
fn is_cleanup(statement: &str) -> bool {
    let first = statement.split_whitespace().next().unwrap_or("");
    sql::kind(statement) == sql::Kind::Ddl && first.eq_ignore_ascii_case("drop")
}

/// The same for a recorded run, which is the result: what the case claims of
/// other engines would be in its way.
fn remarks_of_run(case: &Case, history: &History, mark: &str) -> String {
    let on = &history.on;
    let mut context = Case { expectations: Vec::new(), ..case.clone() };
    let level = history.level.map_or(String::new(), |l| format!(" at {l}"));
    let recorded = format!("Recorded on {} {}{level}.", on.engine, on.version);
    let gap = if context.about.is_empty() { "" } else { "\n" };
    context.about.push_str(&format!("{gap}{recorded}"));
    remarks(&context, mark)
}

/// Comment lines for what a case says about itself and its results.
fn remarks(case: &Case, mark: &str) -> String {
    let mut lines = vec![match case.title.is_empty() {
        true => case.id.clone(),
        false => format!("{}: {}", case.id, case.title),
    }];
    lines.extend(case.link.clone());
    if !case.server_options.is_empty() {
        lines.push(format!("needs a server started with {}", case.server_options.join(" ")));
    }
    lines.extend(case.about.lines().map(str::to_string));
    for expectation in &case.expectations {
        let on: Vec<String> = expectation.on.iter().map(ToString::to_string).collect();
        let at: Vec<&str> = expectation.levels.iter().map(|l| l.name()).collect();
        let at = if at.is_empty() { String::new() } else { format!(" at {}", at.join(", ")) };
        let on = if on.is_empty() { String::new() } else { format!(" on {}", on.join(", ")) };
        for (i, claims) in expectation.outcomes().into_iter().enumerate() {
            let word = if i == 0 { "expected" } else { "or" };
            for claim in claims {
                lines.push(format!("{word}{on}{at}: {claim}"));
            }
        }
    }
    lines.iter().map(|l| format!("{mark} {l}").trim_end().to_string() + "\n").collect()
}
