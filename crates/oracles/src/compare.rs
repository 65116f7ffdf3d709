//! What differs between a concurrent run and a serial one: rows as multisets
//! of typed rows, whether each write succeeded, how many rows it changed.

use crate::replay::Replay;
use crate::run::ConcurrentRun;
use isolde_model::case::Step;
use isolde_model::difference::Difference;
use isolde_model::history::{ErrorClass, EventKind, FinalRows, History};
use isolde_model::transcript::reply_text;
use isolde_model::value::{rows_without, same_multiset};
use isolde_sql as sql;
use isolde_sql::{Kind, LockPatience, Stmt};

/// All that differs between the concurrent run and a serial one of whole
/// transactions; reads too, where the replay has them.
pub fn differences(run: &ConcurrentRun<'_>, replay: &Replay, serial: &History) -> Vec<Difference> {
    let mut all = final_rows(run.history, serial);
    all.extend(writes(run, replay, serial));
    all.extend(reads(run, replay, serial));
    all
}

/// The rows at the end.
pub fn final_rows(concurrent: &History, serial: &History) -> Vec<Difference> {
    let pairs = concurrent.final_state.iter().zip(&serial.final_state);
    pairs.filter_map(|(ours, theirs)| final_difference(ours, theirs)).collect()
}

fn final_difference(ours: &FinalRows, theirs: &FinalRows) -> Option<Difference> {
    if same_multiset(&ours.rows, &theirs.rows) {
        return None;
    }
    Some(Difference::Final {
        query: ours.query.clone(),
        columns: ours.columns.clone(),
        concurrent: ours.rows.clone(),
        serial: theirs.rows.clone(),
        only_concurrent: rows_without(&ours.rows, &theirs.rows),
        only_serial: rows_without(&theirs.rows, &ours.rows),
    })
}

/// What each write of the replay did here and there.
pub fn writes(run: &ConcurrentRun<'_>, replay: &Replay, serial: &History) -> Vec<Difference> {
    outcomes(run, replay, serial, Kind::Write, |ours, theirs, label, step| match (ours, theirs) {
        (EventKind::Error(_), EventKind::Error(_)) => None,
        (EventKind::Error(_), _) | (_, EventKind::Error(_) | EventKind::NotSent { .. }) => {
            Some(Difference::Success {
                label,
                sql: step.sql.clone(),
                concurrent: explain(ours),
                serial: explain(theirs),
            })
        }
        (EventKind::Affected { count: a }, EventKind::Affected { count: b }) if a != b => {
            let sql = step.sql.clone();
            Some(Difference::Affected { label, sql, concurrent: *a, serial: *b })
        }
        // With RETURNING.
        (EventKind::Rows { rows: a, .. }, EventKind::Rows { rows: b, .. })
            if !same_multiset(a, b) =>
        {
            let (sql, concurrent, serial) = (step.sql.clone(), a.clone(), b.clone());
            Some(Difference::Read { label, sql, concurrent, serial })
        }
        _ => None,
    })
}

/// What each read of the replay returned here and there. SKIP LOCKED asks for
/// other rows when others are at work.
pub fn reads(run: &ConcurrentRun<'_>, replay: &Replay, serial: &History) -> Vec<Difference> {
    outcomes(run, replay, serial, Kind::Select, |ours, theirs, label, step| {
        if skips_locked(step) {
            return None;
        }
        if hangs_on_rows(ours) != hangs_on_rows(theirs) {
            let (sql, concurrent, serial) = (step.sql.clone(), explain(ours), explain(theirs));
            let answered = ours.rows().is_some() || theirs.rows().is_some();
            return answered.then_some(Difference::Success { label, sql, concurrent, serial });
        }
        let (ours, theirs) = (ours.rows()?, theirs.rows()?);
        (!same_multiset(ours, theirs)).then(|| Difference::Read {
            label,
            sql: step.sql.clone(),
            concurrent: ours.to_vec(),
            serial: theirs.to_vec(),
        })
    })
}

/// Whether it failed, and not because of what others do at that moment.
fn hangs_on_rows(what: &EventKind) -> bool {
    matches!(what, EventKind::Error(error)
        if matches!(error.class, ErrorClass::Constraint | ErrorClass::Other))
}

/// Whether the rows that others hold are left out of what it reads.
fn skips_locked(step: &Step) -> bool {
    match step.statement() {
        Some(Stmt::Select(select)) => {
            let patience = select.locking.as_ref().map(|l| l.patience);
            patience == Some(LockPatience::SkipLocked)
        }
        Some(_) => false,
        None => {
            let words = sql::outer_words(&step.sql);
            words.iter().any(|(_, word)| word.eq_ignore_ascii_case("skip"))
        }
    }
}

fn outcomes(
    run: &ConcurrentRun<'_>,
    replay: &Replay,
    serial: &History,
    kind: Kind,
    differ: impl Fn(&EventKind, &EventKind, String, &Step) -> Option<Difference>,
) -> Vec<Difference> {
    let mut found = Vec::new();
    // What was taken back has no effect that a serial run would have to show.
    let undone = |step: &usize| run.executed.iter().any(|t| t.undone.contains(step));
    for (at, step) in replay.origin.iter().enumerate() {
        let what = &run.case.steps[*step];
        if what.kind() != kind || undone(step) {
            continue;
        }
        if let (Some(ours), Some(theirs)) =
            (run.history.outcome(*step).reply, serial.outcome(at).reply)
        {
            found.extend(differ(ours, theirs, run.case.label(*step), what));
        }
    }
    found
}

fn explain(what: &EventKind) -> String {
    match what {
        EventKind::Error(error) => format!("error {}: {}", error.code, error.message),
        other => reply_text(other),
    }
}
