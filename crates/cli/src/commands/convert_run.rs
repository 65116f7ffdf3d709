//! `isolde convert` of a recorded run: that of `--history`, or a finding's.

use super::read_file;
use crate::args::ConvertTo;
use crate::exit_code::{ExitCode, Failure};
use clap::ValueEnum;
use isolde_core::History;
use isolde_core::case::{self, Case};
use isolde_core::script::{
    Results, Told, Unsayable, deviations_of_case, mtr_of_run, python_of_run, report_of_run,
    spec_of_run, write_sql_with,
};
use isolde_core::transcript::summary;
use isolde_core::value::show_rows;
use isolde_hunt::export;
use serde_json::Value;
use std::path::Path;

/// Whether a format says what came back, which a case does not know.
pub fn needs_run(to: ConvertTo) -> bool {
    match to {
        ConvertTo::SpecOut | ConvertTo::MtrResult | ConvertTo::Python | ConvertTo::Report => true,
        ConvertTo::Case | ConvertTo::Spec | ConvertTo::Mtr | ConvertTo::Sql => false,
    }
}

pub fn no_run(to: ConvertTo) -> Failure {
    let name = to.to_possible_value().map_or(String::new(), |v| v.get_name().to_string());
    let message = format!(
        "--to {name} needs a run: name the folder of a finding, or give --history FILE \
         (isolde replay CASE --on TARGET --json > FILE)"
    );
    Failure::new(ExitCode::Usage, message)
}

/// A history by itself, or the one run of this case in what `replay --json`
/// wrote.
pub fn read_history(file: &Path, case: &Case) -> Result<History, Failure> {
    let bad = |why: String| Failure::new(ExitCode::BadInput, format!("{}: {why}", file.display()));
    let text = read_file(file)?;
    let value: Value = serde_json::from_str(&text).map_err(|e| bad(e.to_string()))?;
    let runs = value.get("runs").and_then(Value::as_array);
    let found: Vec<Value> = match runs {
        None => vec![value],
        Some(runs) => runs.iter().filter_map(|run| run.get("history")).cloned().collect(),
    };
    let of_case = |history: &Value| history.get("case").and_then(Value::as_str) == Some(&case.id);
    let mut own = found.into_iter().filter(of_case);
    match (own.next(), own.next()) {
        (Some(history), None) => serde_json::from_value(history).map_err(|e| bad(e.to_string())),
        (None, _) => Err(bad(format!("there is no run of the case {} in it", case.id))),
        (Some(_), Some(_)) => Err(bad(format!(
            "there are several runs of the case {} in it: replay it on one target at one --level",
            case.id
        ))),
    }
}

pub fn of_run(case: &Case, history: &History, to: ConvertTo) -> Result<String, Unsayable> {
    let deviations = || deviations_of_case(case, history);
    match to {
        ConvertTo::Case => Ok(case::format(case)),
        ConvertTo::Spec => spec_of_run(case, history).map(|export| export.text),
        ConvertTo::SpecOut => spec_of_run(case, history).map(|export| export.result),
        ConvertTo::Mtr => mtr_of_run(case, history).map(|export| export.text),
        ConvertTo::MtrResult => mtr_of_run(case, history).map(|export| export.result),
        ConvertTo::Sql => write_sql_with(case, &results(case, history)),
        ConvertTo::Python => python_of_run(case, history, &deviations()),
        ConvertTo::Report => Ok(report_of_run(case, history, &deviations(), &told(case, history))),
    }
}

fn results(case: &Case, history: &History) -> Results {
    Results {
        steps: (0..case.steps.len()).map(|step| summary(history, step)).collect(),
        finals: history.final_state.iter().map(|f| show_rows(&f.rows)).collect(),
    }
}

/// What a case says of itself.
fn told(case: &Case, history: &History) -> Told {
    let title = if case.title.is_empty() { &case.id } else { &case.title };
    let paragraph = |text: &str| Some(text.to_string()).filter(|t| !t.is_empty());
    Told {
        title: title.clone(),
        differs: paragraph(&case.reporter).into_iter().collect(),
        why: paragraph(&case.about).into_iter().chain(case.link.clone()).collect(),
        found_by: vec![format!("A run of the case {} by Isolde {}.", case.id, history.isolde)],
        ..Told::default()
    }
}

/// The same of a finding, by its folder.
pub fn of_finding(folder: &Path, to: ConvertTo) -> Result<String, Failure> {
    let bad =
        |why: String| Failure::new(ExitCode::BadInput, format!("{}: {why}", folder.display()));
    let stored = export::read(folder)?.ok_or_else(|| {
        bad("this is no folder of a finding (there is no finding.json in it); such are in findings/ of a hunt".into())
    })?;
    let subject = stored.subject();
    let written = match to {
        ConvertTo::Case => Ok(case::format(&stored.case)),
        ConvertTo::Spec => subject.spec().map(|export| export.text),
        ConvertTo::SpecOut => subject.spec().map(|export| export.result),
        ConvertTo::Mtr => subject.mtr().map(|export| export.text),
        ConvertTo::MtrResult => subject.mtr().map(|export| export.result),
        ConvertTo::Python => subject.python(),
        ConvertTo::Sql => return read_file(&folder.join("script.sql")),
        ConvertTo::Report => {
            let files = subject.files();
            Ok(files
                .into_iter()
                .find(|(n, _)| *n == export::REPORT)
                .map_or_else(String::new, |(_, t)| t))
        }
    };
    written.map_err(|unsayable| bad(unsayable.message))
}
