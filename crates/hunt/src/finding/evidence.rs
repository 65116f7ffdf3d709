//! A finding: a confirmed violation with its cause, its reduced case and everything that shows it.

use crate::run::Rate;
use isolde_model::difference::Difference;
use isolde_model::{Case, History, Level};
use isolde_reference::Account;
use isolde_reference::cause::Cause;
use isolde_triage::Features;
use serde::{Deserialize, Serialize};

/// One line of `findings.jsonl`, and `finding.json` in the finding's folder.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Finding {
    /// The name of its folder: the case number.
    pub id: String,
    pub case_number: u64,
    pub seed: u64,
    pub target: String,
    pub server_version: String,
    pub level: Option<Level>,
    pub oracles: Vec<String>,
    pub cause: Cause,
    pub rate: Rate,
    /// Identifies similar findings: the cause, the level, the differences and the statements.
    pub signature: String,
    pub title: String,
    pub explanation: Vec<String>,
    pub differences: Vec<Difference>,
    /// What went wrong, in words: equal for findings of one defect.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub defect: String,
    /// The features that triage compares.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub features: Option<Features>,
    /// The known bug that it is an instance of.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub known: Vec<String>,
    /// The report of that bug, as a web address.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub known_link: Option<String>,
    /// The text of the case, reduced if possible.
    pub case: String,
    /// For each of its steps the number of the operation in the generated case. Operations keep
    /// their numbers when a reduction removes others.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub operations: Vec<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reduced_by: Option<Reduction>,
    /// The account of the concurrent run, where the engine has rules.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub account: Option<Account>,
}

impl Finding {
    /// The key that findings are grouped by: the defect, or the signature where an older version
    /// has not recorded the defect.
    pub fn defect(&self) -> &str {
        if self.defect.is_empty() { &self.signature } else { &self.defect }
    }

    /// The known bug that it is an instance of, with the link to its report.
    pub fn known_as(&self) -> Option<String> {
        let name = self.known.first()?;
        Some(match &self.known_link {
            Some(link) => format!("Known as {name}: {link}"),
            None => format!("Known as {name}"),
        })
    }
}

/// How a case was reduced.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Reduction {
    pub statements_before: usize,
    pub statements_after: usize,
    pub trials: u32,
    /// The search ended for lack of time or of trials: a smaller case may exist.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub cut: bool,
}

/// Everything that goes into a finding's folder.
pub struct Evidence {
    pub finding: Finding,
    /// The case as it was generated.
    pub original: Case,
    /// The reported case: reduced, or the original.
    pub case: Case,
    pub concurrent: History,
    pub serial: Vec<(String, History)>,
    /// Further files for its folder, by name.
    pub files: Vec<(&'static str, String)>,
}
