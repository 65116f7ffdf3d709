//! Groups of findings of one defect. Groups depend on the findings alone, not
//! on their order.

use super::Features;
use std::collections::BTreeMap;

/// Findings of one defect.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Grouped {
    /// What they have in common, as a sentence.
    pub reason: String,
    /// Their numbers among the given findings, in ascending order.
    pub members: Vec<usize>,
}

/// Groups findings by the key of their defect, which is given with each: the
/// largest group first, then by key.
pub fn groups(findings: &[(String, &Features)]) -> Vec<Grouped> {
    let mut by_key: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
    for (n, (key, _)) in findings.iter().enumerate() {
        by_key.entry(key).or_default().push(n);
    }
    let group = |(_, members): (&str, Vec<usize>)| {
        let reasons = members.iter().map(|n| findings[*n].1.deviation.describe());
        Grouped { reason: reasons.min().unwrap_or_default(), members }
    };
    let mut all: Vec<Grouped> = by_key.into_iter().map(group).collect();
    all.sort_by_key(|group| std::cmp::Reverse(group.members.len()));
    all
}
