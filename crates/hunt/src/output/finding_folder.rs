//! Reads the folder of a finding, any part of which may be missing or damaged.

use super::files;
use crate::error::{Damage, HuntError};
use crate::finding::{Finding, export};
use crate::layout;
use isolde_model::history::EventKind;
use isolde_model::{Case, History, case};
use std::io;
use std::path::Path;

/// Larger files are not read: the report page would not show them.
const LARGEST_FILE: u64 = 16 << 20;
/// A run that is exported is read whole. Isolde writes no larger files.
const LARGEST_RUN: u64 = 1 << 30;

/// The contents of the folder of a finding.
pub struct FindingFolder {
    pub concurrent: Result<History, HuntError>,
    /// The serial runs that exist, each with its description.
    pub serial: Vec<(&'static str, Result<History, HuntError>)>,
    pub script: Option<String>,
    /// The case as it was generated.
    pub original: Option<String>,
    pub server_log: Option<String>,
    /// The drawing of a dependency cycle.
    pub cycle: Option<String>,
    /// The drawing of the statement-dependency graph.
    pub graph: Option<String>,
}

/// Whether an id is the name of a folder. One that contains a path would lead elsewhere.
pub fn is_folder_name(id: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    !id.is_empty() && id.len() <= 100 && !id.starts_with('.') && id.chars().all(plain)
}

/// Reads the folder of the finding `id` in the output of a hunt.
pub fn read(dir: &Path, id: &str) -> Result<FindingFolder, HuntError> {
    if !is_folder_name(id) {
        return Err(HuntError::NotAFolderName(id.into()));
    }
    let folder = dir.join("findings").join(id);
    let real = |p: &Path| p.symlink_metadata().is_ok_and(|meta| meta.is_dir());
    if !real(&dir.join("findings")) || !real(&folder) {
        return Err(HuntError::FolderMissing(id.into()));
    }
    let serial = isolde_oracles::serial_runs()
        .into_iter()
        .filter_map(|run| history(&folder, run.file).transpose().map(|h| (run.about, h)))
        .collect();
    let concurrent = history(&folder, layout::CONCURRENT)
        .and_then(|h| h.ok_or(HuntError::RunMissing(layout::CONCURRENT)));
    Ok(FindingFolder {
        concurrent,
        serial,
        script: read_text(&folder, "script.sql").ok().flatten(),
        original: read_text(&folder, "original.case").ok().flatten(),
        server_log: read_text(&folder, "server.log").ok().flatten(),
        cycle: read_text(&folder, "cycle.svg").ok().flatten(),
        graph: read_text(&folder, "graph.svg").ok().flatten(),
    })
}

/// A finding with its case and its concurrent run, as read from its folder.
pub struct RecordedRun {
    pub finding: Finding,
    pub case: Case,
    pub concurrent: History,
}

/// Reads the folder of a finding; none where there is no finding in it.
pub fn read_run(folder: &Path) -> Result<Option<RecordedRun>, HuntError> {
    let text = |name: &str| {
        let file = folder.join(name);
        let unusable = |why: Damage| HuntError::Unusable { file: file.clone(), why };
        let bytes = files::read(&file, LARGEST_RUN).map_err(|e| unusable(e.into()))?;
        Ok::<_, HuntError>(bytes.map(|b| String::from_utf8_lossy(&b).into_owned()))
    };
    let damaged = |name: &str, why: Damage| HuntError::Unusable { file: folder.join(name), why };
    let json = |name: &str| text(name)?.ok_or_else(|| damaged(name, Damage::Missing));
    let Some(finding) = text(layout::FINDING)? else { return Ok(None) };
    let finding: Finding =
        serde_json::from_str(&finding).map_err(|e| damaged(layout::FINDING, e.into()))?;
    let concurrent: History = serde_json::from_str(&json(layout::CONCURRENT)?)
        .map_err(|e| damaged(layout::CONCURRENT, e.into()))?;
    let case = case::parse(&finding.case).map_err(|e| {
        let error = io::Error::new(io::ErrorKind::InvalidData, e.to_string());
        damaged(layout::FINDING, error.into())
    })?;
    Ok(Some(RecordedRun { finding, case, concurrent }))
}

impl RecordedRun {
    pub fn subject(&self) -> export::FindingExport<'_> {
        let RecordedRun { finding, case, concurrent } = self;
        export::FindingExport { finding, case, concurrent }
    }
}

