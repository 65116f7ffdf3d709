//! One case through all oracles: the concurrent run, the replays they ask
//! for, and what they say.

use crate::bed::{Bed, BedError, Ground};
use isolde_core::oracle::{Concurrent, Difference, Oracle, Replay, Verdict, other_orders};
use isolde_core::{Case, History, Level, Profile};

/// Orders to try of what ended between the same two submissions: all of five.
const UNSEEN_ORDERS: usize = 120;

pub struct Checked {
    pub concurrent: History,
    pub replays: Vec<(Replay, History)>,
    pub violations: Vec<Violation>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Violation {
    pub oracle: &'static str,
    pub differences: Vec<Difference>,
}

impl Checked {
    pub fn consistent(&self) -> bool {
        self.violations.is_empty()
    }

    pub fn violates(&self, oracle: &str) -> Option<&Violation> {
        self.violations.iter().find(|v| v.oracle == oracle)
    }
}

/// The levels of a case's sessions: all of them, without repetition.
pub fn levels_of(case: &Case, profile: &Profile) -> Vec<Level> {
    let mut levels: Vec<Level> = case
        .sessions()
        .iter()
        .map(|s| case.session_level(s, None).unwrap_or(profile.default_level))
        .chain(case.steps.iter().filter_map(|s| s.level))
        .collect();
    levels.sort();
    levels.dedup();
    levels
}

/// Whether all levels of a case take effect in the order of commits.
pub fn commit_ordered(case: &Case, profile: &Profile) -> bool {
    levels_of(case, profile).iter().all(|l| profile.commit_ordered.contains(l))
}

pub fn check(
    bed: &mut Bed,
    ground: &Ground,
    case: &Case,
    oracles: &[&'static dyn Oracle],
) -> Result<Checked, BedError> {
    let commit_ordered = commit_ordered(case, bed.runner.engine.profile());
    let concurrent = bed.run(ground, case)?;
    let run = Concurrent::new(case, &concurrent, commit_ordered);
    let (mut replays, mut violations) = judge(bed, ground, &run, oracles)?;
    if !violations.is_empty() {
        for order in other_orders(&run, true, UNSEEN_ORDERS) {
            let executed = order.into_iter().cloned().collect();
            let alternative = Concurrent { case, history: &concurrent, executed, commit_ordered };
            let (again, found) = judge(bed, ground, &alternative, oracles)?;
            if found.len() < violations.len() {
                (replays, violations) = (again, found);
            }
            if violations.is_empty() {
                break;
            }
        }
    }
    Ok(Checked { concurrent, replays, violations })
}

type Judged = (Vec<(Replay, History)>, Vec<Violation>);

fn judge(
    bed: &mut Bed,
    ground: &Ground,
    run: &Concurrent<'_>,
    oracles: &[&'static dyn Oracle],
) -> Result<Judged, BedError> {
    let mut made: Vec<(Replay, History)> = Vec::new();
    let mut violations = Vec::new();
    for oracle in oracles {
        let wanted = oracle.replays(run);
        let mut places = Vec::new();
        for replay in &wanted {
            // Oracles share replays: each is run once.
            let known = made.iter().position(|(r, _)| r == replay);
            let place = match known {
                Some(place) => place,
                None => {
                    let history = bed.run(ground, &replay.case)?;
                    made.push((replay.clone(), history));
                    made.len() - 1
                }
            };
            places.push(place);
        }
        let histories: Vec<&History> = places.iter().map(|p| &made[*p].1).collect();
        if let Verdict::Violated(differences) = oracle.judge(run, &wanted, &histories) {
            violations.push(Violation { oracle: oracle.name(), differences });
        }
    }
    Ok((made, violations))
}
