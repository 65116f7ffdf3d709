//! What a page about a hunt shows, as plain data: what was read from the output
//! folder, with the findings in groups that look the same. How it looks is for
//! who shows it; what the folder of a finding holds is [`crate::stored`].

use crate::cause::Label;
use crate::error::HuntError;
use crate::finding::Finding;
use crate::folder::Folder;
use crate::summary::Summary;
use std::collections::BTreeMap;
use std::path::Path;

pub struct Report {
    pub summary: Summary,
    pub findings: Vec<Finding>,
    /// What the documentation explains, or what is wrong with the list of it.
    pub documented: Result<Vec<Finding>, HuntError>,
}

/// Findings of one defect.
pub struct Group<'f> {
    pub label: Label,
    /// What they have in common.
    pub reason: &'f str,
    /// The case of the library that they are.
    pub name: Option<&'f str>,
    /// A baseline has all of them.
    pub known: bool,
    pub findings: Vec<&'f Finding>,
}

impl Report {
    pub fn read(dir: &Path) -> Result<Report, HuntError> {
        let folder = Folder::open(dir);
        Ok(Report {
            summary: folder.read_summary()?,
            findings: folder.read_findings()?,
            documented: folder.read_documented(),
        })
    }

    /// Bugs first, then what is undecided; of each cause what was seen most.
    pub fn groups(&self) -> Vec<Group<'_>> {
        let known = self.summary.baseline.as_ref().map(|judged| &judged.signatures);
        grouped(&self.findings, &|finding| known.is_some_and(|k| k.contains(&finding.signature)))
    }
}

/// Findings by defect. They come in the order of their case numbers, so that
/// the order in which they were found changes nothing.
pub fn grouped<'f>(
    findings: &'f [Finding],
    in_baseline: &dyn Fn(&Finding) -> bool,
) -> Vec<Group<'f>> {
    let mut by_defect: BTreeMap<&str, Vec<&Finding>> = BTreeMap::new();
    for finding in findings {
        by_defect.entry(finding.defect()).or_default().push(finding);
    }
    let mut groups: Vec<Group<'_>> = by_defect
        .into_iter()
        .filter_map(|(reason, mut findings)| {
            let label = findings.iter().map(|f| f.cause.label).min()?;
            // Shown first is what is easiest to read: reduced, and short.
            findings
                .sort_by_key(|f| (f.reduced_by.is_none(), f.case.lines().count(), f.case_number));
            let name = findings.iter().filter_map(|f| f.known.first()).min();
            let known = findings.iter().all(|f| in_baseline(f));
            Some(Group { label, reason, name: name.map(String::as_str), known, findings })
        })
        .collect();
    groups.sort_by_key(|g| (g.label, std::cmp::Reverse(g.findings.len())));
    groups
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::baseline::Judged;
    use crate::samples::hunt;

    #[test]
    fn findings_that_look_the_same_are_one_group_and_bugs_come_first() {
        let dir = tempfile::tempdir().unwrap();
        hunt(dir.path(), 9, 4);
        let mut report = Report::read(dir.path()).unwrap();
        let shape = |report: &Report| -> Vec<(Label, usize, bool)> {
            report.groups().iter().map(|g| (g.label, g.findings.len(), g.known)).collect()
        };
        let (bug, undecided) = (Label::Bug, Label::Undecided);
        let expected = [(bug, 3, false), (bug, 2, false), (bug, 2, false), (undecided, 2, false)];
        assert_eq!(shape(&report), expected);
        let signature = report.findings[0].signature.clone();
        report.summary.baseline =
            Some(Judged { signatures: [signature].into(), ..Judged::default() });
        assert_eq!(shape(&report)[0], (bug, 3, true), "a baseline has it");
        assert!(!shape(&report)[1].2);
    }
}
