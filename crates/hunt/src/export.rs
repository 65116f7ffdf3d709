//! A finding in the languages of those who maintain the engine: a spec with
//! what isolationtester prints of it, a mysqltest script with its result, a
//! Python program, a bug report.

use crate::error::{Damage, HuntError};
use crate::finding::Finding;
use crate::{explain, files};
use isolde_core::oracle::Difference;
use isolde_core::script::{
    Deviation, Export, Spot, Told, Unsayable, has_python, mtr_of_run, python_of_run, report_of_run,
    spec_of_run,
};
use isolde_core::semantics::StepVerdict;
use isolde_core::value::show_rows;
use isolde_core::{Case, History, case, sql};
use std::io;
use std::path::Path;

/// A finding with what is needed to write it down for others.
pub struct Subject<'a> {
    pub finding: &'a Finding,
    pub case: &'a Case,
    pub concurrent: &'a History,
}

/// What is read from the folder of a finding.
pub struct Stored {
    pub finding: Finding,
    pub case: Case,
    pub concurrent: History,
}

/// The finding of a folder; none where it is no finding's.
pub fn read(folder: &Path) -> Result<Option<Stored>, HuntError> {
    let text = |name: &str| {
        let file = folder.join(name);
        let unusable = |why: Damage| HuntError::Unusable { file: file.clone(), why };
        let bytes = files::read(&file, LARGEST_FILE).map_err(|e| unusable(e.into()))?;
        Ok::<_, HuntError>(bytes.map(|b| String::from_utf8_lossy(&b).into_owned()))
    };
    let damaged = |name: &str, why: Damage| HuntError::Unusable { file: folder.join(name), why };
    let json = |name: &str| text(name)?.ok_or_else(|| damaged(name, Damage::Missing));
    let Some(finding) = text(FINDING)? else { return Ok(None) };
    let finding: Finding =
        serde_json::from_str(&finding).map_err(|e| damaged(FINDING, e.into()))?;
    let concurrent: History =
        serde_json::from_str(&json(RUN)?).map_err(|e| damaged(RUN, e.into()))?;
    let case = case::parse(&finding.case).map_err(|e| {
        let error = io::Error::new(io::ErrorKind::InvalidData, e.to_string());
        damaged(FINDING, error.into())
    })?;
    Ok(Some(Stored { finding, case, concurrent }))
}

impl Stored {
    pub fn subject(&self) -> Subject<'_> {
        let Stored { finding, case, concurrent } = self;
        Subject { finding, case, concurrent }
    }
}

const FINDING: &str = "finding.json";
const RUN: &str = "concurrent.json";
/// Larger files are not read: Isolde writes none of that size.
const LARGEST_FILE: u64 = 1 << 30;