/// The text of a file; none where it does not exist.
fn read_text(folder: &Path, name: &'static str) -> Result<Option<String>, HuntError> {
    let bytes = files::read(&folder.join(name), LARGEST_FILE)
        .map_err(|error| HuntError::RunUnreadable { name, error })?;
    Ok(bytes.map(|bytes| String::from_utf8_lossy(&bytes).into_owned()))
}

fn history(folder: &Path, name: &'static str) -> Result<Option<History>, HuntError> {
    let Some(text) = read_text(folder, name)? else { return Ok(None) };
    let damaged = |why: Damage| HuntError::RunDamaged { name, why };
    let history: History = serde_json::from_str(&text).map_err(|e| damaged(e.into()))?;
    match dangling(&history) {
        Some(what) => Err(damaged(what)),
        None => Ok(Some(history)),
    }
}

/// A number in the history that refers to nothing in it, if there is one.
fn dangling(history: &History) -> Option<Damage> {
    let (steps, transactions) = (history.steps.len(), history.transactions.len());
    for (number, event) in history.events.iter().enumerate() {
        if let Some(step) = event.step.filter(|s| *s >= steps) {
            return Some(Damage::NoSuchStep { event: number, step, steps });
        }
        if let EventKind::Ended { transaction, .. } = event.what
            && transaction >= transactions
        {
            return Some(Damage::NoSuchTransaction { event: number, transaction });
        }
    }
    let begun = |t: &isolde_model::history::Transaction| t.begin >= steps;
    let odd = history.transactions.iter().position(begun);
    odd.map(Damage::BeginsNowhere)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samples::recorded;
    use std::fs;

    #[test]
    fn an_id_with_a_path_is_refused() {
        for good in ["17", "case-000017", "a_b.c"] {
            assert!(is_folder_name(good), "{good}");
        }
        for bad in ["", ".", "..", "../x", "a/b", "a\\b", "/etc", "a b", "<b>", "é"] {
            assert!(!is_folder_name(bad), "{bad}");
        }
        assert!(read(Path::new("/"), "../etc").is_err());
    }

    #[test]
    fn missing_and_damaged_files_are_reported_by_name() {
        let dir = tempfile::tempdir().unwrap();
        let said = |id: &str| match read(dir.path(), id) {
            Err(error) => error.to_string(),
            Ok(finding_folder) => {
                finding_folder.concurrent.err().map_or(String::new(), |e| e.to_string())
            }
        };
        assert_eq!(said("1"), "the folder findings/1 is missing");
        let folder = dir.path().join("findings/1");
        fs::create_dir_all(&folder).unwrap();
        assert_eq!(said("1"), "concurrent.json is missing");
        let put = |text: &str| fs::write(folder.join(layout::CONCURRENT), text).unwrap();
        put("{\"isolde\":");
        assert!(said("1").starts_with("concurrent.json is damaged: EOF"), "{}", said("1"));
        let mut history = recorded("wait");
        history.events[3].step = Some(99);
        put(&serde_json::to_string(&history).unwrap());
        assert_eq!(said("1"), "concurrent.json is damaged: event 3 refers to step 99 of 9");
        history = recorded("wait");
        history.transactions.clear();
        put(&serde_json::to_string(&history).unwrap());
        assert!(said("1").contains("ends transaction 0"), "{}", said("1"));
    }

    #[test]
    fn missing_serial_runs_are_no_error_but_damaged_ones_are() {
        let dir = tempfile::tempdir().unwrap();
        let folder = dir.path().join("findings/1");
        fs::create_dir_all(&folder).unwrap();
        let text = serde_json::to_string(&recorded("wait")).unwrap();
        fs::write(folder.join(layout::CONCURRENT), &text).unwrap();
        fs::write(folder.join("serial-stmt.json"), "[]").unwrap();
        let found = read(dir.path(), "1").unwrap();
        assert!(found.concurrent.is_ok());
        assert_eq!(found.serial.len(), 1);
        let said = found.serial[0].1.as_ref().unwrap_err().to_string();
        assert!(said.starts_with("serial-stmt.json is damaged"), "{said}");
    }
}
