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
fn tokens(sql: &str) -> impl Iterator<Item = &str> {
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

struct Piece {
    len: usize,
    word: bool,
    /// Ran to the end of the text without its closing mark.
    open: bool,
}

/// The next lexical piece: a word, a quoted string, a comment, or one other
/// character. `None` at the end.
fn next_piece(text: &str, escapes: bool) -> Option<Piece> {
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

/// Text cut at the semicolons that end statements.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Split {
    /// Each statement without its semicolon, with its offset in the text.
    pub statements: Vec<(usize, String)>,
    /// The last statement had no semicolon, or a quote or comment stayed open.
    pub unfinished: bool,
}

/// In MySQL `\'` does not close a string, elsewhere a backslash is a character
/// like any other. The plain reading is right unless it leaves a quote open.
pub fn split(text: &str) -> Split {
    let (plain, open) = split_reading(text, false);
    if !open {
        return plain;
    }
    match split_reading(text, true) {
        (escaped, false) => escaped,
        _ => plain,
    }
}

/// The statements, and whether a quote or comment stayed open.
fn split_reading(text: &str, escapes: bool) -> (Split, bool) {
    let mut split = Split::default();
    let mut open = false;
    let mut body = Body::default();
    let (mut start, mut at) = (0, 0);
    while let Some(piece) = next_piece(&text[at..], escapes) {
        open |= piece.open;
        let word = &text[at..at + piece.len];
        if piece.word {
            body.heed(word);
        } else if word == ";" && body.depth == 0 {
            push_statement(&mut split.statements, text, start, at);
            start = at + 1;
            body = Body::default();
        }
        at += piece.len;
    }
    split.unfinished = open;
    if has_content(&text[start..]) {
        push_statement(&mut split.statements, text, start, text.len());
        split.unfinished = true;
    }
    (split, open)
}

/// Follows the body of a trigger or procedure, whose semicolons are its own.
#[derive(Default)]
struct Body {
    words: usize,
    creates: bool,
    compound: bool,
    depth: usize,
    /// The last word was END: what follows says of what.
    after_end: bool,
}

impl Body {
    fn heed(&mut self, word: &str) {
        let is = |candidates: &[&str]| candidates.iter().any(|c| word.eq_ignore_ascii_case(c));
        self.words += 1;
        if self.words == 1 {
            self.creates = is(&["create"]);
        }
        // `create or replace definer = x@y procedure`: the noun comes early.
        let noun = self.creates && self.words <= 9;
        self.compound |= noun && is(&["trigger", "procedure", "function", "event"]);
        if !self.compound {
            return;
        }
        let ended = std::mem::replace(&mut self.after_end, false);
        if ended && is(&["if", "loop", "while", "repeat", "for"]) {
            // END IF closes an IF, which was not counted.
            self.depth += 1;
        } else if ended && is(&["case"]) {
            // END CASE closed its CASE already.
        } else if is(&["begin", "case"]) {
            self.depth += 1;
        } else if is(&["end"]) {
            // At depth 0 it ends an IF or a loop that is the whole body.
            self.after_end = self.depth > 0;
            self.depth = self.depth.saturating_sub(1);
        }
    }
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
fn has_content(text: &str) -> bool {
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
    fn a_semicolon_inside_a_string_or_comment_ends_nothing() {
        let split = split("select ';' -- a; b\n; select /* ; */ $x$ ; $x$;");
        let texts: Vec<&str> = split.statements.iter().map(|(_, s)| s.as_str()).collect();
        assert_eq!(texts, ["select ';' -- a; b", "select /* ; */ $x$ ; $x$"]);
        assert!(!split.unfinished);
    }

    #[test]
    fn the_body_of_a_trigger_or_procedure_is_one_statement() {
        let trigger = "create trigger g after insert on t begin update t set v = 3; end";
        let procedure = "create or replace procedure p() begin \
            if a then set b = 1; end if; case x when 1 then set c = 2; end case; commit; end";
        let bare = "create procedure p() if 1 then select 2 end if";
        for body in [trigger, procedure, bare] {
            let text = format!("{body}; select 1;");
            let texts: Vec<String> = split(&text).statements.into_iter().map(|(_, s)| s).collect();
            assert_eq!(texts, [body, "select 1"]);
        }
        // Outside of one, BEGIN begins a transaction.
        assert_eq!(split("begin; create table event (a int); end;").statements.len(), 3);
    }

    #[test]
    fn a_backslash_keeps_a_quote_only_where_nothing_else_makes_sense() {
        assert_eq!(split("select 'it\\'s'; select 2;").statements.len(), 2);
        assert_eq!(split("select 'c:\\'; select 2;").statements.len(), 2);
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

    #[test]
    fn a_missing_semicolon_or_quote_is_noticed() {
        assert!(split("select 1").unfinished);
        assert!(split("select 'a;").unfinished);
        assert!(!split("select 1; -- done").unfinished);
    }
}
