//! Known bugs of the library as they ran on an engine, and the search for the one that a finding
//! is an instance of.

use isolde_model::Level;
use isolde_triage::{Features, Nearer, compare, same};
use serde::{Deserialize, Serialize};
use std::cmp::Ordering;

/// A known bug as it ran on the engine.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct KnownBug {
    pub id: String,
    pub title: String,
    pub level: Level,
    pub features: Features,
}

/// Statements that a bug of the library has only if it needs them: a finding without them is
/// another bug. Writes are not listed, because one kind of write often stands for another.
const NEEDED: [&str; 4] =
    ["statement: rollback to", "statement: savepoint", "statement: ddl", "statement: execute"];

fn has_what_it_needs(bug: &Features, finding: &Features) -> bool {
    NEEDED.iter().all(|kind| !bug.all.contains(*kind) || finding.all.contains(*kind))
}

/// How many of the statements it needs.
fn needs(bug: &Features) -> usize {
    NEEDED.iter().filter(|kind| bug.all.contains(**kind)).count()
}

/// The name of the known bug that a finding is: of those with the same defect the nearest, and
/// none if the two nearest are equally near.
pub fn name<'k>(bugs: &'k [KnownBug], features: &Features) -> Option<&'k str> {
    let mut candidates = bugs
        .iter()
        .filter(|bug| same(&bug.features, features) && has_what_it_needs(&bug.features, features));
    let mut nearest = candidates.next()?;
    let mut tie = false;
    for bug in candidates {
        match compare(features, &nearest.features, &bug.features).nearer {
            Nearer::First => {}
            Nearer::Second => (nearest, tie) = (bug, false),
            // What a bug needs and the finding has is more than a coincidence.
            Nearer::Neither => match needs(&bug.features).cmp(&needs(&nearest.features)) {
                Ordering::Greater => (nearest, tie) = (bug, false),
                Ordering::Equal => tie = true,
                Ordering::Less => {}
            },
        }
    }
    (!tie).then_some(&nearest.id)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A bug of the same defect as all others here, with these shapes of statements.
    fn bug(id: &str, shapes: &[&str]) -> KnownBug {
        let mut features = Features::default();
        features.deviation.how = "a row is missing".into();
        features.shapes = shapes.iter().map(|s| s.to_string()).collect();
        KnownBug { id: id.into(), title: String::new(), level: Level::Serializable, features }
    }

    #[test]
    fn a_tie_between_farther_candidates_does_not_cost_the_nearest_its_name() {
        let finding = bug("", &["update", "select"]).features;
        let near = bug("near", &["update", "select"]);
        let far = |id| bug(id, &["delete"]);
        // At any place among the others.
        for place in 0..4 {
            let mut bugs = vec![far("a"), far("b"), far("c")];
            bugs.insert(place, near.clone());
            assert_eq!(name(&bugs, &finding), Some("near"), "at {place}");
        }
        let half = bug("half", &["update", "delete"]);
        assert_eq!(name(&[far("a"), half, far("b"), near.clone()], &finding), Some("near"));
    }

    #[test]
    fn finding_without_a_savepoint_is_no_bug_of_savepoints() {
        let mut of_savepoints = bug("savepoints", &["select"]);
        of_savepoints.features.all.insert("statement: rollback to".into());
        let mut finding = bug("", &["select"]).features;
        assert_eq!(name(std::slice::from_ref(&of_savepoints), &finding), None);
        finding.all.insert("statement: rollback to".into());
        assert_eq!(name(std::slice::from_ref(&of_savepoints), &finding), Some("savepoints"));
        // An equally near bug without savepoints does not cost it its name.
        let plain = bug("plain", &["select"]);
        let both = [plain.clone(), of_savepoints.clone()];
        assert_eq!(name(&both, &finding), Some("savepoints"));
        assert_eq!(name(&[of_savepoints, plain], &finding), Some("savepoints"));
    }

    #[test]
    fn two_candidates_that_are_equally_near_give_no_name() {
        let finding = bug("", &["update", "select"]).features;
        let near = |id| bug(id, &["update", "select"]);
        let far = bug("far", &["delete"]);
        assert_eq!(name(&[near("a"), far.clone(), near("b")], &finding), None);
        assert_eq!(name(&[near("a")], &finding), Some("a"));
        assert_eq!(name(&[], &finding), None);
        let mut other = near("other");
        other.features.deviation.how = "a row too many".into();
        assert_eq!(name(&[far, other], &finding), Some("far"), "another defect is no candidate");
    }
}
