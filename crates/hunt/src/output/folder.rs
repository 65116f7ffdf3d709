//! The output folder of a hunt, a stable interface: `hunt.json`, `findings.jsonl`,
//! `documented.jsonl`, one folder per finding, and the cases that run at the moment.
//!
//! Everything is written as soon as it happens. Files that must not be torn are written under
//! another name and renamed.

use super::claim::{self, Claim};
use super::files;
use super::finding_folder::is_folder_name;
use super::summary::Summary;
use crate::error::{Damage, HuntError, at};
use crate::finding::export::FindingExport;
use crate::finding::{Evidence, Finding, KnownBug, explain, script};
use crate::layout;
use isolde_model::case;
use isolde_model::transcript::transcript;
use serde::Serialize;
use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

const OWNER: &str = "owner";
/// Larger files are not read: Isolde writes none of that size.
const LARGEST_FILE: u64 = 1 << 30;
const LARGEST_KNOWN: u64 = 64 << 20;

/// The output folder of a hunt.
pub struct Folder {
    path: PathBuf,
    /// None if it is only read.
    claim: Option<Claim>,
}

type FolderResult<T> = Result<T, HuntError>;

fn unusable(file: &Path, why: impl Into<Damage>) -> HuntError {
    HuntError::Unusable { file: file.into(), why: why.into() }
}

impl Folder {
    /// Creates the folder of a new hunt. The output of an earlier hunt is moved aside; a folder with
    /// anything else in it is refused.
    pub fn create(path: &Path) -> FolderResult<Folder> {
        let path = claim::plain(path);
        let claim = claim::take(&path)?;
        for name in [layout::FINDINGS_FOLDER, layout::CURRENT_FOLDER] {
            let inner = path.join(name);
            at(&inner, fs::create_dir_all(&inner))?;
        }
        for name in [layout::FINDINGS, layout::DOCUMENTED] {
            let file = path.join(name);
            at(&file, File::create_new(&file).map(drop))?;
        }
        Ok(Folder { path, claim: Some(claim) })
    }

    /// Checks whether `create` would succeed; nothing is changed.
    pub fn check(path: &Path) -> FolderResult<()> {
        claim::check(&claim::plain(path))
    }

    /// Opens the folder of an earlier hunt to continue it.
    pub fn reopen(path: &Path) -> FolderResult<Folder> {
        let path = claim::plain(path);
        let claim = claim::take_again(&path)?;
        Ok(Folder { path, claim: Some(claim) })
    }

    /// Opens a folder for reading only.
    pub fn open(path: &Path) -> Folder {
        Folder { path: path.into(), claim: None }
    }

