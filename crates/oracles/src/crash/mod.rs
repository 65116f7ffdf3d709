//! Server failures: a server that crashes or hangs, a driver that aborts, an
//! engine that reports an internal error. Each is a finding at every level.

use crate::description::OracleDescription;
use crate::judgement::{Judgement, OracleVerdict};
use crate::run::{CANCELLED, ConcurrentRun};
use isolde_model::difference::Difference;
use isolde_model::history::{ErrorClass, Event, EventKind};
use isolde_model::{Case, History, Verdict};
use isolde_reference::cause::Cause;

pub(crate) static ORACLE: OracleDescription = OracleDescription {
    name: "crash",
    about: "the engine neither dies nor hangs nor reports an internal error",
    reference: "with what an engine may do at all",
    judge: |run, _| Box::pin(async move { Judgement::of(judge(run)) }),
    judges_unknown_runs: true,
    cause: |_, _| {
        let text = "the engine crashed, hangs, or reported an internal error";
        Some(Cause::new(Verdict::Bug, vec![text.into()]))
    },
    ..OracleDescription::PLAIN
};

fn judge(run: &ConcurrentRun<'_>) -> OracleVerdict {
    let broken = broken(run.case, run.history);
    if !broken.is_empty() {
        OracleVerdict::Violated(broken)
    } else if run.history.was_cancelled() {
        OracleVerdict::Unknown(CANCELLED.into())
    } else {
        OracleVerdict::Consistent
    }
}

/// The failures in a run, serial or not: of the server, of a session, and
/// internal errors of the engine.
pub fn broken(case: &Case, history: &History) -> Vec<Difference> {
    let death = history.death.iter().map(|death| Difference::Broken {
        label: "the run".into(),
        sql: String::new(),
        error: death.to_string(),
    });
    let sessions = history.events.iter().filter_map(|event| {
        let error = event.what.error()?;
        // TiDB closes the connection of a statement that Isolde cancels.
        let ours = |e: &Event| e.step == event.step && e.what == EventKind::Cancelled;
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
