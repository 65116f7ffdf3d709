//! Renders witnesses as an SVG without external references. Each witness is a row of transactions,
//! each of which comes before the next one, and the arrow that closes the cycle is below them.

pub(crate) mod scene;

use crate::svg::{self, Direction, Document, Element, Stroke, arrow_head};
use isolde_checker::{Anomaly, EdgeKind, History};
use scene::{Arrow, Scene, TxnBox};

/// One witness to draw.
#[derive(Clone, Copy)]
pub struct Group<'a> {
    /// The history that contains the anomaly.
    pub history: &'a History,
    /// The anomaly.
    pub anomaly: &'a Anomaly,
}

/// The width of a character of the fixed-width font at 12 pixels, rounded up.
const LETTER: f64 = 7.4;
const LINE: f64 = 16.0;
const MARGIN: f64 = 24.0;
const HEAD: f64 = 40.0;
/// The distance of the arrows between boxes from the top of the boxes.
const ARROWS_AT: f64 = 44.0;
const NARROWEST: f64 = 640.0;

pub(crate) fn colour(kind: EdgeKind) -> &'static str {
    match kind {
        EdgeKind::Wr => "#1a7f37",
        EdgeKind::Ww => "#0969da",
        EdgeKind::Rw => "#cf222e",
        EdgeKind::PredicateWr | EdgeKind::PredicateRw => "#8250df",
        EdgeKind::Session | EdgeKind::RealTime => "#6e7781",
    }
}

fn meaning(kind: EdgeKind) -> &'static str {
    match kind {
        EdgeKind::Wr => "read what the other one wrote",
        EdgeKind::Ww => "overwrote what the other one wrote",
        EdgeKind::Rw => "read what the other one overwrote",
        EdgeKind::PredicateWr => "a predicate read saw a change by the other one",
        EdgeKind::PredicateRw => "a predicate read missed a change by the other one",
        EdgeKind::Session => "earlier in the same session",
        EdgeKind::RealTime => "ended before the other one began",
    }
}