    /// Where an earlier hunt has been moved to.
    pub fn moved(&self) -> Option<&Path> {
        self.claim.as_ref()?.moved.as_deref()
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Writes the case that a worker is about to run.
    pub fn announce(&self, worker: usize, text: &str) -> FolderResult<()> {
        let file = self.path.join(layout::CURRENT_FOLDER).join(format!("worker-{worker}.case"));
        at(&file, fs::write(&file, text))
    }

    /// Records the mark in the names of the hunt's databases: if the hunt is killed, the databases
    /// that it leaves on a server are found by it.
    pub fn set_owner(&self, owner: &str) -> FolderResult<()> {
        let current = self.path.join(layout::CURRENT_FOLDER);
        at(&current, fs::create_dir_all(&current))?;
        let file = current.join(OWNER);
        at(&file, fs::write(&file, owner))
    }

    /// The mark of a hunt that has not ended properly.
    pub fn owner(&self) -> Option<String> {
        fs::read_to_string(self.path.join(layout::CURRENT_FOLDER).join(OWNER)).ok()
    }

    /// Removes the cases that were running.
    pub fn forget_current(&self) {
        let _ = fs::remove_dir_all(self.path.join(layout::CURRENT_FOLDER));
    }

    /// Adds an anomaly that the engine's documentation allows to its list.
    pub fn note_documented(&self, finding: &Finding) -> FolderResult<()> {
        self.append(layout::DOCUMENTED, finding)
    }

    /// Adds a finding whose folder exists already to the list of findings.
    pub fn note_finding(&self, finding: &Finding) -> FolderResult<()> {
        self.append(layout::FINDINGS, finding)
    }

    /// Writes the folder of a finding, and adds the finding to the list.
    pub fn write(&self, evidence: &Evidence) -> FolderResult<()> {
        let finding = &evidence.finding;
        let folder = self.path.join(layout::FINDINGS_FOLDER).join(&finding.id);
        // The folder may exist from an earlier run of the same case.
        if let Err(error) = fs::remove_dir_all(&folder)
            && error.kind() != io::ErrorKind::NotFound
        {
            return at(&folder, Err(error));
        }
        at(&folder, fs::create_dir_all(&folder))?;
        let put = |name: &str, text: &str| {
            let file = folder.join(name);
            at(&file, fs::write(&file, text))
        };
        put("original.case", &case::format(&evidence.original))?;
        put("case.case", &case::format(&evidence.case))?;
        put("script.sql", &script::script(evidence))?;
        put("schedule.txt", &transcript(&evidence.concurrent))?;
        put(layout::CONCURRENT, &json(&folder, &evidence.concurrent)?)?;
        for (name, history) in &evidence.serial {
            put(&format!("{name}.json"), &json(&folder, history)?)?;
            put(&format!("{name}.txt"), &transcript(history))?;
        }
        put("diff.txt", &explain::side_by_side(&finding.differences))?;
        put("explanation.txt", &(finding.explanation.join("\n") + "\n"))?;
        for (name, text) in &evidence.files {
            put(name, text)?;
        }
        let exported =
            FindingExport { finding, case: &evidence.case, concurrent: &evidence.concurrent };
        for (name, text) in exported.files() {
            put(name, &text)?;
        }
        if let Some(log) = evidence.concurrent.death.as_ref().and_then(|d| d.log.as_ref()) {
            put("server.log", log)?;
        }
        put(layout::FINDING, &json(&folder, finding)?)?;
        // The line comes last, so that a reader of the list finds the folder complete.
        self.note_finding(finding)
    }

    fn append(&self, name: &str, finding: &impl Serialize) -> FolderResult<()> {
        let file = self.path.join(name);
        let line = json_line(&file, finding)?;
        at(&file, files::append(&file, line.as_bytes()))
    }

    pub fn write_summary(&self, summary: &Summary) -> FolderResult<()> {
        let file = self.path.join(layout::SUMMARY);
        let text = json(&file, summary)? + "\n";
        at(&file, files::replace(&file, text.as_bytes()))
    }

    /// Writes the known bugs as they ran here, for triage; no file if none ran.
    pub fn write_known(&self, known: &[KnownBug]) -> FolderResult<()> {
        if known.is_empty() {
            return Ok(());
        }
        let path = self.path.join(layout::KNOWN);
        let text = json(&path, known)? + "\n";
        at(&path, files::replace(&path, text.as_bytes()))
    }

    /// Reads the known bugs as they ran here. A hunt without findings has run none; a file that
    /// cannot be read counts as none, because it only saves triage some work.
    pub fn read_known(&self) -> Vec<KnownBug> {
        let bytes = files::read(&self.path.join(layout::KNOWN), LARGEST_KNOWN).ok().flatten();
        bytes.and_then(|bytes| serde_json::from_slice(&bytes).ok()).unwrap_or_default()
    }

    /// Writes the report page.
    pub fn write_page(&self, page: &str) -> FolderResult<PathBuf> {
        let file = self.path.join(layout::PAGE);
        at(&file, files::replace(&file, page.as_bytes()))?;
        Ok(file)
    }

    pub fn read_summary(&self) -> FolderResult<Summary> {
        let file = self.path.join(layout::SUMMARY);
        let bytes = files::read(&file, LARGEST_FILE).map_err(|e| unusable(&file, e))?;
        let bytes = bytes.ok_or_else(|| unusable(&file, Damage::Missing))?;
        Summary::parse(&bytes).map_err(|e| unusable(&file, e))
    }

    /// Reads the findings: those of `findings.jsonl`, and from the folders in `findings/` those that
    /// a truncated, damaged or lost file lacks.
    pub fn read_findings(&self) -> FolderResult<Vec<Finding>> {
        self.restored().map(|(findings, _)| findings)
    }

    /// Rewrites `findings.jsonl` if it lacks findings, and returns how many were restored. The
    /// caller must have claimed the folder.
    pub fn repair(&self) -> FolderResult<usize> {
        let (findings, restored) = self.restored()?;
        if restored > 0 {
            self.replace_lines(layout::FINDINGS, &findings)?;
        }
        Ok(restored)
    }

    fn restored(&self) -> FolderResult<(Vec<Finding>, usize)> {
        let file = self.path.join(layout::FINDINGS);
        let Lines { mut whole, damaged } = read_lines(&file)?;
        let lost = self.not_in(&whole);
        if damaged.len() > lost.len()
            && let Some((line, error)) = damaged.into_iter().next()
        {
            return Err(unusable(&file, Damage::LostLine { line, error }));
        }
        let count = lost.len();
        if count > 0 {
            whole.extend(lost);
            whole.sort_by_key(|f| f.case_number);
        }
        Ok((whole, count))
    }

    /// The findings that have a folder and are not among these. A folder without a complete
    /// `finding.json`, which is written last, was left by a hunt that was killed.
    fn not_in(&self, listed: &[Finding]) -> Vec<Finding> {
        let listed: BTreeSet<&str> = listed.iter().map(|f| f.id.as_str()).collect();
        let all = self.path.join(layout::FINDINGS_FOLDER);
        if !all.symlink_metadata().is_ok_and(|meta| meta.is_dir()) {
            return Vec::new();
        }
        let entries = fs::read_dir(&all).into_iter().flatten().flatten();
        let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
        names
            .filter(|name| !listed.contains(name.as_str()) && is_folder_name(name))
            .filter_map(|name| {
                let folder = all.join(&name);
                let real = folder.symlink_metadata().is_ok_and(|meta| meta.is_dir());
                let file = real.then(|| folder.join(layout::FINDING))?;
                let bytes = files::read(&file, LARGEST_FILE).ok()??;
                let finding: Finding = serde_json::from_slice(&bytes).ok()?;
                (finding.id == name).then_some(finding)
            })
            .collect()
    }

    pub fn read_documented(&self) -> FolderResult<Vec<Finding>> {
        let file = self.path.join(layout::DOCUMENTED);
        let Lines { whole, damaged } = read_lines(&file)?;
        match damaged.into_iter().next() {
            Some((line, error)) => Err(unusable(&file, Damage::Line { line, error })),
            None => Ok(whole),
        }
    }

    fn replace_lines(&self, name: &str, findings: &[impl Serialize]) -> FolderResult<()> {
        let file = self.path.join(name);
        let lines: String =
            findings.iter().map(|f| json_line(&file, f)).collect::<FolderResult<_>>()?;
        at(&file, files::replace(&file, lines.as_bytes()))
    }

    /// Removes the lines of cases that will run again from both lists, and returns the findings
    /// among them. Their folders stay.
    pub fn keep_only(&self, keep: &dyn Fn(u64) -> bool) -> FolderResult<Vec<Finding>> {
        let split = |all: Vec<Finding>| -> (Vec<Finding>, Vec<Finding>) {
            all.into_iter().partition(|f| keep(f.case_number))
        };
        let (kept, aside) = split(self.read_findings()?);
        self.replace_lines(layout::FINDINGS, &kept)?;
        self.replace_lines(layout::DOCUMENTED, &split(self.read_documented()?).0)?;
        let current = self.path.join(layout::CURRENT_FOLDER);
        at(&current, fs::create_dir_all(&current))?;
        Ok(aside)
    }
}

struct Lines {
    whole: Vec<Finding>,
    /// The numbers of the damaged lines, with the error of each.
    damaged: Vec<(usize, serde_json::Error)>,
}

/// Reads a list of findings. A last line without its end was torn by a kill and is left out.
fn read_lines(file: &Path) -> FolderResult<Lines> {
    let bytes = files::read(file, LARGEST_FILE).map_err(|e| unusable(file, e))?;
    let mut lines = Lines { whole: Vec::new(), damaged: Vec::new() };
    let bytes = bytes.unwrap_or_default();
    let end = bytes.iter().rposition(|b| *b == b'\n').unwrap_or(0);
    for (i, line) in bytes[..end].split(|b| *b == b'\n').enumerate().filter(|(_, l)| !l.is_empty())
    {
        match serde_json::from_slice(line) {
            Ok(finding) => lines.whole.push(finding),
            Err(error) => lines.damaged.push((i + 1, error)),
        }
    }
    Ok(lines)
}

/// The text of a value that is to be written to `file`. One that cannot be written as JSON is an
/// error, never an empty text.
fn json(file: &Path, value: &(impl Serialize + ?Sized)) -> FolderResult<String> {
    at(file, serde_json::to_string_pretty(value).map_err(io::Error::from))
}

fn json_line(file: &Path, value: &impl Serialize) -> FolderResult<String> {
    at(file, serde_json::to_string(value).map_err(io::Error::from)).map(|line| line + "\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samples::made;
    use isolde_model::Verdict;
    use std::collections::BTreeMap;

    fn folder(dir: &Path) -> Folder {
        let folder = Folder::create(&dir.join("out")).unwrap();
        for number in [3, 7, 12] {
            folder.write(&made(number, "wait", Verdict::Bug, "x")).unwrap();
        }
        folder
    }

    fn numbers(folder: &Folder) -> Vec<u64> {
        folder.read_findings().unwrap().iter().map(|f| f.case_number).collect()
    }

    #[test]
    fn a_truncated_damaged_or_lost_list_is_restored_from_the_folders() {
        let dir = tempfile::tempdir().unwrap();
        let folder = folder(dir.path());
        let list = folder.path().join(layout::FINDINGS);
        let whole = fs::read(&list).unwrap();
        // Truncated anywhere, in a line or between two.
        for cut in (0..=whole.len()).step_by(97) {
            fs::write(&list, &whole[..cut]).unwrap();
            assert_eq!(numbers(&folder), [3, 7, 12], "cut at {cut}");
        }
        let mut damaged = whole.clone();
        damaged[20] = b'\xff';
        fs::write(&list, damaged).unwrap();
        assert_eq!(folder.repair().unwrap(), 1);
        assert_eq!(fs::read(&list).unwrap(), whole, "as it was");
        fs::remove_file(&list).unwrap();
        assert_eq!((folder.repair().unwrap(), folder.repair().unwrap()), (3, 0));
        assert_eq!(fs::read(&list).unwrap(), whole);
    }

    #[test]
    fn an_incomplete_folder_is_no_finding_and_a_lost_finding_is_an_error() {
        let dir = tempfile::tempdir().unwrap();
        let folder = folder(dir.path());
        let inner = |name: &str| folder.path().join(layout::FINDINGS_FOLDER).join(name);
        fs::create_dir(inner("000013")).unwrap();
        fs::write(inner("000013").join("case.case"), "").unwrap();
        fs::create_dir(inner("000014")).unwrap();
        fs::write(inner("000014").join(layout::FINDING), "{\"id\":").unwrap();
        // A copy of a folder under another name is not another finding.
        fs::create_dir(inner("copy")).unwrap();
        fs::copy(inner("000003").join(layout::FINDING), inner("copy/finding.json")).unwrap();
        assert_eq!(numbers(&folder), [3, 7, 12]);
        fs::remove_dir_all(inner("000003")).unwrap();
        assert_eq!(numbers(&folder), [3, 7, 12], "its line is still there");
        let list = folder.path().join(layout::FINDINGS);
        let text = fs::read_to_string(&list).unwrap();
        fs::write(&list, "{}\n".to_string() + &text[text.find('\n').unwrap() + 1..]).unwrap();
        let error = folder.read_findings().unwrap_err().to_string();
        assert!(error.contains("line 1") && error.contains("no folder"), "{error}");
    }

    #[test]
    fn a_value_that_cannot_be_written_as_json_is_an_error_and_leaves_the_file_as_it_was() {
        let dir = tempfile::tempdir().unwrap();
        let folder = folder(dir.path());
        let list = folder.path().join(layout::FINDINGS);
        let before = fs::read(&list).unwrap();
        // Keys of JSON objects are texts.
        let unwritable = BTreeMap::from([((1, 2), "x")]);
        let error = folder.append(layout::FINDINGS, &unwritable).unwrap_err().to_string();
        assert!(error.contains(layout::FINDINGS) && error.contains("key"), "{error}");
        assert!(folder.replace_lines(layout::FINDINGS, std::slice::from_ref(&unwritable)).is_err());
        assert!(json(&list, &unwritable).is_err());
        assert_eq!(fs::read(&list).unwrap(), before);
    }
}
