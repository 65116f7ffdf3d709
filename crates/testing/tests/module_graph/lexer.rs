//! Rust source as words: comments, strings and test code removed, positions
//! kept.

/// An identifier, `::`, or one character of punctuation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Token {
    pub text: String,
    /// The number of its line, from 1 on.
    pub line: usize,
    /// Where it begins in the source.
    pub at: usize,
}

impl Token {
    pub fn is_word(&self) -> bool {
        self.text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
    }
}

/// The words of a source, without those of its tests.
pub fn tokens(source: &str) -> Vec<Token> {
    without_tests(words(&blank(source)))
}

/// Replaces comments, strings, characters and all that is not ASCII by spaces.
fn blank(source: &str) -> Vec<u8> {
    let bytes = source.as_bytes();
    let mut out = bytes.to_vec();
    let mut at = 0;
    while at < bytes.len() {
        let end = match bytes[at] {
            b'/' if bytes.get(at + 1) == Some(&b'/') => {
                bytes[at..].iter().position(|b| *b == b'\n').map_or(bytes.len(), |n| at + n)
            }
            b'/' if bytes.get(at + 1) == Some(&b'*') => end_of_comment(bytes, at),
            b'r' if starts_word(bytes, at) => end_of_raw_string(bytes, at).unwrap_or(at),
            b'"' => end_of_quoted(bytes, at),
            b'\'' => end_of_character(source, at).unwrap_or(at),
            _ => at,
        };
        for byte in &mut out[at..end] {
            if *byte != b'\n' {
                *byte = b' ';
            }
        }
        at = end.max(at + 1);
    }
    out.iter_mut().filter(|byte| !byte.is_ascii()).for_each(|byte| *byte = b' ');
    out
}

/// Whether a word begins here, or a `b` or `c` before a raw string does.
fn starts_word(bytes: &[u8], at: usize) -> bool {
    let is_word =
        |n: usize| at >= n && (bytes[at - n].is_ascii_alphanumeric() || bytes[at - n] == b'_');
    !is_word(1) || matches!(bytes[at - 1], b'b' | b'c') && !is_word(2)
}

fn end_of_comment(bytes: &[u8], mut at: usize) -> usize {
    let mut depth = 0;
    while at < bytes.len() {
        match &bytes[at..(at + 2).min(bytes.len())] {
            b"/*" => (depth, at) = (depth + 1, at + 2),
            b"*/" => (depth, at) = (depth - 1, at + 2),
            _ => at += 1,
        }
        if depth == 0 {
            break;
        }
    }
    at
}

fn end_of_raw_string(bytes: &[u8], at: usize) -> Option<usize> {
    let hashes = bytes[at + 1..].iter().take_while(|b| **b == b'#').count();
    let start = at + 1 + hashes;
    if bytes.get(start) != Some(&b'"') {
        return None;
    }
    let close = [b"\"".to_vec(), vec![b'#'; hashes]].concat();
    let found = bytes[start + 1..].windows(close.len()).position(|w| w == close);
    Some(found.map_or(bytes.len(), |n| start + 1 + n + close.len()))
}

fn end_of_quoted(bytes: &[u8], at: usize) -> usize {
    let mut end = at + 1;
    while end < bytes.len() && bytes[end] != b'"' {
        end += if bytes[end] == b'\\' { 2 } else { 1 };
    }
    (end + 1).min(bytes.len())
}

/// The end of a character literal; `None` for a lifetime.
fn end_of_character(source: &str, at: usize) -> Option<usize> {
    let mut chars = source[at + 1..].char_indices();
    if let (_, '\\') = chars.next()? {
        chars.next();
        return chars.find(|(_, c)| *c == '\'').map(|(n, _)| at + 1 + n + 1);
    }
    let (n, close) = chars.next()?;
    (close == '\'').then_some(at + 1 + n + 1)
}

fn words(blanked: &[u8]) -> Vec<Token> {
    let (mut all, mut at, mut line) = (Vec::new(), 0, 1);
    let is_word = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    while at < blanked.len() {
        let length = match blanked[at] {
            b'\n' => {
                line += 1;
                0
            }
            byte if byte.is_ascii_whitespace() => 0,
            byte if is_word(byte) => blanked[at..].iter().take_while(|b| is_word(**b)).count(),
            b':' if blanked.get(at + 1) == Some(&b':') => 2,
            _ => 1,
        };
        if length > 0 {
            let text = String::from_utf8_lossy(&blanked[at..at + length]).into_owned();
            all.push(Token { text, line, at });
        }
        at += length.max(1);
    }
    all
}

