//! A finding: a violation that was confirmed, with its cause, its reduced
//! case and everything that shows it.

use crate::cause::{Cause, Label};
use crate::check::{Checked, Violation};
use crate::confirm::Rate;
use isolde_core::oracle::Difference;
use isolde_core::sql::{self, Kind};
use isolde_core::{Case, History, Level};
use serde::{Deserialize, Serialize};

/// One line of `findings.jsonl`, and `finding.json` in the finding's folder.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Finding {
    /// The folder's name: the case number.
    pub id: String,
    pub case_number: u64,
    pub seed: u64,
    pub target: String,
    pub server_version: String,
    pub level: Option<Level>,
    pub oracles: Vec<String>,
    pub cause: Cause,
    pub rate: Rate,
    /// What tells it from other findings; equal for what looks like the same.
    pub signature: String,
    pub title: String,
    pub explanation: Vec<String>,
    pub differences: Vec<Difference>,
    /// Cases of the library that it resembles.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub known: Vec<String>,
    /// The case in its text form, reduced if that was possible.
    pub case: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reduced_by: Option<Reduction>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Reduction {
    pub statements_before: usize,
    pub statements_after: usize,
    pub trials: u32,
    /// The hunt ended before the search did: a smaller case may do.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub cut: bool,
}

/// Everything that goes into a finding's folder.
pub struct Evidence {
    pub finding: Finding,
    /// As it was generated.
    pub original: Case,
    /// What was reported: reduced, or the original.
    pub case: Case,
    pub concurrent: History,
    pub serial: Vec<(String, History)>,
}

/// `update | delete | insert` by session: what a case does, without its
/// tables and values.
pub fn shape(case: &Case) -> String {
    let sessions: Vec<String> = case
        .sessions()
        .iter()
        .map(|session| {
            let words: Vec<String> = case
                .steps
                .iter()
                .filter(|s| s.session == *session)
                .filter_map(|s| statement_word(&s.sql))
                .collect();
            words.join(" ")
        })
        .filter(|words| !words.is_empty())
        .collect();
    let mut sessions = sessions;
    sessions.sort();
    sessions.join(" | ")
}

/// What a statement is, if it does something to rows or to what is kept.
fn statement_word(text: &str) -> Option<String> {
    let words = sql::outer_words(text);
    let first = words.first()?.1.to_ascii_lowercase();
    match sql::kind(text) {
        Kind::Begin | Kind::Commit | Kind::Other => None,
        Kind::Rollback => Some("rollback".into()),
        Kind::RollbackTo => Some("rollback-to".into()),
        Kind::Select => {
            let locking = words.iter().any(|(_, w)| w.eq_ignore_ascii_case("for"));
            locking.then(|| "locking-read".into())
        }
        Kind::Write if first == "insert" => {
            let has = |word: &str| words.iter().any(|(_, w)| w.eq_ignore_ascii_case(word));
            let kind = if has("conflict") || has("duplicate") || has("ignore") {
                "upsert"
            } else if has("select") {
                "insert-select"
            } else {
                "insert"
            };
            Some(kind.into())
        }
        _ => Some(first),
    }
}

pub fn signature(case: &Case, violations: &[Violation], cause: &Cause) -> String {
    let mut kinds: Vec<&str> =
        violations.iter().flat_map(|v| &v.differences).map(|d| d.kind()).collect();
    kinds.sort_unstable();
    kinds.dedup();
    let level = case.level.map_or("default", Level::short);
    format!("{} / {level} / {} / {}", cause.name(), kinds.join("+"), shape(case))
}

/// One line that says what is wrong.
pub fn title(case: &Case, checked: &Checked, label: Label) -> String {
    let level = case.level.map_or("the default level", Level::name);
    let what = match checked.violations.first().and_then(|v| v.differences.first()) {
        Some(Difference::Final { .. }) => "the final rows are not those of the serial run",
        Some(Difference::Success { .. }) => {
            "a write that succeeds in the one run fails in the other"
        }
        Some(Difference::Affected { .. }) => {
            "a write changes more or fewer rows than in the serial run"
        }
        Some(Difference::Read { .. }) => "a read returns other rows than in the serial run",
        Some(Difference::Broken { .. }) => {
            checked.concurrent.death.as_ref().map_or("the engine breaks", |d| d.how.name())
        }
        None => "nothing differs",
    };
    format!("{} at {level}: {what} ({})", label.name(), shape(case))
}
