//! The data of a report about a hunt: the contents of the output folder, with the findings grouped
//! by defect. The folder of a single finding is read by [`super::finding_folder`].

use super::folder::Folder;
use super::summary::Summary;
use crate::error::HuntError;
use crate::finding::Finding;
use isolde_model::Verdict;
use std::collections::BTreeMap;
use std::path::Path;

/// The contents of an output folder.
pub struct Report {
    pub summary: Summary,
    pub findings: Vec<Finding>,
    /// The documented anomalies, or why their list cannot be read.
    pub documented: Result<Vec<Finding>, HuntError>,
}

/// Findings of one defect.
pub struct Group<'f> {
    pub label: Verdict,
    /// The defect that they have in common.
    pub reason: String,
    /// The known bug that they are.
    pub name: Option<&'f str>,
    /// The baseline contains all of them.
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

    /// The groups: bugs first, then undecided ones; of each cause the largest first.
    pub fn groups(&self) -> Vec<Group<'_>> {
        let known = self.summary.baseline.as_ref().map(|result| &result.signatures);
        group_by_defect(&self.findings, &|finding| {
            known.is_some_and(|k| k.contains(&finding.signature))
        })
    }
}

/// What the findings of a defect have in common, as a sentence.
fn describe(finding: &Finding, defect: &str) -> String {
    match &finding.features {
        Some(features) if features.key() == defect => features.deviation.describe(),
        _ => defect.into(),
    }
}

/// Groups findings by defect. The result does not depend on the order of the findings.
pub fn group_by_defect<'f>(
    findings: &'f [Finding],
    in_baseline: &dyn Fn(&Finding) -> bool,
) -> Vec<Group<'f>> {
    let mut by_defect: BTreeMap<&str, Vec<&Finding>> = BTreeMap::new();
    for finding in findings {
        by_defect.entry(finding.defect()).or_default().push(finding);
    }
    let mut groups: Vec<Group<'_>> = by_defect
        .into_iter()
        .filter_map(|(defect, mut findings)| {
            let label = findings.iter().map(|f| f.cause.label).min()?;
            // The first one is the easiest to read: reduced and short.
            findings
                .sort_by_key(|f| (f.reduced_by.is_none(), f.case.lines().count(), f.case_number));
            let name = findings.iter().filter_map(|f| f.known.first()).min();
            let known = findings.iter().all(|f| in_baseline(f));
            let reason = describe(findings.first()?, defect);
            Some(Group { label, reason, name: name.map(String::as_str), known, findings })
        })
        .collect();
    groups.sort_by_key(|g| (g.label, std::cmp::Reverse(g.findings.len())));
    groups
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::baseline::BaselineResult;
    use crate::samples::hunt;

    #[test]
    fn findings_of_one_defect_are_one_group_and_bugs_come_first() {
        let dir = tempfile::tempdir().unwrap();
        hunt(dir.path(), 9, 4);
        let mut report = Report::read(dir.path()).unwrap();
        let shape = |report: &Report| -> Vec<(Verdict, usize, bool)> {
            report.groups().iter().map(|g| (g.label, g.findings.len(), g.known)).collect()
        };
        let (bug, undecided) = (Verdict::Bug, Verdict::Undecided);
        let expected = [(bug, 3, false), (bug, 2, false), (bug, 2, false), (undecided, 2, false)];
        assert_eq!(shape(&report), expected);
        let signature = report.findings[0].signature.clone();
        report.summary.baseline =
            Some(BaselineResult { signatures: [signature].into(), ..BaselineResult::default() });
        assert_eq!(shape(&report)[0], (bug, 3, true), "the baseline contains it");
        assert!(!shape(&report)[1].2);
    }
}
