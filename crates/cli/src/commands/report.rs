//! `isolde report DIR`: the page of a hunt, written again from its folder.

use super::{Context, Outcome};
use crate::baseline::BaselineArgs;
use crate::exit_code::{ExitCode, Failure};
use crate::page;
use isolde_hunt::folder::Folder;
use serde_json::json;
use std::path::{Path, PathBuf};

pub fn run(context: &Context<'_>, dir: &Path, baseline: &BaselineArgs) -> Outcome {
    is_hunt(dir)?;
    let baseline = baseline.read()?;
    // A hunt that still runs has the folder to itself; it needs no repair.
    if let Ok(folder) = Folder::reopen(dir) {
        let restored = folder.repair()?;
        if restored > 0 {
            context.console.note(&format!(
                "{}: findings.jsonl was not whole; {restored} of its lines were written again from \
                 the folders in findings/",
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
    Ok(ExitCode::Fine)
}

/// Whoever mistypes a folder hears of the folder, not of a file in it.
pub fn write(dir: &Path) -> Result<PathBuf, Failure> {
    is_hunt(dir)?;
    Ok(page::write(dir)?)
}

pub fn is_hunt(dir: &Path) -> Result<(), Failure> {
    let shown = dir.display();
    let wrong = |message: String| Err(Failure::new(ExitCode::BadInput, message));
    if !dir.exists() {
        return wrong(format!("{shown}: there is no such folder"));
    }
    if !dir.is_dir() {
        return wrong(format!("{shown}: this is a file; name the output folder of a hunt"));
    }
    if !dir.join("hunt.json").exists() {
        return wrong(format!(
            "{shown}: there is no hunt.json in it, so it is not the output folder of a hunt"
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_way_to_name_a_wrong_folder_has_its_own_words() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("file");
        std::fs::write(&file, "").unwrap();
        let said = |path: &Path| write(path).unwrap_err();
        assert!(said(&dir.path().join("none")).message.contains("no such folder"));
        assert!(said(&file).message.contains("this is a file"));
        assert!(said(dir.path()).message.contains("no hunt.json"));
        std::fs::write(dir.path().join("hunt.json"), "{").unwrap();
        let damaged = said(dir.path());
        assert!(damaged.message.contains("hunt.json: EOF"), "{}", damaged.message);
        assert_eq!(damaged.code, ExitCode::BadInput);
    }
}
