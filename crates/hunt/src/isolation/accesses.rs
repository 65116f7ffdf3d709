//! Adds to each operation of a round's trace the rows that it read and wrote, with their versions,
//! from the results of the probes. A version is identified by the statement that wrote it.

use super::transactions::SentTransaction;
use isolde_generator::Item;
use isolde_model::trace::{Access, Accesses, Lock, OperationResult, Trace};
use isolde_oracles::instrument::{Entry, ObservedRun, Probe, ProbeResult, RowsOf};
use isolde_sql::{LockStrength, Stmt};
use std::collections::HashMap;

/// Fills in the accesses of all operations that succeeded.
pub(super) fn fill_in(trace: &mut Trace, drawn: &[SentTransaction], observed: &ObservedRun<'_>) {
    let written = observed.written();
    let places = trace.places();
    let (mut items, mut names) = (HashMap::new(), Vec::new());
    let mut item = |row: &str| {
        let next = u32::try_from(names.len()).unwrap_or(u32::MAX);
        *items.entry(row.to_string()).or_insert_with(|| {
            names.push(observed.instrument.row_name(row));
            next
        })
    };
    for (operation, place) in trace.operations.iter_mut().zip(places) {
        let of = &drawn[operation.transaction as usize];
        let done =
            !matches!(operation.result, OperationResult::Error(_) | OperationResult::Unanswered);
        let Some(sent) = of.sent.get(place).filter(|_| done) else { continue };
        let mut accesses = Accesses::default();
        let mut read = |entry: &Entry, writes: &[u64]| {
            let version = writes.last().copied().unwrap_or(0);
            let access = Access { item: item(&entry.row), version };
            if !accesses.reads.contains(&access) {
                accesses.reads.push(access);
            }
        };
        match (&sent.probe, &of.results[place]) {
            (Probe::Read { .. }, Some(ProbeResult::Read(cells))) => {
                cells.iter().flatten().for_each(|entry| read(entry, &entry.writes));
            }
            (Probe::Rows { what, .. }, Some(ProbeResult::Rows(rows))) => {
                for version in rows {
                    let entry = &version.entry;
                    let own = entry.writes.iter().position(|id| *id == sent.id);
                    let before = own.unwrap_or(entry.writes.len());
                    // A row that it inserted did not exist before.
                    if *what != RowsOf::Written || entry.inserted_by() != Some(sent.id) {
                        read(entry, &entry.writes[..before]);
                    }
                    version.origin.iter().for_each(|origin| read(origin, &origin.writes));
                }
            }
            _ => {}
        }
        // A probe that runs before the statement has the same number and writes nothing.
        let last = of.sent.get(place + 1).is_none_or(|next| next.id != sent.id);
        if last && let Some(rows) = written.get(&sent.id) {
            let write = |row: &String| Access { item: item(row), version: sent.id };
            accesses.writes = rows.iter().map(write).collect();
        }
        accesses.lock = lock(of, sent.place);
        if !accesses.reads.is_empty() || !accesses.writes.is_empty() {
            operation.accesses = Some(Box::new(accesses));
        }
    }
    trace.items = names;
}

fn lock(of: &SentTransaction, place: usize) -> Option<Lock> {
    let sequence = of.plan.sequence();
    let Some((_, Item::Statement(Stmt::Select(select)))) = sequence.get(place) else {
        return None;
    };
    match select.locking.as_ref()?.strength {
        LockStrength::Update | LockStrength::NoKeyUpdate => Some(Lock::Exclusive),
        LockStrength::Share => Some(Lock::Shared),
        LockStrength::KeyShare => None,
    }
}
