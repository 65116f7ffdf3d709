//! Candidates by similarity, each bug by the report of it that is nearest.

use super::Features;
use super::weights::{LabelledReport, Weights};

/// A bug, and the report of it that is most similar.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Ranked {
    /// The number of the report among those that were given.
    pub report: usize,
    pub similarity: f64,
}

/// The bugs of the reports, the most similar first. Equal ones come by their
/// names, so that the order of the reports does not matter.
pub fn rank(finding: &Features, reports: &[LabelledReport<'_>], weights: &Weights) -> Vec<Ranked> {
    let mut all: Vec<(Ranked, &LabelledReport<'_>)> = reports
        .iter()
        .enumerate()
        .map(|(report, r)| {
            let similarity = weights.similarity(finding, r.features);
            (Ranked { report, similarity }, r)
        })
        .collect();
    all.sort_by(|(a, x), (b, y)| {
        let nearer = b.similarity.total_cmp(&a.similarity);
        nearer.then(x.bug.cmp(y.bug)).then(x.features.all.cmp(&y.features.all))
    });
    let mut seen: Vec<&str> = Vec::new();
    all.retain(|(_, r)| {
        let new = !seen.contains(&r.bug);
        if new {
            seen.push(r.bug);
        }
        new
    });
    all.into_iter().map(|(ranked, _)| ranked).collect()
}