/// A file for the finding's folder.
pub type Written = (&'static str, String);

pub const SPEC: [&str; 2] = ["repro.spec", "repro.out"];
pub const MTR: [&str; 2] = ["repro.test", "repro.result"];
pub const PYTHON: &str = "repro.py";
pub const REPORT: &str = "report.md";

impl Subject<'_> {
    /// The files that fit the engine, the report last. What a format cannot say
    /// is left out, and the report says why.
    pub fn files(&self) -> Vec<Written> {
        let (mut files, mut left_out) = (Vec::new(), Vec::new());
        let mut pair = |names: [&'static str; 2], export: Result<Export, Unsayable>| match export {
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

    pub fn spec(&self) -> Result<Export, Unsayable> {
        spec_of_run(&self.plain_case(), self.concurrent)
    }

    pub fn mtr(&self) -> Result<Export, Unsayable> {
        mtr_of_run(&self.plain_case(), self.concurrent)
    }

    pub fn python(&self) -> Result<String, Unsayable> {
        python_of_run(&self.plain_case(), self.concurrent, &self.deviations())
    }

    /// The report, with the files that stand beside it.
    pub fn report(&self, files: &[&str], left_out: Vec<(String, String)>) -> String {
        let finding = self.finding;
        let told = Told {
            title: format!("{} {}: {}", finding.target, finding.server_version, finding.title),
            differs: finding.differences.iter().map(explain::difference).collect(),
            why: self.why(),
            rate: Some(self.rate()),
            files: how_to_run(files),
            left_out,
            found_by: self.found_by(),
        };
        report_of_run(self.case, self.concurrent, &self.deviations(), &told)
    }

    fn base_engine(&self) -> &str {
        let engine = self.concurrent.on.engine.as_str();
        engine.split('+').next().unwrap_or(engine)
    }

    /// The case, with what matters to who runs it elsewhere.
    fn plain_case(&self) -> Case {
        let mut case = self.case.clone();
        case.about = match self.concurrent.on.settings.get("planted_fault") {
            Some(fault) => format!(
                "The fault {fault} was planted between Isolde and the engine, which itself does \
                 not show this."
            ),
            None => String::new(),
        };
        case
    }

    /// Where the run went wrong, as far as the differences say it.
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
                Difference::Broken { label, .. } => add(step(label), "an answer".into()),
                Difference::Rule { label, why, .. } if !label.is_empty() => {
                    add(step(label), format!("not this: {why}"));
                }
                Difference::Rule { why, .. } => {
                    // It names the table whose rows are wrong.
                    let names = |query: &str| {
                        sql::outer_words(query)
                            .last()
                            .is_some_and(|(_, table)| why.contains(&format!(" of {table}:")))
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

    /// The verdict with its evidence. What the differences say already is not
    /// said again.
    fn why(&self) -> Vec<String> {
        let finding = self.finding;
        let said = |text: &str| {
            finding.differences.iter().any(|d| match d {
                Difference::Rule { why, .. } => text.contains(why.as_str()),
                _ => false,
            })
        };
        let mut all = vec![format!("Isolde's verdict: {}.", finding.cause.name())];
        let evidence = finding.cause.evidence.iter().filter(|e| !said(e));
        all.extend(evidence.map(|e| format!("{e}.")));
        if let Some(rule) = &finding.cause.behaviour {
            all.push(format!("Documented: {} ({}).", rule.about, rule.link));
        }
        if let Some(account) = &finding.account {
            let odd = account.steps.iter().filter(|s| s.verdict == StepVerdict::Outside);
            for step in odd.filter(|s| !said(&s.why)) {
                all.push(format!("{}: {}.", step.step, step.why));
                for rule in account.rules.iter().filter(|r| step.rules.contains(&r.id)) {
                    all.push(format!("Rule {}: {} ({}).", rule.id, rule.about, rule.page));
                }
            }
        }
        all.push(format!("Found by comparing with: {}.", finding.oracles.join(", ")));
        all
    }

    fn rate(&self) -> String {
        let rate = self.finding.rate;
        match (rate.deterministic(), rate.confirmed()) {
            (true, _) => format!("Every time, in {} runs.", rate.runs),
            (false, true) => format!("In {} of {} runs.", rate.seen, rate.runs),
            (false, false) if rate.runs == 1 => "It was not tried again.".into(),
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
    add("script.sql", "by hand, a client for each session.");
    add("case.case", "`isolde replay case.case`.");
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cause::Label;
    use crate::finding::Evidence;
    use crate::samples::made;

    fn names(run: &str) -> (Vec<&'static str>, String) {
        let evidence = made(3, run, Label::Bug, "x");
        let subject = Subject {
            finding: &evidence.finding,
            case: &evidence.case,
            concurrent: &evidence.concurrent,
        };
        let mut files = subject.files();
        let report = files.pop().unwrap().1;
        (files.iter().map(|(name, _)| *name).collect(), report)
    }

    #[test]
    fn the_files_are_those_of_the_engine() {
        assert_eq!(names("wait").0, MTR);
        assert_eq!(names("serialization").0, SPEC);
    }

    #[test]
    fn a_report_has_every_part_and_marks_what_is_wrong() {
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
        ] {
            assert!(report.contains(part), "{part}\n{report}");
        }
        assert!(!report.contains("planted"), "{report}");
    }

    #[test]
    fn what_a_format_cannot_say_is_left_out_and_the_report_says_why() {
        let mut evidence = made(3, "wait", Label::Bug, "x");
        let death = r#"{"how": "died", "why": "signal 11"}"#;
        evidence.concurrent.death = Some(serde_json::from_str(death).unwrap());
        let Evidence { finding, case, concurrent, .. } = &evidence;
        let files = Subject { finding, case, concurrent }.files();
        assert_eq!(files.len(), 1, "only the report");
        assert!(files[0].1.contains("No `repro.test`: the server died"), "{}", files[0].1);
    }
}
