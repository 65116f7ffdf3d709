//! The output folder, an interface of its own: `hunt.json`, `findings.jsonl`,
//! `documented.jsonl`, a folder a finding, the cases that run right now.
//!
//! Everything is written when it happens. What must not be torn is written
//! beside its place and then renamed.

use crate::finding::{Evidence, Finding};
use crate::summary::Summary;
use isolde_core::case;
use isolde_core::transcript::transcript;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

const FINDINGS: &str = "findings.jsonl";
const DOCUMENTED: &str = "documented.jsonl";

pub struct Folder {
    path: PathBuf,
}

#[derive(Debug, thiserror::Error)]
#[error("{}: {error}", path.display())]
pub struct FolderError {
    pub path: PathBuf,
    pub error: io::Error,
}

type Done<T> = Result<T, FolderError>;

fn at<T>(path: &Path, result: io::Result<T>) -> Done<T> {
    result.map_err(|error| FolderError { path: path.into(), error })
}

impl Folder {
    /// A folder for a new hunt. One that holds another hunt is emptied of it,
    /// and of nothing else.
    pub fn create(path: &Path) -> Done<Folder> {
        at(path, fs::create_dir_all(path))?;
        let folder = Folder { path: path.into() };
        for name in ["hunt.json", FINDINGS, DOCUMENTED, "report.html"] {
            remove_file(&folder.path.join(name))?;
        }
        for name in ["findings", "current"] {
            let inner = folder.path.join(name);
            if inner.exists() {
                at(&inner, fs::remove_dir_all(&inner))?;
            }
            at(&inner, fs::create_dir_all(&inner))?;
        }
        for name in [FINDINGS, DOCUMENTED] {
            let file = folder.path.join(name);
            at(&file, File::create(&file).map(drop))?;
        }
        Ok(folder)
    }

    pub fn open(path: &Path) -> Folder {
        Folder { path: path.into() }
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
        let append = || {
            let mut out = OpenOptions::new().create(true).append(true).open(&file)?;
            out.write_all(line.as_bytes())
        };
        at(&file, append())
    }

    pub fn write_summary(&self, summary: &Summary) -> Done<()> {
        let file = self.path.join("hunt.json");
        let beside = self.path.join("hunt.json.new");
        at(&beside, fs::write(&beside, json(summary) + "\n"))?;
        at(&file, fs::rename(&beside, &file))
    }

    pub fn read_summary(&self) -> Result<Summary, String> {
        let file = self.path.join("hunt.json");
        let text = fs::read_to_string(&file).map_err(|e| format!("{}: {e}", file.display()))?;
        serde_json::from_str(&text).map_err(|e| format!("{}: {e}", file.display()))
    }

    pub fn read_findings(&self) -> Result<Vec<Finding>, String> {
        read_lines(&self.path.join(FINDINGS))
    }

    pub fn read_documented(&self) -> Result<Vec<Finding>, String> {
        read_lines(&self.path.join(DOCUMENTED))
    }

    /// Takes away what was found in cases that will be run again.
    pub fn keep_only(&self, keep: &dyn Fn(u64) -> bool) -> Result<(), String> {
        for name in [FINDINGS, DOCUMENTED] {
            let file = self.path.join(name);
            let all = read_lines(&file)?;
            let (kept, gone): (Vec<Finding>, Vec<Finding>) =
                all.into_iter().partition(|f| keep(f.case_number));
            let lines: String =
                kept.iter().map(|f| serde_json::to_string(f).unwrap_or_default() + "\n").collect();
            let beside = self.path.join(format!("{name}.new"));
            fs::write(&beside, lines)
                .and_then(|()| fs::rename(&beside, &file))
                .map_err(|e| format!("{}: {e}", file.display()))?;
            for finding in gone {
                let _ = fs::remove_dir_all(self.path.join("findings").join(finding.id));
            }
        }
        let current = self.path.join("current");
        fs::create_dir_all(&current).map_err(|e| format!("{}: {e}", current.display()))
    }
}

/// A last line without its end was torn by a kill: it is left out.
fn read_lines(file: &Path) -> Result<Vec<Finding>, String> {
    let text = match fs::read_to_string(file) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(format!("{}: {error}", file.display())),
    };
    let whole = text.rfind('\n').map_or("", |end| &text[..end]);
    whole
        .lines()
        .enumerate()
        .map(|(i, line)| {
            serde_json::from_str(line)
                .map_err(|e| format!("{}: line {}: {e}", file.display(), i + 1))
        })
        .collect()
}

fn remove_file(path: &Path) -> Done<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => at(path, Err(error)),
        _ => Ok(()),
    }
}

fn json(value: &impl serde::Serialize) -> String {
    serde_json::to_string_pretty(value).unwrap_or_default()
}
