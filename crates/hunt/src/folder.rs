//! The output folder, an interface of its own: `hunt.json`, `findings.jsonl`,
//! `documented.jsonl`, a folder a finding, the cases that run right now.
//!
//! Everything is written when it happens. What must not be torn is written
//! beside its place and then renamed.

use crate::claim::{self, Claim};
use crate::files;
use crate::finding::{Evidence, Finding};
use crate::summary::Summary;
use isolde_core::case;
use isolde_core::transcript::transcript;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

const FINDINGS: &str = "findings.jsonl";
const DOCUMENTED: &str = "documented.jsonl";
/// Larger files are not read: Isolde writes none of that size.
const LARGEST_FILE: u64 = 1 << 30;

pub struct Folder {
    path: PathBuf,
    /// None for who only reads.
    claim: Option<Claim>,
}

#[derive(Debug, thiserror::Error)]
pub enum FolderError {
    #[error("{}: {error}", path.display())]
    Io { path: PathBuf, error: io::Error },
    /// The folder is not ours to write to.
    #[error("{0}")]
    Refused(String),
    /// What is in it is damaged, or not what was asked for.
    #[error("{0}")]
    Unusable(String),
}

type Done<T> = Result<T, FolderError>;

pub(crate) fn at<T>(path: &Path, result: io::Result<T>) -> Done<T> {
    result.map_err(|error| FolderError::Io { path: path.into(), error })
}

fn unusable(file: &Path, what: &dyn std::fmt::Display) -> FolderError {
    FolderError::Unusable(format!("{}: {what}", file.display()))
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
        if let Some(log) = &evidence.concurrent.server_log {
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

    pub fn read_summary(&self) -> Done<Summary> {
        let file = self.path.join("hunt.json");
        let wrong = |e: &dyn std::fmt::Display| unusable(&file, e);
        let bytes = files::read(&file, LARGEST_FILE).map_err(|e| wrong(&e))?;
        let bytes = bytes.ok_or_else(|| wrong(&"there is no such file"))?;
        serde_json::from_slice(&bytes).map_err(|e| wrong(&e))
    }

    pub fn read_findings(&self) -> Done<Vec<Finding>> {
        read_lines(&self.path.join(FINDINGS))
    }

    pub fn read_documented(&self) -> Done<Vec<Finding>> {
        read_lines(&self.path.join(DOCUMENTED))
    }

    /// Takes away what was found in cases that will be run again.
    pub fn keep_only(&self, keep: &dyn Fn(u64) -> bool) -> Done<()> {
        for name in [FINDINGS, DOCUMENTED] {
            let file = self.path.join(name);
            let all = read_lines(&file)?;
            let (kept, gone): (Vec<Finding>, Vec<Finding>) =
                all.into_iter().partition(|f| keep(f.case_number));
            let lines: String =
                kept.iter().map(|f| serde_json::to_string(f).unwrap_or_default() + "\n").collect();
            at(&file, files::replace(&file, lines.as_bytes()))?;
            for finding in gone {
                let _ = fs::remove_dir_all(self.path.join("findings").join(finding.id));
            }
        }
        let current = self.path.join("current");
        at(&current, fs::create_dir_all(&current))
    }
}

/// A last line without its end was torn by a kill: it is left out.
fn read_lines(file: &Path) -> Done<Vec<Finding>> {
    let wrong = |e: &dyn std::fmt::Display| unusable(file, e);
    let Some(bytes) = files::read(file, LARGEST_FILE).map_err(|e| wrong(&e))? else {
        return Ok(Vec::new());
    };
    let text = String::from_utf8(bytes).map_err(|e| wrong(&e))?;
    let whole = text.rfind('\n').map_or("", |end| &text[..end]);
    whole
        .lines()
        .enumerate()
        .map(|(i, line)| {
            serde_json::from_str(line).map_err(|e| wrong(&format!("line {}: {e}", i + 1)))
        })
        .collect()
}

fn json(value: &impl serde::Serialize) -> String {
    serde_json::to_string_pretty(value).unwrap_or_default()
}
