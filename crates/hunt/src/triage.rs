//! What triage knows of findings: their features, from what their folder
//! holds, and the defects that a hunt has met.

use crate::cause::Label;
use crate::error::{Damage, HuntError};
use crate::finding::Finding;
use crate::folder::Folder;
use crate::known::KnownBug;
use crate::{files, stored};
use isolde_core::triage::{Features, Subject};
use isolde_core::{Case, History, case};
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

/// Larger files are not read: Isolde writes none of that size.
const LARGEST_FILE: u64 = 64 << 20;

/// How often a defect was met, and what is known of it; part of `hunt.json`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Defect {
    pub findings: u64,
    /// The case of the library that it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub known: Option<String>,
}

impl Defect {
    /// The first name by the alphabet, whoever comes first.
    pub fn know(&mut self, name: Option<&String>) {
        if let Some(name) = name
            && self.known.as_ref().is_none_or(|known| name < known)
        {
            self.known = Some(name.clone());
        }
    }
}

/// Writes down what went wrong in a finding.
pub fn note(finding: &mut Finding, case: &Case, history: &History) {
    let features = features(finding, case, Some(history));
    finding.defect = match finding.cause.label {
        // No defect: what the manual says of it is what such findings share.
        Label::Documented => finding.cause.name(),
        Label::Bug | Label::Undecided => features.key(),
    };
    finding.features = Some(features);
}

fn features(finding: &Finding, case: &Case, history: Option<&History>) -> Features {
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

/// A finding with its features, and where it lies.
pub struct Report {
    /// The folder that it was read from, and the finding's name in it.
    pub place: PathBuf,
    pub finding: Finding,
    pub features: Features,
}

/// What a folder holds: a finding's, or the findings of a hunt.
pub struct Reports {
    pub reports: Vec<Report>,
    /// Known bugs, as they ran on the engine of the hunt.
    pub known: Vec<KnownBug>,
}

/// Reads the folder of a finding or the output folder of a hunt.
pub fn read(path: &Path) -> Result<Reports, HuntError> {
    let hunt = |dir: &Path| dir.join("hunt.json").is_file();
    if path.join("finding.json").is_file() {
        let file = path.join("finding.json");
        let finding: Finding = read_json(&file)?;
        let history: Option<History> = read_json(&path.join("concurrent.json")).ok();
        let features = known_features(&finding, history.as_ref(), &file)?;
        let of_hunt = path.join("../..");
        let known = if hunt(&of_hunt) { read_known(&of_hunt) } else { Vec::new() };
        let report = Report { place: path.into(), finding, features };
        return Ok(Reports { reports: vec![report], known });
    }
    if !hunt(path) {
        return Err(HuntError::NoFindings(path.into()));
    }
    let mut reports = Vec::new();
    for finding in Folder::open(path).read_findings()? {
        let place = path.join("findings").join(&finding.id);
        let history = || stored::stored(path, &finding.id).ok()?.concurrent.ok();
        // What a newer hunt has written down needs no run.
        let history = if finding.features.is_none() { history() } else { None };
        let features = known_features(&finding, history.as_ref(), &place)?;
        reports.push(Report { place, finding, features });
    }
    Ok(Reports { reports, known: read_known(path) })
}

fn known_features(
    finding: &Finding,
    history: Option<&History>,
    file: &Path,
) -> Result<Features, HuntError> {
    if let Some(features) = &finding.features {
        return Ok(features.clone());
    }
    let unusable = |why: Damage| HuntError::Unusable { file: file.into(), why };
    let case = case::parse(&finding.case).map_err(|e| unusable(Damage::Case(e.to_string())))?;
    Ok(features(finding, &case, history))
}

/// `known.json`; a hunt that met nothing has none.
pub fn read_known(dir: &Path) -> Vec<KnownBug> {
    read_json(&dir.join(KNOWN)).unwrap_or_default()
}

/// The file of a hunt with the known bugs that it has run.
pub const KNOWN: &str = "known.json";

fn read_json<T: serde::de::DeserializeOwned>(file: &Path) -> Result<T, HuntError> {
    let unusable = |why: Damage| HuntError::Unusable { file: file.into(), why };
    let bytes = files::read(file, LARGEST_FILE)
        .map_err(|error| HuntError::Io { path: file.into(), error })?;
    let bytes = bytes.ok_or_else(|| HuntError::NoFindings(file.into()))?;
    serde_json::from_slice(&bytes).map_err(|e| unusable(e.into()))
}
