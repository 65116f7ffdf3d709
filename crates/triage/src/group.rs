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

/// Groups findings by defect: the largest group first, then by key.
pub fn groups(findings: &[&Features]) -> Vec<Grouped> {
    let mut by_key: BTreeMap<String, Vec<usize>> = BTreeMap::new();
    for (n, features) in findings.iter().enumerate() {
        by_key.entry(features.key()).or_default().push(n);
    }
    let group = |(_, members): (String, Vec<usize>)| {
        let reasons = members.iter().map(|n| findings[*n].deviation.describe());
        Grouped { reason: reasons.min().unwrap_or_default(), members }
    };
    let mut all: Vec<Grouped> = by_key.into_iter().map(group).collect();
    all.sort_by_key(|group| std::cmp::Reverse(group.members.len()));
    all
}
