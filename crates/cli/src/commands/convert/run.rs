//! Conversion of a recorded run: that of `--history`, or that of a finding.

use crate::args::convert::OutputFormat;
use crate::exit_code::{ExitCode, Failure};
use crate::files::read_text;
use clap::ValueEnum;
use isolde_hunt::{export, finding_folder};
use isolde_interop::script::{
    ReportContext, Results, Unsupported, deviations_of_case, mtr_of_run, python_of_run,
    report_of_run, spec_of_run, write_sql_with,
};
use isolde_model::History;
use isolde_model::case;
use isolde_model::case::Case;
use isolde_model::transcript::summary;
use isolde_model::value::show_rows;
use serde_json::Value;
use std::path::Path;

/// Whether a format contains results, which a case alone does not have.
pub fn needs_run(to: OutputFormat) -> bool {
    match to {
        OutputFormat::SpecOut
        | OutputFormat::MtrResult
        | OutputFormat::Python
        | OutputFormat::Report => true,
        OutputFormat::Case | OutputFormat::Spec | OutputFormat::Mtr | OutputFormat::Sql => false,
    }
}

pub fn no_run(to: OutputFormat) -> Failure {
    let name = to.to_possible_value().map_or(String::new(), |v| v.get_name().to_string());
    let message = format!(
        "--to {name} needs a run: name the folder of a finding, or give --history FILE \
         (isolde replay CASE --on TARGET --json > FILE)"
    );
    Failure::new(ExitCode::Usage, message)
}

/// Reads a history, or the only run of the case in the output of
/// `replay --json`.
pub fn read_history(file: &Path, case: &Case) -> Result<History, Failure> {
    let bad = |why: String| Failure::new(ExitCode::BadInput, format!("{}: {why}", file.display()));
    let text = read_text(file)?;
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
        (None, _) => Err(bad(format!("it has no run of the case {}", case.id))),
        (Some(_), Some(_)) => Err(bad(format!(
            "it has several runs of the case {}: replay it on one target at one --level",
            case.id
        ))),
    }
}

pub fn of_run(case: &Case, history: &History, to: OutputFormat) -> Result<String, Unsupported> {
    let deviations = || deviations_of_case(case, history);
    match to {
        OutputFormat::Case => Ok(case::format(case)),
        OutputFormat::Spec => spec_of_run(case, history).map(|export| export.text),
        OutputFormat::SpecOut => spec_of_run(case, history).map(|export| export.result),
        OutputFormat::Mtr => mtr_of_run(case, history).map(|export| export.text),
        OutputFormat::MtrResult => mtr_of_run(case, history).map(|export| export.result),
        OutputFormat::Sql => write_sql_with(case, &results(case, history)),
        OutputFormat::Python => python_of_run(case, history, &deviations()),
        OutputFormat::Report => {
            Ok(report_of_run(case, history, &deviations(), &report_texts(case, history)))
        }
    }
}

fn results(case: &Case, history: &History) -> Results {
    Results {
        steps: (0..case.steps.len()).map(|step| summary(history, step)).collect(),
        finals: history.final_state.iter().map(|f| show_rows(&f.rows)).collect(),
    }
}

/// The texts of a report, from the header of the case.
fn report_texts(case: &Case, history: &History) -> ReportContext {
    let title = if case.title.is_empty() { &case.id } else { &case.title };
    let paragraph = |text: &str| Some(text.to_string()).filter(|t| !t.is_empty());
    ReportContext {
        title: title.clone(),
        differs: paragraph(&case.reporter).into_iter().collect(),
        why: paragraph(&case.about).into_iter().chain(case.link.clone()).collect(),
        found_by: vec![format!("A run of the case {} by Isolde {}.", case.id, history.isolde)],
        ..ReportContext::default()
    }
}

/// Converts the run of a finding, given its folder.
pub fn of_finding(folder: &Path, to: OutputFormat) -> Result<String, Failure> {
    let bad =
        |why: String| Failure::new(ExitCode::BadInput, format!("{}: {why}", folder.display()));
    let stored = finding_folder::read_run(folder)?.ok_or_else(|| {
        bad("not the folder of a finding: it has no finding.json; a hunt writes such folders to findings/".into())
    })?;
    let subject = stored.subject();
    let written = match to {
        OutputFormat::Case => Ok(case::format(&stored.case)),
        OutputFormat::Spec => subject.spec().map(|export| export.text),
        OutputFormat::SpecOut => subject.spec().map(|export| export.result),
        OutputFormat::Mtr => subject.mtr().map(|export| export.text),
        OutputFormat::MtrResult => subject.mtr().map(|export| export.result),
        OutputFormat::Python => subject.python(),
        OutputFormat::Sql => return read_text(&folder.join("script.sql")),
        OutputFormat::Report => {
            let files = subject.files();
            Ok(files
                .into_iter()
                .find(|(n, _)| *n == export::REPORT)
                .map_or_else(String::new, |(_, t)| t))
        }
    };
    written.map_err(|unsupported| bad(unsupported.message))
}
