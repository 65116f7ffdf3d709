//! Cycles as a picture: SVG that needs nothing besides itself. Each witness is a
//! row of transactions, each of which comes before the next, with the arrow that
//! closes the cycle below them.

pub(crate) mod scene;

use isolde_checker::{Anomaly, History, Kind};
use scene::{Arrow, Scene, TxnBox};
use std::fmt::Write;

/// A witness of a history.
#[derive(Clone, Copy)]
pub struct Group<'a> {
    pub history: &'a History,
    pub anomaly: &'a Anomaly,
}

/// The letters of a fixed font at 12 pixels, and a little more.
const LETTER: f64 = 7.4;
const LINE: f64 = 16.0;
const MARGIN: f64 = 24.0;
const HEAD: f64 = 40.0;
/// Where the arrows from box to box run, below the top of the boxes.
const ARROWS_AT: f64 = 44.0;
const NARROWEST: f64 = 640.0;

pub(crate) fn colour(kind: Kind) -> &'static str {
    match kind {
        Kind::Wr => "#1a7f37",
        Kind::Ww => "#0969da",
        Kind::Rw => "#cf222e",
        Kind::PredicateWr | Kind::PredicateRw => "#8250df",
        Kind::Session | Kind::Time => "#6e7781",
    }
}

fn meaning(kind: Kind) -> &'static str {
    match kind {
        Kind::Wr => "read what the other wrote",
        Kind::Ww => "overwrote what the other wrote",
        Kind::Rw => "read what the other replaced",
        Kind::PredicateWr => "a predicate saw what the other changed",
        Kind::PredicateRw => "a predicate missed what the other changed",
        Kind::Session => "earlier in the same session",
        Kind::Time => "had ended before the other began",
    }
}

/// All groups, one below the other.
pub fn draw(groups: &[Group<'_>]) -> String {
    let scenes: Vec<Scene> =
        groups.iter().map(|group| Scene::of(group.history, group.anomaly)).collect();
    let widest = scenes.iter().map(|scene| Row::of(scene).width()).fold(NARROWEST, f64::max);
    let mut body = String::new();
    let mut y = MARGIN;
    for (group, scene) in groups.iter().zip(&scenes) {
        y = draw_group(&mut body, group, scene, y, widest);
    }
    if groups.is_empty() {
        text(&mut body, MARGIN, y + 12.0, "start", "#57606a", false, "No anomaly was found.");
        y += 3.0 * LINE;
    }
    y = draw_legend(&mut body, &scenes, y);
    let width = widest + 2.0 * MARGIN;
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width:.0}\" height=\"{y:.0}\" \
         viewBox=\"0 0 {width:.0} {y:.0}\" font-size=\"12\" \
         font-family=\"'DejaVu Sans Mono', Menlo, Consolas, monospace\">\n\
         <rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n{body}</svg>\n"
    )
}

fn draw_group(out: &mut String, group: &Group<'_>, scene: &Scene, mut y: f64, width: f64) -> f64 {
    let Group { history, anomaly } = group;
    let title = format!("{}, {} found", anomaly.name(), anomaly.count);
    text(out, MARGIN, y + 12.0, "start", "#1f2328", true, &title);
    text(out, MARGIN, y + 12.0 + LINE, "start", "#57606a", false, anomaly.class.meaning());
    y += 12.0 + 2.0 * LINE;
    let row = Row::of(scene);
    for (place, txn) in scene.boxes.iter().enumerate() {
        draw_box(out, txn, row.left[place], y, row.widths[place], row.heights[place]);
    }
    let bottom = y + row.heights.iter().copied().fold(0.0, f64::max);
    let mut end = bottom;
    for arrow in &scene.arrows {
        if arrow.to > arrow.from {
            draw_forward(out, arrow, &row, y + ARROWS_AT);
        } else {
            end = draw_back(out, arrow, &row, y, bottom);
        }
    }
    y = end + 1.5 * LINE;
    let letters = (width / LETTER) as usize;
    for sentence in anomaly.sentences(history) {
        for line in wrap(&sentence, letters) {
            text(out, MARGIN, y + 12.0, "start", "#1f2328", false, &line);
            y += LINE;
        }
    }
    y + 2.0 * LINE
}

/// Where the boxes of a row stand: as far from each other as the labels need.
struct Row {
    left: Vec<f64>,
    widths: Vec<f64>,
    heights: Vec<f64>,
}

impl Row {
    fn of(scene: &Scene) -> Row {
        let mut row = Row { left: Vec::new(), widths: Vec::new(), heights: Vec::new() };
        let mut x = MARGIN;
        for (place, txn) in scene.boxes.iter().enumerate() {
            let head = letters(&txn.name) + 2 + letters(&txn.session);
            let longest = txn.lines.iter().map(|line| letters(&line.text)).max().unwrap_or(0);
            let width = head.max(longest) as f64 * LETTER + 24.0;
            row.left.push(x);
            row.widths.push(width.max(90.0));
            row.heights.push((HEAD + txn.lines.len() as f64 * LINE).max(ARROWS_AT + 16.0));
            let label = scene.arrows.iter().filter(|arrow| arrow.from == place);
            let label = label.flat_map(|arrow| &arrow.label).map(|line| letters(line)).max();
            x += width.max(90.0) + label.unwrap_or(0) as f64 * LETTER + 36.0;
        }
        row
    }

    fn width(&self) -> f64 {
        self.left.last().map_or(0.0, |left| left + self.widths[self.widths.len() - 1] - MARGIN)
    }

