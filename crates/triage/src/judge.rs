//! The judge that is built in: what went wrong first, then the dependency
//! patterns, then the shapes of the statements.

use super::Features;
use super::tournament::{Answer, Nearer};
use std::collections::BTreeSet;

/// How near two reports are: each part counts only where those before it are
/// equal.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
struct Nearness {
    same_defect: bool,
    wrong: usize,
    pattern: f64,
    shapes: f64,
}

fn nearness(a: &Features, b: &Features) -> Nearness {
    let (x, y) = (&a.deviation, &b.deviation);
    let equal = [
        x.how == y.how,
        x.rule == y.rule,
        x.between == y.between,
        x.rows == y.rows,
        x.holders == y.holders,
        x.after == y.after,
        x.at == y.at,
        x.waited == y.waited,
    ];
    let edges = |f: &Features| -> BTreeSet<String> {
        f.all.iter().filter(|f| f.starts_with("edge: ")).cloned().collect()
    };
    Nearness {
        same_defect: same(a, b),
        wrong: equal.iter().filter(|e| **e).count(),
        pattern: overlap(&edges(a), &edges(b)),
        shapes: overlap(&a.shapes.iter().cloned().collect(), &b.shapes.iter().cloned().collect()),
    }
}

/// What two sets share of what either has.
fn overlap(a: &BTreeSet<String>, b: &BTreeSet<String>) -> f64 {
    let either = a.union(b).count();
    if either == 0 { 1.0 } else { a.intersection(b).count() as f64 / either as f64 }
}

/// Whether two reports are of one defect: the same went wrong, by the same
/// rule, between the same kinds of statements, with the same rows.
pub fn same(a: &Features, b: &Features) -> bool {
    !a.deviation.how.is_empty() && a.key() == b.key()
}

/// Which of two candidates is nearer to the finding.
pub fn compare(finding: &Features, first: &Features, second: &Features) -> Answer {
    let (a, b) = (nearness(finding, first), nearness(finding, second));
    let (nearer, best) = match a.partial_cmp(&b) {
        Some(std::cmp::Ordering::Greater) => (Nearer::First, a),
        Some(std::cmp::Ordering::Less) => (Nearer::Second, b),
        _ => (Nearer::Neither, a),
    };
    let reason = match nearer {
        Nearer::Neither => "both are equally near".to_string(),
        _ if a.same_defect != b.same_defect => "only there the same went wrong".into(),
        _ if a.wrong != b.wrong => "what went wrong has more in common".into(),
        _ if a.pattern != b.pattern => "its statements meet in the same way".into(),
        _ => "its statements have the same shapes".into(),
    };
    Answer { nearer, same: best.same_defect, reason }
}
