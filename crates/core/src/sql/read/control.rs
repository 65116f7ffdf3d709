//! Transaction control, read from the words: BEGIN and COMMIT in all their
//! forms, savepoints, SET autocommit, SET TRANSACTION, EXECUTE.

use crate::Level;
use crate::sql::statement::Stmt;
use crate::sql::transaction::{
    Access, Begin, BeginMode, Characteristics, SetScope, SetTransaction,
};
use crate::sql::words;

/// The statement, if it is one that controls a transaction or runs what was
/// prepared, and says nothing beyond what there is room for. These look the
/// same in every family.
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
    let first = words::first_word(text);
    if !FIRST.iter().any(|word| first.eq_ignore_ascii_case(word)) || text.contains("/*!") {
        return None;
    }
    let pieces = words::pieces(text);
    let lower: Vec<String> = pieces.iter().map(|p| p.to_ascii_lowercase()).collect();
    let lower: Vec<&str> = lower.iter().map(String::as_str).collect();
    match lower.as_slice() {
        ["begin", rest @ ..] => begin(rest),
        ["start", "transaction", rest @ ..] => started(None, rest),
        ["commit" | "end"] | ["commit" | "end", "work" | "transaction"] => Some(Stmt::Commit),
        ["rollback" | "abort"] | ["rollback" | "abort", "work" | "transaction"] => {
            Some(Stmt::Rollback)
        }
        ["rollback", "to", _]
        | ["rollback", "to", "savepoint", _]
        | ["rollback", "work" | "transaction", "to", _]
        | ["rollback", "work" | "transaction", "to", "savepoint", _] => {
            Some(Stmt::RollbackTo(last_name(&pieces)?))
        }
        ["savepoint", _] => Some(Stmt::Savepoint(last_name(&pieces)?)),
        ["release", _] | ["release", "savepoint", _] => Some(Stmt::Release(last_name(&pieces)?)),
        ["execute", _] => Some(Stmt::Execute(last_name(&pieces)?)),
        ["set", rest @ ..] => set(rest),
        _ => None,
    }
}

/// `prepare NAME as …` or `prepare NAME from '…'`: the name and the text.
pub(super) fn prepared(text: &str) -> Option<(String, String)> {
    let words = words::outer_words(text);
    let is = |place: usize, word: &str| {
        words.get(place).is_some_and(|(_, w)| w.eq_ignore_ascii_case(word))
    };
    if !is(0, "prepare") {
        return None;
    }
    let name = name(words.get(1)?.1)?;
    let (at, word) = words.get(2)?;
    let rest = text[at + word.len()..].trim();
    // `prepare p (int) as` has parameters, for which there is no room.
    let between = text[words[1].0 + words[1].1.len()..*at].trim();
    match () {
        () if !between.is_empty() => None,
        () if is(2, "as") => Some((name, rest.to_string())),
        () if is(2, "from") => Some((name, unquoted(rest)?)),
        () => None,
    }
}

/// The text that one string in quotes stands for; none when it has escapes
/// other than of quotes and backslashes.
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

/// A name as every engine folds it; in quotes it stays as it is.
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
    Some(Stmt::Begin(Begin { mode, consistent_snapshot, characteristics }))
}

/// What is said of a transaction, with or without commas, each thing once;
/// and whether it is WITH CONSISTENT SNAPSHOT.
fn characteristics(mut rest: &[&str]) -> Option<(Characteristics, bool)> {
    let mut said = Characteristics::default();
    let mut snapshot = false;
    while !rest.is_empty() {
        let fresh = match rest {
            ["with", "consistent", "snapshot", behind @ ..] => {
                rest = behind;
                !std::mem::replace(&mut snapshot, true)
            }
            ["isolation", "level", behind @ ..] => {
                let (level, behind) = level(behind)?;
                rest = behind;
                said.level.replace(level).is_none()
            }
            ["read", "only", behind @ ..] => {
                rest = behind;
                said.access.replace(Access::ReadOnly).is_none()
            }
            ["read", "write", behind @ ..] => {
                rest = behind;
                said.access.replace(Access::ReadWrite).is_none()
            }
            ["deferrable", behind @ ..] => {
                rest = behind;
                said.deferrable.replace(true).is_none()
            }
            ["not", "deferrable", behind @ ..] => {
                rest = behind;
                said.deferrable.replace(false).is_none()
            }
            _ => false,
        };
        if !fresh {
            return None;
        }
        if let [",", behind @ ..] = rest {
            rest = behind;
            if rest.is_empty() {
                return None;
            }
        }
    }
    Some((said, snapshot))
}

fn level<'r, 'p>(rest: &'r [&'p str]) -> Option<(Level, &'r [&'p str])> {
    Some(match rest {
        ["read", "uncommitted", behind @ ..] => (Level::ReadUncommitted, behind),
        ["read", "committed", behind @ ..] => (Level::ReadCommitted, behind),
        ["repeatable", "read", behind @ ..] => (Level::RepeatableRead, behind),
        ["snapshot", behind @ ..] => (Level::Snapshot, behind),
        ["serializable", behind @ ..] => (Level::Serializable, behind),
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
    // SET TRANSACTION SNAPSHOT of PostgreSQL is something else.
    let says_something = characteristics != Characteristics::default() && !snapshot;
    says_something.then_some(Stmt::SetTransaction(SetTransaction { scope, characteristics }))
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
        "0" | "off" | "false" => Some(Stmt::SetAutocommit(false)),
        "1" | "on" | "true" => Some(Stmt::SetAutocommit(true)),
        _ => None,
    }
}
