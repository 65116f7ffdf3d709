//! A small SVG writer: escaped text, elements, arrows and whole documents.
//!
//! ```
//! use isolde_histories::svg::{Direction, Document, Element, Stroke, arrow_head, line, text};
//!
//! let mut drawing = Document::default();
//! drawing.push(Element::new("rect").number("x", 8.0).number("y", 8.0).attr("width", 40));
//! drawing.push(text(12.0, 20.0, "a < b").attr("fill", "#1f2328"));
//! let stroke = Stroke { colour: "#cf222e", width: 1.4, dashed: true };
//! drawing.push(line("M 48 20 H 90", &stroke, "rw: T1 read x, which T2 overwrote"));
//! drawing.push(arrow_head((98.0, 20.0), Direction::Right, stroke.colour));
//! let svg = drawing.finish((120.0, 40.0), 12, "monospace");
//! assert!(svg.starts_with("<svg") && svg.contains(">a &lt; b</text>"));
//! ```

use std::fmt::{self, Display, Write};

/// Escapes text for the content or a quoted attribute of an element. Characters that XML forbids
/// become spaces.
pub fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            c if c.is_control() || matches!(c, '\u{fffe}' | '\u{ffff}') => escaped.push(' '),
            c => escaped.push(c),
        }
    }
    escaped
}

/// An element with its attributes and content.
#[derive(Clone, Debug)]
pub struct Element {
    name: &'static str,
    attributes: String,
    content: String,
}

impl Element {
    /// An element without attributes and content.
    pub fn new(name: &'static str) -> Element {
        Element { name, attributes: String::new(), content: String::new() }
    }

    /// Adds an attribute. Its value is escaped.
    pub fn attr(mut self, name: &str, value: impl Display) -> Element {
        let value = escape(&value.to_string());
        let _ = write!(self.attributes, " {name}=\"{value}\"");
        self
    }

    /// Adds an attribute whose value is a length or coordinate, with one decimal.
    pub fn number(self, name: &str, value: f64) -> Element {
        self.attr(name, format_args!("{value:.1}"))
    }

    /// Adds text to the content. It is escaped.
    pub fn text(mut self, text: &str) -> Element {
        self.content.push_str(&escape(text));
        self
    }

    /// Adds an element to the content.
    pub fn child(mut self, child: &Element) -> Element {
        let _ = write!(self.content, "{child}");
        self
    }
}

impl Display for Element {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Element { name, attributes, content } = self;
        match content.is_empty() {
            true => write!(f, "<{name}{attributes}/>"),
            false => write!(f, "<{name}{attributes}>{content}</{name}>"),
        }
    }
}

/// A text whose baseline begins at this position.
pub fn text(x: f64, y: f64, content: &str) -> Element {
    Element::new("text").number("x", x).number("y", y).text(content)
}

/// How a line is drawn.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Stroke<'a> {
    /// The colour, for example `#cf222e`.
    pub colour: &'a str,
    /// The width in pixels.
    pub width: f64,
    /// Whether the line is dashed.
    pub dashed: bool,
}

/// A line along a path (the syntax of the `d` attribute), with a tooltip.
pub fn line(path: &str, stroke: &Stroke<'_>, tooltip: &str) -> Element {
    let mut line = Element::new("path")
        .attr("d", path)
        .attr("fill", "none")
        .attr("stroke", stroke.colour)
        .number("stroke-width", stroke.width);
    if stroke.dashed {
        line = line.attr("stroke-dasharray", "5 4");
    }
    line.child(&Element::new("title").text(tooltip))
}

/// Where an arrow points.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Direction {
    /// To the left.
    Left,
    /// To the right.
    Right,
    /// Upwards.
    Up,
    /// Downwards.
    Down,
}

/// The length of an arrow head; a line to it should end a little less than this before its tip.
pub const ARROW_LENGTH: f64 = 9.0;

