//! `isolde replay findings/N/case.case`: whether what a hunt found still
//! happens, judged as the hunt judged it.

use crate::console::{Console, Style};
use crate::exit_code::{ExitCode, Failure};
use isolde_core::{Case, Level};
use isolde_engines::fault::{self, Planted};
use isolde_engines::runner::Runner;
use isolde_hunt::HuntError;
use isolde_hunt::again::{self, Again, Now, Seen};
use isolde_hunt::executor::Executor;
use isolde_hunt::explain;
use serde_json::json;

/// What came of a finding, in the words of the hunt.
pub struct Replayed {
    pub code: ExitCode,
    pub sentence: String,
    pub differences: Vec<String>,
    word: &'static str,
    id: String,
}

/// The hunt's fault again, so that what it did can be seen again.
pub fn planted(runner: Runner, seen: &Seen) -> Result<Runner, Failure> {
    let Some((name, rate)) = &seen.fault else { return Ok(runner) };
    let fault = fault::find(name).map_err(|e| Failure::new(ExitCode::BadInput, e))?;
    let planted = Planted { fault, rate: *rate, seed: seen.finding.seed };
    let mut faulty = Runner::new(fault::plant(runner.engine, planted));
    faulty.interrupted = runner.interrupted;
    Ok(faulty)
}

/// One run and its serial replays, at the case's level or another. `planted`:
/// with the hunt's fault, if it had one.
pub fn run_again(
    executor: &mut Executor,
    case: &Case,
    level: Option<Level>,
    seen: &Seen,
    planted: bool,
) -> Result<(Again, Replayed), Failure> {
    let mut case = case.clone();
    case.level = level.or(case.level);
    let again = again::again(executor, &case, seen).map_err(failure)?;
    let replayed = replayed(&again, seen, planted);
    Ok((again, replayed))
}

fn replayed(again: &Again, seen: &Seen, planted: bool) -> Replayed {
    let (code, word) = match again.now {
        Now::StillHappens { .. } => (ExitCode::Violation, "still happens"),
        Now::Gone | Now::OnlyDocumented(_) => (ExitCode::Fine, "gone"),
        Now::Unknown(_) => (ExitCode::Undecided, "unknown"),
    };
    let mut sentence = again.now.sentence(seen, again.runs);
    if let Some((fault, _)) = seen.fault.as_ref().filter(|_| planted) {
        sentence.push_str(&format!(" (with the planted fault {fault})"));
    }
    let mut differences: Vec<String> = Vec::new();
    for difference in again.checked.violations.iter().flat_map(|v| &v.differences) {
        let said = explain::difference(difference);
        if !differences.contains(&said) {
            differences.push(said);
        }
    }
    Replayed { code, sentence, differences, word, id: seen.finding.id.clone() }
}

impl Replayed {
    pub fn show(&self, console: &Console) {
        let style = match self.code {
            ExitCode::Violation => Style::Bad,
            ExitCode::Fine => Style::Good,
            _ => Style::Doubt,
        };
        console.print(&console.paint(style, &self.sentence));
        for difference in &self.differences {
            console.print(&format!("  {difference}"));
        }
    }

    pub fn as_json(&self) -> serde_json::Value {
        json!({
            "id": self.id,
            "now": self.word,
            "sentence": self.sentence,
            "differences": self.differences,
        })
    }
}

/// What breaks here is what was looked for.
pub fn failure(error: HuntError) -> Failure {
    match error {
        HuntError::Fixture { .. } => {
            Failure::new(ExitCode::BadInput, format!("the setup failed: {error}"))
        }
        HuntError::Broke(_) => Failure::new(ExitCode::Violation, error.to_string()),
        other => other.into(),
    }
}
