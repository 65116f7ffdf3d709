//! A hunt as JUnit XML: one test per finding, and one for the hunt itself.

use crate::junit::time;
use isolde_hunt::baseline::BaselineResult;
use isolde_hunt::cause::Verdict;
use isolde_hunt::finding::Finding;
use isolde_hunt::summary::Summary;
use quick_junit::{NonSuccessKind, Report, TestCase, TestCaseStatus, TestSuite};

/// `failure` is what ended the hunt early, if anything did.
pub fn report(summary: &Summary, findings: &[Finding], failure: Option<&str>) -> Report {
    let id = &summary.identity;
    let planted = id.fault().map_or(String::new(), |f| format!(", planted fault {f}"));
    let name = format!("hunt {} seed {}{planted}", id.target, id.seed);
    let mut suite = TestSuite::new(name.as_str());
    suite.set_time(time(summary.seconds));
    let mut add = |title: String, status: TestCaseStatus, text: Option<String>| {
        let mut case = TestCase::new(title, status);
        case.set_classname(name.as_str());
        if let Some(text) = text {
            case.set_system_out(text);
        }
        suite.add_test_case(case);
    };
    let whole = match failure {
        None => TestCaseStatus::success(),
        Some(failure) => {
            let mut status = TestCaseStatus::non_success(NonSuccessKind::Error);
            status.set_message(failure);
            status
        }
    };
    add(format!("{} cases", summary.cases), whole, None);
    for finding in findings {
        let title = format!("case {} {}", finding.id, finding.title);
        let name = finding.known_as();
        let lines = finding.explanation.iter().cloned().chain(name.clone());
        let text = lines.collect::<Vec<_>>().join("\n");
        let known = |judged: &BaselineResult| judged.signatures.contains(&finding.signature);
        match finding.cause.label {
            Verdict::Bug if summary.baseline.as_ref().is_some_and(known) => {
                let mut status = TestCaseStatus::skipped();
                status.set_message("known: in the baseline").set_description(text);
                add(title, status, None);
            }
            Verdict::Bug => {
                let mut status = TestCaseStatus::non_success(NonSuccessKind::Failure);
                let message = match name {
                    Some(name) => format!("{}. {name}", finding.title),
                    None => finding.title.clone(),
                };
                status.set_message(message).set_description(text);
                add(title, status, None);
            }
            _ => add(title, TestCaseStatus::success(), Some(text)),
        }
    }
    let mut report = Report::new(name);
    report.set_time(time(summary.seconds));
    report.add_test_suite(suite);
    report
}

#[cfg(test)]
mod tests {
    use super::*;
    use isolde_testing::samples::{made, summary};

    #[test]
    fn known_bug_comes_with_its_link() {
        let finding = made(1, "wait", Verdict::Bug, "x").finding;
        let own = Finding { known: Vec::new(), known_link: None, ..finding.clone() };
        let whole = summary(7, isolde_hunt::summary::Shard::WHOLE, 1);
        let xml = |finding: Finding| report(&whole, &[finding], None).to_string().unwrap();
        let link = "Known as mariadb/mdev-26642: https://jira.mariadb.org/browse/MDEV-26642";
        // In the message of the failure, and in its text.
        assert_eq!(xml(finding).matches(link).count(), 2);
        assert!(!xml(own).contains("Known as"));
    }
}
