//! Exact matches of predicates (the thesis, section 5.4.2): which versions satisfy what a
//! statement looked for, asked of the engine. They take away edges that only say that a
//! statement looked at the same table.

use crate::instrument::{Evaluation, Predicate, StatementId};
use std::collections::HashMap;

/// For each predicate which versions satisfy it, by row and last writer.
#[derive(Default)]
pub struct Matches(Vec<(Predicate, ByVersion)>);

type ByVersion = HashMap<(String, Option<StatementId>), bool>;

impl Matches {
    pub fn add(&mut self, evaluation: &Evaluation, satisfied: &[Option<Vec<bool>>]) {
        for (predicate, satisfied) in evaluation.predicates.iter().zip(satisfied) {
            let Some(satisfied) = satisfied else { continue };
            let versions = evaluation.versions.iter().zip(satisfied);
            let by_version =
                versions.map(|((row, last, _), is)| ((row.clone(), *last), *is)).collect();
            self.0.push((predicate.clone(), by_version));
        }
    }

    /// Whether a version satisfies a predicate; none where that is not known.
    pub fn of(&self, predicate: &Predicate, row: &str, last: Option<StatementId>) -> Option<bool> {
        let (_, by_version) = self.0.iter().find(|(known, _)| known == predicate)?;
        by_version.get(&(row.to_string(), last)).copied()
    }
}
