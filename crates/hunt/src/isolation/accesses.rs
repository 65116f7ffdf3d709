//! What the answers of a round tell of each operation of its trace: the rows that it read and
//! wrote, in which versions. A version is called by the statement that wrote it.

use super::round::Drawn;
use isolde_core::generate::Item;
use isolde_core::instrument::{Entry, Heard, Probe, RowsOf, Told};
use isolde_core::sql::{LockStrength, Stmt};
use isolde_core::trace::{Access, Accesses, Lock, OperationResult, Trace};
use std::collections::HashMap;

pub(super) fn fill_in(trace: &mut Trace, drawn: &[Drawn], told: &Told<'_>) {
    let written = told.written();
    let places = trace.places();
    let (mut items, mut names) = (HashMap::new(), Vec::new());
    let mut item = |row: &str| {
        let next = u32::try_from(names.len()).unwrap_or(u32::MAX);
        *items.entry(row.to_string()).or_insert_with(|| {
            names.push(told.instrument.row_name(row));
            next
        })
    };
    for (operation, place) in trace.operations.iter_mut().zip(places) {
        let of = &drawn[operation.transaction as usize];
        let done =
            !matches!(operation.result, OperationResult::Error(_) | OperationResult::Unanswered);
        let Some(meaning) = of.sent.get(place).filter(|_| done) else { continue };
        let mut accesses = Accesses::default();
        let mut read = |entry: &Entry, writes: &[u64]| {
            let version = writes.last().copied().unwrap_or(0);
            let access = Access { item: item(&entry.row), version };
            if !accesses.reads.contains(&access) {
                accesses.reads.push(access);
            }
        };
        match (&meaning.probe, &of.heard[place]) {
            (Probe::Read { .. }, Some(Heard::Read(cells))) => {
                cells.iter().flatten().for_each(|entry| read(entry, &entry.writes));
            }
            (Probe::Rows { what, .. }, Some(Heard::Rows(rows))) => {
                for version in rows {
                    let entry = &version.entry;
                    let own = entry.writes.iter().position(|id| *id == meaning.id);
                    let before = own.unwrap_or(entry.writes.len());
                    // What it inserted was not there before.
                    if *what != RowsOf::Written || entry.inserted_by() != Some(meaning.id) {
                        read(entry, &entry.writes[..before]);
                    }
                    version.origin.iter().for_each(|origin| read(origin, &origin.writes));
                }
            }
            _ => {}
        }
        // A look before the statement shares its number and writes nothing.
        let last = of.sent.get(place + 1).is_none_or(|next| next.id != meaning.id);
        if last && let Some(rows) = written.get(&meaning.id) {
            let write = |row: &String| Access { item: item(row), version: meaning.id };
            accesses.writes = rows.iter().map(write).collect();
        }
        accesses.lock = lock(of, meaning.place);
        if !accesses.reads.is_empty() || !accesses.writes.is_empty() {
            operation.accesses = Some(Box::new(accesses));
        }
    }
    trace.items = names;
}

fn lock(of: &Drawn, place: usize) -> Option<Lock> {
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
