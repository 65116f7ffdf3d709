//! The output folder, an interface of its own: `hunt.json`, `findings.jsonl`,
//! `documented.jsonl`, a folder a finding, the cases that run right now.
//!
//! Everything is written when it happens. What must not be torn is written
//! beside its place and then renamed.

use crate::claim::{self, Claim};
use crate::error::{Damage, HuntError};
use crate::export::Subject;
use crate::files;
use crate::finding::{Evidence, Finding};
use crate::known::KnownBug;
use crate::stored::is_folder_name;
use crate::summary::Summary;
use crate::triage;
use isolde_core::case;
use isolde_core::transcript::transcript;
use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

const FINDINGS: &str = "findings.jsonl";
const DOCUMENTED: &str = "documented.jsonl";
const OWNER: &str = "owner";
/// Larger files are not read: Isolde writes none of that size.
const LARGEST_FILE: u64 = 1 << 30;

pub struct Folder {
    path: PathBuf,
    /// None for who only reads.
    claim: Option<Claim>,
}

type Done<T> = Result<T, HuntError>;

pub(crate) fn at<T>(path: &Path, result: io::Result<T>) -> Done<T> {
    result.map_err(|error| HuntError::Io { path: path.into(), error })
}

fn unusable(file: &Path, why: impl Into<Damage>) -> HuntError {
    HuntError::Unusable { file: file.into(), why: why.into() }
}

impl Folder {
    /// A folder for a new hunt. What holds another hunt is moved aside, what
    /// holds anything else is refused.
    pub fn create(path: &Path) -> Done<Folder> {
        let path = claim::plain(path);
        let claim = claim::take(&path)?;
        for name in ["findings", "current"] {
            let inner = path.join(name);
            at(&inner, fs::create_dir_all(&inner))?;
        }
        for name in [FINDINGS, DOCUMENTED] {
            let file = path.join(name);
            at(&file, File::create_new(&file).map(drop))?;
        }
        Ok(Folder { path, claim: Some(claim) })
    }

    /// Whether `create` would be refused; nothing is changed.
    pub fn check(path: &Path) -> Done<()> {
        claim::check(&claim::plain(path))
    }

    /// The folder of an earlier hunt, to go on writing to it.
    pub fn reopen(path: &Path) -> Done<Folder> {
        let path = claim::plain(path);
        let claim = claim::take_again(&path)?;
        Ok(Folder { path, claim: Some(claim) })
    }

    /// To read only.
    pub fn open(path: &Path) -> Folder {
        Folder { path: path.into(), claim: None }
    }

