//! The SQL lexer: words, strings, comments, and where statements end.
//!
//! It works on any text, also on statements that [`crate::read`] cannot parse. The
//! runner needs it to know which statement starts or ends a transaction and which
//! may leave state behind in its session.

mod kind;
mod split;

pub use kind::{Kind, TwoPhase, hides_its_end, kind, taints_session, two_phase};
pub use split::{Split, split};

/// The first word of a statement; empty if there is none.
pub fn first_word(sql: &str) -> &str {
    tokens(sql).next().unwrap_or("")
}

/// The words of a text outside of quotes and comments.
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

/// The tokens of a statement: words, strings, quoted names and single characters, without
/// whitespace and comments.
pub fn pieces(sql: &str) -> Vec<&str> {
    pieces_at(sql).into_iter().map(|(_, piece)| piece).collect()
}

/// The same, each with its offset.
pub fn pieces_at(sql: &str) -> Vec<(usize, &str)> {
    let mut at = 0;
    let mut found = Vec::new();
    while let Some(piece) = next_piece(&sql[at..], false) {
        let text = &sql[at..at + piece.len];
        if !text.trim().is_empty() && !text.starts_with("--") && !text.starts_with("/*") {
            found.push((at, text));
        }
        at += piece.len;
    }
    found
}

/// The words of a statement outside of quotes, comments and parentheses, each with its offset.
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
    /// The text ended before the closing quote or comment mark.
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

/// The offset of the closing quote, where a backslash escapes the next character.
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

/// The statement without comments at its end: a `;` appended after a line comment would be part of
/// the comment.
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

/// Whether a text has anything but whitespace and comments.
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