/// Leaves out each item with `#[test]` or a `#[cfg(…)]` that asks for `test`.
fn without_tests(all: Vec<Token>) -> Vec<Token> {
    let mut kept = Vec::new();
    let mut at = 0;
    while at < all.len() {
        let inner = text_at(&all, at + 1) == "!";
        let open = if inner { at + 2 } else { at + 1 };
        if all[at].text != "#" || text_at(&all, open) != "[" {
            kept.push(all[at].clone());
            at += 1;
            continue;
        }
        let close = end_of_group(&all, open);
        if !is_for_tests(&all[open + 1..close - 1]) {
            kept.extend_from_slice(&all[at..close]);
            at = close;
        } else if inner {
            // `#![cfg(test)]`: the whole file.
            return Vec::new();
        } else {
            at = end_of_item(&all, close);
        }
    }
    kept
}

fn text_at(all: &[Token], at: usize) -> &str {
    all.get(at).map_or("", |token| token.text.as_str())
}

fn is_for_tests(attribute: &[Token]) -> bool {
    let words: Vec<&str> = attribute.iter().map(|t| t.text.as_str()).collect();
    match words.as_slice() {
        ["test"] => true,
        ["cfg", rest @ ..] => rest.contains(&"test") && !rest.contains(&"not"),
        _ => false,
    }
}

/// Behind the bracket that closes the one at `open`.
pub fn end_of_group(all: &[Token], open: usize) -> usize {
    let mut depth = 0;
    for (at, token) in all.iter().enumerate().skip(open) {
        match token.text.as_str() {
            "(" | "[" | "{" => depth += 1,
            ")" | "]" | "}" => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return at + 1;
        }
    }
    all.len()
}

/// Behind the item that begins at `at`, with its other attributes.
fn end_of_item(all: &[Token], mut at: usize) -> usize {
    while text_at(all, at) == "#" {
        at = end_of_group(all, at + 1);
    }
    let is_field = !matches!(
        text_at(all, at),
        "pub"
            | "use"
            | "mod"
            | "fn"
            | "struct"
            | "enum"
            | "impl"
            | "trait"
            | "type"
            | "const"
            | "static"
            | "unsafe"
            | "async"
            | "extern"
            | "macro_rules"
            | "let"
    );
    let is_use = all[at..].iter().take_while(|t| t.text != ";").any(|t| t.text == "use");
    while at < all.len() {
        match all[at].text.as_str() {
            ";" => return at + 1,
            "," if is_field => return at + 1,
            "}" | ")" | "]" => return at,
            "{" if !is_use => return end_of_group(all, at),
            "(" | "[" | "{" => at = end_of_group(all, at),
            _ => at += 1,
        }
    }
    at
}

#[cfg(test)]
mod tests {
    use super::*;

    fn joined(source: &str) -> String {
        let all: Vec<String> = tokens(source).into_iter().map(|t| t.text).collect();
        all.join(" ")
    }

    #[test]
    fn comments_strings_and_characters_are_no_words() {
        let source = r##"a // x
            /* y /* z */ */ b "s \" t" 'c' '\'' r#"raw " "# br"u" &'life d"##;
        assert_eq!(joined(source), "a b b & ' life d");
    }

    #[test]
    fn code_of_tests_is_left_out() {
        assert_eq!(joined("#[cfg(test)] mod tests { fn a() { b } } c"), "c");
        assert_eq!(joined("#[cfg(test)] #[path = \"x\"] mod tests; c"), "c");
        assert_eq!(joined("#[cfg(test)] pub use a::{b, c}; d"), "d");
        assert_eq!(joined("#[cfg(test)] fn a(x: [u8; 2]) -> B { c } d"), "d");
        assert_eq!(joined("{ #[cfg(test)] a: B<C>, d: E }"), "{ d : E }");
        assert_eq!(joined("#![cfg(test)] a"), "");
        assert_eq!(joined("#[cfg(not(test))] a"), "# [ cfg ( not ( test ) ) ] a");
    }

    #[test]
    fn tokens_have_their_lines() {
        let lines: Vec<usize> = tokens("a\n/* \n */ b\n\"\n\" c").iter().map(|t| t.line).collect();
        assert_eq!(lines, [1, 3, 5]);
    }
}
