//! Reads findings with their features, for triage.

use super::folder::Folder;
use super::{files, finding_folder};
use crate::error::{Damage, HuntError};
use crate::finding::Finding;
use crate::finding::{KnownBug, features};
use crate::layout;
use isolde_model::{History, case};
use isolde_triage::Features;
use std::path::{Path, PathBuf};

/// Larger files are not read: Isolde writes none of that size.
const LARGEST_FILE: u64 = 64 << 20;

/// A finding with its features and its location.
pub struct Report {
    /// The folder of the finding.
    pub place: PathBuf,
    pub finding: Finding,
    pub features: Features,
}

/// The findings in a folder: that of one finding, or the output of a hunt.
pub struct Reports {
    pub reports: Vec<Report>,
    /// The known bugs as they ran on the engine of the hunt.
    pub known: Vec<KnownBug>,
}

/// Reads the folder of a finding or the output folder of a hunt.
pub fn read(path: &Path) -> Result<Reports, HuntError> {
    let hunt = |dir: &Path| dir.join(layout::SUMMARY).is_file();
    if path.join(layout::FINDING).is_file() {
        let file = path.join(layout::FINDING);
        let finding: Finding = read_json(&file)?;
        let history: Option<History> = read_json(&path.join(layout::CONCURRENT)).ok();
        let features = known_features(&finding, history.as_ref(), &file)?;
        let of_hunt = path.join("../..");
        let known = if hunt(&of_hunt) { Folder::open(&of_hunt).read_known() } else { Vec::new() };
        let report = Report { place: path.into(), finding, features };
        return Ok(Reports { reports: vec![report], known });
    }
    if !hunt(path) {
        return Err(HuntError::NoFindings(path.into()));
    }
    let mut reports = Vec::new();
    for finding in Folder::open(path).read_findings()? {
        let place = path.join(layout::FINDINGS_FOLDER).join(&finding.id);
        let history = || finding_folder::read(path, &finding.id).ok()?.concurrent.ok();
        // The run is needed only where an older version has not recorded the features.
        let history = if finding.features.is_none() { history() } else { None };
        let features = known_features(&finding, history.as_ref(), &place)?;
        reports.push(Report { place, finding, features });
    }
    Ok(Reports { reports, known: Folder::open(path).read_known() })
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
    Ok(features::features(finding, &case, history))
}

fn read_json<T: serde::de::DeserializeOwned>(file: &Path) -> Result<T, HuntError> {
    let unusable = |why: Damage| HuntError::Unusable { file: file.into(), why };
    let bytes = files::read(file, LARGEST_FILE)
        .map_err(|error| HuntError::Io { path: file.into(), error })?;
    let bytes = bytes.ok_or_else(|| HuntError::NoFindings(file.into()))?;
    serde_json::from_slice(&bytes).map_err(|e| unusable(e.into()))
}
