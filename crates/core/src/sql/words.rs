//! Just enough SQL to run it: the words of a statement, and what kind it is.
//!
//! The runner needs to know which statement starts or ends a transaction and
//! which may leave something behind in its session. It does not parse SQL.

/// What a statement is to the runner.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Begin,
    Commit,
    Rollback,
    Savepoint,
    RollbackTo,
    Release,
    Select,
    Write,
    Ddl,
    /// Anything else: SET, PREPARE, CALL, LOCK, EXPLAIN, …
    Other,
}

impl Kind {
    pub fn ends_transaction(self) -> bool {
        matches!(self, Kind::Commit | Kind::Rollback)
    }
}

pub fn kind(sql: &str) -> Kind {
    let mut words = tokens(sql);
    let first = words.next().unwrap_or("");
    let is =
        |word: &str, candidates: &[&str]| candidates.iter().any(|c| word.eq_ignore_ascii_case(c));
    let mut second_is = |word: &str| words.next().is_some_and(|w| is(w, &[word]));
    if is(first, &["select", "values", "table", "show"]) {
        Kind::Select
    } else if is(first, &["insert", "update", "delete", "replace", "merge", "upsert"]) {
        Kind::Write
    } else if is(first, &["begin"]) || (is(first, &["start"]) && second_is("transaction")) {
        Kind::Begin
    } else if is(first, &["commit", "end"]) {
        if second_is("prepared") { Kind::Other } else { Kind::Commit }
    } else if is(first, &["rollback", "abort"]) {
        match tokens(sql).skip(1).take(2).find(|w| is(w, &["prepared", "to"])) {
            Some(word) if is(word, &["to"]) => Kind::RollbackTo,
            Some(_) => Kind::Other,
            None => Kind::Rollback,
        }
    } else if is(first, &["xa"]) {
        match tokens(sql).nth(1) {
            Some(word) if is(word, &["commit"]) => Kind::Commit,
            Some(word) if is(word, &["rollback"]) => Kind::Rollback,
            Some(word) if is(word, &["start", "begin"]) => Kind::Begin,
            _ => Kind::Other,
        }
    } else if is(first, &["savepoint"]) {
        Kind::Savepoint
    } else if is(first, &["release"]) {
        Kind::Release
    } else if is(first, &["with"]) {
        with_kind(sql)
    } else if is(first, &["create", "alter", "drop", "truncate", "rename"]) {
        Kind::Ddl
    } else {
        Kind::Other
    }
}

/// A CTE is a write when a writing keyword opens its body or one of its parts.
fn with_kind(sql: &str) -> Kind {
    let writes = tokens(sql).any(|t| {
        matches!(t.to_ascii_lowercase().as_str(), "insert" | "update" | "delete" | "merge")
    });
    if writes { Kind::Write } else { Kind::Select }
}

/// Whether the statement may end a transaction without the protocol saying
/// how: two-phase commit, or code that runs in the server.
pub fn hides_its_end(sql: &str) -> bool {
    let first = first_word(sql);
    ["xa", "prepare", "call", "execute", "do"].iter().any(|w| first.eq_ignore_ascii_case(w))
}

/// Whether the statement may leave something in the session that outlives its
/// transaction: settings, temporary tables, prepared statements, locks.
pub fn taints_session(sql: &str) -> bool {
    const LEAVERS: [&str; 9] = [
        "get_lock",
        "set_config",
        "nextval",
        "setval",
        "temp",
        "temporary",
        "pg_temp",
        "last_insert_id",
        "changes",
    ];
    let leaves = |word: &str| {
        word.contains('@')
            || LEAVERS.iter().any(|l| word.eq_ignore_ascii_case(l))
            || word.len() > 12 && word.to_ascii_lowercase().contains("advisory")
    };
    match kind(sql) {
        Kind::Other => true,
        Kind::Begin | Kind::Commit | Kind::Rollback => {
            tokens(sql).next().is_some_and(|first| first.eq_ignore_ascii_case("xa"))
        }
        _ => tokens(sql).any(leaves),
    }
}

/// The word that a statement begins with; empty when there is none.
pub fn first_word(sql: &str) -> &str {
    tokens(sql).next().unwrap_or("")
}

/// Words outside quotes and comments.
pub fn tokens(sql: &str) -> impl Iterator<Item = &str> {
    let mut rest = sql;
    std::iter::from_fn(move || {
        loop {
            let piece = next_piece(rest, false)?;
            let (text, tail) = rest.split_at(piece.len);
            rest = tail;
            if piece.word {
                return Some(text);
            }
        }
    })
}

/// The words, strings, quoted names and single signs of a statement, without
/// blanks and comments.
pub fn pieces(sql: &str) -> Vec<&str> {
    let mut rest = sql;
    let mut found = Vec::new();
    while let Some(piece) = next_piece(rest, false) {
        let (text, tail) = rest.split_at(piece.len);
        rest = tail;
        if !text.trim().is_empty() && !text.starts_with("--") && !text.starts_with("/*") {
            found.push(text);
        }
    }
    found
}

