//! Known bugs of the library that a finding may be an instance of.
//!
//! A case of the library is run on the very engine, at the level of the
//! finding, when the first finding there wants a name. Only what shows there
//! is a candidate, and only the one that fails in the same way gives its name:
//! a wrong name costs a maintainer more than none.

use crate::account;
use crate::check::check_any;
use crate::error::HuntError;
use crate::executor::{Executor, Fixture};
use crate::finding::Finding;
use isolde_core::case::CaseKind;
use isolde_core::oracle::USUAL;
use isolde_core::triage::{Features, Nearer, Subject, compare, decide, same};
use isolde_core::{Case, History, Level, judge};
use isolde_engines::runner::RunError;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::sync::{Mutex, PoisonError};

/// A known bug as it ran on the engine.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct KnownBug {
    pub id: String,
    pub title: String,
    pub level: Level,
    pub features: Features,
}

/// The library, and what of it has been run so far, by level.
#[derive(Default)]
pub struct KnownBugs {
    cases: Vec<Case>,
    seen: Mutex<BTreeMap<Level, Vec<KnownBug>>>,
}

impl KnownBugs {
    /// Of the cases those that are reports of bugs.
    pub fn of(cases: impl IntoIterator<Item = Case>) -> KnownBugs {
        let reported = |case: &Case| {
            matches!(
                case.kind,
                Some(CaseKind::Bug | CaseKind::Fixed | CaseKind::Disputed | CaseKind::Documented)
            )
        };
        let cases = cases.into_iter().filter(reported).collect();
        KnownBugs { cases, seen: Mutex::default() }
    }

    /// What has been run so far.
    pub fn seen(&self) -> Vec<KnownBug> {
        let seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        seen.values().flatten().cloned().collect()
    }

    /// What an earlier part of the hunt has run.
    pub fn remember(&self, known: Vec<KnownBug>) {
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        for bug in known {
            seen.entry(bug.level).or_default().push(bug);
        }
    }

    /// Gives a finding the name of the known bug that it is.
    pub fn name(&self, executor: &mut Executor, finding: &mut Finding) -> Result<(), HuntError> {
        let Some(features) = finding.features.as_ref().filter(|_| !self.cases.is_empty()) else {
            return Ok(());
        };
        let default = executor.runner.engine.profile().default_level;
        let level = finding.level.unwrap_or(default);
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        let bugs = match seen.entry(level) {
            Entry::Occupied(run) => run.into_mut(),
            Entry::Vacant(not_yet) => match self.run_all(executor, level) {
                Ok(bugs) => not_yet.insert(bugs),
                // The finding stays without a name, and is not lost.
                Err(HuntError::Run(RunError::Interrupted)) => return Ok(()),
                Err(error) => return Err(error),
            },
        };
        finding.known = name(bugs, features).into_iter().map(str::to_string).collect();
        Ok(())
    }

    fn run_all(&self, executor: &mut Executor, level: Level) -> Result<Vec<KnownBug>, HuntError> {
        let mut bugs = Vec::new();
        for case in &self.cases {
            let info = executor.runner.engine.info();
            let fits = case.runs_on(&info.engine, &info.version)
                && case.server_options.is_empty()
                && case.level.is_none_or(|own| own == level);
            if fits {
                // Tables of the finding may have the same names.
                executor.forget_tables();
                bugs.extend(run(executor, case, level)?);
            }
        }
        executor.forget_tables();
        Ok(bugs)
    }
}

/// A case of the library on the engine; none where it does not show, or does
/// not run.
fn run(executor: &mut Executor, case: &Case, level: Level) -> Result<Option<KnownBug>, HuntError> {
    let info = executor.runner.engine.info().clone();
    let mut case = case.clone().read_as(info.family());
    case.level = Some(level);
    if executor.runner.check_levels(&case, None).is_err() {
        return Ok(None);
    }
    let default_level = executor.runner.engine.profile().default_level;
    let fixture = Fixture::of_case(&case, &info, default_level);
    let checked = match check_any(executor, &fixture, &case, USUAL) {
        Ok(checked) => checked,
        Err(HuntError::Run(RunError::Interrupted)) => return Err(RunError::Interrupted.into()),
        // Another version of the engine may not understand it.
        Err(_) => return Ok(None),
    };
    if !shows(&case, level, &checked.concurrent) {
        return Ok(None);
    }
    let account = match checked.crashed() {
        true => None,
        false => account::of_violation(executor, (&fixture, &case), &checked.concurrent)?,
    };
    let differences: Vec<_> =
        checked.violations.iter().flat_map(|v| v.differences.clone()).collect();
    let oracles: Vec<String> = checked.violations.iter().map(|v| v.oracle.to_string()).collect();
    let features = Features::of(Subject {
        case: &case,
        history: Some(&checked.concurrent),
        account: account.as_ref(),
        differences: &differences,
        oracles: &oracles,
        engine: &info.engine,
        version: &info.version,
        level: Some(level),
    });
    Ok(Some(KnownBug { id: case.id.clone(), title: case.title.clone(), level, features }))
}

/// Whether the run shows what the case is about.
fn shows(case: &Case, level: Level, history: &History) -> bool {
    case.when_it_shows().iter().any(|condition| {
        (condition.levels.is_empty() || condition.levels.contains(&level))
            && condition.claims.iter().all(|claim| judge::holds(claim, case, history).is_ok())
    })
}

/// The one known bug that fails in the same way; where there are several, the
/// one that is nearer than every other, and none where nothing tells.
pub fn name<'k>(bugs: &'k [KnownBug], features: &Features) -> Option<&'k str> {
    let candidates: Vec<&KnownBug> =
        bugs.iter().filter(|bug| same(&bug.features, features)).collect();
    let decided = decide(candidates.len(), 1, |a, b, _| {
        let answer = compare(features, &candidates[a].features, &candidates[b].features);
        // A tie in any round is doubt: nobody gets the name.
        if answer.nearer == Nearer::Neither { Err(()) } else { Ok(answer) }
    });
    let order = decided.ok()?.order;
    order.first().map(|winner| candidates[*winner].id.as_str())
}
