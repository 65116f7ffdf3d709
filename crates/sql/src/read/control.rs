//! Parses transaction control from its words: all forms of BEGIN and COMMIT, savepoints, SET
//! autocommit, SET TRANSACTION, EXECUTE.

use crate::ast::{
    Access, Begin, BeginMode, Characteristics, Control, SetScope, SetTransaction, Stmt,
};
use crate::lexer;
use isolde_catalog::Level;

/// Parses a statement that controls a transaction or executes a prepared statement; none if it is
/// another statement or has a clause that the syntax tree lacks. The syntax is the same in every
/// family.
pub fn control(text: &str) -> Option<Stmt> {
    const FIRST: [&str; 10] = [
        "begin",
        "start",
        "commit",
        "end",
        "rollback",
        "abort",
        "savepoint",
        "release",
        "execute",
        "set",
    ];
    let first = lexer::first_word(text);
    if !FIRST.iter().any(|word| first.eq_ignore_ascii_case(word)) || text.contains("/*!") {
        return None;
    }
    let pieces = lexer::pieces(text);
    let lower: Vec<String> = pieces.iter().map(|p| p.to_ascii_lowercase()).collect();
    let lower: Vec<&str> = lower.iter().map(String::as_str).collect();
    match lower.as_slice() {
        ["begin", rest @ ..] => begin(rest),
        ["start", "transaction", rest @ ..] => started(None, rest),
        ["commit" | "end"] | ["commit" | "end", "work" | "transaction"] => {
            Some(Stmt::Control(Control::Commit))
        }
        ["rollback" | "abort"] | ["rollback" | "abort", "work" | "transaction"] => {
            Some(Stmt::Control(Control::Rollback))
        }
        ["rollback", "to", _]
        | ["rollback", "to", "savepoint", _]
        | ["rollback", "work" | "transaction", "to", _]
        | ["rollback", "work" | "transaction", "to", "savepoint", _] => {
            Some(Stmt::Control(Control::RollbackTo(last_name(&pieces)?)))
        }
        ["savepoint", _] => Some(Stmt::Control(Control::Savepoint(last_name(&pieces)?))),
        ["release", _] | ["release", "savepoint", _] => {
            Some(Stmt::Control(Control::Release(last_name(&pieces)?)))
        }
        ["execute", _] => Some(Stmt::Execute(last_name(&pieces)?)),
        ["set", rest @ ..] => set(rest),
        _ => None,
    }
}

/// `prepare NAME as …` or `prepare NAME from '…'`: the name and the text.
pub(super) fn prepared(text: &str) -> Option<(String, String)> {
    let words = lexer::outer_words(text);
    let is = |place: usize, word: &str| {
        words.get(place).is_some_and(|(_, w)| w.eq_ignore_ascii_case(word))
    };
    if !is(0, "prepare") {
        return None;
    }
    let name = name(words.get(1)?.1)?;
    let (at, word) = words.get(2)?;
    let rest = text[at + word.len()..].trim();
    // `prepare p (int) as` has parameters, which are not supported.
    let between = text[words[1].0 + words[1].1.len()..*at].trim();
    match () {
        () if !between.is_empty() => None,
        () if is(2, "as") => Some((name, rest.to_string())),
        () if is(2, "from") => Some((name, unquoted(rest)?)),
        () => None,
    }
}

/// The value of a string literal; none if it has escapes other than of quotes and backslashes.
fn unquoted(quoted: &str) -> Option<String> {
    let inside = quoted.strip_prefix('\'')?.strip_suffix('\'')?;
    let mut text = String::new();
    let mut characters = inside.chars();
    while let Some(c) = characters.next() {
        text.push(match c {
            '\'' => characters.next().filter(|next| *next == '\'')?,
            '\\' => characters.next().filter(|next| matches!(next, '\\' | '\''))?,
            other => other,
        });
    }
    Some(text)
}

fn last_name(pieces: &[&str]) -> Option<String> {
    name(pieces.last()?)
}

/// A name as every engine folds it; a quoted name is unchanged.
fn name(piece: &str) -> Option<String> {
    for quote in ['"', '`'] {
        if let Some(inside) = piece.strip_prefix(quote).and_then(|p| p.strip_suffix(quote)) {
            return (!inside.is_empty() && !inside.contains(quote)).then(|| inside.to_string());
        }
    }
    let word = piece.chars().all(|c| c.is_alphanumeric() || c == '_');
    word.then(|| piece.to_lowercase())
}