/// The words of a statement outside of quotes, comments and parentheses, with
/// where each begins.
pub fn outer_words(sql: &str) -> Vec<(usize, &str)> {
    let (mut at, mut depth) = (0usize, 0usize);
    let mut words = Vec::new();
    while let Some(piece) = next_piece(&sql[at..], false) {
        let text = &sql[at..at + piece.len];
        match text {
            "(" => depth += 1,
            ")" => depth = depth.saturating_sub(1),
            _ if piece.word && depth == 0 => words.push((at, text)),
            _ => {}
        }
        at += piece.len;
    }
    words
}

pub(super) struct Piece {
    pub len: usize,
    pub word: bool,
    /// Ran to the end of the text without its closing mark.
    pub open: bool,
}

/// The next lexical piece: a word, a quoted string, a comment, or one other
/// character. `None` at the end.
pub(super) fn next_piece(text: &str, escapes: bool) -> Option<Piece> {
    let first = text.chars().next()?;
    let whole = |len: usize| Some(Piece { len, word: false, open: false });
    if first.is_alphanumeric() || first == '_' || first == '@' {
        let len = text
            .find(|c: char| !(c.is_alphanumeric() || c == '_' || c == '@'))
            .unwrap_or(text.len());
        return Some(Piece { len, word: true, open: false });
    }
    if text.starts_with("--") {
        return whole(text.find('\n').unwrap_or(text.len()));
    }
    if let Some(inside) = text.strip_prefix("/*") {
        let close = inside.find("*/");
        return Some(Piece {
            len: close.map_or(text.len(), |i| i + 4),
            word: false,
            open: close.is_none(),
        });
    }
    if matches!(first, '\'' | '"' | '`') {
        let close = if escapes { escaped_close(&text[1..], first) } else { text[1..].find(first) };
        return Some(Piece {
            len: close.map_or(text.len(), |i| i + 2),
            word: false,
            open: close.is_none(),
        });
    }
    if first == '$'
        && let Some(tag) = dollar_tag(text)
    {
        let close = text[tag..].find(&text[..tag]);
        return Some(Piece {
            len: close.map_or(text.len(), |i| i + 2 * tag),
            word: false,
            open: close.is_none(),
        });
    }
    whole(first.len_utf8())
}

/// Where a quote closes when a backslash keeps the next character.
fn escaped_close(text: &str, mark: char) -> Option<usize> {
    let mut kept = false;
    text.char_indices().find_map(|(i, c)| {
        let closes = c == mark && !kept;
        kept = c == '\\' && !kept;
        closes.then_some(i)
    })
}

/// The length of PostgreSQL's `$tag$`, if the text opens with one.
fn dollar_tag(text: &str) -> Option<usize> {
    let name = text[1..].find('$')?;
    let tag = &text[1..1 + name];
    let fits = tag.chars().all(|c| c.is_alphanumeric() || c == '_')
        && !tag.starts_with(|c: char| c.is_ascii_digit());
    fits.then_some(name + 2)
}

/// The statement up to its last word or mark: a `;` behind a line comment
/// would be part of the comment.
pub fn without_trailing_comment(sql: &str) -> &str {
    let (mut at, mut end) = (0, 0);
    while let Some(piece) = next_piece(&sql[at..], false) {
        let text = &sql[at..at + piece.len];
        at += piece.len;
        if !text.trim().is_empty() && !text.starts_with("--") && !text.starts_with("/*") {
            end = at;
        }
    }
    &sql[..end]
}

/// Whether anything but blanks and comments is there.
pub(super) fn has_content(text: &str) -> bool {
    let mut rest = text;
    while let Some(piece) = next_piece(rest, false) {
        let (head, tail) = rest.split_at(piece.len);
        let comment = head.starts_with("--") || head.starts_with("/*");
        if !comment && !head.trim().is_empty() {
            return true;
        }
        rest = tail;
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_are_told_by_the_leading_words() {
        for (sql, expected) in [
            ("BEGIN", Kind::Begin),
            ("start transaction read only", Kind::Begin),
            ("/* why */ commit", Kind::Commit),
            ("end", Kind::Commit),
            ("rollback", Kind::Rollback),
            ("rollback to savepoint a", Kind::RollbackTo),
            ("ROLLBACK WORK TO a", Kind::RollbackTo),
            ("release savepoint a", Kind::Release),
            ("with x as (select 1) select * from x", Kind::Select),
            ("with x as (delete from t returning *) select * from x", Kind::Write),
            ("insert into t values ('commit')", Kind::Write),
            ("create index i on t (a)", Kind::Ddl),
            ("set autocommit = 0", Kind::Other),
            ("commit prepared 'x'", Kind::Other),
        ] {
            assert_eq!(kind(sql), expected, "{sql}");
        }
    }

    #[test]
    fn what_may_outlive_a_transaction_taints_its_session() {
        for sql in [
            "set a = 1",
            "insert into t values (get_lock('x', 1))",
            "xa start 'a'",
            "select 7 as a into temp t2",
            "create temporary table t (a int)",
            "insert into t select pg_try_advisory_lock(5)",
        ] {
            assert!(taints_session(sql), "{sql}");
        }
        for sql in ["select * from t for update", "begin", "update t set a = 'temp'"] {
            assert!(!taints_session(sql), "{sql}");
        }
    }
}
