//! Pieces of HTML. Whatever comes from outside passes [`escape`]; it is the
//! only way for text into the page.

use isolde_core::Value;

/// The longest statement, value or message that is shown whole.
const LONGEST_TEXT: usize = 2_000;
const LONGEST_VALUE: usize = 200;

/// Text for an element or a quoted attribute. Characters that cannot be seen,
/// or that turn the order of the others around, are shown as a sign instead.
pub fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + text.len() / 8);
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            c => out.push(visible(c)),
        }
    }
    out
}

fn visible(c: char) -> char {
    match c {
        '\n' | '\t' => c,
        '\0'..='\x1f' => char::from_u32(0x2400 + c as u32).unwrap_or('\u{fffd}'),
        '\x7f' => '␡',
        '\u{80}'..='\u{9f}'
        | '\u{200e}'
        | '\u{200f}'
        | '\u{202a}'..='\u{202e}'
        | '\u{2066}'..='\u{2069}'
        | '\u{fffe}'
        | '\u{ffff}' => '\u{fffd}',
        c => c,
    }
}

/// Whether the page shows exactly this text, so that it may be copied from it.
pub fn is_exact(text: &str) -> bool {
    text.chars().all(|c| visible(c) == c)
}

/// The beginning of a long text, and how long it is.
pub fn cut(text: &str, longest: usize) -> String {
    match text.char_indices().nth(longest) {
        Some((end, _)) => format!("{} … ({} characters)", &text[..end], text.chars().count()),
        None => text.into(),
    }
}

pub fn text(text: &str) -> String {
    escape(&cut(text, LONGEST_TEXT))
}

/// A statement or a name, in the type of code.
pub fn code(sql: &str) -> String {
    format!("<code>{}</code>", text(sql))
}

pub fn value(value: &Value) -> String {
    let shown = escape(&cut(&value.to_string(), LONGEST_VALUE));
    match value {
        Value::Null => format!("<i>{shown}</i>"),
        _ => shown,
    }
}

/// A link to the web, or only its text where the address is no such link.
pub fn link(address: &str, shown: &str) -> String {
    let web = address.starts_with("https://") || address.starts_with("http://");
    if !web {
        return text(shown);
    }
    format!("<a href=\"{}\" rel=\"noopener noreferrer\">{}</a>", escape(address), text(shown))
}

/// A link that saves a text which the page cannot show as it is. All but
/// letters and digits is coded, so nothing of it can leave the attribute.
pub fn download(text: &str, file: &str) -> String {
    let mut coded = String::with_capacity(text.len() * 2);
    for byte in text.bytes() {
        match byte {
            b if b.is_ascii_alphanumeric() => coded.push(char::from(b)),
            b => coded.push_str(&format!("%{b:02X}")),
        }
    }
    let file = escape(file);
    format!("<a download=\"{file}\" href=\"data:text/plain;charset=utf-8,{coded}\">{file}</a>")
}

/// What opens at a click or a key, without any script.
pub fn details(class: &str, summary: &str, body: &str) -> String {
    format!("<details class=\"{class}\"><summary>{summary}</summary>{body}</details>\n")
}

/// A table in a box of its own, which scrolls where the screen is narrow.
/// Heads are plain text; cells are HTML.
pub fn table(heads: &[&str], rows: &[Vec<String>]) -> String {
    let head: String = heads.iter().map(|h| format!("<th scope=col>{}</th>", escape(h))).collect();
    let body: String = rows
        .iter()
        .map(|row| {
            let cells: String = row.iter().map(|c| format!("<td>{c}</td>")).collect();
            format!("<tr>{cells}</tr>\n")
        })
        .collect();
    format!(
        "<div class=scroll tabindex=0><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody>\
         </table></div>\n"
    )
}

/// 12345 as `12 345`, so that large numbers can be read.
pub fn number(n: u64) -> String {
    let digits = n.to_string();
    let mut out = String::new();
    for (i, d) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            out.push('\u{202f}');
        }
        out.push(d);
    }
    out
}

pub fn plural(n: u64, one: &str) -> String {
    if n == 1 { format!("1 {one}") } else { format!("{} {one}s", number(n)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_from_outside_can_open_a_tag_or_leave_an_attribute() {
        let evil = "</script><img src=x onerror=\"alert('1')\">&amp;";
        let safe = escape(evil);
        assert!(!safe.contains(['<', '>', '"', '\'']), "{safe}");
        assert!(safe.ends_with("&amp;amp;"));
        assert_eq!(escape("a\0b\u{202e}c\u{7f}\n"), "a␀b\u{fffd}c␡\n");
        assert!(is_exact("a\nb\té") && !is_exact("a\rb") && !is_exact("\u{2066}"));
    }

    #[test]
    fn only_addresses_of_the_web_become_links() {
        assert!(
            link("https://example.org/a?b=1&c", "x")
                .contains("href=\"https://example.org/a?b=1&amp;c\"")
        );
        assert_eq!(link("javascript:alert(1)", "<x>"), "&lt;x&gt;");
        assert!(!link("https://x\" onclick=\"y", "x").contains("onclick=\""));
    }

    #[test]
    fn long_texts_say_how_long_they_are() {
        assert_eq!(cut("äbc", 3), "äbc");
        assert_eq!(cut("äbcd", 3), "äbc … (4 characters)");
        assert_eq!(number(1234567), "1\u{202f}234\u{202f}567");
        assert_eq!((plural(1, "case"), plural(20, "case")), ("1 case".into(), "20 cases".into()));
    }
}
