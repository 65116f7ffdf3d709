//! The file of `--baseline`: read before the work, so that a bad file is
//! reported early, and written after it with `--update-baseline`.

use crate::args::shared::BaselineArgs;
use crate::console::Console;
use crate::exit_code::{ExitCode, Failure};
use isolde_hunt::baseline::{Baseline, BaselineResult, update};
use isolde_hunt::finding::Finding;
use std::fs;
use std::io::ErrorKind;
use std::path::PathBuf;

pub struct BaselineFile {
    path: PathBuf,
    text: String,
    update: bool,
    baseline: Baseline,
}

impl BaselineFile {
    /// Reads the file; none if the options name none.
    pub fn read(args: &BaselineArgs) -> Result<Option<BaselineFile>, Failure> {
        let Some(path) = &args.baseline else { return Ok(None) };
        let shown = path.display();
        let bad = |message: String| Failure::new(ExitCode::BadInput, message);
        let text = match fs::read_to_string(path) {
            Ok(text) => text,
            Err(error) if error.kind() == ErrorKind::NotFound && args.update_baseline => {
                // Created now: a path that cannot be written fails before the work.
                fs::write(path, "").map_err(|e| Failure::cannot_write(path, &e))?;
                String::new()
            }
            Err(error) if error.kind() == ErrorKind::NotFound => {
                let hint = "--update-baseline creates it from the findings";
                return Err(bad(format!("{shown}: no such file; {hint}")));
            }
            Err(error) => return Err(bad(format!("cannot read {shown}: {error}"))),
        };
        let baseline = Baseline::parse(&text).map_err(|e| bad(format!("{shown}: {e}")))?;
        Ok(Some(BaselineFile { path: path.clone(), text, update: args.update_baseline, baseline }))
    }

    /// Splits the findings into known and new ones. With `--update-baseline`
    /// the new ones are added to the file first.
    pub fn judge(
        &mut self,
        console: &Console,
        findings: &[Finding],
    ) -> Result<BaselineResult, Failure> {
        if self.update
            && let Some((text, added)) = update(&self.text, findings)?
        {
            fs::write(&self.path, &text).map_err(|e| Failure::cannot_write(&self.path, &e))?;
            self.baseline = Baseline::parse(&text)?;
            let s = if added == 1 { "" } else { "s" };
            console.note(&format!("added {added} signature{s} to {}", self.path.display()));
        }
        Ok(self.baseline.compare(findings))
    }
}