fn begin(rest: &[&str]) -> Option<Stmt> {
    let mode = |word: &str| BeginMode::ALL.into_iter().find(|mode| mode.word() == word);
    let (mode, rest) = match rest {
        [word, rest @ ..] if mode(word).is_some() => (mode(word), rest),
        _ => (None, rest),
    };
    let rest = match rest {
        ["transaction" | "work", rest @ ..] => rest,
        _ => rest,
    };
    started(mode, rest)
}

fn started(mode: Option<BeginMode>, rest: &[&str]) -> Option<Stmt> {
    let (characteristics, consistent_snapshot) = characteristics(rest)?;
    Some(Stmt::Control(Control::Begin(Begin { mode, consistent_snapshot, characteristics })))
}

/// Transaction characteristics, with or without commas, each at most once; and whether WITH
/// CONSISTENT SNAPSHOT is among them.
fn characteristics(mut rest: &[&str]) -> Option<(Characteristics, bool)> {
    let mut found = Characteristics::default();
    let mut snapshot = false;
    while !rest.is_empty() {
        let fresh = match rest {
            ["with", "consistent", "snapshot", rest_after @ ..] => {
                rest = rest_after;
                !std::mem::replace(&mut snapshot, true)
            }
            ["isolation", "level", rest_after @ ..] => {
                let (level, rest_after) = level(rest_after)?;
                rest = rest_after;
                found.level.replace(level).is_none()
            }
            ["read", "only", rest_after @ ..] => {
                rest = rest_after;
                found.access.replace(Access::ReadOnly).is_none()
            }
            ["read", "write", rest_after @ ..] => {
                rest = rest_after;
                found.access.replace(Access::ReadWrite).is_none()
            }
            ["deferrable", rest_after @ ..] => {
                rest = rest_after;
                found.deferrable.replace(true).is_none()
            }
            ["not", "deferrable", rest_after @ ..] => {
                rest = rest_after;
                found.deferrable.replace(false).is_none()
            }
            _ => false,
        };
        if !fresh {
            return None;
        }
        if let [",", rest_after @ ..] = rest {
            rest = rest_after;
            if rest.is_empty() {
                return None;
            }
        }
    }
    Some((found, snapshot))
}

fn level<'r, 'p>(rest: &'r [&'p str]) -> Option<(Level, &'r [&'p str])> {
    Some(match rest {
        ["read", "uncommitted", rest_after @ ..] => (Level::ReadUncommitted, rest_after),
        ["read", "committed", rest_after @ ..] => (Level::ReadCommitted, rest_after),
        ["repeatable", "read", rest_after @ ..] => (Level::RepeatableRead, rest_after),
        ["snapshot", rest_after @ ..] => (Level::Snapshot, rest_after),
        ["serializable", rest_after @ ..] => (Level::Serializable, rest_after),
        _ => return None,
    })
}

fn set(rest: &[&str]) -> Option<Stmt> {
    let (scope, rest) = match rest {
        ["session", "characteristics", "as", "transaction", rest @ ..]
        | ["session", "transaction", rest @ ..] => (SetScope::Session, rest),
        ["transaction", rest @ ..] => (SetScope::Transaction, rest),
        _ => return autocommit(rest),
    };
    let (characteristics, snapshot) = characteristics(rest)?;
    // SET TRANSACTION SNAPSHOT of PostgreSQL has another meaning.
    let has_characteristics = characteristics != Characteristics::default() && !snapshot;
    has_characteristics.then_some(Stmt::Control(Control::SetTransaction(SetTransaction {
        scope,
        characteristics,
    })))
}

fn autocommit(rest: &[&str]) -> Option<Stmt> {
    let value = match rest {
        ["autocommit", value @ ..]
        | ["session" | "local", "autocommit", value @ ..]
        | ["@@autocommit", value @ ..]
        | ["@@session" | "@@local", ".", "autocommit", value @ ..] => value,
        _ => return None,
    };
    let value = match value {
        ["=", value] | [":", "=", value] => *value,
        _ => return None,
    };
    match value {
        "0" | "off" | "false" => Some(Stmt::Control(Control::SetAutocommit(false))),
        "1" | "on" | "true" => Some(Stmt::Control(Control::SetAutocommit(true))),
        _ => None,
    }
}
