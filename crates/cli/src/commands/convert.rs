//! `isolde convert`: a case, spec or script in another format.

use super::{Context, Outcome, convert_run, read_file};
use crate::args::{ConvertFrom, ConvertTo};
use crate::exit_code::{ExitCode, Failure};
use isolde_core::case::{self, Case, ParseError};
use isolde_core::script::{
    Unsayable, case_of_spec, read_mtr, read_replbug, spec_of_case, write_mtr, write_sql,
};
use isolde_core::spec;
use serde_json::json;
use std::path::Path;

pub fn run(
    context: &Context<'_>,
    path: &Path,
    to: ConvertTo,
    (from, permutation): (Option<ConvertFrom>, Option<usize>),
    history: Option<&Path>,
) -> Outcome {
    if path.is_dir() {
        if from.is_some() || permutation.is_some() || history.is_some() {
            let message = "--from, --permutation and --history are for files; a finding's folder has its own run";
            return Err(Failure::new(ExitCode::Usage, message));
        }
        return print(context, path, &convert_run::of_finding(path, to)?);
    }
    let text = read_file(path)?;
    let from = from.unwrap_or_else(|| kind_of(path, &text));
    if permutation.is_some() && from != ConvertFrom::Spec {
        let message = "--permutation chooses from a spec; this file is none";
        return Err(Failure::new(ExitCode::Usage, message));
    }
    let bad = |error: ParseError| {
        Failure::new(ExitCode::BadInput, format!("{}: {error}", path.display()))
    };
    let mut case = read(&text, path, from, permutation).map_err(bad)?;
    if to == ConvertTo::Sql && case.engines.is_empty() {
        // Neither kind of script can say it, and both are of one family.
        let engine = match from {
            ConvertFrom::Spec => Some("postgres"),
            ConvertFrom::Mtr => Some("mysql"),
            ConvertFrom::Case | ConvertFrom::Replbug => None,
        };
        case.engines.extend(engine.and_then(|e| e.parse().ok()));
    }
    let written = match history {
        Some(file) => convert_run::of_run(&case, &convert_run::read_history(file, &case)?, to),
        None if convert_run::needs_run(to) => return Err(convert_run::no_run(to)),
        None => write(&case, to),
    };
    print(context, path, &written.map_err(|unsayable| bad(unsayable.in_text(&text)))?)
}

fn print(context: &Context<'_>, path: &Path, written: &str) -> Outcome {
    match context.json {
        true => context.console.print(&json!({"file": path, "text": written}).to_string()),
        false => context.console.print_exactly(written),
    }
    Ok(ExitCode::Fine)
}

fn read(
    text: &str,
    path: &Path,
    from: ConvertFrom,
    permutation: Option<usize>,
) -> Result<Case, ParseError> {
    let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    match from {
        ConvertFrom::Case => case::parse(text),
        ConvertFrom::Mtr => read_mtr(text, &name),
        ConvertFrom::Replbug => read_replbug(text, &name),
        ConvertFrom::Spec => {
            let parsed = spec::parse(text)?;
            case_of_spec(&parsed, &name, permutation).map_err(|u| u.in_text(text))
        }
    }
}

fn write(case: &Case, to: ConvertTo) -> Result<String, Unsayable> {
    match to {
        ConvertTo::Case => Ok(case::format(case)),
        ConvertTo::Spec => spec_of_case(case),
        ConvertTo::Mtr => write_mtr(case),
        ConvertTo::Sql => write_sql(case),
        ConvertTo::SpecOut | ConvertTo::MtrResult | ConvertTo::Python | ConvertTo::Report => {
            unreachable!("these are made of a run")
        }
    }
}

/// By the file's name first, then by what its lines look like.
fn kind_of(path: &Path, text: &str) -> ConvertFrom {
    match path.extension().and_then(|e| e.to_str()) {
        Some("case") => return ConvertFrom::Case,
        Some("spec") => return ConvertFrom::Spec,
        Some("test") => return ConvertFrom::Mtr,
        Some("py") => return ConvertFrom::Replbug,
        _ => {}
    }
    let starts = |words: &[&str]| {
        text.lines()
            .any(|l| words.iter().any(|w| l.trim_start().to_ascii_lowercase().starts_with(w)))
    };
    if text.lines().any(|l| l.starts_with("case:")) {
        ConvertFrom::Case
    } else if starts(&["--connect", "connect (", "connect(", "connection ", "--send", "--reap"]) {
        ConvertFrom::Mtr
    } else if starts(&["session "]) {
        ConvertFrom::Spec
    } else {
        ConvertFrom::Replbug
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_told_by_their_names_and_then_by_their_text() {
        let kind = |name: &str, text: &str| kind_of(Path::new(name), text);
        assert!(kind("a.spec", "") == ConvertFrom::Spec);
        assert!(kind("a.test", "") == ConvertFrom::Mtr);
        assert!(kind("-", "case: x\n") == ConvertFrom::Case);
        assert!(kind("-", "session s1\nstep a {x}") == ConvertFrom::Spec);
        assert!(kind("-", "create table t;\n--connection a\n") == ConvertFrom::Mtr);
        assert!(kind("-", "conn_0> begin;") == ConvertFrom::Replbug);
    }
}
