//! Just enough SQL to run it: where statements end, and what kind each is.
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

/// Whether the statement may leave something in the session that outlives its
/// transaction: settings, temporary tables, prepared statements, locks.
pub fn taints_session(sql: &str) -> bool {
    match kind(sql) {
        Kind::Other => true,
        Kind::Ddl => tokens(sql)
            .any(|t| t.eq_ignore_ascii_case("temporary") || t.eq_ignore_ascii_case("temp")),
        Kind::Select => {
            // Functions that change the session, and variables.
            tokens(sql).any(|t| {
                t.contains('@')
                    || ["get_lock", "set_config", "nextval", "setval"]
                        .iter()
                        .any(|f| t.eq_ignore_ascii_case(f))
                    || t.to_ascii_lowercase().contains("advisory")
            })
        }
        _ => false,
    }
}

/// Words outside quotes and comments.
fn tokens(sql: &str) -> impl Iterator<Item = &str> {
    let mut rest = sql;
    std::iter::from_fn(move || {
        loop {
            let piece = next_piece(rest)?;
            let (text, tail) = rest.split_at(piece.len);
            rest = tail;
            if piece.word {
                return Some(text);
            }
        }
    })
}

struct Piece {
    len: usize,
    word: bool,
    /// Ran to the end of the text without its closing mark.
    open: bool,
}

/// The next lexical piece: a word, a quoted string, a comment, or one other
/// character. `None` at the end.
fn next_piece(text: &str) -> Option<Piece> {
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
        let close = text[1..].find(first);
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

/// The length of PostgreSQL's `$tag$`, if the text opens with one.
fn dollar_tag(text: &str) -> Option<usize> {
    let name = text[1..].find('$')?;
    let tag = &text[1..1 + name];
    let fits = tag.chars().all(|c| c.is_alphanumeric() || c == '_')
        && !tag.starts_with(|c: char| c.is_ascii_digit());
    fits.then_some(name + 2)
}

/// Text cut at the semicolons that end statements.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Split {
    /// Each statement without its semicolon, with its offset in the text.
    pub statements: Vec<(usize, String)>,
    /// The last statement had no semicolon, or a quote or comment stayed open.
    pub unfinished: bool,
}

pub fn split(text: &str) -> Split {
    let mut split = Split::default();
    let (mut start, mut at) = (0, 0);
    while let Some(piece) = next_piece(&text[at..]) {
        split.unfinished |= piece.open;
        if !piece.word && text[at..].starts_with(';') {
            push_statement(&mut split.statements, text, start, at);
            start = at + 1;
        }
        at += piece.len;
    }
    if has_content(&text[start..]) {
        push_statement(&mut split.statements, text, start, text.len());
        split.unfinished = true;
    }
    split
}

fn push_statement(statements: &mut Vec<(usize, String)>, text: &str, start: usize, end: usize) {
    let raw = &text[start..end];
    if has_content(raw) {
        let lead = raw.len() - raw.trim_start().len();
        statements.push((start + lead, raw.trim().to_string()));
    }
}

/// The statement up to its last word or mark: a `;` behind a line comment
/// would be part of the comment.
pub fn without_trailing_comment(sql: &str) -> &str {
    let (mut at, mut end) = (0, 0);
    while let Some(piece) = next_piece(&sql[at..]) {
        let text = &sql[at..at + piece.len];
        at += piece.len;
        if !text.trim().is_empty() && !text.starts_with("--") && !text.starts_with("/*") {
            end = at;
        }
    }
    &sql[..end]
}

/// Whether anything but blanks and comments is there.
fn has_content(text: &str) -> bool {
    let mut rest = text;
    while let Some(piece) = next_piece(rest) {
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
    fn a_semicolon_inside_a_string_or_comment_ends_nothing() {
        let split = split("select ';' -- a; b\n; select /* ; */ $x$ ; $x$;");
        let texts: Vec<&str> = split.statements.iter().map(|(_, s)| s.as_str()).collect();
        assert_eq!(texts, ["select ';' -- a; b", "select /* ; */ $x$ ; $x$"]);
        assert!(!split.unfinished);
    }

    #[test]
    fn a_missing_semicolon_or_quote_is_noticed() {
        assert!(split("select 1").unfinished);
        assert!(split("select 'a;").unfinished);
        assert!(!split("select 1; -- done").unfinished);
    }
}
