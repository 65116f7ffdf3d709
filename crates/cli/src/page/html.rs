//! HTML helpers. The templates escape whatever is put into them; these functions
//! also cut long foreign text and make its invisible characters visible.

use isolde_model::Value;
use maud::{Markup, PreEscaped, html};

/// Longer statements, values and messages are cut.
const LONGEST_TEXT: usize = 2_000;
const LONGEST_VALUE: usize = 200;

/// Replaces invisible characters, and those that change the text direction, by
/// visible symbols.
pub fn visible(text: &str) -> String {
    text.chars().map(visible_char).collect()
}

fn visible_char(c: char) -> char {
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

/// Whether the page shows exactly this text, so that it can be copied.
pub fn is_exact(text: &str) -> bool {
    text.chars().all(|c| visible_char(c) == c)
}

/// The beginning of a long text, and how long it is.
pub fn cut(text: &str, longest: usize) -> String {
    match text.char_indices().nth(longest) {
        Some((end, _)) => format!("{} … ({} characters)", &text[..end], text.chars().count()),
        None => text.into(),
    }
}

/// Foreign text, cut and with all characters visible.
pub fn text(text: &str) -> String {
    visible(&cut(text, LONGEST_TEXT))
}

/// A statement or a name, formatted as code.
pub fn code(sql: &str) -> Markup {
    html! { code { (text(sql)) } }
}

pub fn value(value: &Value) -> Markup {
    let shown = visible(&cut(&value.to_string(), LONGEST_VALUE));
    html! {
        @if *value == Value::Null { i { (shown) } } @else { (shown) }
    }
}

/// A link to the web, or only its text if the address is not http or https.
pub fn link(address: &str, shown: &str) -> Markup {
    let web = address.starts_with("https://") || address.starts_with("http://");
    html! {
        @if web {
            a href=(visible(address)) rel="noopener noreferrer" { (text(shown)) }
        } @else {
            (text(shown))
        }
    }
}

/// A download link for a text that the page cannot show exactly.
pub fn download(text: &str, file: &str) -> Markup {
    html! { a download=(file) href=(address("text/plain;charset=utf-8", text)) { (file) } }
}

/// An embedded SVG image. Scripts in images do not run, whatever their origin.
pub fn picture(svg: &str, about: &str) -> Markup {
    html! { img.cycle alt=(about) src=(address("image/svg+xml", svg)); }
}

/// A data URL. Everything but letters and digits is percent-encoded.
fn address(kind: &str, text: &str) -> String {
    let mut address = format!("data:{kind},");
    for byte in text.bytes() {
        match byte {
            b if b.is_ascii_alphanumeric() => address.push(char::from(b)),
            b => address.push_str(&format!("%{b:02X}")),
        }
    }
    address
}

/// A block that opens by click or key, without a script.
pub fn details(class: &str, summary: &Markup, body: &Markup) -> Markup {
    html! {
        details class=(class) { summary { (summary) } (body) }
        (NEW_LINE)
    }
}

/// A table that scrolls horizontally on narrow screens.
pub fn table(heads: &[&str], rows: &[Vec<Markup>]) -> Markup {
    html! {
        div.scroll tabindex="0" {
            table {
                thead { tr { @for head in heads { th scope="col" { (visible(head)) } } } }
                tbody {
                    @for row in rows {
                        tr { @for cell in row { td { (cell) } } }
                        (NEW_LINE)
                    }
                }
            }
        }
    }
}

/// The pieces with a separator between them.
pub fn joined(pieces: &[Markup], between: &str) -> Markup {
    html! {
        @for (i, piece) in pieces.iter().enumerate() {
            @if i > 0 { (between) }
            (piece)
        }
    }
}

/// A line break, so that the page is not one line, which line-based tools
/// cannot handle.
pub const NEW_LINE: PreEscaped<&str> = PreEscaped("\n");

/// A number with thin spaces between groups of three digits.
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
    fn foreign_text_cannot_open_a_tag_or_leave_an_attribute() {
        let evil = "</script><img src=x onerror=\"alert('1')\">&amp;";
        let inside = code(evil).into_string();
        assert_eq!(inside.matches(['<', '>']).count(), 4, "{inside}");
        assert!(inside.ends_with("&amp;amp;</code>"), "{inside}");
        let attribute = details(evil, &html! {}, &html! {}).into_string();
        assert_eq!(attribute.matches('"').count(), 2, "{attribute}");
        let saved = download("\" onclick=\"x", evil).into_string();
        assert!(saved.matches('"').count() == 4 && saved.contains("%22%20onclick%3D%22x"));
    }

    #[test]
    fn visible_replaces_invisible_characters() {
        assert_eq!(visible("a\0b\u{202e}c\u{7f}\n"), "a␀b\u{fffd}c␡\n");
        assert!(is_exact("a\nb\té") && !is_exact("a\rb") && !is_exact("\u{2066}"));
    }

    #[test]
    fn link_accepts_only_web_addresses() {
        let link = |address: &str, shown: &str| super::link(address, shown).into_string();
        assert!(
            link("https://example.org/a?b=1&c", "x")
                .contains("href=\"https://example.org/a?b=1&amp;c\"")
        );
        assert_eq!(link("javascript:alert(1)", "<x>"), "&lt;x&gt;");
        assert!(!link("https://x\" onclick=\"y", "x").contains("onclick=\""));
    }

    #[test]
    fn cut_states_the_length_of_the_text() {
        assert_eq!(cut("äbc", 3), "äbc");
        assert_eq!(cut("äbcd", 3), "äbc … (4 characters)");
        assert_eq!(number(1234567), "1\u{202f}234\u{202f}567");
        assert_eq!((plural(1, "case"), plural(20, "case")), ("1 case".into(), "20 cases".into()));
    }
}
