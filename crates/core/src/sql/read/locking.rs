//! What stands around a statement and is read from its words: the locking
//! clause at its end, of which `sqlparser` knows two forms of eight, and
//! CockroachDB's UPSERT at its beginning.

use crate::sql::dialect::Family;
use crate::sql::select::{LockPatience, LockStrength, Locking};
use crate::sql::statement::Stmt;
use crate::sql::words;
use crate::sql::write::{Conflict, InsertSource};
use std::borrow::Cow;

/// The text without the locking clause at its end, and that clause.
pub(super) fn split_off(text: &str) -> (&str, Option<Locking>) {
    let text = words::without_trailing_comment(text);
    let words = words::outer_words(text);
    let opens = |word: &str| ["for", "lock"].iter().any(|w| word.eq_ignore_ascii_case(w));
    let Some(place) = words.iter().rposition(|(_, word)| opens(word)) else { return (text, None) };
    let start = words[place].0;
    match clause(&words::pieces(&text[start..])) {
        Some(locking) => (&text[..start], Some(locking)),
        None => (text, None),
    }
}

/// The pieces of a clause and nothing else.
fn clause(pieces: &[&str]) -> Option<Locking> {
    const FORMS: [(&[&str], LockStrength); 5] = [
        (&["for", "update"], LockStrength::Update),
        (&["for", "no", "key", "update"], LockStrength::NoKeyUpdate),
        (&["for", "share"], LockStrength::Share),
        (&["for", "key", "share"], LockStrength::KeyShare),
        (&["lock", "in", "share", "mode"], LockStrength::Share),
    ];
    let lower: Vec<String> = pieces.iter().map(|p| p.to_ascii_lowercase()).collect();
    let lower: Vec<&str> = lower.iter().map(String::as_str).collect();
    let (form, strength) = FORMS.iter().find(|(form, _)| lower.starts_with(form))?;
    let mut rest = &lower[form.len()..];
    let mut of = Vec::new();
    if let ["of", behind @ ..] = rest {
        rest = behind;
        loop {
            let [name, behind @ ..] = rest else { return None };
            of.push(plain_name(name)?);
            rest = behind;
            match rest {
                [",", behind @ ..] => rest = behind,
                _ => break,
            }
        }
    }
    let patience = match rest {
        [] => LockPatience::Wait,
        ["nowait"] => LockPatience::NoWait,
        ["skip", "locked"] => LockPatience::SkipLocked,
        ["wait", seconds] => LockPatience::Seconds(seconds.parse().ok()?),
        _ => return None,
    };
    Some(Locking { strength: *strength, of, patience })
}

fn plain_name(name: &str) -> Option<String> {
    crate::sql::render::is_plain_name(name).then(|| name.to_string())
}

/// The query that the clause belongs to gets it; none where it is not clear
/// which one that is.
pub(super) fn attach(statement: Stmt, locking: Locking) -> Option<Stmt> {
    match statement {
        Stmt::Select(mut select) => {
            let free = select.locking.is_none() && select.set_operation.is_none();
            select.locking = Some(locking);
            free.then_some(Stmt::Select(select))
        }
        Stmt::Insert(mut insert) => {
            let InsertSource::Select(select) = &mut insert.source else { return None };
            let last =
                !matches!(insert.conflict, Conflict::Update { .. } | Conflict::DoNothing { .. })
                    && insert.returning.is_empty();
            let free = last && select.locking.is_none() && select.set_operation.is_none();
            select.locking = Some(locking);
            free.then_some(Stmt::Insert(insert))
        }
        _ => None,
    }
}

/// CockroachDB's UPSERT as an INSERT, and whether it was one.
pub(super) fn without_upsert(text: &str, family: Family) -> (Cow<'_, str>, bool) {
    match words::outer_words(text).first() {
        Some((at, word)) if family == Family::Postgres && word.eq_ignore_ascii_case("upsert") => {
            (Cow::Owned(format!("{}insert{}", &text[..*at], &text[at + word.len()..])), true)
        }
        _ => (Cow::Borrowed(text), false),
    }
}
