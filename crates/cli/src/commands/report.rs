//! `isolde report DIR`: rewrites the report page of a hunt from its folder.

use super::Outcome;
use super::context::Context;
use crate::args::report::ReportArgs;
use crate::baseline::BaselineFile;
use crate::exit_code::{ExitCode, Failure};
use crate::page;
use isolde_hunt::folder::Folder;
use serde_json::json;
use std::path::{Path, PathBuf};

pub fn run(context: &Context<'_>, args: &ReportArgs) -> Outcome {
    let dir = args.dir.as_path();
    check_is_hunt(dir)?;
    let baseline = BaselineFile::read(&args.baseline)?;
    // A running hunt locks its folder, and needs no repair.
    if let Ok(folder) = Folder::reopen(dir) {
        let restored = folder.repair()?;
        if restored > 0 {
            context.console.note(&format!(
                "{}: findings.jsonl was incomplete; {restored} of its lines were restored from the \
                 folders in findings/",
                dir.display()
            ));
        }
    }
    if let Some(mut baseline) = baseline {
        let folder = Folder::reopen(dir)?;
        let mut summary = folder.read_summary()?;
        let judged = baseline.judge(context.console, &folder.read_findings()?)?;
        summary.baseline = Some(judged);
        folder.write_summary(&summary)?;
    }
    let file = write(dir)?;
    if context.json {
        context.console.print(&json!({ "report": file }).to_string());
    } else {
        context.console.print(&file.display().to_string());
    }
    Ok(ExitCode::Success)
}

/// Writes the report page into the output folder of a hunt.
pub fn write(dir: &Path) -> Result<PathBuf, Failure> {
    check_is_hunt(dir)?;
    Ok(page::write(dir)?)
}

/// Checks that a folder is the output of a hunt, so that a mistyped name is
/// reported as such and not as a missing file in it.
pub fn check_is_hunt(dir: &Path) -> Result<(), Failure> {
    let shown = dir.display();
    let wrong = |message: String| Err(Failure::new(ExitCode::BadInput, message));
    if !dir.exists() {
        return wrong(format!("{shown}: no such folder"));
    }
    if !dir.is_dir() {
        return wrong(format!("{shown} is a file; name the output folder of a hunt"));
    }
    if !dir.join("hunt.json").exists() {
        return wrong(format!("{shown} is not the output folder of a hunt: it has no hunt.json"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn write_reports_what_is_wrong_with_the_folder() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("file");
        std::fs::write(&file, "").unwrap();
        let failure = |path: &Path| write(path).unwrap_err();
        assert!(failure(&dir.path().join("none")).message.contains("no such folder"));
        assert!(failure(&file).message.contains("is a file"));
        assert!(failure(dir.path()).message.contains("no hunt.json"));
        std::fs::write(dir.path().join("hunt.json"), "{").unwrap();
        let damaged = failure(dir.path());
        assert!(damaged.message.contains("hunt.json: EOF"), "{}", damaged.message);
        assert_eq!(damaged.code, ExitCode::BadInput);
    }
}
