//! Assembles the evidence of a confirmed violation: the finding and the runs that show it.

use crate::finding::{self, Evidence, Finding, Reduction, explain, features};
use crate::run::{CheckResult, Rate, Violation};
use isolde_generator::Plan;
use isolde_model::Case;
use isolde_model::case;
use isolde_model::difference::Difference;
use isolde_model::history::TargetInfo;
use isolde_reference::Account;
use isolde_reference::cause::Cause;
use isolde_sql::selector::Selector;

/// A violation with its cause and how often it was observed.
pub(super) struct ConfirmedViolation {
    pub checked: CheckResult,
    pub cause: Cause,
    pub rate: Rate,
    /// What the rules say of each statement, where the engine has rules.
    pub account: Option<Account>,
}

/// The evidence of a violation that `case` shows. `original` is the case as it was generated,
/// `case` the same or what a reduction has left of it.
pub(super) fn assemble(
    info: &TargetInfo,
    plan: &Plan,
    original: &Case,
    case: &Case,
    violation: ConfirmedViolation,
    reduced_by: Option<Reduction>,
) -> Evidence {
    let ConfirmedViolation { checked, cause, rate, account } = violation;
    let mut case = case.clone();
    case.title = finding::title(&case, &checked, cause.label);
    case.engines = info.engine.parse::<Selector>().into_iter().collect();
    let mut finding = Finding {
        id: format!("{:08}", plan.number),
        case_number: plan.number,
        seed: plan.seed,
        target: info.target.clone(),
        server_version: info.version.clone(),
        level: cause.level.or(case.level),
        oracles: checked.violations.iter().map(|v| v.oracle.to_string()).collect(),
        signature: finding::signature(&case, &checked.violations, &cause),
        title: case.title.clone(),
        explanation: explain::sentences(&case, &checked, &cause, rate),
        differences: distinct_differences(&checked.violations),
        defect: String::new(),
        features: None,
        known: Vec::new(),
        known_link: None,
        case: case::format(&case),
        operations: case.steps.iter().filter_map(|step| step.origin.0).collect(),
        cause,
        rate,
        reduced_by,
        account,
    };
    let files = checked.reports.iter().flat_map(|(_, report)| report.files()).collect();
    let mut concurrent = checked.concurrent;
    concurrent.seed = Some(plan.seed);
    let serial = checked
        .replays
        .into_iter()
        .map(|(replay, history)| (replay.kind.name.to_string(), history))
        .collect();
    features::add_features(&mut finding, &case, &concurrent);
    Evidence { finding, original: original.clone(), case, concurrent, serial, files }
}

/// The differences of all violations, each once: two oracles often report the same.
fn distinct_differences(violations: &[Violation]) -> Vec<Difference> {
    let mut all: Vec<Difference> = Vec::new();
    for difference in violations.iter().flat_map(|v| &v.differences) {
        if !all.contains(difference) {
            all.push(difference.clone());
        }
    }
    all
}