    fn right(&self, place: usize) -> f64 {
        self.left[place] + self.widths[place]
    }

    fn middle(&self, place: usize) -> f64 {
        self.left[place] + self.widths[place] / 2.0
    }
}

fn draw_box(out: &mut String, txn: &TxnBox, x: f64, y: f64, width: f64, height: f64) {
    let _ = writeln!(
        out,
        "<rect x=\"{x:.1}\" y=\"{y:.1}\" width=\"{width:.1}\" height=\"{height:.1}\" rx=\"6\" \
         fill=\"#f6f8fa\" stroke=\"#8c959f\"/>"
    );
    text(out, x + 12.0, y + 20.0, "start", "#1f2328", true, &txn.name);
    text(out, x + width - 12.0, y + 20.0, "end", "#6e7781", false, &txn.session);
    for (place, line) in txn.lines.iter().enumerate() {
        let colour = if line.strong { "#1f2328" } else { "#8c959f" };
        let at = y + HEAD + place as f64 * LINE;
        text(out, x + 12.0, at, "start", colour, line.strong, &line.text);
    }
}

/// From a box to the next one on its right.
fn draw_forward(out: &mut String, arrow: &Arrow, row: &Row, y: f64) {
    let (from, to) = (row.right(arrow.from), row.left[arrow.to]);
    path(out, arrow, &format!("M {from:.1} {y:.1} H {:.1}", to - 8.0));
    head(out, arrow.kind, &[(to - 1.0, y), (to - 10.0, y - 4.5), (to - 10.0, y + 4.5)]);
    let middle = (from + to) / 2.0;
    for (place, line) in arrow.label.iter().enumerate() {
        // The first line stands above the arrow, the second below it.
        let at = if place == 0 { y - 7.0 } else { y + 5.0 + 13.0 };
        text(out, middle, at, "middle", colour(arrow.kind), place == 0, line);
    }
}

/// The arrow that closes a cycle: below all boxes, back to the first. Says where it ends.
fn draw_back(out: &mut String, arrow: &Arrow, row: &Row, top: f64, bottom: f64) -> f64 {
    let (from, to) = (row.middle(arrow.from), row.middle(arrow.to));
    let (begin, end) = (top + row.heights[arrow.from], top + row.heights[arrow.to]);
    let y = bottom + 30.0;
    let shape = format!(
        "M {from:.1} {begin:.1} V {:.1} Q {from:.1} {y:.1} {:.1} {y:.1} H {:.1} \
         Q {to:.1} {y:.1} {to:.1} {:.1} V {:.1}",
        y - 10.0,
        from - 10.0,
        to + 10.0,
        y - 10.0,
        end + 8.0
    );
    path(out, arrow, &shape);
    head(out, arrow.kind, &[(to, end + 1.0), (to - 4.5, end + 10.0), (to + 4.5, end + 10.0)]);
    let middle = (from + to) / 2.0;
    for (place, line) in arrow.label.iter().enumerate() {
        let at = if place == 0 { y - 7.0 } else { y + 5.0 + 13.0 };
        text(out, middle, at, "middle", colour(arrow.kind), place == 0, line);
    }
    y + 18.0
}

fn path(out: &mut String, arrow: &Arrow, shape: &str) {
    let dashes = if arrow.observed { "" } else { " stroke-dasharray=\"5 4\"" };
    let _ = writeln!(
        out,
        "<path d=\"{shape}\" fill=\"none\" stroke=\"{}\" stroke-width=\"1.8\"{dashes}>\
         <title>{}</title></path>",
        colour(arrow.kind),
        escape(&arrow.why)
    );
}

fn head(out: &mut String, kind: Kind, points: &[(f64, f64)]) {
    let points: Vec<String> = points.iter().map(|(x, y)| format!("{x:.1},{y:.1}")).collect();
    let _ = writeln!(out, "<polygon points=\"{}\" fill=\"{}\"/>", points.join(" "), colour(kind));
}

fn draw_legend(out: &mut String, scenes: &[Scene], mut y: f64) -> f64 {
    let arrows = || scenes.iter().flat_map(|scene| &scene.arrows);
    let mut kinds: Vec<Kind> = arrows().map(|arrow| arrow.kind).collect();
    kinds.sort_unstable();
    kinds.dedup();
    for kind in kinds {
        let name = format!("{kind:13}{}", meaning(kind));
        text(out, MARGIN, y, "start", colour(kind), false, &name);
        y += LINE;
    }
    if arrows().any(|arrow| !arrow.observed) {
        text(out, MARGIN, y, "start", "#57606a", false, "dashed       concluded, not observed");
        y += LINE;
    }
    y + MARGIN - LINE / 2.0
}

fn text(out: &mut String, x: f64, y: f64, anchor: &str, fill: &str, bold: bool, content: &str) {
    let weight = if bold { " font-weight=\"bold\"" } else { "" };
    let _ = writeln!(
        out,
        "<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\" fill=\"{fill}\"{weight} \
         xml:space=\"preserve\">{}</text>",
        escape(content)
    );
}

/// Text of others inside of SVG: nothing that is markup, nothing that XML forbids.
fn escape(text: &str) -> String {
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

fn letters(text: &str) -> usize {
    text.chars().count()
}

fn wrap(text: &str, widest: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split_whitespace() {
        let line = lines.last_mut().expect("there is one");
        if !line.is_empty() && letters(line) + 1 + letters(word) > widest {
            lines.push(format!("  {word}"));
        } else {
            if !line.is_empty() {
                line.push(' ');
            }
            line.push_str(word);
        }
    }
    lines
}
