//! Known bugs of the library that a finding may be an instance of.
//!
//! A case of the library is run on the very engine, at the level of the
//! finding, when the first finding there wants a name. Only what shows there
//! is a candidate, and only the one that fails in the same way gives its name:
//! a wrong name costs a maintainer more than none.

use crate::error::HuntError;
use crate::execution::account;
use crate::execution::check::check_any;
use crate::execution::executor::Executor;
pub use crate::finding::KnownBug;
use crate::finding::{Finding, known_bug};
use crate::run::Fixture;
use isolde_engines::runner::RunError;
use isolde_model::case::CaseKind;
use isolde_model::{Case, History, Level, expectations};
use isolde_oracles::DEFAULT_ORACLES;
use isolde_triage::{Features, Subject};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The cases of the library that report bugs, and what came of those that ran.
#[derive(Default)]
pub struct KnownBugs {
    cases: Vec<Case>,
    runs: RunsByLevel,
}

impl KnownBugs {
    /// Those of the cases that report bugs.
    pub fn of(cases: impl IntoIterator<Item = Case>) -> KnownBugs {
        let reported = |case: &Case| {
            matches!(
                case.kind,
                Some(CaseKind::Bug | CaseKind::Fixed | CaseKind::Disputed | CaseKind::Documented)
            )
        };
        let cases = cases.into_iter().filter(reported).collect();
        KnownBugs { cases, runs: RunsByLevel::default() }
    }

    /// The bugs that have shown on the engine so far.
    pub fn reproduced(&self) -> Vec<KnownBug> {
        self.runs.all()
    }

    /// Adds what an earlier part of the hunt has reproduced.
    pub fn remember(&self, known: Vec<KnownBug>) {
        self.runs.remember(known);
    }

    /// Gives a finding the name of the known bug that it is.
    pub fn name(&self, executor: &mut Executor, finding: &mut Finding) -> Result<(), HuntError> {
        let Some(features) = finding.features.as_ref().filter(|_| !self.cases.is_empty()) else {
            return Ok(());
        };
        let default = executor.runner.engine.profile().default_level;
        let level = finding.level.unwrap_or(default);
        let bugs = match self.runs.get_or_run(level, || self.run_all(executor, level)) {
            Ok(bugs) => bugs,
            // The finding stays without a name, and is not lost.
            Err(HuntError::Run(RunError::Interrupted)) => return Ok(()),
            Err(error) => return Err(error),
        };
        let name = known_bug::name(&bugs, features);
        let case = self.cases.iter().find(|case| Some(case.id.as_str()) == name);
        finding.known_link = case.and_then(|case| case.link.clone());
        finding.known = name.into_iter().map(str::to_string).collect();
        Ok(())
    }

