//! One case through all oracles: the concurrent run, what they ask for, and
//! what they say.

use crate::error::HuntError;
use crate::executor::{Broke, Executor, Fixture};
use isolde_core::case::Step;
use isolde_core::inquiry::Inquiry;
use isolde_core::oracle::topological::Topology;
use isolde_core::oracle::{
    Concurrent, Difference, Oracle, Replay, Verdict, broken, unknown_serial,
};
use isolde_core::sql::{BeginMode, Stmt};
use isolde_core::{Anomaly, Case, History, Level, Profile};

#[derive(Clone, Debug)]
pub struct Checked {
    pub concurrent: History,
    pub replays: Vec<(Replay, History)>,
    pub violations: Vec<Violation>,
    /// Why the runs do not tell all: that nothing was violated means nothing.
    pub unknown: Option<&'static str>,
    /// Why the last oracle that had nothing to say had not.
    pub silent: Option<String>,
    /// What the rules of the engine say of the concurrent run.
    pub predicted: Predicted,
    /// What the topological oracle made of the case.
    pub topology: Option<Box<Topology>>,
}

/// Whether the rules of the engine say what the run had to be.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Predicted {
    /// Nobody asked.
    #[default]
    NotAsked,
    Whole,
    /// A part of it is not modelled, for the reason given.
    Not(String),
}

#[derive(Clone, Debug, PartialEq)]
pub struct Violation {
    pub oracle: Oracle,
    pub differences: Vec<Difference>,
}

impl Checked {
    /// A run of which nothing can be said but that the engine broke.
    pub fn crash(history: History, differences: Vec<Difference>) -> Checked {
        let violations = vec![Violation { oracle: Oracle::Crash, differences }];
        Checked {
            concurrent: history,
            replays: Vec::new(),
            violations,
            unknown: None,
            silent: None,
            predicted: Predicted::NotAsked,
            topology: None,
        }
    }

    pub fn crashed(&self) -> bool {
        self.violates(Oracle::Crash).is_some()
    }

    /// Nothing is violated, and that is known.
    pub fn consistent(&self) -> bool {
        self.violations.is_empty() && self.unknown.is_none()
    }

    pub fn violated(&self) -> bool {
        !self.violations.is_empty()
    }

    pub fn violates(&self, oracle: Oracle) -> Option<&Violation> {
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

/// What the documentation of the one level of a case allows; none also where a transaction
/// says another mode than the target's, of whose meeting no page says anything.
pub fn allowed(case: &Case, profile: &Profile) -> Option<Vec<Anomaly>> {
    match levels_of(case, profile)[..] {
        [level] if !case.steps.iter().any(|step| is_of_another_mode(step, profile)) => {
            profile.promise(level)?.allows.clone()
        }
        _ => None,
    }
}

/// Whether a step begins an optimistic transaction where they are pessimistic, or the reverse.
fn is_of_another_mode(step: &Step, profile: &Profile) -> bool {
    let Some(Stmt::Begin(begin)) = step.statement() else { return false };
    let mode = begin.mode.filter(|m| matches!(m, BeginMode::Pessimistic | BeginMode::Optimistic));
    mode.is_some_and(|mode| !profile.begin.ends_with(mode.word()))
}

pub fn check(
    executor: &mut Executor,
    fixture: &Fixture,
    case: &Case,
    oracles: &[Oracle],
) -> Result<Checked, HuntError> {
    let commit_ordered = commit_ordered(case, executor.runner.engine.profile());
    let concurrent = executor.run(fixture, case)?;
    if concurrent.death.is_some() {
        // A finding whichever oracles were asked for: what they would have
        // said is not known.
        let differences = broken(case, &concurrent);
        return Ok(Checked::crash(concurrent, differences));
    }
    let mut run = Concurrent::new(case, &concurrent, commit_ordered);
    run.reading = fixture.reading.as_deref();
    run.topological = executor.topological;
    run.allows = allowed(case, executor.runner.engine.profile());
    let mut known: Vec<(Case, History)> = Vec::new();
    let mut replays: Vec<(Replay, History)> = Vec::new();
    let mut violations = Vec::new();
    let mut predicted = Predicted::NotAsked;
    let (mut topology, mut silent) = (None, None);
    for oracle in oracles {
        let run = &run;
        let inquiry = Inquiry::new(|desk| async move { oracle.inquire(run, &desk).await });
        let judgement = executor.inquire((fixture, case), inquiry, &mut known)?;
        for (replay, history) in judgement.replays {
            if !replays.iter().any(|(r, _)| *r == replay) {
                replays.push((replay, history));
            }
        }
        topology = judgement.topology.or(topology);
        match (&judgement.verdict, oracle) {
            (Verdict::Unknown(why), Oracle::Semantics) => predicted = Predicted::Not(why.clone()),
            (_, Oracle::Semantics) => predicted = Predicted::Whole,
            _ => {}
        }
        match judgement.verdict {
            Verdict::Violated(differences) => {
                violations.push(Violation { oracle: *oracle, differences });
            }
            Verdict::Unknown(why) => silent = Some(why),
            Verdict::Consistent => {}
        }
    }
    let unknown = run.unknown().or_else(|| replays.iter().find_map(|(_, h)| unknown_serial(h)));
    let concurrent = shown_by(&violations, topology.as_deref()).unwrap_or(concurrent);
    Ok(Checked { concurrent, replays, violations, unknown, silent, predicted, topology })
}

/// The run that shows what only the topological oracle has seen, if that is one of the whole
/// case: it is not the one that the others have judged.
fn shown_by(violations: &[Violation], topology: Option<&Topology>) -> Option<History> {
    let [Violation { oracle: Oracle::Topological, .. }] = violations else { return None };
    let topology = topology.filter(|topology| topology.left_out.is_empty())?;
    topology.run.clone()
}

/// The same where nothing is expected to break: if it does, that is what there
/// is to report.
pub fn check_unbroken(
    executor: &mut Executor,
    fixture: &Fixture,
    case: &Case,
    oracles: &[Oracle],
    moment: &'static str,
) -> Result<Checked, HuntError> {
    let checked = check(executor, fixture, case, oracles)?;
    if !checked.crashed() {
        return Ok(checked);
    }
    let (fixture, case) = (fixture.clone(), case.clone());
    Err(HuntError::Broke(Box::new(Broke { fixture, case, checked, moment })))
}

/// The same where the engine may break in any of the runs.
pub fn check_any(
    executor: &mut Executor,
    fixture: &Fixture,
    case: &Case,
    oracles: &[Oracle],
) -> Result<Checked, HuntError> {
    match check(executor, fixture, case, oracles) {
        Err(HuntError::Broke(broke)) => Ok(broke.checked),
        checked => checked,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use isolde_core::oracle::USUAL;
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
        let fixture = Fixture {
            create: Vec::new(),
            reset: Vec::new(),
            changes_schema: false,
            versions: None,
            reading: None,
        };
        let endless = "with recursive n(i) as (select 1 union all select i + 1 from n) \
                       select count(*) from n";
        for (sql, known) in [("select 1", true), (endless, false)] {
            let case = isolde_core::case::parse(&format!("case: t\ns1> {sql};\n")).unwrap();
            let checked = check(&mut executor, &fixture, &case, USUAL).unwrap();
            assert!(!checked.violated());
            assert_eq!(checked.consistent(), known, "{sql}");
            assert_eq!(checked.unknown.is_none(), known, "{sql}");
        }
    }
}
