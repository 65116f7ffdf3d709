//! Writes a spec. Reading it back gives the same spec.

use super::lexer::is_plain_name;
use super::{Block, Blocker, PermutationStep, Spec};

pub fn format(spec: &Spec) -> String {
    let mut out = String::new();
    for setup in &spec.setups {
        block(&mut out, "setup", &setup.sql);
    }
    optional(&mut out, "teardown", spec.teardown.as_ref());
    for session in &spec.sessions {
        if !out.is_empty() {
            out.push('\n');
        }
        out.push_str(&format!("session {}\n", name(&session.name)));
        optional(&mut out, "setup", session.setup.as_ref());
        for step in &session.steps {
            block(&mut out, &format!("step {}", name(&step.name)), &step.sql);
        }
        optional(&mut out, "teardown", session.teardown.as_ref());
    }
    if !spec.permutations.is_empty() {
        out.push('\n');
    }
    for permutation in &spec.permutations {
        let steps: Vec<String> = permutation.steps.iter().map(|s| step(spec, s)).collect();
        out.push_str(&format!("permutation {}\n", steps.join(" ")));
    }
    out
}

fn optional(out: &mut String, title: &str, sql: Option<&Block>) {
    if let Some(found) = sql {
        block(out, title, &found.sql);
    }
}

fn block(out: &mut String, title: &str, sql: &str) {
    let (before, after) = if sql.is_empty() {
        ("", " ")
    } else {
        // A line break at either end replaces the blank.
        (if sql.starts_with('\n') { "" } else { " " }, if sql.ends_with('\n') { "" } else { " " })
    };
    out.push_str(&format!("{title} {{{before}{sql}{after}}}\n"));
}

fn name(name: &str) -> String {
    if is_plain_name(name) { name.into() } else { format!("\"{}\"", name.replace('"', "\"\"")) }
}

fn step(spec: &Spec, step: &PermutationStep) -> String {
    let own = name(&spec.step(step.id).name);
    if step.blockers.is_empty() {
        return own;
    }
    let blockers: Vec<String> = step
        .blockers
        .iter()
        .map(|blocker| match blocker {
            Blocker::Once => "*".into(),
            Blocker::Step(id) => name(&spec.step(*id).name),
            Blocker::Notices(id, n) => format!("{} notices {n}", name(&spec.step(*id).name)),
        })
        .collect();
    format!("{own}({})", blockers.join(", "))
}
