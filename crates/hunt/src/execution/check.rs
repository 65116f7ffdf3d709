//! Checks one case with all oracles: the concurrent run, the further runs that they request, and
//! their verdicts.

use super::control::{check_own_error, check_without_concurrency};
use super::executor::Executor;
use crate::error::HuntError;
pub use crate::run::{CheckResult, ModelCoverage, Violation};
use crate::run::{FailedRun, Fixture};
use isolde_model::case::Step;
use isolde_model::inquiry::Inquiry;
use isolde_model::{Anomaly, Case, History, Level, Profile};
use isolde_oracles::{
    ConcurrentRun, Oracle, OracleReport, OracleVerdict, Replay, broken, own_error_difference,
    unknown_serial,
};
use isolde_reference::{Conclusion, Subject, with_serial_search};
use isolde_sql::{BeginMode, Control, Stmt};
use std::sync::Arc;

/// The isolation levels of all sessions of a case, each once.
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

/// Whether transactions take effect in commit order at all levels of a case.
pub fn commit_ordered(case: &Case, profile: &Profile) -> bool {
    levels_of(case, profile).iter().all(|l| profile.commit_ordered.contains(l))
}

/// The anomalies that the documentation of the case's level allows; none where the case mixes
/// levels, or where a transaction uses another mode than the target's: no page of the manual
/// documents how the two modes interact.
pub fn allowed(case: &Case, profile: &Profile) -> Option<Vec<Anomaly>> {
    match levels_of(case, profile)[..] {
        [level] if !case.steps.iter().any(|step| is_of_another_mode(step, profile)) => {
            profile.promise(level)?.allows.clone()
        }
        _ => None,
    }
}

/// Whether a step begins an optimistic transaction where the target's are pessimistic, or the
/// reverse.
fn is_of_another_mode(step: &Step, profile: &Profile) -> bool {
    let Some(Stmt::Control(Control::Begin(begin))) = step.statement() else { return false };
    let mode = begin.mode.filter(|m| matches!(m, BeginMode::Pessimistic | BeginMode::Optimistic));
    mode.is_some_and(|mode| !profile.begin.ends_with(mode.word()))
}

/// Runs a case and has all oracles check it. A server failure in the concurrent run is a result, in
/// one of the further runs an error.
pub fn check(
    executor: &mut Executor,
    fixture: &Fixture,
    case: &Case,
    oracles: &[Oracle],
) -> Result<CheckResult, HuntError> {
    let commit_ordered = commit_ordered(case, executor.runner.engine.profile());
    let concurrent = executor.run(fixture, case)?;
    if concurrent.death.is_some() {
        // A server failure is a finding whichever oracles were requested, since their verdicts
        // remain unknown.
        let differences = broken(case, &concurrent);
        return Ok(CheckResult::crash(concurrent, differences));
    }
    let mut run = ConcurrentRun::new(case, &concurrent, commit_ordered);
    run.reading = fixture.reading.as_deref();
    run.options = executor.oracle_options.clone();
    run.allows = allowed(case, executor.runner.engine.profile());
    let mut known: Vec<(Case, History)> = Vec::new();
    let mut replays: Vec<(Replay, History)> = Vec::new();
    let mut violations = Vec::new();
    let mut model_coverage = ModelCoverage::NotRequested;
    let mut reports: Vec<(Oracle, Arc<dyn OracleReport>)> = Vec::new();
    let (mut analysis, mut silent) = (None, None);
    for oracle in oracles {
        let run = &run;
        let inquiry = Inquiry::new(|channel| async move { oracle.inquire(run, &channel).await });
        let judgement = executor.inquire((fixture, case), inquiry, &mut known)?;
        for (replay, history) in judgement.replays {
            if !replays.iter().any(|(r, _)| *r == replay) {
                replays.push((replay, history));
            }
        }
        reports.extend(judgement.report.map(|report| (*oracle, report)));
        analysis = judgement.analysis.or(analysis);
        match (&judgement.verdict, oracle) {
            (OracleVerdict::Unknown(why), Oracle::Semantics) => {
                model_coverage = ModelCoverage::Incomplete(why.clone())
            }
            (_, Oracle::Semantics) => model_coverage = ModelCoverage::Complete,
            _ => {}
        }
        match judgement.verdict {
            OracleVerdict::Violated(differences) => {
                violations.push(Violation { oracle: *oracle, differences });
            }
            OracleVerdict::Unknown(why) => silent = Some(why),
            OracleVerdict::Consistent => {}
        }
    }
    if let (Some(found), Some(reading)) = (&mut analysis, fixture.reading.as_deref()) {
        check_own_error(executor, case, &concurrent, reading, found)?;
        if let Some(difference) = own_error_difference(&run, found) {
            let differences = vec![difference];
            violations.push(Violation { oracle: Oracle::Semantics, differences });
            silent = None;
        }
    }
    let unknown = run.unknown().or_else(|| replays.iter().find_map(|(_, h)| unknown_serial(h)));
    let concurrent = match shown_run(&violations, &reports) {
        Some(other) => {
            // The analysis is one of the run that the other oracles have checked.
            analysis = None;
            other
        }
        None => concurrent,
    };
    if !violations.is_empty()
        && let (Some(found), Some(reading)) = (analysis.take(), fixture.reading.as_deref())
    {
        // A run that some serial order explains is no anomaly.
        let subject = &Subject::new(&concurrent, reading);
        let inquiry =
            Inquiry::new(
                |channel| async move { with_serial_search(subject, &channel, *found).await },
            );
        let mut found = executor.inquire((fixture, case), inquiry, &mut known)?;
        check_without_concurrency(executor, case, &concurrent, reading, &mut found)?;
        if let Conclusion::NotModelled { why, .. } = &found.conclusion
            && violations.iter().all(|violation| violation.oracle == Oracle::Semantics)
        {
            // The reference model alone saw a violation, and has withdrawn it.
            violations.clear();
            model_coverage = ModelCoverage::Incomplete(why.clone());
        }
        analysis = Some(Box::new(found));
    }
    Ok(CheckResult {
        concurrent,
        replays,
        violations,
        unknown,
        silent,
        model_coverage,
        reports,
        analysis,
    })
}

