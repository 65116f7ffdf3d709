//! `isolde test --record`: what runs showed, written into the case files as
//! soon as each case has been run, so that an interrupted recording keeps what
//! it has.

use super::Context;
use crate::exit_code::Failure;
use crate::library::Entry;
use crate::whole_file;
use isolde_core::case;
use isolde_core::recording::{self, Outcomes, Place};
use std::collections::BTreeSet;
use std::path::PathBuf;

/// So often is a case run that did not do the same twice: enough for an open
/// outcome to come back, which a clock never does.
const MOST: usize = 12;

pub struct Recorder {
    repeat: Option<u32>,
    runs: usize,
    changed: BTreeSet<PathBuf>,
}

impl Recorder {
    pub fn new(repeat: Option<u32>) -> Recorder {
        Recorder { repeat, runs: 0, changed: BTreeSet::new() }
    }

    /// Whether a case should be run once more, after these runs of it.
    /// `as_before`: what is in the file has room for all of them.
    pub fn wants_more(&self, runs: &[Vec<case::Claim>], as_before: bool) -> bool {
        let least = match self.repeat {
            Some(repeat) => repeat as usize,
            None if as_before => 1,
            None => 2,
        };
        runs.len() < least || (!as_before && runs.len() < MOST && recording::unsettled(runs))
    }

    /// Takes what was seen into the case and its file.
    pub fn save(
        &mut self,
        context: &Context<'_>,
        entry: &mut Entry,
        new: Vec<(Place, Outcomes)>,
    ) -> Result<(), Failure> {
        self.runs += new.len();
        let before = case::format(&entry.case);
        recording::record(&mut entry.case, new);
        let after = case::format(&entry.case);
        let Some(file) = entry.file.as_ref().filter(|_| after != before) else { return Ok(()) };
        whole_file::write(file, &after).map_err(|e| Failure::cannot_write(file, &e))?;
        if self.changed.insert(file.clone()) {
            context.console.end_progress();
            context.console.say(&format!("recorded {}", file.display()));
        }
        Ok(())
    }

    pub fn summary(&self) -> String {
        format!("{} runs, {} files changed", self.runs, self.changed.len())
    }
}
