//! Escaping of foreign text (rows, error messages, versions, names), so that it
//! can neither control a terminal nor inject Markdown.

/// Replaces control characters by their codes. Line ends and tabs stay. In JSON
/// the codes are valid escapes, so JSON keeps its meaning.
pub fn visible(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    text.chars().for_each(|c| push_visible(&mut shown, c));
    shown
}

pub fn push_visible(shown: &mut String, c: char) {
    match c {
        '\n' | '\t' => shown.push(c),
        c if c < ' ' => shown.push_str(&format!("\\x{:02x}", u32::from(c))),
        c if c.is_control() || changes_direction(c) => {
            shown.push_str(&format!("\\u{:04x}", u32::from(c)));
        }
        c => shown.push(c),
    }
}

/// Whether a character changes the direction of the text around it.
fn changes_direction(c: char) -> bool {
    matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// Escapes foreign text for Markdown: no HTML, links, code or table cells.
pub fn markdown(text: &str) -> String {
    let mut out = String::new();
    for c in visible(text).chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '\n' => out.push(' '),
            '`' | '[' | ']' | '|' | '\\' => out.extend(['\\', c]),
            c => out.push(c),
        }
    }
    out
}

/// Formats foreign text as Markdown code, also for table cells. Backticks are
/// used if nothing in the text could end them or count as HTML; the `>` of a
/// prompt alone opens no tag.
pub fn markdown_code(text: &str) -> String {
    let text = visible(text).replace('\n', " ");
    if !text.contains(['`', '<', '&', '|', '\\']) {
        return format!("`{text}`");
    }
    let mut out = String::from("<code>");
    for c in text.chars() {
        match c {
            c if c.is_alphanumeric() || c.is_whitespace() || "(),;:.=+-/'\"%$@".contains(c) => {
                out.push(c);
            }
            c => out.push_str(&format!("&#{};", u32::from(c))),
        }
    }
    out + "</code>"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn visible_escapes_control_characters_and_keeps_lines() {
        let all: String = (0..0x3000).filter_map(char::from_u32).collect();
        let shown = visible(&all);
        assert!(shown.chars().all(|c| c == '\n' || c == '\t' || !c.is_control()));
        assert_eq!(
            visible("a\x1b[2Jb\u{9b}c\u{202e}d\r\n\té"),
            "a\\x1b[2Jb\\u009bc\\u202ed\\x0d\n\té"
        );
    }

    #[test]
    fn visible_keeps_the_meaning_of_json() {
        let value = serde_json::json!({"v": "\x1b[2J \u{9b}2J \u{7f} \u{202e}"});
        let shown = visible(&value.to_string());
        assert_eq!(serde_json::from_str::<serde_json::Value>(&shown).unwrap(), value);
        assert!(shown.chars().all(|c| !c.is_control()));
    }

    #[test]
    fn markdown_escapes_foreign_markup() {
        assert_eq!(
            markdown("<img src=x> | [a](b) `c`"),
            "&lt;img src=x&gt; \\| \\[a\\](b) \\`c\\`"
        );
        assert_eq!(markdown_code("s1> select 1;"), "`s1> select 1;`");
        let code = markdown_code("select '<b>`' | \\");
        assert_eq!(code, "<code>select '&#60;b&#62;&#96;' &#124; &#92;</code>");
    }
}
