//! The output folder of a hunt: what is counted and written, and what is read from it again.
//!
//! ```text
//!   claim ─► Folder ─► hunt.json (Summary ◄─ Tally), findings.jsonl, findings/N/
//!              │
//!              └► resume, merge, report, triage, baseline: what reads it
//! ```

pub mod baseline;
mod claim;
mod files;
pub mod finding_folder;
pub mod folder;
pub mod merge;
pub mod report;
pub mod resume;
pub mod summary;
pub mod tally;
pub mod triage;
