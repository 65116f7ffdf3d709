//! `isolde convert`: converts a case, spec or script into another format.

mod run;

use super::Outcome;
use super::context::Context;
use crate::args::convert::{ConvertArgs, InputFormat, OutputFormat};
use crate::exit_code::{ExitCode, Failure};
use crate::files::read_text;
use isolde_interop::script::{
    Unsupported, case_of_spec, read_mtr, read_replbug, spec_of_case, write_mtr, write_sql,
};
use isolde_interop::spec;
use isolde_model::case;
use isolde_model::case::{Case, ParseError};
use serde_json::json;
use std::path::Path;

pub fn run(context: &Context<'_>, args: &ConvertArgs) -> Outcome {
    let &ConvertArgs { ref file, to, from, permutation, ref history } = args;
    let path = file.as_path();
    if path.is_dir() {
        if from.is_some() || permutation.is_some() || history.is_some() {
            let message = "--from, --permutation and --history apply to files; the folder of a finding has its own run";
            return Err(Failure::new(ExitCode::Usage, message));
        }
        return print(context, path, &run::of_finding(path, to)?);
    }
    let text = read_text(path)?;
    let from = from.unwrap_or_else(|| format_of(path, &text));
    if permutation.is_some() && from != InputFormat::Spec {
        let message = "--permutation applies to specs; this file is not one";
        return Err(Failure::new(ExitCode::Usage, message));
    }
    let bad = |error: ParseError| {
        Failure::new(ExitCode::BadInput, format!("{}: {error}", path.display()))
    };
    let mut case = read(&text, path, from, permutation).map_err(bad)?;
    if to == OutputFormat::Sql && case.engines.is_empty() {
        // Neither format names its engine, and each belongs to one family.
        let engine = match from {
            InputFormat::Spec => Some("postgres"),
            InputFormat::Mtr => Some("mysql"),
            InputFormat::Case | InputFormat::Replbug => None,
        };
        case.engines.extend(engine.and_then(|e| e.parse().ok()));
    }
    let written = match history {
        Some(file) => run::of_run(&case, &run::read_history(file, &case)?, to),
        None if run::needs_run(to) => return Err(run::no_run(to)),
        None => write(&case, to),
    };
    print(context, path, &written.map_err(|unsupported| bad(unsupported.in_text(&text)))?)
}

fn print(context: &Context<'_>, path: &Path, written: &str) -> Outcome {
    match context.json {
        true => context.console.print(&json!({"file": path, "text": written}).to_string()),
        false => context.console.print_exactly(written),
    }
    Ok(ExitCode::Success)
}

fn read(
    text: &str,
    path: &Path,
    from: InputFormat,
    permutation: Option<usize>,
) -> Result<Case, ParseError> {
    let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    match from {
        InputFormat::Case => case::parse(text),
        InputFormat::Mtr => read_mtr(text, &name),
        InputFormat::Replbug => read_replbug(text, &name),
        InputFormat::Spec => {
            let parsed = spec::parse(text)?;
            case_of_spec(&parsed, &name, permutation).map_err(|u| u.in_text(text))
        }
    }
}

fn write(case: &Case, to: OutputFormat) -> Result<String, Unsupported> {
    match to {
        OutputFormat::Case => Ok(case::format(case)),
        OutputFormat::Spec => spec_of_case(case),
        OutputFormat::Mtr => write_mtr(case),
        OutputFormat::Sql => write_sql(case),
        OutputFormat::SpecOut
        | OutputFormat::MtrResult
        | OutputFormat::Python
        | OutputFormat::Report => {
            unreachable!("these formats need a run")
        }
    }
}

/// Detects the format of a file by its name, then by its lines.
fn format_of(path: &Path, text: &str) -> InputFormat {
    match path.extension().and_then(|e| e.to_str()) {
        Some("case") => return InputFormat::Case,
        Some("spec") => return InputFormat::Spec,
        Some("test") => return InputFormat::Mtr,
        Some("py") => return InputFormat::Replbug,
        _ => {}
    }
    let starts = |words: &[&str]| {
        text.lines()
            .any(|l| words.iter().any(|w| l.trim_start().to_ascii_lowercase().starts_with(w)))
    };
    if text.lines().any(|l| l.starts_with("case:")) {
        InputFormat::Case
    } else if starts(&["--connect", "connect (", "connect(", "connection ", "--send", "--reap"]) {
        InputFormat::Mtr
    } else if starts(&["session "]) {
        InputFormat::Spec
    } else {
        InputFormat::Replbug
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn format_is_detected_by_name_and_then_by_content() {
        let format = |name: &str, text: &str| format_of(Path::new(name), text);
        assert!(format("a.spec", "") == InputFormat::Spec);
        assert!(format("a.test", "") == InputFormat::Mtr);
        assert!(format("-", "case: x\n") == InputFormat::Case);
        assert!(format("-", "session s1\nstep a {x}") == InputFormat::Spec);
        assert!(format("-", "create table t;\n--connection a\n") == InputFormat::Mtr);
        assert!(format("-", "conn_0> begin;") == InputFormat::Replbug);
    }
}
