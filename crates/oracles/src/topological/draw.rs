//! Draws the statement-dependency graph of a finding: DOT for Graphviz, and an SVG with the
//! statements in the order in which they ran alone and one arc per dependency.

use super::graph::Kind;
use super::topology::Topology;
use isolde_histories::svg::{Direction, Document, Element, Stroke, arrow_head, line, text};
use std::fmt::Write;

/// The files with the drawings; none without a graph.
pub(super) fn files(topology: &Topology) -> Vec<(&'static str, String)> {
    if topology.graph.nodes.is_empty() {
        return Vec::new();
    }
    vec![("graph.dot", dot(topology)), ("graph.svg", svg(topology))]
}

fn colour(kind: Kind) -> &'static str {
    match kind {
        Kind::ItemRead | Kind::PredicateRead => "#1f6feb",
        Kind::ItemWrite | Kind::PredicateWrite | Kind::ValueWrite => "#8250df",
        Kind::ItemAnti | Kind::PredicateAnti => "#bc4c00",
        Kind::Key => "#57606a",
    }
}

/// The statements in the order in which they ran, or in that of the case if no order showed a
/// difference.
fn order(topology: &Topology) -> Vec<usize> {
    match topology.order.is_empty() {
        true => (0..topology.graph.nodes.len()).collect(),
        false => topology.order.clone(),
    }
}

fn dot(topology: &Topology) -> String {
    let mut out = String::from(
        "digraph statements {\n  rankdir=TB;\n  node [shape=box, style=rounded, \
         fontname=\"monospace\"];\n  edge [fontname=\"monospace\"];\n",
    );
    for (place, node) in order(topology).iter().enumerate() {
        let of = &topology.graph.nodes[*node];
        let text = quoted(&format!("{}. {}  {}", place + 1, of.label, of.sql));
        let _ = writeln!(out, "  n{node} [label={text}];");
    }
    for ((from, to, kind), row) in &topology.graph.edges {
        let (label, colour) = (quoted(&format!("{} {row}", kind.name())), colour(*kind));
        let _ = writeln!(
            out,
            "  n{from} -> n{to} [label={label}, color=\"{colour}\", fontcolor=\"{colour}\"];"
        );
    }
    out + "}\n"
}

fn quoted(text: &str) -> String {
    let mut plain = String::new();
    for c in text.chars() {
        match c {
            '"' | '\\' => plain.extend(['\\', c]),
            c if c.is_control() => plain.push(' '),
            c => plain.push(c),
        }
    }
    format!("\"{plain}\"")
}

/// The distance between two statements.
const ROW: f64 = 34.0;
/// The width of the arcs, left of the statements.
const ARCS: f64 = 170.0;
const WIDTH: f64 = 1180.0;
/// The most edges that are listed as text below the drawing.
const MOST_LINES: usize = 20;
const LINE: f64 = 18.0;
/// Longer statements are shortened.
const MOST_TEXT: usize = 110;

fn svg(topology: &Topology) -> String {
    let order = order(topology);
    let edges = &topology.graph.edges;
    let place = |node: usize| order.iter().position(|n| *n == node).unwrap_or_default();
    let middle = |node: usize| 30.0 + place(node) as f64 * ROW;
    let mut drawing = Document::default();
    for ((from, to, kind), row) in edges {
        let (start, end) = (middle(*from) + 4.0, middle(*to) - 4.0);
        // Several arcs of one pair are drawn next to each other.
        let kind_number = Kind::ALL.iter().position(|k| k == kind).unwrap_or_default();
        let distance = place(*to).abs_diff(place(*from));
        let left = ARCS - ((20 + kind_number * 6 + 14 * distance) as f64).min(ARCS - 10.0);
        let path = format!("M {ARCS} {start} C {left} {start} {left} {end} {ARCS} {end}");
        let stroke = Stroke { colour: colour(*kind), width: 1.4, dashed: false };
        drawing.push(line(&path, &stroke, &format!("{}: {row}", kind.name())));
        drawing.push(arrow_head((ARCS, end), Direction::Right, stroke.colour));
    }
    for node in &order {
        let statement = &topology.graph.nodes[*node];
        let frame = Element::new("rect")
            .number("x", ARCS)
            .number("y", middle(*node) - 13.0)
            .attr("width", 1000)
            .attr("height", 26)
            .attr("rx", 4);
        drawing.push(frame.attr("fill", "#f6f8fa").attr("stroke", "#d0d7de"));
        let sql: String = statement.sql.chars().take(MOST_TEXT).collect();
        let cut = if statement.sql.chars().count() > MOST_TEXT { " …" } else { "" };
        let label = format!("{:<6} {sql}{cut}", statement.label);
        drawing.push(text(ARCS + 8.0, middle(*node) + 4.0, &label).attr("fill", "#1f2328"));
    }
    let mut y = 40.0 + order.len() as f64 * ROW;
    for ((from, to, kind), row) in edges.iter().take(MOST_LINES) {
        let label = |node: &usize| topology.graph.nodes[*node].label.as_str();
        let sentence = format!("{} before {}: {}, {row}", label(from), label(to), kind.name());
        drawing.push(text(ARCS, y, &sentence).attr("fill", colour(*kind)));
        y += LINE;
    }
    let mut x = ARCS;
    for kind in Kind::ALL {
        let Some(count) = topology.edges.get(&kind) else { continue };
        let legend = format!("{} {count}", kind.name());
        drawing.push(text(x, y + 26.0, &legend).attr("fill", colour(kind)));
        x += legend.len() as f64 * 8.0 + 16.0;
    }
    drawing.finish((WIDTH, y + 40.0), 13, "monospace")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::topological::{Graph, Node};

    #[test]
    fn drawings_contain_all_statements_and_edges_and_escape_markup() {
        let node = |step, sql: &str| Node { step, label: format!("s1.{step}"), sql: sql.into() };
        let nodes = vec![node(1, "select '<&>\"' from t"), node(2, "update t set a = 1")];
        let mut graph = Graph { nodes, ..Graph::default() };
        graph.add(0, 1, Kind::ItemAnti, "t#1");
        let edges = graph.count();
        let topology = Topology { graph, edges, order: vec![0, 1], ..Topology::default() };
        let files = files(&topology);
        let [(_, dot), (_, svg)] = &files[..] else { panic!("{files:?}") };
        assert!(dot.contains("n0 -> n1 [label=\"item-anti t#1\""), "{dot}");
        assert!(dot.contains("'<&>\\\"' from t"), "{dot}");
        assert!(svg.contains("&lt;&amp;&gt;&quot;"), "{svg}");
        assert!(svg.contains("s1.1 before s1.2: item-anti, t#1"), "{svg}");
        assert!(super::files(&Topology::default()).is_empty());
    }
}
