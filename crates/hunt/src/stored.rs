//! What the folder of a finding holds, and in which words it is said that a
//! part of it is missing or damaged.

use crate::error::{Damage, HuntError};
use crate::files;
use isolde_core::History;
use isolde_core::history::What;
use std::path::Path;

/// Larger files are not read: what is shown of them would not be either.
const LARGEST_FILE: u64 = 16 << 20;

/// The runs and texts in the folder of a finding.
pub struct Stored {
    pub concurrent: Result<History, HuntError>,
    /// The serial runs that are there, by what they are.
    pub serial: Vec<(&'static str, Result<History, HuntError>)>,
    pub script: Option<String>,
    /// The case as it was generated.
    pub original: Option<String>,
    pub server_log: Option<String>,
    /// A cycle of dependencies, drawn.
    pub cycle: Option<String>,
    /// The drawn statement-dependency graph.
    pub graph: Option<String>,
}

/// Ids are names of folders. One with a path in it would lead elsewhere.
pub fn is_folder_name(id: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    !id.is_empty() && id.len() <= 100 && !id.starts_with('.') && id.chars().all(plain)
}

pub fn stored(dir: &Path, id: &str) -> Result<Stored, HuntError> {
    if !is_folder_name(id) {
        return Err(HuntError::NotAFolderName(id.into()));
    }
    let folder = dir.join("findings").join(id);
    let real = |p: &Path| p.symlink_metadata().is_ok_and(|meta| meta.is_dir());
    if !real(&dir.join("findings")) || !real(&folder) {
        return Err(HuntError::FolderMissing(id.into()));
    }
    let runs = [
        ("transactions one after the other, in the order of their commits", "serial-tx.json"),
        ("statements one by one, in autocommit", "serial-stmt.json"),
        (
            "statements by themselves, in an order that follows from what they saw",
            "topological.json",
        ),
        ("the three transactions one after the other", "merged.json"),
    ];
    let serial = runs
        .iter()
        .filter_map(|(what, name)| history(&folder, name).transpose().map(|h| (*what, h)))
        .collect();
    let concurrent = history(&folder, "concurrent.json")
        .and_then(|h| h.ok_or(HuntError::RunMissing("concurrent.json")));
    Ok(Stored {
        concurrent,
        serial,
        script: read(&folder, "script.sql").ok().flatten(),
        original: read(&folder, "original.case").ok().flatten(),
        server_log: read(&folder, "server.log").ok().flatten(),
        cycle: read(&folder, "cycle.svg").ok().flatten(),
        graph: read(&folder, "graph.svg").ok().flatten(),
    })
}

/// None where there is no such file.
fn read(folder: &Path, name: &'static str) -> Result<Option<String>, HuntError> {
    let bytes = files::read(&folder.join(name), LARGEST_FILE)
        .map_err(|error| HuntError::RunUnreadable { name, error })?;
    Ok(bytes.map(|bytes| String::from_utf8_lossy(&bytes).into_owned()))
}

fn history(folder: &Path, name: &'static str) -> Result<Option<History>, HuntError> {
    let Some(text) = read(folder, name)? else { return Ok(None) };
    let damaged = |why: Damage| HuntError::RunDamaged { name, why };
    let history: History = serde_json::from_str(&text).map_err(|e| damaged(e.into()))?;
    match dangling(&history) {
        Some(what) => Err(damaged(what)),
        None => Ok(Some(history)),
    }
}

/// A number in the history that refers to nothing in it.
fn dangling(history: &History) -> Option<Damage> {
    let (steps, transactions) = (history.steps.len(), history.transactions.len());
    for (number, event) in history.events.iter().enumerate() {
        if let Some(step) = event.step.filter(|s| *s >= steps) {
            return Some(Damage::NoSuchStep { event: number, step, steps });
        }
        if let What::Ended { transaction, .. } = event.what
            && transaction >= transactions
        {
            return Some(Damage::NoSuchTransaction { event: number, transaction });
        }
    }
    let begun = |t: &isolde_core::history::Transaction| t.begin >= steps;
    let odd = history.transactions.iter().position(begun);
    odd.map(Damage::BeginsNowhere)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samples::recorded;
    use std::fs;

    #[test]
    fn an_id_is_a_name_and_never_a_path() {
        for good in ["17", "case-000017", "a_b.c"] {
            assert!(is_folder_name(good), "{good}");
        }
        for bad in ["", ".", "..", "../x", "a/b", "a\\b", "/etc", "a b", "<b>", "é"] {
            assert!(!is_folder_name(bad), "{bad}");
        }
        assert!(stored(Path::new("/"), "../etc").is_err());
    }

    #[test]
    fn what_is_missing_or_damaged_is_said_in_words() {
        let dir = tempfile::tempdir().unwrap();
        let said = |id: &str| match stored(dir.path(), id) {
            Err(error) => error.to_string(),
            Ok(stored) => stored.concurrent.err().map_or(String::new(), |e| e.to_string()),
        };
        assert_eq!(said("1"), "the folder findings/1 is missing");
        let folder = dir.path().join("findings/1");
        fs::create_dir_all(&folder).unwrap();
        assert_eq!(said("1"), "concurrent.json is missing");
        let put = |text: &str| fs::write(folder.join("concurrent.json"), text).unwrap();
        put("{\"isolde\":");
        assert!(said("1").starts_with("concurrent.json is damaged: EOF"), "{}", said("1"));
        let mut history = recorded("wait");
        history.events[3].step = Some(99);
        put(&serde_json::to_string(&history).unwrap());
        assert_eq!(said("1"), "concurrent.json is damaged: event 3 is of step 99, and there are 9");
        history = recorded("wait");
        history.transactions.clear();
        put(&serde_json::to_string(&history).unwrap());
        assert!(said("1").contains("ends transaction 0"), "{}", said("1"));
    }

    #[test]
    fn serial_runs_that_were_not_made_are_not_missed() {
        let dir = tempfile::tempdir().unwrap();
        let folder = dir.path().join("findings/1");
        fs::create_dir_all(&folder).unwrap();
        let text = serde_json::to_string(&recorded("wait")).unwrap();
        fs::write(folder.join("concurrent.json"), &text).unwrap();
        fs::write(folder.join("serial-stmt.json"), "[]").unwrap();
        let found = stored(dir.path(), "1").unwrap();
        assert!(found.concurrent.is_ok());
        assert_eq!(found.serial.len(), 1);
        let said = found.serial[0].1.as_ref().unwrap_err().to_string();
        assert!(said.starts_with("serial-stmt.json is damaged"), "{said}");
    }
}
