//! The names of the files and folders in the output of a hunt.

/// Marks a folder as the output of a hunt. It is not a hidden file because archivers tend to
/// leave those out.
pub const MARKER: &str = "isolde.hunt";
/// The summary of the hunt.
pub const SUMMARY: &str = "hunt.json";
/// One finding per line.
pub const FINDINGS: &str = "findings.jsonl";
/// One documented anomaly per line.
pub const DOCUMENTED: &str = "documented.jsonl";
/// The known bugs of the library that the hunt has run, for triage.
pub const KNOWN: &str = "known.json";
/// The page for people.
pub const PAGE: &str = "report.html";
/// Holds one folder per finding.
pub const FINDINGS_FOLDER: &str = "findings";
/// Holds the cases that run at the moment, one file per worker.
pub const CURRENT_FOLDER: &str = "current";

/// In the folder of a finding: the finding itself.
pub const FINDING: &str = "finding.json";
/// In the folder of a finding: the concurrent run.
pub const CONCURRENT: &str = "concurrent.json";
