//! The statement-dependency graph of a finding, drawn: DOT for Graphviz, and an SVG with the
//! statements in the order in which they ran alone and an arc for each dependency.

use isolde_core::oracle::topological::{Kind, Topology};
use std::fmt::Write;

/// The files that show it.
pub fn files(topology: &Topology) -> Vec<(&'static str, String)> {
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

/// Statements in the order in which they ran; of a graph of which none showed anything, as
/// they stand.
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

const ROW: usize = 34;
const ARCS: usize = 170;
/// The edges in words, below: so many of them.
const MOST_LINES: usize = 20;
const LINE: usize = 18;
/// Longer statements are cut.
const MOST_TEXT: usize = 110;

fn svg(topology: &Topology) -> String {
    let order = order(topology);
    let place = |node: usize| order.iter().position(|n| *n == node).unwrap_or_default();
    let middle = |node: usize| 30 + place(node) * ROW;
    let listed = topology.graph.edges.len().min(MOST_LINES);
    let below = 40 + order.len() * ROW;
    let height = below + listed * LINE + 40;
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 1180 {height}\" width=\"1180\" \
         height=\"{height}\" font-family=\"monospace\" font-size=\"13\">\n\
         <rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n"
    );
    for ((from, to, kind), row) in &topology.graph.edges {
        let (start, end, colour) = (middle(*from), middle(*to), colour(*kind));
        // Several of one pair stand beside each other.
        let apart = Kind::ALL.iter().position(|k| k == kind).unwrap_or_default() * 6;
        let wide = (20 + apart + 14 * place(*to).abs_diff(place(*from))).min(ARCS - 10);
        let (edge, out_at) = (ARCS, ARCS - wide);
        let (above, below) = (start + 4, end - 4);
        let _ = writeln!(
            out,
            "<path d=\"M {edge} {above} C {out_at} {above} {out_at} {below} {edge} {below}\" \
             fill=\"none\" stroke=\"{colour}\" stroke-width=\"1.4\"><title>{}</title></path>\n\
             <path d=\"M {edge} {below} l -7 -4 l 0 8 z\" fill=\"{colour}\"/>",
            escaped(&format!("{}: {row}", kind.name()))
        );
    }
    for node in &order {
        let of = &topology.graph.nodes[*node];
        let (top, base) = (middle(*node) - 13, middle(*node) + 4);
        let text: String = of.sql.chars().take(MOST_TEXT).collect();
        let cut = if of.sql.chars().count() > MOST_TEXT { " …" } else { "" };
        let _ = writeln!(
            out,
            "<rect x=\"{ARCS}\" y=\"{top}\" width=\"1000\" height=\"26\" rx=\"4\" \
             fill=\"#f6f8fa\" stroke=\"#d0d7de\"/>\n<text x=\"{}\" y=\"{base}\" \
             fill=\"#1f2328\">{}</text>",
            ARCS + 8,
            escaped(&format!("{:<6} {text}{cut}", of.label))
        );
    }
    for (line, ((from, to, kind), row)) in topology.graph.edges.iter().take(listed).enumerate() {
        let label = |node: &usize| topology.graph.nodes[*node].label.as_str();
        let text = format!("{} before {}: {}, {row}", label(from), label(to), kind.name());
        let (y, colour) = (below + line * LINE, colour(*kind));
        let text = escaped(&text);
        let _ = writeln!(out, "<text x=\"{ARCS}\" y=\"{y}\" fill=\"{colour}\">{text}</text>");
    }
    let mut x = ARCS;
    for kind in Kind::ALL.into_iter().filter(|k| topology.edges.contains_key(k)) {
        let count = topology.edges[&kind];
        let text = format!("{} {count}", kind.name());
        let (y, colour) = (height - 14, colour(kind));
        let _ = writeln!(out, "<text x=\"{x}\" y=\"{y}\" fill=\"{colour}\">{text}</text>");
        x += text.len() * 8 + 16;
    }
    out + "</svg>\n"
}

fn escaped(text: &str) -> String {
    let mut out = String::new();
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            c if c.is_control() => out.push(' '),
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use isolde_core::oracle::topological::{Graph, Node};

    #[test]
    fn a_graph_is_drawn_with_what_is_in_it_and_nothing_of_it_is_markup() {
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
