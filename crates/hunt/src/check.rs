//! One case through all oracles: the concurrent run, the replays they ask
//! for, and what they say.

use crate::executor::{Broke, ExecuteError, Executor, Fixture};
use isolde_core::oracle::{
    Concurrent, Difference, Oracle, Replay, Verdict, broken, other_orders, unknown_serial,
};
use isolde_core::{Case, History, Level, Profile};

/// Orders to try of what ended between the same two submissions: all of five.
const UNSEEN_ORDERS: usize = 120;

/// The oracle that watches over the engine itself.
const CRASH: &str = "crash";

#[derive(Clone, Debug)]
pub struct Checked {
    pub concurrent: History,
    pub replays: Vec<(Replay, History)>,
    pub violations: Vec<Violation>,
    /// Why the runs do not tell all: that nothing was violated means nothing.
    pub unknown: Option<&'static str>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Violation {
    pub oracle: &'static str,
    pub differences: Vec<Difference>,
}

impl Checked {
    /// A run of which nothing can be said but that the engine broke.
    pub fn crash(history: History, differences: Vec<Difference>) -> Checked {
        let violations = vec![Violation { oracle: CRASH, differences }];
        Checked { concurrent: history, replays: Vec::new(), violations, unknown: None }
    }

    pub fn crashed(&self) -> bool {
        self.violates(CRASH).is_some()
    }

    /// Nothing is violated, and that is known.
    pub fn consistent(&self) -> bool {
        self.violations.is_empty() && self.unknown.is_none()
    }

    pub fn violated(&self) -> bool {
        !self.violations.is_empty()
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
    executor: &mut Executor,
    fixture: &Fixture,
    case: &Case,
    oracles: &[&'static dyn Oracle],
) -> Result<Checked, ExecuteError> {
    let commit_ordered = commit_ordered(case, executor.runner.engine.profile());
    let concurrent = executor.run(fixture, case)?;
    if concurrent.death.is_some() {
        // A finding whichever oracles were asked for: what they would have
        // said is not known.
        let differences = broken(case, &concurrent);
        return Ok(Checked::crash(concurrent, differences));
    }
    let run = Concurrent::new(case, &concurrent, commit_ordered);
    let (mut replays, mut violations) = judge(executor, fixture, &run, oracles)?;
    if !violations.is_empty() {
        for order in other_orders(&run, true, UNSEEN_ORDERS) {
            let executed = order.into_iter().cloned().collect();
            let alternative = Concurrent { case, history: &concurrent, executed, commit_ordered };
            let (again, found) = judge(executor, fixture, &alternative, oracles)?;
            if found.len() < violations.len() {
                (replays, violations) = (again, found);
            }
            if violations.is_empty() {
                break;
            }
        }
    }
    let unknown = run.unknown().or_else(|| replays.iter().find_map(|(_, h)| unknown_serial(h)));
    Ok(Checked { concurrent, replays, violations, unknown })
}

/// The same where nothing is expected to break: if it does, that is what there
/// is to report.
pub fn check_unbroken(
    executor: &mut Executor,
    fixture: &Fixture,
    case: &Case,
    oracles: &[&'static dyn Oracle],
    moment: &'static str,
) -> Result<Checked, ExecuteError> {
    let checked = check(executor, fixture, case, oracles)?;
    if !checked.crashed() {
        return Ok(checked);
    }
    let (fixture, case) = (fixture.clone(), case.clone());
    Err(ExecuteError::Broke(Box::new(Broke { fixture, case, checked, moment })))
}

/// The same where the engine may break in any of the runs.
pub fn check_any(
    executor: &mut Executor,
    fixture: &Fixture,
    case: &Case,
    oracles: &[&'static dyn Oracle],
) -> Result<Checked, ExecuteError> {
    match check(executor, fixture, case, oracles) {
        Err(ExecuteError::Broke(broke)) => Ok(broke.checked),
        checked => checked,
    }
}

type Judged = (Vec<(Replay, History)>, Vec<Violation>);

fn judge(
    executor: &mut Executor,
    fixture: &Fixture,
    run: &Concurrent<'_>,
    oracles: &[&'static dyn Oracle],
) -> Result<Judged, ExecuteError> {
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
                    let history =
                        executor.run_unbroken(fixture, &replay.case, "in a serial run")?;
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

#[cfg(test)]
mod tests {
    use super::*;
    use isolde_core::oracle::ORACLES;
    use isolde_engines::fetch::install::Cache;
    use isolde_engines::runner::Runner;
    use isolde_engines::target::{Options, Target};
    use std::time::Duration;

    #[test]
    fn a_statement_that_isolde_cancelled_leaves_a_case_unknown() {
        let options = Options { cache: Cache::open(), via: None };
        let driver = concat!(env!("CARGO_MANIFEST_DIR"), "/../../drivers/sqlite3_driver.py");
        let target = Target::parse(&format!("driver:python3 {driver}")).unwrap();
        let engine = target.open(&options).unwrap();
        let mut executor = Executor::new(Runner::new(engine));
        executor.runner.limits.statement = Duration::from_millis(200);
        let fixture = Fixture { create: Vec::new(), reset: Vec::new(), changes_schema: false };
        let endless = "with recursive n(i) as (select 1 union all select i + 1 from n) \
                       select count(*) from n";
        for (sql, known) in [("select 1", true), (endless, false)] {
            let case = isolde_core::case::parse(&format!("case: t\ns1> {sql};\n")).unwrap();
            let checked = check(&mut executor, &fixture, &case, ORACLES).unwrap();
            assert!(!checked.violated());
            assert_eq!(checked.consistent(), known, "{sql}");
            assert_eq!(checked.unknown.is_none(), known, "{sql}");
        }
    }
}