    /// Where the hunt is now that was here before.
    pub fn moved(&self) -> Option<&Path> {
        self.claim.as_ref()?.moved.as_deref()
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The case that a worker is about to run.
    pub fn announce(&self, worker: usize, text: &str) -> Done<()> {
        let file = self.path.join("current").join(format!("worker-{worker}.case"));
        at(&file, fs::write(&file, text))
    }

    /// Who hunts here, by the mark in the names of its databases: what it
    /// leaves on a server when it is killed is found again by that.
    pub fn set_owner(&self, owner: &str) -> Done<()> {
        let current = self.path.join("current");
        at(&current, fs::create_dir_all(&current))?;
        let file = current.join(OWNER);
        at(&file, fs::write(&file, owner))
    }

    /// The owner of a hunt that has not come to its end.
    pub fn owner(&self) -> Option<String> {
        fs::read_to_string(self.path.join("current").join(OWNER)).ok()
    }

    pub fn forget_current(&self) {
        let _ = fs::remove_dir_all(self.path.join("current"));
    }

    /// A violation that the engine's documentation explains.
    pub fn note_documented(&self, finding: &Finding) -> Done<()> {
        self.append(DOCUMENTED, finding)
    }

    /// The line of a finding whose folder is there already.
    pub fn note_finding(&self, finding: &Finding) -> Done<()> {
        self.append(FINDINGS, finding)
    }

    pub fn write(&self, evidence: &Evidence) -> Done<()> {
        let finding = &evidence.finding;
        let folder = self.path.join("findings").join(&finding.id);
        // Of an earlier run of the same case.
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
        put("script.sql", &crate::script::script(evidence))?;
        put("schedule.txt", &transcript(&evidence.concurrent))?;
        put("concurrent.json", &json(&evidence.concurrent))?;
        for (name, history) in &evidence.serial {
            put(&format!("{name}.json"), &json(history))?;
            put(&format!("{name}.txt"), &transcript(history))?;
        }
        put("diff.txt", &crate::explain::side_by_side(&finding.differences))?;
        put("explanation.txt", &(finding.explanation.join("\n") + "\n"))?;
        for (name, text) in &evidence.files {
            put(name, text)?;
        }
        let exported = Subject { finding, case: &evidence.case, concurrent: &evidence.concurrent };
        for (name, text) in exported.files() {
            put(name, &text)?;
        }
        if let Some(log) = evidence.concurrent.death.as_ref().and_then(|d| d.log.as_ref()) {
            put("server.log", log)?;
        }
        put("finding.json", &json(finding))?;
        // The line comes last: who reads it finds the folder complete.
        self.note_finding(finding)
    }

    fn append(&self, name: &str, finding: &Finding) -> Done<()> {
        let file = self.path.join(name);
        let line = serde_json::to_string(finding).unwrap_or_default() + "\n";
        at(&file, files::append(&file, line.as_bytes()))
    }

    pub fn write_summary(&self, summary: &Summary) -> Done<()> {
        let file = self.path.join("hunt.json");
        at(&file, files::replace(&file, (json(summary) + "\n").as_bytes()))
    }

    /// The known bugs as they ran here, for triage; nothing where none ran.
    pub fn write_known(&self, known: &[KnownBug]) -> Done<()> {
        if known.is_empty() {
            return Ok(());
        }
        let text = serde_json::to_string_pretty(known).unwrap_or_default() + "\n";
        let path = self.path.join(triage::KNOWN);
        at(&path, files::replace(&path, text.as_bytes()))
    }

    /// The page for people.
    pub fn write_page(&self, page: &str) -> Done<PathBuf> {
        let file = self.path.join("report.html");
        at(&file, files::replace(&file, page.as_bytes()))?;
        Ok(file)
    }

    pub fn read_summary(&self) -> Done<Summary> {
        let file = self.path.join("hunt.json");
        let bytes = files::read(&file, LARGEST_FILE).map_err(|e| unusable(&file, e))?;
        let bytes = bytes.ok_or_else(|| unusable(&file, Damage::Missing))?;
        Summary::parse(&bytes).map_err(|e| unusable(&file, e))
    }

    /// The findings: what `findings.jsonl` says, and from the folders in
    /// `findings/` what a cut, damaged or lost file does not.
    pub fn read_findings(&self) -> Done<Vec<Finding>> {
        self.restored().map(|(findings, _)| findings)
    }

    /// Writes `findings.jsonl` again where it lacks something; says how many
    /// findings it got back. Only for who has the folder to himself.
    pub fn repair(&self) -> Done<usize> {
        let (findings, restored) = self.restored()?;
        if restored > 0 {
            self.replace_lines(FINDINGS, &findings)?;
        }
        Ok(restored)
    }

    fn restored(&self) -> Done<(Vec<Finding>, usize)> {
        let file = self.path.join(FINDINGS);
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

    /// Findings that have a folder and are not among these. A folder without
    /// a whole `finding.json`, which is written last, was cut off by a kill.
    fn not_in(&self, listed: &[Finding]) -> Vec<Finding> {
        let listed: BTreeSet<&str> = listed.iter().map(|f| f.id.as_str()).collect();
        let all = self.path.join("findings");
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
                let file = real.then(|| folder.join("finding.json"))?;
                let bytes = files::read(&file, LARGEST_FILE).ok()??;
                let finding: Finding = serde_json::from_slice(&bytes).ok()?;
                (finding.id == name).then_some(finding)
            })
            .collect()
    }