/// The filled triangle at the end of an arrow, with this tip.
pub fn arrow_head((x, y): (f64, f64), direction: Direction, colour: &str) -> Element {
    const HALF: f64 = ARROW_LENGTH / 2.0;
    let (dx, dy) = match direction {
        Direction::Left => (1.0, 0.0),
        Direction::Right => (-1.0, 0.0),
        Direction::Up => (0.0, 1.0),
        Direction::Down => (0.0, -1.0),
    };
    let (base_x, base_y) = (x + ARROW_LENGTH * dx, y + ARROW_LENGTH * dy);
    // Perpendicular to the direction.
    let (wide_x, wide_y) = (HALF * f64::abs(dy), HALF * f64::abs(dx));
    let corners = [(x, y), (base_x - wide_x, base_y - wide_y), (base_x + wide_x, base_y + wide_y)];
    let points: Vec<String> = corners.iter().map(|(x, y)| format!("{x:.1},{y:.1}")).collect();
    Element::new("polygon").attr("points", points.join(" ")).attr("fill", colour)
}

/// A drawing on a white background.
#[derive(Clone, Debug, Default)]
pub struct Document {
    body: String,
}

impl Document {
    /// Adds an element on top of those before.
    pub fn push(&mut self, element: Element) {
        let _ = writeln!(self.body, "{element}");
    }

    /// The whole document, with its size in pixels and the font of its texts.
    pub fn finish(&self, (width, height): (f64, f64), font_size: u32, font: &str) -> String {
        let (font, body) = (escape(font), &self.body);
        format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width:.0}\" \
             height=\"{height:.0}\" viewBox=\"0 0 {width:.0} {height:.0}\" \
             font-size=\"{font_size}\" font-family=\"{font}\">\n\
             <rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n{body}</svg>\n"
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markup_and_forbidden_characters_are_escaped_in_text_and_attributes() {
        assert_eq!(escape("a<b>&\"c\"\u{0}\n\u{ffff}'"), "a&lt;b&gt;&amp;&quot;c&quot;   '");
        let element = Element::new("text").attr("title", "\"x\"").text("<y>");
        assert_eq!(element.to_string(), "<text title=\"&quot;x&quot;\">&lt;y&gt;</text>");
    }

    #[test]
    fn elements_without_content_are_closed_and_children_are_nested() {
        let rect = Element::new("rect").number("x", 1.25).attr("width", 7);
        assert_eq!(rect.to_string(), "<rect x=\"1.2\" width=\"7\"/>");
        let group = Element::new("g").child(&rect).child(&Element::new("circle"));
        assert_eq!(group.to_string(), "<g><rect x=\"1.2\" width=\"7\"/><circle/></g>");
    }

    #[test]
    fn arrow_heads_point_in_their_direction() {
        let points = |direction| arrow_head((100.0, 50.0), direction, "red").to_string();
        let expected = |corners: &str| format!("<polygon points=\"{corners}\" fill=\"red\"/>");
        assert_eq!(points(Direction::Right), expected("100.0,50.0 91.0,45.5 91.0,54.5"));
        assert_eq!(points(Direction::Left), expected("100.0,50.0 109.0,45.5 109.0,54.5"));
        assert_eq!(points(Direction::Up), expected("100.0,50.0 95.5,59.0 104.5,59.0"));
        assert_eq!(points(Direction::Down), expected("100.0,50.0 95.5,41.0 104.5,41.0"));
    }

    #[test]
    fn a_document_has_its_elements_in_order() {
        let mut document = Document::default();
        document.push(Element::new("a"));
        document.push(Element::new("b"));
        let svg = document.finish((10.0, 20.4), 12, "monospace");
        assert!(svg.contains("width=\"10\" height=\"20\" viewBox=\"0 0 10 20\""), "{svg}");
        assert!(svg.ends_with("<a/>\n<b/>\n</svg>\n"), "{svg}");
    }
}
