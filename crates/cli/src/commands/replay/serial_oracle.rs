//! Checks of a case by the oracles that compare it with further runs:
//! topological and merged.

use crate::exit_code::{ExitCode, Failure};
use isolde_hunt::HuntError;
use isolde_hunt::cause::{self, Cause, Verdict};
use isolde_hunt::check::check;
use isolde_hunt::executor::{Executor, Fixture};
use isolde_hunt::explain::difference;
use isolde_model::difference::Difference;
use isolde_model::{Case, Level};
use isolde_oracles::{Oracle, OracleReport};
use serde_json::{Value, json};
use std::sync::Arc;

/// The subject of a check.
pub struct CaseCheck<'a> {
    pub case: &'a Case,
    pub target: &'a str,
    pub level: Level,
    pub oracle: Oracle,
}

/// The result of a check.
pub struct CheckResult {
    unknown: Option<String>,
    differences: Vec<Difference>,
    cause: Option<Cause>,
    report: Option<Arc<dyn OracleReport>>,
}

/// Runs a case and checks it with an oracle.
pub fn check_case(
    executor: &mut Executor,
    (case, level): (&Case, Level),
    oracle: Oracle,
) -> Result<CheckResult, Failure> {
    let on = executor.runner.engine.info().clone();
    let fixture = Fixture::of_case(case, &on, level);
    let checked = match check(executor, &fixture, case, &[oracle]) {
        Ok(checked) => checked,
        Err(HuntError::ServerFailure(broke)) => broke.checked,
        Err(HuntError::Fixture { error, .. }) => {
            let unknown = Some(format!("creating the tables failed: {error}"));
            let (differences, cause, report) = (Vec::new(), None, None);
            return Ok(CheckResult { unknown, differences, cause, report });
        }
        Err(error) => return Err(error.into()),
    };
    let cause = match checked.violated() {
        true => Some(cause::find(executor, (&fixture, case), &checked)?),
        false => None,
    };
    let unknown = checked.silent.clone().or_else(|| checked.unknown.map(str::to_string));
    let differences = checked.violations.into_iter().flat_map(|v| v.differences).collect();
    let report = checked.reports.into_iter().next().map(|(_, report)| report);
    Ok(CheckResult { unknown, differences, cause, report })
}

impl CheckResult {
    pub fn code(&self) -> ExitCode {
        match (&self.cause, &self.unknown) {
            (Some(cause), _) => match cause.label {
                Verdict::Bug => ExitCode::Violation,
                Verdict::Undecided => ExitCode::Undecided,
                Verdict::Documented | Verdict::Consistent | Verdict::Locking => ExitCode::Success,
            },
            (None, Some(_)) => ExitCode::Undecided,
            (None, None) => ExitCode::Success,
        }
    }
}

impl CaseCheck<'_> {
    pub fn text(&self, result: &CheckResult) -> String {
        let CaseCheck { case, target, level, oracle } = self;
        let mut text = format!("{} on {target} at {level}, {oracle}\n", case.id);
        for line in result.report.iter().flat_map(|report| report.lines()) {
            text.push_str(&format!("  {line}\n"));
        }
        for found in &result.differences {
            text.push_str(&format!("  {}\n", difference(found)));
        }
        match (&result.cause, &result.unknown) {
            (Some(cause), _) => {
                text.push_str(&format!("  {}\n", cause.name()));
                cause.evidence.iter().for_each(|e| text.push_str(&format!("    {e}\n")));
            }
            (None, Some(why)) => text.push_str(&format!("  unknown: {why}\n")),
            (None, None) => {
                let success = result.report.as_ref().and_then(|report| report.success());
                let success = success.unwrap_or_else(|| "no difference".into());
                text.push_str(&format!("  {success}\n"));
            }
        }
        text
    }

    pub fn json(&self, result: &CheckResult) -> Value {
        let report = result.report.as_ref().map(|report| report.json());
        json!({"case": self.case.id, "target": self.target, "level": self.level,
            "oracle": self.oracle.name(), "unknown": result.unknown,
            "differences": result.differences, "cause": result.cause, "graph": report})
    }
}
