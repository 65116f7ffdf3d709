//! What rules leave open, with the reason.

use crate::bench::Run;
use crate::cases::Labelled;
use crate::falsify::{Change, Falsified};
use isolde_core::Level;
use isolde_core::history::{ErrorClass, Event, History, What};

/// Why a run that did not happen might have: the rules allow it.
pub fn why(run: &Run, labelled: &Labelled, falsified: &Falsified) -> Option<&'static str> {
    let on = &run.history.on;
    let level = run.fixture.reading.as_deref().map(|r| r.levels[0]);
    let waits = run.history.events.iter().any(|e| matches!(e.what, What::Waiting { .. }));
    let engine = on.engine.split('+').next().unwrap_or_default();
    let listed = labelled.open.iter().find(|(label, change, _)| {
        *change == falsified.change && falsified.step == label.map(|l| run.step(l))
    });
    if let Some((_, _, why)) = listed {
        return Some(why);
    }
    match (engine, falsified.change) {
        (_, Change::WaitAdded) if on.engine.ends_with("+shared-cache") => {
            Some("why a statement waits is not known there")
        }
        ("postgres" | "mysql" | "mariadb" | "sqlite", Change::WaitAdded)
            if falsified.step.is_some_and(|step| others_are_open(&run.history, step)) =>
        {
            Some("somebody else is open, and may hold what it wants")
        }
        ("postgres" | "mysql" | "mariadb" | "sqlite" | "duckdb" | "dolt", Change::WaitAdded) => {
            None
        }
        (_, Change::WaitAdded) => Some("why a statement waits is not known there"),
        ("postgres", Change::ErrorAdded(ErrorClass::Serialization))
            if level == Some(Level::Serializable) =>
        {
            Some("at SERIALIZABLE any statement may fail, for the sake of a serial order")
        }
        (_, Change::ErrorAdded(ErrorClass::Deadlock)) if waits => {
            Some("whom a deadlock strikes is up to the engine")
        }
        ("sqlite", Change::ErrorAdded(ErrorClass::Busy)) => {
            Some("whoever is not alone may be told BUSY")
        }
        ("mariadb", Change::ErrorAdded(ErrorClass::WriteConflict))
            if on
                .settings
                .get("innodb_snapshot_isolation")
                .is_some_and(|v| v != "0" && v != "OFF") =>
        {
            Some("under snapshot isolation whatever is scanned beside others may have changed")
        }
        (_, Change::ErrorAdded(ErrorClass::LockTimeout)) if waits => {
            Some("what waits may wait for too long")
        }
        _ => None,
    }
}

/// Whether another session is inside of a transaction when a step is sent.
fn others_are_open(history: &History, step: usize) -> bool {
    let events = &history.events;
    let sent = |step: usize| {
        let is = |e: &Event| e.step == Some(step) && matches!(e.what, What::Sent { .. });
        events.iter().position(is)
    };
    let session = &history.steps[step].session;
    history.transactions.iter().enumerate().any(|(number, other)| {
        let ends = |e: &Event| {
            matches!(&e.what, What::Ended { transaction, .. } if *transaction == number)
        };
        let ended = events.iter().position(ends).unwrap_or(events.len());
        other.session != *session && sent(other.begin) < sent(step) && Some(ended) > sent(step)
    })
}
