//! `--baseline FILE`: read before the work, so that it is known to be sound,
//! and where that is wanted written after it.

use crate::console::Console;
use crate::exit_code::{ExitCode, Failure};
use isolde_hunt::baseline::{Baseline, Judged, updated};
use isolde_hunt::finding::Finding;
use std::fs;
use std::io::ErrorKind;
use std::path::PathBuf;

#[derive(clap::Args, Clone, Default)]
pub struct BaselineArgs {
    /// Known findings, one signature a line: only others make the exit code 1. See docs/ci.md.
    #[arg(long, value_name = "FILE")]
    baseline: Option<PathBuf>,
    /// Adds to the baseline what is new, and makes the file if there is none.
    #[arg(long, requires = "baseline")]
    update_baseline: bool,
}

pub struct BaselineFile {
    path: PathBuf,
    text: String,
    update: bool,
    pub known: Baseline,
}

impl BaselineArgs {
    pub fn read(&self) -> Result<Option<BaselineFile>, Failure> {
        let Some(path) = &self.baseline else { return Ok(None) };
        let shown = path.display();
        let bad = |message: String| Failure::new(ExitCode::BadInput, message);
        let text = match fs::read_to_string(path) {
            Ok(text) => text,
            Err(error) if error.kind() == ErrorKind::NotFound && self.update_baseline => {
                // What cannot be written is told before the work.
                fs::write(path, "").map_err(|e| Failure::cannot_write(path, &e))?;
                String::new()
            }
            Err(error) if error.kind() == ErrorKind::NotFound => {
                let hint = "--update-baseline makes one of what is found";
                return Err(bad(format!("{shown}: there is no such file; {hint}")));
            }
            Err(error) => return Err(bad(format!("cannot read {shown}: {error}"))),
        };
        let known = Baseline::parse(&text).map_err(|e| bad(format!("{shown}: {e}")))?;
        Ok(Some(BaselineFile { path: path.clone(), text, update: self.update_baseline, known }))
    }
}

impl BaselineFile {
    /// What the baseline makes of the findings, new ones added where that is
    /// wanted.
    pub fn judge(&mut self, console: &Console, findings: &[Finding]) -> Result<Judged, Failure> {
        if self.update
            && let Some((text, added)) = updated(&self.text, findings)?
        {
            fs::write(&self.path, &text).map_err(|e| Failure::cannot_write(&self.path, &e))?;
            self.known = Baseline::parse(&text)?;
            let s = if added == 1 { "" } else { "s" };
            console.note(&format!("added {added} signature{s} to {}", self.path.display()));
        }
        Ok(self.known.judge(findings))
    }
}
