//! The text output of `isolde triage`.

use super::{Candidate, Group, Triage};
use crate::commands::context::Context;
use crate::console::Style;

/// How many candidates and findings of a group are shown; `--json` has all.
const MOST: usize = 5;

pub fn show(context: &Context<'_>, triage: &Triage) {
    let plural = if triage.findings == 1 { "" } else { "s" };
    context
        .console
        .print(&format!("{} finding{plural}, {} distinct", triage.findings, triage.distinct));
    for (n, group) in triage.groups.iter().enumerate() {
        show_group(context, n + 1, group);
    }
}

fn show_group(context: &Context<'_>, number: usize, group: &Group) {
    let console = context.console;
    let times = match group.findings.len() {
        1 => String::new(),
        n => format!(" ×{n}"),
    };
    let verdict = match &group.same_as {
        Some(name) => format!("same as {name}"),
        None => "new".into(),
    };
    console.print("");
    console.print(&console.paint(Style::Strong, &format!("{number}. {verdict}{times}")));
    console.print(&format!("   what went wrong: {}", group.reason));
    for finding in group.findings.iter().take(MOST) {
        console.print(&format!("   {finding}"));
    }
    if group.findings.len() > MOST {
        console.print(&format!("   and {} more", group.findings.len() - MOST));
    }
    if group.ranking.is_empty() {
        return console.print("   nothing to compare with; see --against");
    }
    console.print(&format!("   candidates for {}:", group.compared));
    for candidate in group.ranking.iter().take(MOST) {
        show_candidate(context, candidate);
    }
    if group.questions > 0 {
        console.comment(&console.paint(
            Style::Dim,
            &format!(
                "   decided in {} comparisons (maximum {}): {}",
                group.questions, group.most_questions, group.why
            ),
        ));
    }
}

fn show_candidate(context: &Context<'_>, candidate: &Candidate) {
    let console = context.console;
    let same = if candidate.same { "  same" } else { "" };
    console.print(&format!(
        "     {:.2}  {}  {}{same}",
        candidate.similarity, candidate.name, candidate.title
    ));
    for (word, features) in [("shared", &candidate.shared), ("only one has", &candidate.only_one)] {
        if !features.is_empty() {
            let all: Vec<String> = features.iter().map(|(f, w)| format!("{f} ({w:.2})")).collect();
            console.comment(
                &console.paint(Style::Dim, &format!("           {word}: {}", all.join("; "))),
            );
        }
    }
}
