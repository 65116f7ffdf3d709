//! The command of a target `driver:COMMAND`, split into words.
//!
//! No shell runs it: a shell between Isolde and the driver would be one more
//! process to kill, and would hide how the driver ended.

use crate::engine::{EngineError, EngineResult};
use std::fmt;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DriverCommand {
    pub program: String,
    pub args: Vec<String>,
    pub env: Vec<(String, String)>,
}

impl DriverCommand {
    pub fn new(program: impl Into<String>, args: &[&str]) -> DriverCommand {
        DriverCommand {
            program: program.into(),
            args: args.iter().map(|a| a.to_string()).collect(),
            env: Vec::new(),
        }
    }

    /// Splits at white space. `'…'` keeps everything, `"…"` everything but
    /// `\"` and `\\`, and a backslash outside of quotes keeps one character.
    /// Words of the form `NAME=value` before the program set its environment.
    pub fn parse(text: &str) -> EngineResult<DriverCommand> {
        let words = split(text).map_err(|why| refused(text, why))?;
        let mut words = words.into_iter().peekable();
        let mut env = Vec::new();
        while let Some(pair) = words.peek().and_then(|w| assignment(w)) {
            env.push(pair);
            words.next();
        }
        let program = words.next().filter(|p| !p.is_empty());
        let program = program.ok_or_else(|| refused(text, "it names no program"))?;
        Ok(DriverCommand { program, args: words.collect(), env })
    }
}

fn refused(text: &str, why: &str) -> EngineError {
    EngineError::Refused(format!("`driver:{text}` is not a command: {why}"))
}

fn assignment(word: &str) -> Option<(String, String)> {
    let (name, value) = word.split_once('=')?;
    let plain = |c: char| c == '_' || c.is_ascii_alphanumeric();
    let is_name = !name.is_empty()
        && name.chars().all(plain)
        && !name.starts_with(|c: char| c.is_ascii_digit());
    is_name.then(|| (name.to_string(), value.to_string()))
}

fn split(text: &str) -> Result<Vec<String>, &'static str> {
    let mut words = Vec::new();
    // None between words; an empty pair of quotes is a word too.
    let mut word: Option<String> = None;
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        match c {
            _ if c.is_whitespace() => words.extend(word.take()),
            '\'' => {
                let word = word.get_or_insert_default();
                loop {
                    match chars.next() {
                        Some('\'') => break,
                        Some(inside) => word.push(inside),
                        None => return Err("a ' is never closed"),
                    }
                }
            }
            '"' => {
                let word = word.get_or_insert_default();
                loop {
                    match chars.next() {
                        Some('"') => break,
                        Some('\\') => match chars.next() {
                            Some(escaped @ ('"' | '\\')) => word.push(escaped),
                            Some(other) => word.extend(['\\', other]),
                            None => return Err("a \" is never closed"),
                        },
                        Some(inside) => word.push(inside),
                        None => return Err("a \" is never closed"),
                    }
                }
            }
            '\\' => match chars.next() {
                Some(escaped) => word.get_or_insert_default().push(escaped),
                None => return Err("it ends in a backslash"),
            },
            _ => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    Ok(words)
}

impl fmt::Display for DriverCommand {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let quiet = |c: char| c.is_ascii_alphanumeric() || "_-./=:,+@%".contains(c);
        let quote = |word: &str| match !word.is_empty() && word.chars().all(quiet) {
            true => word.to_string(),
            false => format!("'{}'", word.replace('\'', r"'\''")),
        };
        for (name, value) in &self.env {
            write!(f, "{name}={} ", quote(value))?;
        }
        f.write_str(&quote(&self.program))?;
        self.args.iter().try_for_each(|arg| write!(f, " {}", quote(arg)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_is_split_as_a_shell_would() {
        let command =
            DriverCommand::parse(r#"A=1 B='x y' python3 "my driver.py" --x='a b' \'q "" "#)
                .unwrap();
        assert_eq!(command.program, "python3");
        assert_eq!(command.args, ["my driver.py", "--x=a b", "'q", ""]);
        assert_eq!(command.env, [("A".into(), "1".into()), ("B".into(), "x y".into())]);
    }

    #[test]
    fn a_printed_command_is_read_back_as_itself() {
        for text in ["python3 x.py", r#"E='a b' 'it'\''s' "" "tab	" --n=1"#] {
            let command = DriverCommand::parse(text).unwrap();
            assert_eq!(DriverCommand::parse(&command.to_string()).unwrap(), command, "{text}");
        }
    }

    #[test]
    fn an_invalid_command_is_refused_with_the_reason() {
        for (text, why) in
            [("", "names no program"), ("A=1", "names no program"), ("x 'y", "never closed")]
        {
            let error = DriverCommand::parse(text).unwrap_err().to_string();
            assert!(error.contains(why), "{error}");
        }
    }
}
