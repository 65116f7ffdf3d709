//! `isolde replay findings/N/case.case`: whether a finding still happens, checked
//! as its hunt did.

use crate::commands::loaded_case::failure_of_run;

use crate::console::{Console, Style};
use crate::exit_code::{ExitCode, Failure};
use isolde_hunt::executor::Executor;
use isolde_hunt::explain;
use isolde_hunt::recheck::{self, RecheckVerdict, RecordedFinding};
use isolde_model::{Case, History, Level};
use serde_json::json;

/// The result of checking a finding again.
pub struct Recheck {
    pub code: ExitCode,
    pub sentence: String,
    pub differences: Vec<String>,
    word: &'static str,
    id: String,
}

/// Runs the case with its serial replays, at its own level or another.
/// `with_fault`: the fault of the hunt is planted, if there was one.
pub fn recheck(
    executor: &mut Executor,
    case: &Case,
    level: Option<Level>,
    seen: &RecordedFinding,
    with_fault: bool,
) -> Result<(History, Recheck), Failure> {
    let mut case = case.clone();
    case.level = level.or(case.level);
    let again = recheck::recheck(executor, &case, seen).map_err(failure_of_run)?;
    let recheck = Recheck::new(&again, seen, with_fault);
    Ok((again.checked.concurrent, recheck))
}

impl Recheck {
    fn new(again: &recheck::Recheck, seen: &RecordedFinding, with_fault: bool) -> Recheck {
        let (code, word) = match again.verdict {
            RecheckVerdict::StillHappens { .. } => (ExitCode::Violation, "still happens"),
            RecheckVerdict::Gone | RecheckVerdict::OnlyDocumented(_) => (ExitCode::Success, "gone"),
            RecheckVerdict::Unknown(_) => (ExitCode::Undecided, "unknown"),
        };
        let mut sentence = again.verdict.sentence(seen, again.runs);
        if let Some((fault, _)) = seen.fault.as_ref().filter(|_| with_fault) {
            sentence.push_str(&format!(" (with the planted fault {fault})"));
        }
        let mut differences: Vec<String> = Vec::new();
        for difference in again.checked.violations.iter().flat_map(|v| &v.differences) {
            let text = explain::difference(difference);
            if !differences.contains(&text) {
                differences.push(text);
            }
        }
        Recheck { code, sentence, differences, word, id: seen.finding.id.clone() }
    }

    pub fn show(&self, console: &Console) {
        let style = match self.code {
            ExitCode::Violation => Style::Bad,
            ExitCode::Success => Style::Good,
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
