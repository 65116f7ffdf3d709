//! Re-checks a stored finding: does the violation still happen? A developer who fixes an engine
//! asks that again and again.
//!
//! The case is checked as the hunt checked it, by the same oracles, against serial runs of the same
//! statements, on tables that are created anew for each run.

use crate::error::{Damage, HuntError};
use crate::execution::cause;
use crate::execution::check::check_any;
use crate::execution::executor::Executor;
use crate::finding::Finding;
use crate::layout;
use crate::output::summary::Summary;
use crate::run::{CheckResult, Fixture};
use isolde_model::Verdict;
use isolde_model::difference::Difference;
use isolde_model::{Case, case};
use isolde_oracles as oracle;
use isolde_oracles::{DEFAULT_ORACLES, Oracle};
use isolde_reference::cause::Cause;
use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::Path;

/// A finding of a hunt, with the settings that are needed to check it again.
pub struct RecordedFinding {
    pub finding: Finding,
    /// The oracles of the hunt; the default ones where its `hunt.json` is missing.
    pub oracles: Vec<Oracle>,
    /// The fault that was planted in the hunt, and its rate.
    pub fault: Option<(String, f64)>,
}

/// What became of a finding.
#[derive(Debug, PartialEq)]
pub enum RecheckVerdict {
    /// As in the hunt, or `differently`.
    StillHappens {
        differently: bool,
    },
    Gone,
    /// What is left is documented behaviour; the finding was not.
    OnlyDocumented(Box<Cause>),
    /// The runs are inconclusive, for this reason.
    Unknown(String),
}

impl RecheckVerdict {
    pub fn sentence(&self, recorded: &RecordedFinding, runs: u32) -> String {
        let times = if runs == 1 { String::new() } else { format!(" in {runs} runs") };
        match self {
            RecheckVerdict::StillHappens { differently: false } => {
                format!("still happens: {}", recorded.finding.title)
            }
            RecheckVerdict::StillHappens { differently: true } => {
                format!(
                    "still happens, but in another way than recorded: {}",
                    recorded.finding.title
                )
            }
            RecheckVerdict::Gone => format!("gone{times}: as in the serial run"),
            RecheckVerdict::OnlyDocumented(cause) => {
                format!("gone{times}: what still differs is {}", cause.name())
            }
            RecheckVerdict::Unknown(why) => format!("unknown: {why}"),
        }
    }
}

/// The result of checking a finding again.
pub struct Recheck {
    pub verdict: RecheckVerdict,
    pub runs: u32,
    /// The last run.
    pub checked: CheckResult,
}

/// Reads the finding that a case file belongs to; none where the file is not in the folder of a
/// finding.
pub fn read_recorded(file: &Path, case: &Case) -> Result<Option<RecordedFinding>, HuntError> {
    let folder = file.parent().unwrap_or(Path::new(""));
    let Some(finding) = read::<Finding>(&folder.join(layout::FINDING))? else { return Ok(None) };
    // A file that a user has put there has another id.
    if case::parse(&finding.case).is_ok_and(|own| own.id != case.id) {
        return Ok(None);
    }
    let Some(summary) = read::<Summary>(&folder.join("../..").join(layout::SUMMARY))? else {
        return Ok(Some(RecordedFinding {
            finding,
            oracles: DEFAULT_ORACLES.to_vec(),
            fault: None,
        }));
    };
    let named: Result<Vec<_>, _> =
        summary.identity.oracles.iter().map(|name| oracle::find(name)).collect();
    let options = &summary.identity.options;
    let fault = options.get("fault").cloned().map(|name| {
        let rate = options.get("fault_rate").and_then(|rate| rate.parse().ok());
        (name, rate.unwrap_or(1.0))
    });
    Ok(Some(RecordedFinding { finding, oracles: named.map_err(HuntError::NoSuchOracle)?, fault }))
}

fn read<T: serde::de::DeserializeOwned>(file: &Path) -> Result<Option<T>, HuntError> {
    let unusable = |why: Damage| HuntError::Unusable { file: file.into(), why };
    match fs::read_to_string(file) {
        Ok(text) => serde_json::from_str(&text).map(Some).map_err(|e| unusable(e.into())),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(unusable(error.into())),
    }
}

/// Runs the case until it shows a violation, or often enough to be sure that it shows none.
pub fn recheck(
    executor: &mut Executor,
    case: &Case,
    recorded: &RecordedFinding,
) -> Result<Recheck, HuntError> {
    executor.runner.check_levels(case, None)?;
    let info = executor.runner.engine.info().clone();
    let case = &case.clone().read_as(info.family());
    let default_level = executor.runner.engine.profile().default_level;
    let fixture = Fixture::of_case(case, &info, default_level);
    let most = recorded.finding.rate.trials_to_be_sure();
    let mut runs = 1;
    let mut checked = check_any(executor, &fixture, case, &recorded.oracles)?;
    while !checked.violated() && runs < most {
        checked = check_any(executor, &fixture, case, &recorded.oracles)?;
        runs += 1;
    }
    let verdict = judge(executor, &fixture, case, recorded, &checked)?;
    Ok(Recheck { verdict, runs, checked })
}

fn judge(
    executor: &mut Executor,
    fixture: &Fixture,
    case: &Case,
    recorded: &RecordedFinding,
    checked: &CheckResult,
) -> Result<RecheckVerdict, HuntError> {
    if !checked.violated() {
        return Ok(checked
            .unknown
            .map_or(RecheckVerdict::Gone, |why| RecheckVerdict::Unknown(why.into())));
    }
    if recorded.finding.cause.label != Verdict::Documented {
        let cause = cause::find(executor, (fixture, case), checked)?;
        if cause.label == Verdict::Documented {
            return Ok(RecheckVerdict::OnlyDocumented(Box::new(cause)));
        }
    }
    let verdict = checked.violations.iter().flat_map(|v| &v.differences);
    Ok(RecheckVerdict::StillHappens {
        differently: kinds(verdict) != kinds(&recorded.finding.differences),
    })
}

fn kinds<'a>(differences: impl IntoIterator<Item = &'a Difference>) -> BTreeSet<&'static str> {
    differences.into_iter().map(Difference::kind).collect()
}
