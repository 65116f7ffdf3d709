//! `isolde merge DIR… --out DIR`: merges the output folders of shards, with the
//! exit code of the same hunt without shards.

use super::Outcome;
use super::context::Context;
use super::report;
use crate::args::merge::MergeArgs;
use crate::baseline::BaselineFile;
use crate::console::Style;
use crate::exit_code::ExitCode;
use isolde_hunt::folder::Folder;
use isolde_hunt::merge;
use isolde_hunt::summary::Summary;
use serde_json::json;
use std::path::{Path, PathBuf};

pub fn run(context: &Context<'_>, args: &MergeArgs) -> Outcome {
    let MergeArgs { dirs: parts, out, baseline } = args;
    let baseline = BaselineFile::read(baseline)?;
    for part in parts {
        report::check_is_hunt(part)?;
    }
    let paths: Vec<&Path> = parts.iter().map(PathBuf::as_path).collect();
    let mut summary = merge::merge(&paths, out)?;
    if let Some(mut baseline) = baseline {
        let folder = Folder::reopen(out)?;
        let judged = baseline.judge(context.console, &folder.read_findings()?)?;
        summary.baseline = Some(judged);
        folder.write_summary(&summary)?;
    }
    let page = report::write(out)?;
    print(context, &summary, parts.len(), &page);
    Ok(if summary.new_bugs() > 0 { ExitCode::Violation } else { ExitCode::Success })
}

fn print(context: &Context<'_>, summary: &Summary, parts: usize, page: &Path) {
    let v = summary.violations;
    if context.json {
        let text = json!({
            "report": page,
            "parts": parts,
            "shards": summary.shards,
            "cases": summary.cases,
            "statements": summary.statements,
            "violations": v,
            "distinct": summary.distinct,
            "baseline": summary.baseline,
        });
        context.console.print(&text.to_string());
        return;
    }
    let style = if summary.new_bugs() > 0 { Style::Bad } else { Style::Good };
    let known = match &summary.baseline {
        Some(judged) => format!(" ({} known, {} new)", judged.known, judged.new),
        None => String::new(),
    };
    let found = format!(
        "{} bug{known}, {} locking, {} undecided, {} documented",
        v.bug, v.locking, v.undecided, v.documented
    );
    context.console.comment(&format!(
        "{parts} folders, {} cases, {} statements: {}",
        summary.cases,
        summary.statements,
        context.console.paint(style, &found)
    ));
    if let Some(missing) = missing(summary) {
        context.console.note(&missing);
    }
    context.console.print(&page.display().to_string());
}

/// A note on the shards that are missing; none if all are there.
fn missing(summary: &Summary) -> Option<String> {
    let of = summary.shards.first()?.of;
    let here = |part: &u64| summary.shards.iter().any(|s| s.part == *part);
    // Bounded: a damaged folder may claim any number of shards.
    let gone: Vec<String> =
        (1..=of).filter(|p| !here(p)).take(8).map(|p| format!("{p}/{of}")).collect();
    let count = of - (summary.shards.len() as u64).min(of);
    let more = if count > gone.len() as u64 { " and more" } else { "" };
    (count > 0).then(|| format!("missing shards: {}{more}", gone.join(", ")))
}
