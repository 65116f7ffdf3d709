//! Parses parts of statements that `sqlparser` does not support, from their words: the locking
//! clause at the end (`sqlparser` supports two of eight forms), CockroachDB's UPSERT at the
//! beginning, and expressions in the target of ON CONFLICT.

use crate::ast::{Conflict, Expr, InsertSource, LockPatience, LockStrength, Locking, Stmt, Write};
use crate::dialect::Family;
use crate::lexer;
use crate::render::key_name;
use std::borrow::Cow;

/// Splits the locking clause off the end of a statement.
pub(super) fn split_off(text: &str) -> (&str, Option<Locking>) {
    let text = lexer::without_trailing_comment(text);
    let words = lexer::outer_words(text);
    let opens = |word: &str| ["for", "lock"].iter().any(|w| word.eq_ignore_ascii_case(w));
    let Some(place) = words.iter().rposition(|(_, word)| opens(word)) else { return (text, None) };
    let start = words[place].0;
    match clause(&lexer::pieces(&text[start..])) {
        Some(locking) => (&text[..start], Some(locking)),
        None => (text, None),
    }
}

/// Parses tokens that are exactly one locking clause.
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
    if let ["of", rest_after @ ..] = rest {
        rest = rest_after;
        loop {
            let [name, rest_after @ ..] = rest else { return None };
            of.push(plain_name(name)?);
            rest = rest_after;
            match rest {
                [",", rest_after @ ..] => rest = rest_after,
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
    crate::render::is_plain_name(name).then(|| name.to_string())
}

/// Adds the clause to the query that it belongs to; none if that is ambiguous.
pub(super) fn attach(statement: Stmt, locking: Locking) -> Option<Stmt> {
    match statement {
        Stmt::Select(mut select) => {
            let free = select.locking.is_none() && select.set_operation.is_none();
            select.locking = Some(locking);
            free.then_some(Stmt::Select(select))
        }
        Stmt::Write(Write::Insert(mut insert)) => {
            let InsertSource::Select(select) = &mut insert.source else { return None };
            let last =
                !matches!(insert.conflict, Conflict::Update { .. } | Conflict::DoNothing { .. })
                    && insert.returning.is_empty();
            let free = last && select.locking.is_none() && select.set_operation.is_none();
            select.locking = Some(locking);
            free.then_some(Stmt::Write(Write::Insert(insert)))
        }
        _ => None,
    }
}

/// Stands for the expression with a number in the target of ON CONFLICT.
const TARGET: &str = "isolde_target_";

/// The statement with names instead of the expressions in the target of ON CONFLICT, and the
/// texts of these expressions.
pub(super) fn without_expression_targets(text: &str) -> (Cow<'_, str>, Vec<&str>) {
    let unchanged = (Cow::Borrowed(text), Vec::new());
    let words = lexer::outer_words(text);
    let is = |at: usize, word: &str| words[at].1.eq_ignore_ascii_case(word);
    let Some(at) = (1..words.len()).rposition(|at| is(at, "on") && at + 1 < words.len()) else {
        return unchanged;
    };
    let at = at + 2;
    if !is(at, "conflict") {
        return unchanged;
    }
    let behind = words[at].0 + words[at].1.len();
    let open = text[behind..].find(|c: char| !c.is_whitespace()).map(|n| n + behind);
    let Some(open) = open.filter(|open| text[*open..].starts_with('(')) else { return unchanged };
    let (mut depth, mut start, mut end) = (0usize, open + 1, open);
    let mut parts = Vec::new();
    for (at, piece) in lexer::pieces_at(&text[open..]) {
        let place = open + at;
        match piece {
            "(" => depth += 1,
            ")" if depth == 1 => {
                parts.push(text[start..place].trim());
                end = place;
                break;
            }
            ")" => depth -= 1,
            "," if depth == 1 => {
                parts.push(text[start..place].trim());
                start = place + 1;
            }
            _ => {}
        }
    }
    let is_name = |part: &&str| lexer::pieces(part).len() == 1;
    if end == open || parts.iter().all(is_name) {
        return unchanged;
    }
    let mut expressions = Vec::new();
    let mut names = Vec::new();
    for part in parts {
        match is_name(&part) {
            true => names.push(part.to_string()),
            false => {
                names.push(format!("{TARGET}{}", expressions.len()));
                expressions.push(part);
            }
        }
    }
    let changed = format!("{}({}){}", &text[..open], names.join(", "), &text[end + 1..]);
    (Cow::Owned(changed), expressions)
}

/// Puts the expressions back into the target of ON CONFLICT.
pub(super) fn restore_targets(statement: &mut Stmt, expressions: &[Expr]) {
    let Stmt::Write(Write::Insert(insert)) = statement else { return };
    let (Conflict::Update { key, .. } | Conflict::DoNothing { key }) = &mut insert.conflict else {
        return;
    };
    for name in key {
        let number = name.strip_prefix(TARGET).and_then(|n| n.parse::<usize>().ok());
        if let Some(expression) = number.and_then(|n| expressions.get(n)) {
            *name = key_name(expression);
        }
    }
}

/// CockroachDB's UPSERT as an INSERT, and whether it was one.
pub(super) fn without_upsert(text: &str, family: Family) -> (Cow<'_, str>, bool) {
    match lexer::outer_words(text).first() {
        Some((at, word)) if family == Family::Postgres && word.eq_ignore_ascii_case("upsert") => {
            (Cow::Owned(format!("{}insert{}", &text[..*at], &text[at + word.len()..])), true)
        }
        _ => (Cow::Borrowed(text), false),
    }
}
