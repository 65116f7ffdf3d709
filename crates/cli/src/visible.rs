//! What others have written (rows, error messages, versions, names) shown so
//! that it can neither steer a terminal nor become part of a page.

/// Control characters as their codes. Line ends and tabs stay; so does what a
/// text in JSON may hold, since the codes are escapes there.
pub fn visible(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    text.chars().for_each(|c| push_visible(&mut shown, c));
    shown
}

pub fn push_visible(shown: &mut String, c: char) {
    match c {
        '\n' | '\t' => shown.push(c),
        c if c < ' ' => shown.push_str(&format!("\\x{:02x}", u32::from(c))),
        c if c.is_control() || turns_text(c) => {
            shown.push_str(&format!("\\u{:04x}", u32::from(c)));
        }
        c => shown.push(c),
    }
}

/// Marks that change the direction of what stands around them.
fn turns_text(c: char) -> bool {
    matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// Text of others in Markdown: no HTML, no links, no code, no table cells.
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

/// The same as code, also in a cell of a table. Between backticks where
/// nothing in it could end them or count as HTML; a prompt's > alone opens no
/// tag.
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
    fn no_control_character_comes_through_and_lines_do() {
        let all: String = (0..0x3000).filter_map(char::from_u32).collect();
        let shown = visible(&all);
        assert!(shown.chars().all(|c| c == '\n' || c == '\t' || !c.is_control()));
        assert_eq!(
            visible("a\x1b[2Jb\u{9b}c\u{202e}d\r\n\té"),
            "a\\x1b[2Jb\\u009bc\\u202ed\\x0d\n\té"
        );
    }

    #[test]
    fn json_stays_json() {
        let value = serde_json::json!({"v": "\x1b[2J \u{9b}2J \u{7f} \u{202e}"});
        let shown = visible(&value.to_string());
        assert_eq!(serde_json::from_str::<serde_json::Value>(&shown).unwrap(), value);
        assert!(shown.chars().all(|c| !c.is_control()));
    }

    #[test]
    fn markdown_of_others_is_text() {
        assert_eq!(
            markdown("<img src=x> | [a](b) `c`"),
            "&lt;img src=x&gt; \\| \\[a\\](b) \\`c\\`"
        );
        assert_eq!(markdown_code("s1> select 1;"), "`s1> select 1;`");
        let code = markdown_code("select '<b>`' | \\");
        assert_eq!(code, "<code>select '&#60;b&#62;&#96;' &#124; &#92;</code>");
    }
}
