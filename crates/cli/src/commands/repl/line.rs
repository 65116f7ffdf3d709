//! Parsing of typed lines.

use isolde_model::Level;
use isolde_model::case::ANYWAY;
use isolde_sql as sql;

/// A typed line.
#[derive(Debug, PartialEq)]
pub enum Input {
    Nothing,
    /// The statement continues in the next line.
    Unfinished,
    /// `.level s1 rr`: the name without its dot, and the words after it.
    Dot(String, Vec<String>),
    /// `s2>` alone: the session of later statements.
    Switch(String),
    /// `setup> …;`
    Setup(Vec<String>),
    Statements {
        session: Option<String>,
        level: Option<Level>,
        /// Send it even if the transaction of the session has ended or failed.
        anyway: bool,
        statements: Vec<String>,
    },
    Wrong(String),
}

/// Commands that also work without a dot, since new users try them first.
const PLAIN_WORDS: [&str; 4] = ["help", "quit", "exit", "?"];

pub fn parse(text: &str) -> Input {
    let trimmed = text.trim();
    if let Some(command) = trimmed.strip_prefix('.') {
        let mut words = command.split_whitespace().map(String::from);
        return match words.next() {
            Some(name) => Input::Dot(name.to_lowercase(), words.collect()),
            None => Input::Wrong("a command name must follow the dot, as in .help".into()),
        };
    }
    let bare = trimmed.trim_end_matches(';').to_lowercase();
    if PLAIN_WORDS.contains(&bare.as_str()) {
        let name = if bare == "?" { "help" } else { &bare };
        return Input::Dot(name.into(), Vec::new());
    }
    let (session, level, rest) = match prompt(text) {
        Some(prompt) => (Some(prompt.session), prompt.level, &text[prompt.end..]),
        None => (None, None, text),
    };
    let anyway = level == Some(ANYWAY);
    let level = match level.filter(|_| !anyway).map(|l| l.parse::<Level>()).transpose() {
        Ok(level) => level,
        Err(error) => return Input::Wrong(error.to_string()),
    };
    let split = sql::split(rest);
    if split.unfinished {
        return Input::Unfinished;
    }
    let statements: Vec<String> = split.statements.into_iter().map(|(_, sql)| sql).collect();
    match (session, statements.first()) {
        (None, None) => Input::Nothing,
        (Some("setup"), None) => Input::Wrong("a statement must follow setup>".into()),
        (Some("setup"), _) => Input::Setup(statements),
        (Some(name), None) => Input::Switch(name.into()),
        (session, Some(first)) => {
            if level.is_some() && sql::kind(first) != sql::Kind::Begin {
                return Input::Wrong(
                    "a level is only possible for a statement that begins a transaction".into(),
                );
            }
            Input::Statements { session: session.map(String::from), level, anyway, statements }
        }
    }
}

/// Whether a line starts with the prompt of a session and not with a comparison:
/// an open session or a name such as `s2`, followed by `>` and a blank.
pub fn is_addressed(line: &str, sessions: &[String]) -> bool {
    let Some(prompt) = prompt(line) else { return false };
    let number = prompt.session.strip_prefix(['s', 'S']).unwrap_or_default();
    let is_usual = !number.is_empty() && number.chars().all(|c| c.is_ascii_digit());
    let known = is_usual || sessions.iter().any(|s| s == prompt.session);
    known && line[..prompt.end].ends_with('>') && line[prompt.end..].starts_with(' ')
}

struct Prompt<'a> {
    session: &'a str,
    level: Option<&'a str>,
    end: usize,
}

/// `s1>`, `s1:`, `s1(serializable)>`, `s1(anyway)>`, and `s1*>` as the prompt shows it.
fn prompt(text: &str) -> Option<Prompt<'_>> {
    let lead = text.len() - text.trim_start().len();
    let line = &text[lead..];
    let name_len = line.find(|c: char| !(c.is_ascii_alphanumeric() || c == '_'))?;
    let (session, mut rest) = line.split_at(name_len);
    if !session.starts_with(|c: char| c.is_ascii_alphabetic()) {
        return None;
    }
    let mut level = None;
    if let Some((name, tail)) = rest.strip_prefix('(').and_then(|r| r.split_once(')'))
        && tail.starts_with('>')
    {
        level = Some(name);
        rest = tail;
    }
    let rest = rest.strip_prefix(['*', '!']).filter(|r| r.starts_with('>')).unwrap_or(rest);
    let rest = rest.strip_prefix(['>', ':'])?;
    Some(Prompt { session, level, end: text.len() - rest.len() })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn statements(session: Option<&str>, level: Option<Level>, sql: &[&str]) -> Input {
        Input::Statements {
            session: session.map(String::from),
            level,
            anyway: false,
            statements: sql.iter().map(ToString::to_string).collect(),
        }
    }

    #[test]
    fn is_addressed_distinguishes_prompts_from_comparisons() {
        let sessions = ["writer".to_string()];
        for line in ["s2> commit;", "  s12> begin;", "writer> begin;", "s1*> select 1;"] {
            assert!(is_addressed(line, &sessions), "{line}");
        }
        for line in ["a> 5;", "s2>5;", "reader> 1;", "s> 1;", "s2: x", "and s2> 1", ""] {
            assert!(!is_addressed(line, &sessions), "{line}");
        }
    }

    #[test]
    fn parse_reads_the_session_of_statements() {
        assert_eq!(parse("begin;"), statements(None, None, &["begin"]));
        assert_eq!(parse("s1> begin;"), statements(Some("s1"), None, &["begin"]));
        assert_eq!(
            parse("s1: begin; select 1;"),
            statements(Some("s1"), None, &["begin", "select 1"])
        );
        assert_eq!(parse(" s1*> commit;"), statements(Some("s1"), None, &["commit"]));
        let serializable = Some(Level::Serializable);
        assert_eq!(parse("s1(ser)> begin;"), statements(Some("s1"), serializable, &["begin"]));
        let Input::Statements { anyway: true, level: None, .. } = parse("s1(anyway)> commit;")
        else {
            panic!("anyway is not a level");
        };
        assert_eq!(parse("s2>"), Input::Switch("s2".into()));
        assert_eq!(parse("setup> drop table t;"), Input::Setup(vec!["drop table t".into()]));
    }

    #[test]
    fn parse_waits_for_the_semicolon() {
        assert_eq!(parse("s1> select 1"), Input::Unfinished);
        assert_eq!(parse("select ';"), Input::Unfinished);
        assert_eq!(parse("s1> select 1\n;"), statements(Some("s1"), None, &["select 1"]));
        assert_eq!(parse("  -- nothing"), Input::Nothing);
    }

    #[test]
    fn parse_reads_commands_with_and_without_a_dot() {
        assert_eq!(
            parse(".level s1 rr"),
            Input::Dot("level".into(), vec!["s1".into(), "rr".into()])
        );
        assert_eq!(parse("help"), Input::Dot("help".into(), vec![]));
        assert_eq!(parse("quit;"), Input::Dot("quit".into(), vec![]));
        assert!(matches!(parse("."), Input::Wrong(_)));
        assert!(matches!(parse("s1(chaos)> begin;"), Input::Wrong(_)));
        assert!(matches!(parse("s1(rr)> select 1;"), Input::Wrong(_)));
    }

    #[test]
    fn parse_never_panics() {
        for text in ["é>", ">", ":", "s1(", "s1()>;", "'", "/*", "s1>s2>", "\u{0}", "s1(rr)>é;"] {
            parse(text);
        }
    }
}
