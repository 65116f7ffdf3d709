//! Renders witnesses as DOT, the input of Graphviz.

use crate::picture::scene::Scene;
use crate::picture::{Group, colour};
use std::fmt::Write;

/// Draws a graph with one cluster per witness.
pub fn draw(groups: &[Group<'_>]) -> String {
    let mut out = String::from(
        "digraph history {\n  rankdir=LR;\n  node [shape=box, style=rounded, \
         fontname=\"monospace\"];\n  edge [fontname=\"monospace\"];\n",
    );
    for (number, Group { history, anomaly }) in groups.iter().enumerate() {
        let scene = Scene::of(history, anomaly);
        let title = format!("{}: {}", anomaly.name(), anomaly.class.meaning());
        let _ = writeln!(out, "  subgraph cluster_{number} {{\n    label={};", quoted(&title));
        for (position, txn) in scene.boxes.iter().enumerate() {
            let mut label = format!("{} ({})\\l", plain(&txn.name), plain(&txn.session));
            for line in &txn.lines {
                let _ = write!(label, "{}\\l", plain(&line.text));
            }
            let _ = writeln!(out, "    g{number}_{position} [label=\"{label}\"];");
        }
        for arrow in &scene.arrows {
            let label: Vec<String> = arrow.label.iter().map(|line| plain(line)).collect();
            let (from, to, colour) = (arrow.from, arrow.to, colour(arrow.kind));
            let style = if arrow.observed { "solid" } else { "dashed" };
            let _ = writeln!(
                out,
                "    g{number}_{from} -> g{number}_{to} [label=\"{}\", color=\"{colour}\", \
                 fontcolor=\"{colour}\", style={style}, tooltip={}];",
                label.join("\\n"),
                quoted(&arrow.why)
            );
        }
        out.push_str("  }\n");
    }
    out + "}\n"
}

fn quoted(text: &str) -> String {
    format!("\"{}\"", plain(text))
}

/// Escapes text for a quoted string.
fn plain(text: &str) -> String {
    text.chars().fold(String::new(), |mut plain, c| {
        match c {
            '"' | '\\' => plain.extend(['\\', c]),
            c if c.is_control() => plain.push(' '),
            c => plain.push(c),
        }
        plain
    })
}
