//! Pieces of HTML. The templates escape whatever is put into them; what this
//! adds is that text from outside is cut where it is long, and that nothing in
//! it is invisible.

use isolde_core::Value;
use maud::{Markup, PreEscaped, html};

/// The longest statement, value or message that is shown whole.
const LONGEST_TEXT: usize = 2_000;
const LONGEST_VALUE: usize = 200;

/// Characters that cannot be seen, or that turn the order of the others
/// around, are shown as a sign instead.
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

/// Whether the page shows exactly this text, so that it may be copied from it.
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

/// Text from outside, fit to be shown.
pub fn text(text: &str) -> String {
    visible(&cut(text, LONGEST_TEXT))
}

/// A statement or a name, in the type of code.
pub fn code(sql: &str) -> Markup {
    html! { code { (text(sql)) } }
}

pub fn value(value: &Value) -> Markup {
    let shown = visible(&cut(&value.to_string(), LONGEST_VALUE));
    html! {
        @if *value == Value::Null { i { (shown) } } @else { (shown) }
    }
}

/// A link to the web, or only its text where the address is no such link.
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

/// A link that saves a text which the page cannot show as it is. All but
/// letters and digits is coded, as an address wants it.
pub fn download(text: &str, file: &str) -> Markup {
    html! { a download=(file) href=(address("text/plain;charset=utf-8", text)) { (file) } }
}

/// A picture in the page itself. As an image it runs nothing, wherever it comes from.
pub fn picture(svg: &str, about: &str) -> Markup {
    html! { img.cycle alt=(about) src=(address("image/svg+xml", svg)); }
}

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

/// What opens at a click or a key, without any script.
pub fn details(class: &str, summary: &Markup, body: &Markup) -> Markup {
    html! {
        details class=(class) { summary { (summary) } (body) }
        (NEW_LINE)
    }
}

/// A table in a box of its own, which scrolls where the screen is narrow.
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

/// Pieces one after the other with something between them.
pub fn joined(pieces: &[Markup], between: &str) -> Markup {
    html! {
        @for (i, piece) in pieces.iter().enumerate() {
            @if i > 0 { (between) }
            (piece)
        }
    }
}

/// A page of one line could not be read by the tools that read lines.
pub const NEW_LINE: PreEscaped<&str> = PreEscaped("\n");

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
        let inside = code(evil).into_string();
        assert_eq!(inside.matches(['<', '>']).count(), 4, "{inside}");
        assert!(inside.ends_with("&amp;amp;</code>"), "{inside}");
        let attribute = details(evil, &html! {}, &html! {}).into_string();
        assert_eq!(attribute.matches('"').count(), 2, "{attribute}");
        let saved = download("\" onclick=\"x", evil).into_string();
        assert!(saved.matches('"').count() == 4 && saved.contains("%22%20onclick%3D%22x"));
    }

    #[test]
    fn what_cannot_be_seen_is_shown_as_a_sign() {
        assert_eq!(visible("a\0b\u{202e}c\u{7f}\n"), "a␀b\u{fffd}c␡\n");
        assert!(is_exact("a\nb\té") && !is_exact("a\rb") && !is_exact("\u{2066}"));
    }

    #[test]
    fn only_addresses_of_the_web_become_links() {
        let link = |address: &str, shown: &str| super::link(address, shown).into_string();
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
