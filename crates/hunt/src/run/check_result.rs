//! What the oracles concluded about one case.

use isolde_model::History;
use isolde_model::difference::Difference;
use isolde_oracles::{Oracle, OracleReport, Replay};
use isolde_reference::Analysis;
use std::sync::Arc;

/// The verdicts of all oracles about one case, with the runs that they are based on.
#[derive(Clone, Debug)]
pub struct CheckResult {
    pub concurrent: History,
    pub replays: Vec<(Replay, History)>,
    pub violations: Vec<Violation>,
    /// Why the runs are inconclusive: the absence of violations then means nothing.
    pub unknown: Option<&'static str>,
    /// The reason of the last oracle that was undecided.
    pub silent: Option<String>,
    /// Whether the reference model covers the concurrent run.
    pub model_coverage: ModelCoverage,
    /// The reports of the oracles that made one.
    pub reports: Vec<(Oracle, Arc<dyn OracleReport>)>,
    /// The analysis of the concurrent run, where an oracle asked the reference model.
    pub analysis: Option<Box<Analysis>>,
}

/// Whether the reference model predicts the whole run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum ModelCoverage {
    /// The semantics oracle was not asked.
    #[default]
    NotRequested,
    Complete,
    /// A part of the run is not modelled, for this reason.
    Incomplete(String),
}

/// What one oracle objects to.
#[derive(Clone, Debug, PartialEq)]
pub struct Violation {
    pub oracle: Oracle,
    pub differences: Vec<Difference>,
}

impl CheckResult {
    /// The result of a run about which nothing is known but the server failure.
    pub fn crash(history: History, differences: Vec<Difference>) -> CheckResult {
        let violations = vec![Violation { oracle: Oracle::Crash, differences }];
        CheckResult {
            concurrent: history,
            replays: Vec::new(),
            violations,
            unknown: None,
            silent: None,
            model_coverage: ModelCoverage::NotRequested,
            reports: Vec::new(),
            analysis: None,
        }
    }

    pub fn crashed(&self) -> bool {
        self.violates(Oracle::Crash).is_some()
    }

    /// Whether nothing is violated, and the runs are conclusive.
    pub fn consistent(&self) -> bool {
        self.violations.is_empty() && self.unknown.is_none()
    }

    pub fn violated(&self) -> bool {
        !self.violations.is_empty()
    }

    /// The report of an oracle.
    pub fn report(&self, oracle: Oracle) -> Option<&dyn OracleReport> {
        self.reports.iter().find(|(of, _)| *of == oracle).map(|(_, report)| report.as_ref())
    }

    pub fn violates(&self, oracle: Oracle) -> Option<&Violation> {
        self.violations.iter().find(|v| v.oracle == oracle)
    }
}
