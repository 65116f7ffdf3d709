//! Findings that are known and accepted for now, by their signatures: in CI
//! only what is new fails.
//!
//! A signature has no case number, no table and no value in it, so it stays
//! the same from seed to seed and from version to version for what looks the
//! same. The file is text, one signature a line, made to be reviewed.

use crate::cause::Label;
use crate::error::HuntError;
use crate::finding::Finding;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

const HEAD: &str = "\
# Findings of cause bug that are known: `isolde hunt --baseline` fails only for others.
# One signature a line (cause / level / what differs / statements by session); lines that
# begin with # are comments. --update-baseline adds what is new, and removes nothing.
";

#[derive(Clone, Debug, Default)]
pub struct Baseline {
    signatures: BTreeSet<String>,
}

/// What a baseline made of a hunt; part of `hunt.json`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Judged {
    /// Findings of cause bug that are in the baseline, and that are not.
    pub known: u64,
    pub new: u64,
    /// Signatures of the known ones.
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

    pub fn knows(&self, signature: &str) -> bool {
        self.signatures.contains(signature.trim())
    }

    pub fn judge(&self, findings: &[Finding]) -> Judged {
        let mut judged = Judged::default();
        for finding in bugs(findings) {
            if self.knows(&finding.signature) {
                judged.known += 1;
                judged.signatures.insert(finding.signature.clone());
            } else {
                judged.new += 1;
            }
        }
        judged
    }
}

/// The text of a baseline with what is new, each under a comment that says
/// what it is; none if nothing is.
pub fn updated(text: &str, findings: &[Finding]) -> Result<Option<(String, usize)>, HuntError> {
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
    findings.iter().filter(|f| f.cause.label == Label::Bug)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samples::made;

    fn finding(number: u64, label: Label, signature: &str) -> Finding {
        made(number, "wait", label, signature).finding
    }

    #[test]
    fn what_is_new_is_added_once_and_what_was_there_stays() {
        let (a, b) = ("bug / RR / final / update | update", "bug / RC / affected / delete");
        let found = [
            finding(1, Label::Bug, a),
            finding(2, Label::Bug, a),
            finding(3, Label::Undecided, "undecided / RR / final / insert"),
        ];
        let (first, added) = updated("", &found).unwrap().unwrap();
        assert_eq!(added, 1);
        assert!(first.starts_with("# Findings of cause bug") && first.contains(a), "{first}");
        assert!(!first.contains("undecided /"), "only bugs fail, so only bugs are known: {first}");
        assert_eq!(updated(&first, &found).unwrap(), None);
        let with_note = first.replace(a, &format!("# tracker 4711\n{a}"));
        let (second, added) = updated(&with_note, &[finding(9, Label::Bug, b)]).unwrap().unwrap();
        assert_eq!(added, 1);
        assert!(second.starts_with(&with_note) && second.contains(b), "{second}");
        let baseline = Baseline::parse(&second).unwrap();
        assert!(baseline.knows(a) && baseline.knows(b) && !baseline.knows("bug / RR"));
    }

    #[test]
    fn only_bugs_are_judged_and_a_line_that_is_no_signature_is_named() {
        let a = "bug / RR / final / update | update";
        let baseline = Baseline::parse(&format!("  {a}  \r\n\n# x\n")).unwrap();
        let found = [
            finding(1, Label::Bug, a),
            finding(2, Label::Bug, "bug / RR / read / update"),
            finding(3, Label::Documented, a),
        ];
        let judged = baseline.judge(&found);
        assert_eq!((judged.known, judged.new), (1, 1));
        assert_eq!(judged.signatures.into_iter().collect::<Vec<_>>(), [a]);
        let said = Baseline::parse(&format!("{a}\n<html>\n")).unwrap_err().to_string();
        assert!(said.contains("line 2") && said.contains("<html>"), "{said}");
    }
}
