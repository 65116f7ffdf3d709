//! Which anomalies a level lets through: decides a cell of the matrix from the
//! histories of its scenarios.
//!
//! What it does not verify: that an anomaly is impossible. "Prevented" means
//! that the scenario, which provokes it as directly as can be, did not.

use crate::anomaly::Anomaly;
use crate::case::{Case, Variant};
use crate::expectations;
use crate::history::{ErrorClass, EventKind, History};
use isolde_sql::Level;
use serde::Serialize;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum Outcome {
    #[serde(rename = "prevented")]
    Prevented,
    #[serde(rename = "possible")]
    Possible,
    /// SELECTs are protected, the predicates of UPDATE and DELETE are not.
    #[serde(rename = "reads only")]
    ReadsOnly,
    /// The scenario could not be played to its end.
    #[serde(rename = "undecided")]
    Undecided,
}

impl Outcome {
    pub fn name(self) -> &'static str {
        match self {
            Outcome::Prevented => "prevented",
            Outcome::Possible => "possible",
            Outcome::ReadsOnly => "reads only",
            Outcome::Undecided => "undecided",
        }
    }
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Cell {
    pub target: String,
    pub engine: String,
    pub version: String,
    pub level: Level,
    pub anomaly: Anomaly,
    pub outcome: Outcome,
    pub how: String,
    /// The scenario that decided.
    pub case: String,
    /// What the engine's documentation allows here, where it says.
    pub documented: Option<bool>,
}

/// What one scenario showed.
#[derive(Clone, Debug, PartialEq)]
struct Shown {
    outcome: Outcome,
    how: String,
}

/// Decides one anomaly from all its scenarios. Returns the outcome, how it
/// came about, and which run decided.
pub fn decide(runs: &[(&Case, &History)]) -> (Outcome, String, usize) {
    let shown: Vec<Shown> = runs.iter().map(|(case, history)| show(case, history)).collect();
    let find = |outcome: Outcome, variant: Option<Variant>| {
        (0..runs.len()).find(|i| {
            let own = runs[*i].0.variant.unwrap_or(Variant::Read);
            shown[*i].outcome == outcome && variant.is_none_or(|v| v == own)
        })
    };
    let answer = |outcome: Outcome, i: usize| (outcome, shown[i].how.clone(), i);
    if let Some(i) = find(Outcome::Possible, Some(Variant::Read)) {
        return answer(Outcome::Possible, i);
    }
    if let Some(i) = find(Outcome::Undecided, None) {
        return answer(Outcome::Undecided, i);
    }
    if let Some(i) = find(Outcome::Possible, Some(Variant::Write)) {
        let has_reads = find(Outcome::Prevented, Some(Variant::Read)).is_some();
        return answer(if has_reads { Outcome::ReadsOnly } else { Outcome::Possible }, i);
    }
    match find(Outcome::Prevented, None) {
        Some(i) => answer(Outcome::Prevented, i),
        None => (Outcome::Undecided, "no scenario ran".into(), 0),
    }
}

fn show(case: &Case, history: &History) -> Shown {
    if let Some(condition) = expectations::condition_met(case, history) {
        let claims = &case.possible_when[condition].claims;
        let commits = claims.iter().filter(|c| c.to_string().ends_with(" commits")).count();
        let how = match claims.first() {
            _ if commits == claims.len() => "all committed".to_string(),
            Some(claim) => claim.to_string(),
            None => String::new(),
        };
        return Shown { outcome: Outcome::Possible, how };
    }
    let errors = || {
        history.events.iter().filter_map(|e| match &e.what {
            EventKind::Error(error) => Some(error),
            _ => None,
        })
    };
    let broken = |class: ErrorClass| {
        matches!(
            class,
            ErrorClass::Rejected
                | ErrorClass::Internal
                | ErrorClass::Lost
                | ErrorClass::Other
                | ErrorClass::Cancelled
                | ErrorClass::ReadOnly
        )
    };
    if let Some(error) = errors().find(|e| broken(e.class)) {
        return Shown { outcome: Outcome::Undecided, how: format!("error {error}") };
    }
    let how = if let Some(error) = errors().next() {
        format!("error {}", error.code)
    } else if history.events.iter().any(|e| matches!(e.what, EventKind::Waiting { .. })) {
        "waited".into()
    } else {
        "not seen".into()
    };
    Shown { outcome: Outcome::Prevented, how }
}
