//! The features of a finding, by which triage compares and groups findings.

use super::evidence::Finding;
use isolde_model::Verdict;
use isolde_model::{Case, History};
use isolde_triage::{Features, Subject};

/// Adds the features and the defect to a finding.
pub fn add_features(finding: &mut Finding, case: &Case, history: &History) {
    let features = features(finding, case, Some(history));
    finding.defect = match finding.cause.label {
        // Not a defect: such findings have the documented behaviour in common.
        Verdict::Documented | Verdict::Consistent => finding.cause.name(),
        Verdict::Bug | Verdict::Locking | Verdict::Undecided => features.key(),
    };
    finding.features = Some(features);
}

/// The features of a finding; more of them if its run is available.
pub fn features(finding: &Finding, case: &Case, history: Option<&History>) -> Features {
    let plain = || finding.target.split(['@', ':']).next().unwrap_or_default();
    Features::of(Subject {
        case,
        history,
        account: finding.account.as_ref(),
        differences: &finding.differences,
        oracles: &finding.oracles,
        engine: history.map_or_else(plain, |h| &h.on.engine),
        version: &finding.server_version,
        level: finding.level,
    })
}
