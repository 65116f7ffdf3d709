//! Falsified runs that the rules allow, with the reason.

use crate::bench::Run;
use crate::cases::Labelled;
use crate::falsify::{Change, Falsified};
use isolde_model::Level;
use isolde_model::history::{ErrorClass, Event, EventKind, History};

/// The reason why the rules allow a falsified run, if they do.
pub fn why(run: &Run, labelled: &Labelled, falsified: &Falsified) -> Option<&'static str> {
    let on = &run.history.on;
    let level = run.fixture.reading.as_deref().map(|r| r.levels[0]);
    let waits = run.history.events.iter().any(|e| matches!(e.what, EventKind::Waiting { .. }));
    let engine = on.engine.split('+').next().unwrap_or_default();
    let listed = labelled.open.iter().find(|(label, change, _)| {
        *change == falsified.change && falsified.step == label.map(|l| run.step(l))
    });
    if let Some((_, _, why)) = listed {
        return Some(why);
    }
    match (engine, falsified.change) {
        (_, Change::WaitAdded) if on.engine.ends_with("+shared-cache") => {
            Some("the reason of a wait is not observable there")
        }
        ("postgres" | "mysql" | "mariadb" | "sqlite", Change::WaitAdded)
            if falsified.step.is_some_and(|step| others_are_open(&run.history, step)) =>
        {
            Some("another transaction is open and may hold the lock")
        }
        ("postgres" | "mysql" | "mariadb" | "sqlite" | "duckdb" | "dolt", Change::WaitAdded) => {
            None
        }
        (_, Change::WaitAdded) => Some("the reason of a wait is not observable there"),
        ("postgres", Change::ErrorAdded(ErrorClass::Serialization))
            if level == Some(Level::Serializable) =>
        {
            Some("at SERIALIZABLE any statement may fail with a serialization error")
        }
        (_, Change::ErrorAdded(ErrorClass::Deadlock)) if waits => {
            Some("the engine chooses the victim of a deadlock")
        }
        ("sqlite", Change::ErrorAdded(ErrorClass::Busy)) => {
            Some("any statement with concurrent transactions may fail with BUSY")
        }
        ("mariadb", Change::ErrorAdded(ErrorClass::WriteConflict))
            if on
                .settings
                .get("innodb_snapshot_isolation")
                .is_some_and(|v| v != "0" && v != "OFF") =>
        {
            Some("under snapshot isolation any row scanned concurrently may have changed")
        }
        (_, Change::ErrorAdded(ErrorClass::LockTimeout)) if waits => {
            Some("a lock wait may exceed its timeout")
        }
        _ => None,
    }
}

/// Whether another session has an open transaction when a step is sent.
fn others_are_open(history: &History, step: usize) -> bool {
    let events = &history.events;
    let sent = |step: usize| {
        let is = |e: &Event| e.step == Some(step) && matches!(e.what, EventKind::Sent { .. });
        events.iter().position(is)
    };
    let session = &history.steps[step].session;
    history.transactions.iter().enumerate().any(|(number, other)| {
        let ends = |e: &Event| {
            matches!(&e.what, EventKind::Ended { transaction, .. } if *transaction == number)
        };
        let ended = events.iter().position(ends).unwrap_or(events.len());
        other.session != *session && sent(other.begin) < sent(step) && Some(ended) > sent(step)
    })
}
