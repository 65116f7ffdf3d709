//! A server that dies or hangs, a driver that aborts, an engine that reports
//! that it is broken inside: a finding whatever the level.

use super::{CANCELLED, Concurrent, Difference, Verdict};
use crate::history::{ErrorClass, Event, What};
use crate::{Case, History};

pub const ABOUT: &str = "the engine neither dies nor hangs nor reports an internal error";

pub fn judge(run: &Concurrent<'_>) -> Verdict {
    let broken = broken(run.case, run.history);
    if !broken.is_empty() {
        Verdict::Violated(broken)
    } else if run.history.was_cancelled() {
        Verdict::Unknown(CANCELLED.into())
    } else {
        Verdict::Consistent
    }
}

/// What broke in a run, serial or not: the server, a session, the inside of
/// the engine.
pub fn broken(case: &Case, history: &History) -> Vec<Difference> {
    let death = history.death.iter().map(|death| Difference::Broken {
        label: "the run".into(),
        sql: String::new(),
        error: death.to_string(),
    });
    let sessions = history.events.iter().filter_map(|event| {
        let error = event.what.error()?;
        // TiDB ends the connection of a statement that is told to end.
        let ours = |e: &Event| e.step == event.step && e.what == What::Cancelled;
        if history.events.iter().any(ours) {
            return None;
        }
        let bad = matches!(error.class, ErrorClass::Lost | ErrorClass::Internal);
        bad.then(|| Difference::Broken {
            label: event.step.map_or("?".into(), |s| case.label(s)),
            sql: event.step.map_or_else(String::new, |s| case.steps[s].sql.clone()),
            error: error.to_string(),
        })
    });
    death.chain(sessions).collect()
}
