//! Tab completion of commands, sessions, levels, tables, files and SQL keywords.

use super::dot::COMMANDS;
use isolde_engines::target::ENGINES;
use isolde_model::Level;
use rustyline::completion::{Completer, FilenameCompleter, Pair};
use rustyline::highlight::Highlighter;
use rustyline::hint::Hinter;
use rustyline::validate::Validator;
use rustyline::{Context, Helper};
use std::sync::{Arc, Mutex};

const KEYWORDS: [&str; 44] = [
    "abort",
    "alter table",
    "and",
    "begin",
    "between",
    "commit",
    "create index",
    "create table",
    "default",
    "delete from",
    "drop table",
    "exists",
    "for share",
    "for update",
    "from",
    "group by",
    "having",
    "in",
    "insert into",
    "int",
    "is null",
    "join",
    "limit",
    "not null",
    "nowait",
    "on",
    "or",
    "order by",
    "primary key",
    "references",
    "release savepoint",
    "rollback",
    "rollback to",
    "savepoint",
    "select",
    "set",
    "skip locked",
    "start transaction",
    "text",
    "truncate",
    "unique",
    "update",
    "values",
    "where",
];

/// The words to complete that change while the repl runs.
pub struct Words {
    pub sessions: Vec<String>,
    pub tables: Vec<String>,
    pub levels: Vec<Level>,
}

impl Words {
    pub fn new(levels: Vec<Level>) -> Words {
        Words { sessions: Vec::new(), tables: Vec::new(), levels }
    }
}

pub struct Completion {
    words: Arc<Mutex<Words>>,
    files: FilenameCompleter,
}

impl Completion {
    pub fn new(words: Arc<Mutex<Words>>) -> Completion {
        Completion { words, files: FilenameCompleter::new() }
    }

    /// All completions of `line`, and the position where they start.
    fn offers(&self, line: &str) -> (usize, Vec<String>) {
        let words = self.words.lock().expect("no thread panics while it holds the words");
        let levels = || words.levels.iter().map(|l| l.name().to_lowercase());
        let command = line.trim_start().strip_prefix('.');
        let (start, all): (usize, Vec<String>) = match command.map(|c| c.split_once(' ')) {
            Some(None) => {
                let start = line.len() - line.trim_start().len();
                (start, COMMANDS.iter().map(|(name, ..)| format!(".{name} ")).collect())
            }
            Some(Some(("level", rest))) => {
                let named =
                    rest.split_once(' ').filter(|(w, _)| words.sessions.iter().any(|s| s == w));
                let typed = named.map_or(rest, |(_, level)| level);
                let sessions = words.sessions.iter().map(|s| format!("{s} "));
                let sessions = sessions.filter(|_| named.is_none());
                (line.len() - typed.len(), sessions.chain(levels()).collect())
            }
            Some(Some(("cancel", rest))) => (line.len() - rest.len(), words.sessions.clone()),
            Some(Some(("target", rest))) => {
                let modes = ENGINES.iter().flat_map(|e| {
                    let named =
                        e.engine.modes.iter().map(|(mode, _)| format!("{}+{mode}", e.engine.name));
                    std::iter::once(e.engine.name.to_string()).chain(named)
                });
                (line.len() - rest.len(), modes.collect())
            }
            Some(Some(_)) => return (line.len(), Vec::new()),
            None => {
                let word = |c: char| c.is_alphanumeric() || c == '_';
                let start = line
                    .rfind(|c: char| !word(c))
                    .map_or(0, |at| at + line[at..].chars().next().map_or(1, char::len_utf8));
                let sessions = words.sessions.iter().map(|s| format!("{s}> "));
                let sessions = sessions.filter(|_| start == 0);
                let keywords = KEYWORDS.iter().map(ToString::to_string);
                (start, sessions.chain(words.tables.iter().cloned()).chain(keywords).collect())
            }
        };
        let typed = line[start..].to_lowercase();
        let fits = |w: &String| {
            w.to_lowercase().starts_with(&typed) && (!typed.is_empty() || command.is_some())
        };
        (start, all.into_iter().filter(fits).collect())
    }
}

impl Completer for Completion {
    type Candidate = Pair;

    fn complete(
        &self,
        line: &str,
        position: usize,
        context: &Context<'_>,
    ) -> rustyline::Result<(usize, Vec<Pair>)> {
        let typed = &line[..position];
        let command = typed.trim_start().split(' ').next().unwrap_or_default();
        if [".save", ".load", ".replay"].contains(&command) && typed.contains(' ') {
            return self.files.complete(line, position, context);
        }
        let (start, offers) = self.offers(typed);
        let pair = |w: String| Pair { display: w.trim_end().into(), replacement: w };
        Ok((start, offers.into_iter().map(pair).collect()))
    }
}

impl Helper for Completion {}
impl Highlighter for Completion {}
impl Hinter for Completion {
    type Hint = String;
}
impl Validator for Completion {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn offers_depend_on_the_position_in_the_line() {
        let mut words = Words::new(vec![Level::ReadCommitted, Level::Serializable]);
        words.sessions = vec!["s1".into(), "s2".into()];
        words.tables = vec!["accounts".into()];
        let completion = Completion::new(Arc::new(Mutex::new(words)));
        for (line, start, expected) in [
            (".sch", 0, vec![".schedule "]),
            (".level s1 ser", 10, vec!["serializable"]),
            (".level read c", 7, vec!["read committed"]),
            (".level s", 7, vec!["s1 ", "s2 ", "serializable"]),
            (".cancel ", 8, vec!["s1", "s2"]),
            (".target sqlite+w", 8, vec!["sqlite+wal"]),
            ("s2", 0, vec!["s2> "]),
            ("s1> select * from acc", 18, vec!["accounts"]),
            ("é upd", 3, vec!["update"]),
            ("", 0, vec![]),
        ] {
            let expected: Vec<String> = expected.iter().map(ToString::to_string).collect();
            assert_eq!(completion.offers(line), (start, expected), "{line}");
        }
    }
}