/// Draws all witnesses, one below the other.
pub fn draw(groups: &[Group<'_>]) -> String {
    let scenes: Vec<Scene> =
        groups.iter().map(|group| Scene::of(group.history, group.anomaly)).collect();
    let widest = scenes.iter().map(|scene| Row::of(scene).width()).fold(NARROWEST, f64::max);
    let mut out = Document::default();
    let mut y = MARGIN;
    for (group, scene) in groups.iter().zip(&scenes) {
        y = draw_group(&mut out, group, scene, y, widest);
    }
    if groups.is_empty() {
        text(&mut out, MARGIN, y + 12.0, "start", "#57606a", false, "No anomaly was found.");
        y += 3.0 * LINE;
    }
    y = draw_legend(&mut out, &scenes, y);
    out.finish((widest + 2.0 * MARGIN, y), 12, "'DejaVu Sans Mono', Menlo, Consolas, monospace")
}

fn draw_group(out: &mut Document, group: &Group<'_>, scene: &Scene, mut y: f64, width: f64) -> f64 {
    let Group { history, anomaly } = group;
    let title = format!("{}, {} found", anomaly.name(), anomaly.count);
    text(out, MARGIN, y + 12.0, "start", "#1f2328", true, &title);
    text(out, MARGIN, y + 12.0 + LINE, "start", "#57606a", false, anomaly.class.meaning());
    y += 12.0 + 2.0 * LINE;
    let row = Row::of(scene);
    for (position, txn) in scene.boxes.iter().enumerate() {
        draw_box(out, txn, row.left[position], y, row.widths[position], row.heights[position]);
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
    let char_count = (width / LETTER) as usize;
    for sentence in anomaly.sentences(history) {
        for line in wrap(&sentence, char_count) {
            text(out, MARGIN, y + 12.0, "start", "#1f2328", false, &line);
            y += LINE;
        }
    }
    y + 2.0 * LINE
}

/// The layout of the boxes of a row: as far apart as the labels need.
struct Row {
    left: Vec<f64>,
    widths: Vec<f64>,
    heights: Vec<f64>,
}

impl Row {
    fn of(scene: &Scene) -> Row {
        let mut row = Row { left: Vec::new(), widths: Vec::new(), heights: Vec::new() };
        let mut x = MARGIN;
        for (position, txn) in scene.boxes.iter().enumerate() {
            let draw_arrow_head = char_count(&txn.name) + 2 + char_count(&txn.session);
            let longest = txn.lines.iter().map(|line| char_count(&line.text)).max().unwrap_or(0);
            let width = draw_arrow_head.max(longest) as f64 * LETTER + 24.0;
            row.left.push(x);
            row.widths.push(width.max(90.0));
            row.heights.push((HEAD + txn.lines.len() as f64 * LINE).max(ARROWS_AT + 16.0));
            let label = scene.arrows.iter().filter(|arrow| arrow.from == position);
            let label = label.flat_map(|arrow| &arrow.label).map(|line| char_count(line)).max();
            x += width.max(90.0) + label.unwrap_or(0) as f64 * LETTER + 36.0;
        }
        row
    }

    fn width(&self) -> f64 {
        self.left.last().map_or(0.0, |left| left + self.widths[self.widths.len() - 1] - MARGIN)
    }

    fn right(&self, position: usize) -> f64 {
        self.left[position] + self.widths[position]
    }

    fn middle(&self, position: usize) -> f64 {
        self.left[position] + self.widths[position] / 2.0
    }
}

fn draw_box(out: &mut Document, txn: &TxnBox, x: f64, y: f64, width: f64, height: f64) {
    let rect = Element::new("rect")
        .number("x", x)
        .number("y", y)
        .number("width", width)
        .number("height", height)
        .attr("rx", 6);
    out.push(rect.attr("fill", "#f6f8fa").attr("stroke", "#8c959f"));
    text(out, x + 12.0, y + 20.0, "start", "#1f2328", true, &txn.name);
    text(out, x + width - 12.0, y + 20.0, "end", "#6e7781", false, &txn.session);
    for (position, line) in txn.lines.iter().enumerate() {
        let colour = if line.strong { "#1f2328" } else { "#8c959f" };
        let at = y + HEAD + position as f64 * LINE;
        text(out, x + 12.0, at, "start", colour, line.strong, &line.text);
    }
}

/// Draws an arrow from a box to the next one on its right.
fn draw_forward(out: &mut Document, arrow: &Arrow, row: &Row, y: f64) {
    let (from, to) = (row.right(arrow.from), row.left[arrow.to]);
    draw_path(out, arrow, &format!("M {from:.1} {y:.1} H {:.1}", to - 8.0));
    out.push(arrow_head((to - 1.0, y), Direction::Right, colour(arrow.kind)));
    let middle = (from + to) / 2.0;
    for (position, line) in arrow.label.iter().enumerate() {
        // The first line is above the arrow, the second below it.
        let at = if position == 0 { y - 7.0 } else { y + 5.0 + 13.0 };
        text(out, middle, at, "middle", colour(arrow.kind), position == 0, line);
    }
}

/// Draws the arrow that closes a cycle: below all boxes, back to the first. Returns its lower edge.
fn draw_back(out: &mut Document, arrow: &Arrow, row: &Row, top: f64, bottom: f64) -> f64 {
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
    draw_path(out, arrow, &shape);
    out.push(arrow_head((to, end + 1.0), Direction::Up, colour(arrow.kind)));
    let middle = (from + to) / 2.0;
    for (position, line) in arrow.label.iter().enumerate() {
        let at = if position == 0 { y - 7.0 } else { y + 5.0 + 13.0 };
        text(out, middle, at, "middle", colour(arrow.kind), position == 0, line);
    }
    y + 18.0
}

fn draw_path(out: &mut Document, arrow: &Arrow, path: &str) {
    let stroke = Stroke { colour: colour(arrow.kind), width: 1.8, dashed: !arrow.observed };
    out.push(svg::line(path, &stroke, &arrow.why));
}

fn draw_legend(out: &mut Document, scenes: &[Scene], mut y: f64) -> f64 {
    let arrows = || scenes.iter().flat_map(|scene| &scene.arrows);
    let mut kinds: Vec<EdgeKind> = arrows().map(|arrow| arrow.kind).collect();
    kinds.sort_unstable();
    kinds.dedup();
    for kind in kinds {
        let name = format!("{kind:13}{}", meaning(kind));
        text(out, MARGIN, y, "start", colour(kind), false, &name);
        y += LINE;
    }
    if arrows().any(|arrow| !arrow.observed) {
        text(out, MARGIN, y, "start", "#57606a", false, "dashed       inferred, not observed");
        y += LINE;
    }
    y + MARGIN - LINE / 2.0
}

fn text(out: &mut Document, x: f64, y: f64, anchor: &str, fill: &str, bold: bool, content: &str) {
    let mut text = svg::text(x, y, content).attr("text-anchor", anchor).attr("fill", fill);
    if bold {
        text = text.attr("font-weight", "bold");
    }
    out.push(text.attr("xml:space", "preserve"));
}

fn char_count(text: &str) -> usize {
    text.chars().count()
}

fn wrap(text: &str, widest: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split_whitespace() {
        let line = lines.last_mut().expect("there is one");
        if !line.is_empty() && char_count(line) + 1 + char_count(word) > widest {
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
