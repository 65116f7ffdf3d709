//! The hunter: examines one case number after the other on its engine.

use super::known::KnownBugs;
use super::round_report;
use crate::error::HuntError;
use crate::execution::executor::Executor;
use crate::finding::Evidence;
use crate::isolation::{Shape, run_round};
use crate::output::tally::Tally;
use isolde_checker::Verdict;
use isolde_generator::{Generator, Plan};
use isolde_oracles::{Oracle, forbidden};
use std::collections::BTreeMap;

/// How often a case is examined at most if the server fails in it every time.
const ATTEMPTS: usize = 3;

/// One worker of a hunt.
pub struct Hunter<'a> {
    pub executor: Executor,
    pub generator: &'a Generator,
    pub oracles: &'a [Oracle],
    pub known: &'a KnownBugs,
    /// Asked between runs; true ends a reduction with what it has.
    pub stop: &'a dyn Fn() -> bool,
    /// Trials of one reduction at most; with none, nothing is reduced.
    pub trials: u32,
    /// By the signature of violations before their reduction.
    pub similar: BTreeMap<String, SimilarViolations>,
}

/// Violations that had the same signature before they were reduced.
#[derive(Clone, Default)]
pub struct SimilarViolations {
    pub(super) count: u32,
    /// The signature and the defect of the first of them after its reduction. Later ones are
    /// not reduced and are taken for the same.
    pub(super) reduced: Option<(String, String)>,
}

/// What came of examining one case or round.
pub struct Examination {
    /// A confirmed violation, and server failures.
    pub evidence: Vec<Evidence>,
    /// Why nothing more can be run; the evidence was collected before.
    pub ended: Option<HuntError>,
}

impl Hunter<'_> {
    /// Runs a scheduled case with all oracles. What happened is counted in `tally`.
    pub fn examine(&mut self, plan: &Plan, tally: &mut Tally) -> Result<Examination, HuntError> {
        let (before, similar) = (tally.clone(), self.similar.clone());
        let mut evidence: Vec<Evidence> = Vec::new();
        let mut ended = None;
        for attempt in 1..=ATTEMPTS {
            *tally = before.clone();
            self.similar = similar.clone();
            match self.attempt(plan, tally) {
                Ok(found) => {
                    evidence.extend(found);
                    break;
                }
                Err(HuntError::ServerFailure(broke)) => {
                    let mut crash = self.crash(plan, *broke);
                    if !evidence.is_empty() {
                        let id = &mut crash.evidence.finding.id;
                        *id = format!("{id}-{attempt}");
                    }
                    evidence.push(crash.evidence);
                    ended = crash.error;
                    if crash.repeated || ended.is_some() || (self.stop)() {
                        break;
                    }
                }
                Err(error) if evidence.is_empty() => return Err(error),
                Err(error) => {
                    ended = Some(error);
                    break;
                }
            }
        }
        if evidence.iter().any(|e| e.finding.oracles == ["crash"]) {
            // The server may have failed before the attempt counted the case.
            tally.cases = before.cases + 1;
        }
        for found in &evidence {
            tally.count_violation(&found.finding);
        }
        Ok(Examination { evidence, ended })
    }

    /// Runs a round of sessions at full speed and checks its history. What happened is counted
    /// in `tally`.
    pub fn examine_round(
        &mut self,
        number: u64,
        shape: &Shape,
        tally: &mut Tally,
    ) -> Result<Examination, HuntError> {
        let result = |evidence| Ok(Examination { evidence, ended: None });
        let round = run_round(&mut self.executor.runner, self.generator, number, shape);
        // Rounds create their own tables.
        self.executor.forget_tables();
        let round = match round {
            Ok(Ok(round)) => round,
            Ok(Err(death)) => {
                let evidence = self.round_failure(number, shape, death);
                tally.cases += 1;
                tally.count_violation(&evidence.finding);
                return result(vec![evidence]);
            }
            Err(HuntError::Fixture { sql, error }) => {
                tally.refused_schema(sql, error);
                return result(Vec::new());
            }
            Err(error) => return Err(error),
        };
        round_report::count(tally, &round);
        let profile = self.executor.runner.engine.profile();
        let allows = profile.promise(round.level).and_then(|promise| promise.allows.clone());
        let found = forbidden(&round.report, allows.as_deref());
        round_report::count_allowed(tally, &round, &found, allows.is_some());
        let Some(anomaly) = round_report::shortest(&found).cloned() else {
            if round.report.verdict(isolde_checker::Level::Serializable) == Verdict::Unknown {
                let why = "the checker's search was cut off".to_string();
                *tally.unknown.entry(why).or_default() += 1;
            }
            return result(Vec::new());
        };
        let evidence = self.round_anomaly(&round, &anomaly)?;
        tally.count_violation(&evidence.finding);
        result(vec![evidence])
    }

    /// Checks that the server still accepts sessions after the last case for now. A failure is
    /// counted in `tally`.
    pub fn check_server(&mut self, plan: &Plan, tally: &mut Tally) -> Option<Evidence> {
        // Any other reason for a refused session shows when the next run opens one.
        let death = self.executor.runner.check_new_login().ok().flatten()?;
        let evidence = self.failure_after(plan, death);
        tally.count_violation(&evidence.finding);
        Some(evidence)
    }
}
