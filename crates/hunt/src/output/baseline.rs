//! Baselines: the signatures of findings that are known and accepted for now, so that CI fails only
//! for new ones.
//!
//! A signature contains no case number, table or value, so the same defect mostly has the same
//! signature for every seed and version. The file is text with one signature per line, which can
//! be reviewed.

use crate::error::HuntError;
use crate::finding::Finding;
use isolde_model::Verdict;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

const HEAD: &str = "\
# Known findings with the cause bug: `isolde hunt --baseline` fails only for others.
# One signature per line (cause / level / what differs / statements by session); lines that
# begin with # are comments. --update-baseline adds new findings and removes nothing.
";

/// A list of known findings.
#[derive(Clone, Debug, Default)]
pub struct Baseline {
    signatures: BTreeSet<String>,
}

/// The comparison of a hunt with a baseline; part of `hunt.json`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct BaselineResult {
    /// The number of findings with cause bug that the baseline contains, and of the others.
    pub known: u64,
    pub new: u64,
    /// The signatures of the known ones.
    pub signatures: BTreeSet<String>,
}

impl Baseline {
    pub fn parse(text: &str) -> Result<Baseline, HuntError> {
        let mut signatures = BTreeSet::new();
        for (i, line) in text.lines().enumerate() {
            let line = line.trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            if line.split(" / ").count() < 4 {
                return Err(HuntError::NotASignature { line: i + 1, text: line.into() });
            }
            signatures.insert(line.to_string());
        }
        Ok(Baseline { signatures })
    }

    pub fn contains(&self, signature: &str) -> bool {
        self.signatures.contains(signature.trim())
    }

    /// Counts the known and the new findings of a hunt.
    pub fn compare(&self, findings: &[Finding]) -> BaselineResult {
        let mut result = BaselineResult::default();
        for finding in bugs(findings) {
            if self.contains(&finding.signature) {
                result.known += 1;
                result.signatures.insert(finding.signature.clone());
            } else {
                result.new += 1;
            }
        }
        result
    }
}

/// The text of a baseline with the new findings added, each under a comment with its title, and
/// their number; none if nothing is new.
pub fn update(text: &str, findings: &[Finding]) -> Result<Option<(String, usize)>, HuntError> {
    let mut known = Baseline::parse(text)?;
    let mut out = if text.trim().is_empty() { HEAD.to_string() } else { text.to_string() };
    if !out.ends_with('\n') {
        out.push('\n');
    }
    let mut added = 0;
    for finding in bugs(findings) {
        if known.signatures.insert(finding.signature.trim().to_string()) {
            added += 1;
            let (target, version) = (&finding.target, &finding.server_version);
            let title: String = finding.title.split_whitespace().collect::<Vec<_>>().join(" ");
            out.push_str(&format!("\n# {target} {version}: {title}\n{}\n", finding.signature));
        }
    }
    Ok((added > 0).then_some((out, added)))
}

fn bugs(findings: &[Finding]) -> impl Iterator<Item = &Finding> {
    findings.iter().filter(|f| f.cause.label == Verdict::Bug)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samples::made;

    fn finding(number: u64, label: Verdict, signature: &str) -> Finding {
        made(number, "wait", label, signature).finding
    }

    #[test]
    fn update_adds_new_findings_once_and_keeps_the_rest() {
        let (a, b) = ("bug / RR / final / update | update", "bug / RC / affected / delete");
        let found = [
            finding(1, Verdict::Bug, a),
            finding(2, Verdict::Bug, a),
            finding(3, Verdict::Undecided, "undecided / RR / final / insert"),
        ];
        let (first, added) = update("", &found).unwrap().unwrap();
        assert_eq!(added, 1);
        assert!(first.starts_with("# Known findings") && first.contains(a), "{first}");
        assert!(!first.contains("undecided /"), "only bugs fail, so only bugs are known: {first}");
        assert_eq!(update(&first, &found).unwrap(), None);
        let with_note = first.replace(a, &format!("# tracker 4711\n{a}"));
        let (second, added) = update(&with_note, &[finding(9, Verdict::Bug, b)]).unwrap().unwrap();
        assert_eq!(added, 1);
        assert!(second.starts_with(&with_note) && second.contains(b), "{second}");
        let baseline = Baseline::parse(&second).unwrap();
        assert!(baseline.contains(a) && baseline.contains(b) && !baseline.contains("bug / RR"));
    }

    #[test]
    fn only_bugs_are_compared_and_an_invalid_line_is_reported() {
        let a = "bug / RR / final / update | update";
        let baseline = Baseline::parse(&format!("  {a}  \r\n\n# x\n")).unwrap();
        let found = [
            finding(1, Verdict::Bug, a),
            finding(2, Verdict::Bug, "bug / RR / read / update"),
            finding(3, Verdict::Documented, a),
        ];
        let result = baseline.compare(&found);
        assert_eq!((result.known, result.new), (1, 1));
        assert_eq!(result.signatures.into_iter().collect::<Vec<_>>(), [a]);
        let error = Baseline::parse(&format!("{a}\n<html>\n")).unwrap_err().to_string();
        assert!(error.contains("line 2") && error.contains("<html>"), "{error}");
    }
}
