//! `isolde test --record`: writes the results into the case files, each as soon
//! as its case has been run, so that an interrupted recording keeps them.

use crate::commands::context::Context;
use crate::exit_code::Failure;
use crate::files;
use crate::library::Entry;
use isolde_model::case;
use isolde_model::recording;
use isolde_model::recording::{Outcomes, RecordingTarget};
use std::collections::BTreeSet;
use std::path::PathBuf;

/// Maximum number of runs of a case whose result varies: enough for a
/// nondeterministic outcome to repeat, which a clock reading never does.
const MAX_RUNS: usize = 12;

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
    /// `as_before`: the recording in the file covers all of them.
    pub fn wants_more(&self, runs: &[Vec<case::Claim>], as_before: bool) -> bool {
        let least = match self.repeat {
            Some(repeat) => repeat as usize,
            None if as_before => 1,
            None => 2,
        };
        runs.len() < least || (!as_before && runs.len() < MAX_RUNS && recording::unsettled(runs))
    }

    /// Adds new recordings to the case and its file.
    pub fn save(
        &mut self,
        context: &Context<'_>,
        entry: &mut Entry,
        new: Vec<(RecordingTarget, Outcomes)>,
    ) -> Result<(), Failure> {
        self.runs += new.len();
        let before = case::format(&entry.case);
        recording::record(&mut entry.case, new);
        let after = case::format(&entry.case);
        let Some(file) = entry.file.as_ref().filter(|_| after != before) else { return Ok(()) };
        files::replace(file, &after).map_err(|e| Failure::cannot_write(file, &e))?;
        if self.changed.insert(file.clone()) {
            context.console.end_progress();
            context.console.comment(&format!("recorded {}", file.display()));
        }
        Ok(())
    }

    pub fn summary(&self) -> String {
        format!("{} runs, {} files changed", self.runs, self.changed.len())
    }
}