    pub fn read_documented(&self) -> Done<Vec<Finding>> {
        let file = self.path.join(DOCUMENTED);
        let Lines { whole, damaged } = read_lines(&file)?;
        match damaged.into_iter().next() {
            Some((line, error)) => Err(unusable(&file, Damage::Line { line, error })),
            None => Ok(whole),
        }
    }

    fn replace_lines(&self, name: &str, findings: &[Finding]) -> Done<()> {
        let file = self.path.join(name);
        let line = |f: &Finding| serde_json::to_string(f).unwrap_or_default() + "\n";
        let lines: String = findings.iter().map(line).collect();
        at(&file, files::replace(&file, lines.as_bytes()))
    }

    /// Takes the lines away of what was found in cases that will be run again,
    /// and gives those that are findings. Their folders stay.
    pub fn keep_only(&self, keep: &dyn Fn(u64) -> bool) -> Done<Vec<Finding>> {
        let split = |all: Vec<Finding>| -> (Vec<Finding>, Vec<Finding>) {
            all.into_iter().partition(|f| keep(f.case_number))
        };
        let (kept, aside) = split(self.read_findings()?);
        self.replace_lines(FINDINGS, &kept)?;
        self.replace_lines(DOCUMENTED, &split(self.read_documented()?).0)?;
        let current = self.path.join("current");
        at(&current, fs::create_dir_all(&current))?;
        Ok(aside)
    }
}

struct Lines {
    whole: Vec<Finding>,
    /// The numbers of the others, and what is wrong with each.
    damaged: Vec<(usize, serde_json::Error)>,
}

/// A last line without its end was torn by a kill: it is left out.
fn read_lines(file: &Path) -> Done<Lines> {
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

fn json(value: &impl serde::Serialize) -> String {
    serde_json::to_string_pretty(value).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cause::Label;
    use crate::samples::made;

    fn folder(dir: &Path) -> Folder {
        let folder = Folder::create(&dir.join("out")).unwrap();
        for number in [3, 7, 12] {
            folder.write(&made(number, "wait", Label::Bug, "x")).unwrap();
        }
        folder
    }

    fn numbers(folder: &Folder) -> Vec<u64> {
        folder.read_findings().unwrap().iter().map(|f| f.case_number).collect()
    }

    #[test]
    fn a_cut_damaged_or_lost_list_of_findings_is_rebuilt_from_their_folders() {
        let dir = tempfile::tempdir().unwrap();
        let folder = folder(dir.path());
        let list = folder.path().join(FINDINGS);
        let whole = fs::read(&list).unwrap();
        // Cut anywhere, in a line or between two.
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
    fn what_was_cut_off_by_a_kill_is_no_finding_and_what_is_lost_is_said() {
        let dir = tempfile::tempdir().unwrap();
        let folder = folder(dir.path());
        let inner = |name: &str| folder.path().join("findings").join(name);
        fs::create_dir(inner("000013")).unwrap();
        fs::write(inner("000013").join("case.case"), "").unwrap();
        fs::create_dir(inner("000014")).unwrap();
        fs::write(inner("000014").join("finding.json"), "{\"id\":").unwrap();
        // A copy under another name is not another finding.
        fs::create_dir(inner("copy")).unwrap();
        fs::copy(inner("000003").join("finding.json"), inner("copy/finding.json")).unwrap();
        assert_eq!(numbers(&folder), [3, 7, 12]);
        fs::remove_dir_all(inner("000003")).unwrap();
        assert_eq!(numbers(&folder), [3, 7, 12], "its line is still there");
        let list = folder.path().join(FINDINGS);
        let text = fs::read_to_string(&list).unwrap();
        fs::write(&list, "{}\n".to_string() + &text[text.find('\n').unwrap() + 1..]).unwrap();
        let said = folder.read_findings().unwrap_err().to_string();
        assert!(said.contains("line 1") && said.contains("no folder"), "{said}");
    }
}