    fn run_all(&self, executor: &mut Executor, level: Level) -> Result<Vec<KnownBug>, HuntError> {
        let mut bugs = Vec::new();
        for case in &self.cases {
            let info = executor.runner.engine.info();
            let fits = case.runs_on(&info.engine, &info.version)
                && case.server_options.is_empty()
                && may_show_at(case, level);
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

/// The known bugs that showed on the engine, by level. A level is run once, by the first worker
/// that needs it. Others that need the same level wait for it; workers at other levels do not,
/// since a run of the library takes seconds.
#[derive(Default)]
struct RunsByLevel {
    levels: Mutex<BTreeMap<Level, Arc<LevelRun>>>,
}

/// None until the level has run.
type LevelRun = Mutex<Option<Arc<[KnownBug]>>>;

impl RunsByLevel {
    fn level(&self, level: Level) -> Arc<LevelRun> {
        Arc::clone(lock(&self.levels).entry(level).or_default())
    }

    /// What showed at a level; runs it if no worker has.
    fn get_or_run<E>(
        &self,
        level: Level,
        run: impl FnOnce() -> Result<Vec<KnownBug>, E>,
    ) -> Result<Arc<[KnownBug]>, E> {
        let level = self.level(level);
        let mut bugs = lock(&level);
        if let Some(bugs) = &*bugs {
            return Ok(Arc::clone(bugs));
        }
        Ok(Arc::clone(bugs.insert(run()?.into())))
    }

    fn remember(&self, known: Vec<KnownBug>) {
        for bug in known {
            let level = self.level(bug.level);
            let mut bugs = lock(&level);
            let all: Vec<KnownBug> = bugs.iter().flat_map(|b| b.iter().cloned()).collect();
            *bugs = Some(all.into_iter().chain([bug]).collect());
        }
    }

    fn all(&self) -> Vec<KnownBug> {
        let levels: Vec<Arc<LevelRun>> = lock(&self.levels).values().cloned().collect();
        let bugs = levels.iter().filter_map(|level| lock(level).clone());
        bugs.flat_map(|bugs| bugs.to_vec()).collect()
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
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
    let checked = match check_any(executor, &fixture, &case, DEFAULT_ORACLES) {
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
        false => {
            let analysis = checked.analysis.as_deref();
            account::of_violation(executor, (&fixture, &case), &checked.concurrent, analysis)?
        }
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

/// Whether a case may show at a level: at its own, and where its conditions name
/// no other. A bug that no level prevents is found at all of them.
fn may_show_at(case: &Case, level: Level) -> bool {
    let conditions = case.when_it_shows();
    let names_it = |levels: &[Level]| levels.is_empty() || levels.contains(&level);
    case.level.is_none_or(|own| own == level) || conditions.iter().any(|c| names_it(&c.levels))
}

/// Whether the run shows what the case is about.
fn shows(case: &Case, level: Level, history: &History) -> bool {
    case.when_it_shows().iter().any(|condition| {
        (condition.levels.is_empty() || condition.levels.contains(&level))
            && condition
                .claims
                .iter()
                .all(|claim| expectations::holds(claim, case, history).is_ok())
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::convert::Infallible;
    use std::sync::mpsc;
    use std::time::Duration;

    fn bug(id: &str, level: Level) -> KnownBug {
        KnownBug { id: id.into(), title: String::new(), level, features: Features::default() }
    }

    #[test]
    fn a_worker_does_not_wait_for_the_library_at_a_level_that_it_does_not_need() {
        let (strong, weak) = (Level::Serializable, Level::ReadCommitted);
        let runs = RunsByLevel::default();
        std::thread::scope(|scope| {
            let slow = runs.get_or_run(strong, || {
                let (done, finished) = mpsc::channel();
                let runs = &runs;
                scope.spawn(move || {
                    let other = runs.get_or_run(weak, || Ok::<_, Infallible>(vec![bug("w", weak)]));
                    let _ = done.send(other.is_ok_and(|bugs| bugs.len() == 1));
                });
                finished.recv_timeout(Duration::from_secs(10)).map(|_| vec![bug("s", strong)])
            });
            assert!(slow.is_ok(), "the other level was locked for as long as this one ran");
        });
        let ids: Vec<String> = runs.all().into_iter().map(|bug| bug.id).collect();
        assert_eq!(ids, ["w", "s"]);
    }

    #[test]
    fn a_level_is_run_once_and_again_only_after_an_error() {
        let level = Level::Serializable;
        let runs = RunsByLevel::default();
        assert!(runs.get_or_run(level, || Err("interrupted")).is_err());
        for _ in 0..2 {
            let bugs = runs.get_or_run(level, || Ok::<_, &str>(vec![bug("first", level)]));
            assert_eq!(bugs.unwrap().len(), 1);
        }
        let known = RunsByLevel::default();
        known.remember(vec![bug("a", level), bug("b", level)]);
        let bugs = known.get_or_run(level, || Err("it was run by an earlier part of the hunt"));
        assert_eq!(bugs.unwrap().len(), 2);
    }
}