/// The run that shows a violation found by a single oracle, if that oracle has made a run of its
/// own. It is another run than the one that the other oracles have checked.
fn shown_run(
    violations: &[Violation],
    reports: &[(Oracle, Arc<dyn OracleReport>)],
) -> Option<History> {
    let [Violation { oracle, .. }] = violations else { return None };
    let (_, report) = reports.iter().find(|(of, _)| of == oracle)?;
    report.shown_run().cloned()
}

/// Like [`check`], but a server failure is an error: it was not expected here, so it is what has
/// to be reported.
pub fn check_unbroken(
    executor: &mut Executor,
    fixture: &Fixture,
    case: &Case,
    oracles: &[Oracle],
    moment: &'static str,
) -> Result<CheckResult, HuntError> {
    let checked = check(executor, fixture, case, oracles)?;
    if !checked.crashed() {
        return Ok(checked);
    }
    let (fixture, case) = (fixture.clone(), case.clone());
    Err(HuntError::ServerFailure(Box::new(FailedRun { fixture, case, checked, moment })))
}

/// Like [`check`], but a server failure in any of the runs is a result.
pub fn check_any(
    executor: &mut Executor,
    fixture: &Fixture,
    case: &Case,
    oracles: &[Oracle],
) -> Result<CheckResult, HuntError> {
    match check(executor, fixture, case, oracles) {
        Err(HuntError::ServerFailure(broke)) => Ok(broke.checked),
        checked => checked,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use isolde_engines::fetch::install::Cache;
    use isolde_engines::runner::Runner;
    use isolde_engines::target::{Options, Target};
    use isolde_oracles::DEFAULT_ORACLES;
    use std::time::Duration;

    #[test]
    fn a_statement_cancelled_by_isolde_makes_the_result_inconclusive() {
        let options = Options { cache: Cache::open(), via: None };
        let driver = concat!(env!("CARGO_MANIFEST_DIR"), "/../engines/drivers/sqlite3_driver.py");
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
            let case = isolde_model::case::parse(&format!("case: t\ns1> {sql};\n")).unwrap();
            let checked = check(&mut executor, &fixture, &case, DEFAULT_ORACLES).unwrap();
            assert!(!checked.violated());
            assert_eq!(checked.consistent(), known, "{sql}");
            assert_eq!(checked.unknown.is_none(), known, "{sql}");
        }
    }
}
