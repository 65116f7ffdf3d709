//! A finding once more: does what the hunt saw still happen? Whoever mends an
//! engine asks that again and again.
//!
//! The case is judged as the hunt judged it, by the same oracles against serial
//! runs of the same statements, on tables that are made anew for each run.

use crate::cause::{self, Cause, Label};
use crate::check::{Checked, check_any};
use crate::error::{Damage, HuntError};
use crate::executor::{Executor, Fixture};
use crate::finding::Finding;
use crate::summary::Summary;
use isolde_core::oracle::{self, Difference, Oracle, USUAL};
use isolde_core::{Case, case};
use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::Path;

/// What a hunt wrote down about a case of its own.
pub struct Seen {
    pub finding: Finding,
    /// Those of the hunt; all, where its `hunt.json` is not at hand.
    pub oracles: Vec<Oracle>,
    /// The fault that the hunt had planted, and how often it struck.
    pub fault: Option<(String, f64)>,
}

#[derive(Debug, PartialEq)]
pub enum Now {
    /// As the hunt saw it, or in another way if `otherwise`.
    StillHappens {
        otherwise: bool,
    },
    Gone,
    /// It was no documented behaviour then, and what is left of it is.
    OnlyDocumented(Box<Cause>),
    /// The runs do not tell, for the reason given.
    Unknown(String),
}

impl Now {
    pub fn sentence(&self, seen: &Seen, runs: u32) -> String {
        let times = if runs == 1 { String::new() } else { format!(" in {runs} runs") };
        match self {
            Now::StillHappens { otherwise: false } => {
                format!("still happens: {}", seen.finding.title)
            }
            Now::StillHappens { otherwise: true } => {
                format!("still happens, in another way than this: {}", seen.finding.title)
            }
            Now::Gone => format!("gone{times}: as in the serial run"),
            Now::OnlyDocumented(cause) => {
                format!("gone{times}: what still differs is {}", cause.name())
            }
            Now::Unknown(why) => format!("unknown: {why}"),
        }
    }
}

pub struct Again {
    pub now: Now,
    pub runs: u32,
    /// The last run.
    pub checked: Checked,
}

/// What stands beside a case file in the folder of a finding; none where the
/// file is no finding's.
pub fn beside(file: &Path, case: &Case) -> Result<Option<Seen>, HuntError> {
    let folder = file.parent().unwrap_or(Path::new(""));
    let Some(finding) = read::<Finding>(&folder.join("finding.json"))? else { return Ok(None) };
    // Another file that somebody has put there has another id.
    if case::parse(&finding.case).is_ok_and(|own| own.id != case.id) {
        return Ok(None);
    }
    let Some(summary) = read::<Summary>(&folder.join("../../hunt.json"))? else {
        return Ok(Some(Seen { finding, oracles: USUAL.to_vec(), fault: None }));
    };
    let named: Result<Vec<_>, _> =
        summary.identity.oracles.iter().map(|name| oracle::find(name)).collect();
    let options = &summary.identity.options;
    let fault = options.get("fault").cloned().map(|name| {
        let rate = options.get("fault_rate").and_then(|rate| rate.parse().ok());
        (name, rate.unwrap_or(1.0))
    });
    Ok(Some(Seen { finding, oracles: named.map_err(HuntError::NoSuchOracle)?, fault }))
}

fn read<T: serde::de::DeserializeOwned>(file: &Path) -> Result<Option<T>, HuntError> {
    let unusable = |why: Damage| HuntError::Unusable { file: file.into(), why };
    match fs::read_to_string(file) {
        Ok(text) => serde_json::from_str(&text).map(Some).map_err(|e| unusable(e.into())),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(unusable(error.into())),
    }
}

/// Runs the case until it violates, as often as it takes to be sure that it
/// does not.
pub fn again(executor: &mut Executor, case: &Case, seen: &Seen) -> Result<Again, HuntError> {
    executor.runner.check_levels(case, None)?;
    let info = executor.runner.engine.info().clone();
    let case = &case.clone().read_as(info.family());
    let default_level = executor.runner.engine.profile().default_level;
    let fixture = Fixture::of_case(case, &info, default_level);
    let most = seen.finding.rate.trials_to_be_sure();
    let mut runs = 1;
    let mut checked = check_any(executor, &fixture, case, &seen.oracles)?;
    while !checked.violated() && runs < most {
        checked = check_any(executor, &fixture, case, &seen.oracles)?;
        runs += 1;
    }
    let now = judge(executor, &fixture, case, seen, &checked)?;
    Ok(Again { now, runs, checked })
}

fn judge(
    executor: &mut Executor,
    fixture: &Fixture,
    case: &Case,
    seen: &Seen,
    checked: &Checked,
) -> Result<Now, HuntError> {
    if !checked.violated() {
        return Ok(checked.unknown.map_or(Now::Gone, |why| Now::Unknown(why.into())));
    }
    if seen.finding.cause.label != Label::Documented {
        let cause = cause::find(executor, (fixture, case), checked)?;
        if cause.label == Label::Documented {
            return Ok(Now::OnlyDocumented(Box::new(cause)));
        }
    }
    let now = checked.violations.iter().flat_map(|v| &v.differences);
    Ok(Now::StillHappens { otherwise: kinds(now) != kinds(&seen.finding.differences) })
}

fn kinds<'a>(differences: impl IntoIterator<Item = &'a Difference>) -> BTreeSet<&'static str> {
    differences.into_iter().map(Difference::kind).collect()
}
