//! Exports a finding to the formats of the engine's maintainers: a spec with the output of
//! isolationtester, a mysqltest script with its result, a Python program, a bug report.

use super::evidence::Finding;
use super::explain;
use isolde_interop::script::{
    Deviation, Export, ReportContext, Spot, Unsupported, has_python, mtr_of_run, python_of_run,
    report_of_run, spec_of_run,
};
use isolde_model::breach::Breach;
use isolde_model::difference::Difference;
use isolde_model::value::show_rows;
use isolde_model::{Case, History};
use isolde_reference::StepVerdict;
use isolde_sql as sql;

/// A finding with the case and the run that are exported.
pub struct FindingExport<'a> {
    pub finding: &'a Finding,
    pub case: &'a Case,
    pub concurrent: &'a History,
}

/// A file for the finding's folder.
pub type ExportFile = (&'static str, String);

pub const SPEC: [&str; 2] = ["repro.spec", "repro.out"];
pub const MTR: [&str; 2] = ["repro.test", "repro.result"];
pub const PYTHON: &str = "repro.py";
pub const REPORT: &str = "report.md";

impl FindingExport<'_> {
    /// The files for the engine, the report last. If a format does not support the case, its file
    /// is left out, and the report gives the reason.
    pub fn files(&self) -> Vec<ExportFile> {
        let (mut files, mut left_out) = (Vec::new(), Vec::new());
        let mut pair = |names: [&'static str; 2], export: Result<Export, Unsupported>| match export
        {
            Ok(Export { text, result }) => files.extend([(names[0], text), (names[1], result)]),
            Err(why) => left_out.push((names[0].to_string(), why.message)),
        };
        match self.base_engine() {
            "postgres" => pair(SPEC, self.spec()),
            "mysql" | "mariadb" => pair(MTR, self.mtr()),
            engine if has_python(engine) => match self.python() {
                Ok(text) => files.push((PYTHON, text)),
                Err(why) => left_out.push((PYTHON.into(), why.message)),
            },
            _ => {}
        }
        let names: Vec<&str> = files.iter().map(|(name, _)| *name).collect();
        let report = self.report(&names, left_out);
        files.push((REPORT, report));
        files
    }

    pub fn spec(&self) -> Result<Export, Unsupported> {
        spec_of_run(&self.plain_case(), self.concurrent)
    }

    pub fn mtr(&self) -> Result<Export, Unsupported> {
        mtr_of_run(&self.plain_case(), self.concurrent)
    }

    pub fn python(&self) -> Result<String, Unsupported> {
        python_of_run(&self.plain_case(), self.concurrent, &self.deviations())
    }

    /// The bug report, with the names of the files next to it.
    pub fn report(&self, files: &[&str], left_out: Vec<(String, String)>) -> String {
        let finding = self.finding;
        let context = ReportContext {
            title: format!("{} {}: {}", finding.target, finding.server_version, finding.title),
            differs: finding.differences.iter().map(explain::difference).collect(),
            why: self.why(),
            rate: Some(self.rate()),
            files: how_to_run(files),
            left_out,
            found_by: self.found_by(),
        };
        report_of_run(self.case, self.concurrent, &self.deviations(), &context)
    }

    fn base_engine(&self) -> &str {
        let engine = self.concurrent.on.engine.as_str();
        engine.split('+').next().unwrap_or(engine)
    }

    /// The case without its description, but with a note about a planted fault.
    fn plain_case(&self) -> Case {
        let mut case = self.case.clone();
        case.about = match self.concurrent.on.settings.get("planted_fault") {
            Some(fault) => format!(
                "The fault {fault} was planted between Isolde and the engine; the engine itself does \
                 not behave so."
            ),
            None => String::new(),
        };
        case
    }

    /// The places where the run went wrong, with the expected results.
    fn deviations(&self) -> Vec<Deviation> {
        let mut all: Vec<Deviation> = Vec::new();
        let mut add = |spot: Option<Spot>, expected: String| {
            if let Some(spot) = spot.filter(|s| all.iter().all(|d| d.spot != *s)) {
                all.push(Deviation { spot, expected });
            }
        };
        let place = |label: &str| (0..self.case.steps.len()).find(|s| self.case.label(*s) == label);
        let step = |label: &str| place(label).map(Spot::Step);
        let finals = &self.concurrent.final_state;
        for difference in &self.finding.differences {
            match difference {
                Difference::Final { query, serial, .. } => {
                    let nth = finals.iter().position(|f| f.query == *query);
                    add(nth.map(Spot::Final), show_rows(serial));
                }
                Difference::Success { label, serial, .. } => add(step(label), serial.clone()),
                Difference::Affected { label, serial, .. } => {
                    let plural = if *serial == 1 { "" } else { "s" };
                    add(step(label), format!("{serial} row{plural}"));
                }
                Difference::Read { label, serial, .. } => add(step(label), show_rows(serial)),
                Difference::Broken { label, .. } => add(step(label), "a response".into()),
                Difference::Rule { label, why, .. } if !label.is_empty() => {
                    add(step(label), format!("not this: {why}"));
                }
                Difference::Rule { why, breach, .. } => {
                    let wrong_table = match breach.as_deref() {
                        Some(Breach::FinalRows { table, .. }) => Some(table.as_str()),
                        _ => None,
                    };
                    let names = |query: &str| {
                        let last = sql::outer_words(query).last().map(|(_, word)| *word);
                        last.is_some() && last == wrong_table
                    };
                    let named = finals.iter().any(|f| names(&f.query));
                    for (nth, _) in
                        finals.iter().enumerate().filter(|(_, f)| !named || names(&f.query))
                    {
                        add(Some(Spot::Final(nth)), format!("not this: {why}"));
                    }
                }
                Difference::Anomaly { .. } => {}
            }
        }
        all
    }

    /// The verdict with its evidence, without what the differences contain already.
    fn why(&self) -> Vec<String> {
        let finding = self.finding;
        let contained = |text: &str| {
            finding.differences.iter().any(|d| match d {
                Difference::Rule { why, .. } => text.contains(why.as_str()),
                _ => false,
            })
        };
        let mut all = vec![format!("Isolde's verdict: {}.", finding.cause.name())];
        all.extend(finding.known_as().map(|name| format!("{name}.")));
        let evidence = finding.cause.evidence.iter().filter(|e| !contained(e));
        all.extend(evidence.map(|e| format!("{e}.")));
        if let Some(rule) = &finding.cause.behaviour {
            all.push(format!("Documented: {} ({}).", rule.about, rule.link));
        }
        if let Some(account) = &finding.account {
            let violating = account.steps.iter().filter(|s| s.verdict == StepVerdict::Broken);
            for step in violating.filter(|s| !contained(&s.why)) {
                all.push(format!("{}: {}.", step.step, step.why));
                for rule in account.rules.iter().filter(|r| step.rules.contains(&r.id)) {
                    all.push(format!("Rule {}: {} ({}).", rule.id, rule.about, rule.page));
                }
            }
        }
        all.push(format!("Oracles: {}.", finding.oracles.join(", ")));
        all
    }

    fn rate(&self) -> String {
        let rate = self.finding.rate;
        match (rate.deterministic(), rate.confirmed()) {
            (true, _) => format!("In every one of {} runs.", rate.runs),
            (false, true) => format!("In {} of {} runs.", rate.seen, rate.runs),
            (false, false) if rate.runs == 1 => "It was not repeated.".into(),
            (false, false) => format!("It did not happen again in {} runs.", rate.runs - 1),
        }
    }

    fn found_by(&self) -> Vec<String> {
        let (finding, isolde) = (self.finding, &self.concurrent.isolde);
        let fault = self.concurrent.on.settings.get("planted_fault");
        let fault = fault.map_or(String::new(), |name| format!(" --fault {name}"));
        let mut all = vec![format!(
            "Isolde {isolde}, `isolde hunt {} --seed {}{fault}`, case {}.",
            finding.target, finding.seed, finding.case_number
        )];
        if let Some(r) = &finding.reduced_by {
            all.push(format!(
                "Reduced from {} statements to {}.",
                r.statements_before, r.statements_after
            ));
        }
        all
    }
}

fn how_to_run(files: &[&str]) -> Vec<(String, String)> {
    let has = |name: &str| files.contains(&name);
    let mut all: Vec<(String, String)> = Vec::new();
    let mut add = |name: &str, how: &str| all.push((name.into(), how.into()));
    if has(SPEC[0]) {
        add(
            SPEC[0],
            "`isolationtester 'dbname=…' < repro.spec | diff repro.out -` (the tool is in \
             `src/test/isolation`); no difference means that it shows.",
        );
    }
    if has(MTR[0]) {
        add(
            MTR[0],
            "`mysqltest --user=root --database=test --basedir=…/mysql-test/ \
             --result-file=repro.result < repro.test`, or as `t/repro.test` and `r/repro.result` \
             of a suite of mtr; passing means that it shows.",
        );
    }
    if has(PYTHON) {
        add(PYTHON, "`python3 repro.py`; exit code 1 means that it shows.");
    }
    add("script.sql", "by hand, with one client per session.");
    add("case.case", "`isolde replay case.case`.");
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::finding::Evidence;
    use crate::samples::made;
    use isolde_model::Verdict;

    fn names(run: &str) -> (Vec<&'static str>, String) {
        let evidence = made(3, run, Verdict::Bug, "x");
        let subject = FindingExport {
            finding: &evidence.finding,
            case: &evidence.case,
            concurrent: &evidence.concurrent,
        };
        let mut files = subject.files();
        let report = files.pop().unwrap().1;
        (files.iter().map(|(name, _)| *name).collect(), report)
    }

    #[test]
    fn exported_files_depend_on_the_engine() {
        assert_eq!(names("wait").0, MTR);
        assert_eq!(names("serialization").0, SPEC);
    }

    #[test]
    fn a_report_has_every_part_and_marks_the_deviations() {
        let (_, report) = names("wait");
        for part in [
            "| Version | 10.11",
            "## Schema and rows",
            "| waits |",
            "goes on",
            "| 3 rows |",
            "## Why",
            "In 5 of 12 runs.",
            "`repro.test`",
            "Reduced from 17 statements to 9.",
            "- Known as mariadb/mdev-26642: https://jira.mariadb.org/browse/MDEV-26642.",
        ] {
            assert!(report.contains(part), "{part}\n{report}");
        }
        assert!(!report.contains("planted"), "{report}");
    }

    #[test]
    fn an_unsupported_format_is_left_out_and_the_report_gives_the_reason() {
        let mut evidence = made(3, "wait", Verdict::Bug, "x");
        let death = r#"{"how": "died", "why": "signal 11"}"#;
        evidence.concurrent.death = Some(serde_json::from_str(death).unwrap());
        let Evidence { finding, case, concurrent, .. } = &evidence;
        let files = FindingExport { finding, case, concurrent }.files();
        assert_eq!(files.len(), 1, "only the report");
        assert!(files[0].1.contains("No `repro.test`: the server died"), "{}", files[0].1);
    }
}
