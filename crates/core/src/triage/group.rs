//! Findings that are the same. A group hangs on the findings alone, not on
//! the order in which they came.

use super::Features;
use std::collections::BTreeMap;

/// Findings of one defect.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Grouped {
    /// What they have in common, in words.
    pub reason: String,
    /// Their numbers among those that were given, in their order.
    pub members: Vec<usize>,
}

/// Groups of the same defect; the largest first, then by what they have in
/// common.
pub fn groups(findings: &[&Features]) -> Vec<Grouped> {
    let mut by_key: BTreeMap<String, Vec<usize>> = BTreeMap::new();
    for (n, features) in findings.iter().enumerate() {
        by_key.entry(features.key()).or_default().push(n);
    }
    let mut all: Vec<Grouped> =
        by_key.into_iter().map(|(reason, members)| Grouped { reason, members }).collect();
    all.sort_by(|a, b| b.members.len().cmp(&a.members.len()).then(a.reason.cmp(&b.reason)));
    all
}
