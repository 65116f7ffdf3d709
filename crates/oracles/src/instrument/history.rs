//! Collects the observations of a run and exports them as a history for the checker.
//!
//! ```text
//!   ObservedRun ──► Ledger: rows, their writers and contents ──► Evaluation ──► engine
//!     └──────────────┴──► ExtractedHistory: checker::History ◄── satisfied predicates ─┘
//! ```

use super::decode::{Entry, ProbeResult, Version};
use super::{Evaluation, Instrument, Predicate, Probe, RowsOf, StatementId};
use crate::instrument::tables::{NEXT, WRITTEN_BY};
use isolde_checker::{History, Status};
use isolde_model::history::TxEnd;
use isolde_model::value::Row;
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// A statement and its decoded results, in the order in which they came.
#[derive(Clone, Debug)]
pub struct StatementObservation {
    pub id: StatementId,
    /// As it would stand in a case.
    pub text: String,
    pub results: Vec<(Probe, ProbeResult)>,
    /// A savepoint took it back.
    pub undone: bool,
}

#[derive(Clone, Debug)]
pub struct TransactionObservations {
    pub name: String,
    pub session: String,
    pub how: TxEnd,
    pub times: Option<(u64, u64)>,
    pub statements: Vec<StatementObservation>,
}

/// A run as its results reveal it.
pub struct ObservedRun<'i> {
    pub instrument: &'i Instrument,
    pub transactions: Vec<TransactionObservations>,
    /// All rows before the run and after it.
    pub first: Vec<Version>,
    pub last: Vec<Version>,
    /// The predicates of writes and locking reads count as reads, too: so it is at levels that
    /// promise serializability.
    pub writes_read: bool,
}

/// A history, and counts of what it does and does not contain.
pub struct ExtractedHistory {
    pub history: History,
    /// Predicate reads that are in it.
    pub predicate_reads: usize,
    /// Rows that disappeared without an observed DELETE; no predicate covers them.
    pub vanished: usize,
}

/// All observations, by row and by statement.
#[derive(Default)]
pub(super) struct Ledger {
    pub(super) rows: BTreeMap<String, RowVersions>,
    /// The rows that each statement wrote.
    pub(super) wrote: HashMap<StatementId, BTreeSet<String>>,
    /// The rows that each statement took away, as they were.
    pub(super) deleted: HashMap<StatementId, Vec<Entry>>,
    /// What INSERT … SELECT read.
    pub(super) origins: HashMap<StatementId, Vec<Entry>>,
}

#[derive(Default)]
pub(super) struct RowVersions {
    pub(super) table: usize,
    /// By the last writer.
    pub(super) holds: HashMap<Option<StatementId>, Row>,
    /// Its writers at the end, with the statement that deleted it.
    pub(super) end: Option<Vec<StatementId>>,
    /// The longest list of writers that was observed.
    pub(super) longest: Vec<StatementId>,
    pub(super) stored: bool,
}

impl<'i> ObservedRun<'i> {
    pub(super) fn ledger(&self) -> Ledger {
        let mut ledger = Ledger::default();
        self.first.iter().for_each(|version| ledger.whole(version));
        for version in &self.last {
            ledger.whole(version);
            let chain = ledger.chain(&version.entry);
            (chain.end, chain.stored) = (Some(without_repetition(&version.entry.writes)), true);
        }
        for statement in self.transactions.iter().flat_map(|t| &t.statements) {
            for (probe, results) in &statement.results {
                ledger.decode(statement.id, probe, results);
            }
        }
        self.apply_deletes(&mut ledger);
        ledger
    }

    /// Ends the version chains of rows that are gone with the committed statements that report
    /// having deleted them.
    fn apply_deletes(&self, ledger: &mut Ledger) {
        let mut ended: Vec<&TransactionObservations> =
            self.transactions.iter().filter(|t| status(t.how) != Status::Aborted).collect();
        ended.sort_by_key(|t| t.times.map(|(_, end)| end));
        for statement in ended.iter().flat_map(|t| &t.statements).filter(|s| !s.undone) {
            let gone = ledger.deleted.get(&statement.id).cloned().unwrap_or_default();
            for entry in gone {
                let chain = ledger.chain(&entry);
                if chain.stored {
                    continue;
                }
                let end = chain.end.get_or_insert_with(|| without_repetition(&entry.writes));
                end.push(statement.id);
            }
        }
        // What a REPLACE found and left where it was.
        let stored: BTreeSet<String> = ledger
            .rows
            .iter()
            .filter(|(_, chain)| chain.stored)
            .map(|(row, _)| row.clone())
            .collect();
        for statement in self.transactions.iter().flat_map(|t| &t.statements) {
            let only_probed = statement
                .results
                .iter()
                .any(|(probe, _)| matches!(probe, Probe::Rows { what: RowsOf::Replaced, .. }));
            if only_probed && let Some(gone) = ledger.deleted.get_mut(&statement.id) {
                gone.retain(|entry| !stored.contains(&entry.row));
            }
        }
    }

    /// The rows that each statement wrote or deleted, as far as they were observed.
    pub fn written(&self) -> HashMap<StatementId, BTreeSet<String>> {
        let Ledger { mut wrote, deleted, .. } = self.ledger();
        for (id, gone) in deleted {
            wrote.entry(id).or_default().extend(gone.into_iter().map(|entry| entry.row));
        }
        wrote
    }

    /// What each table held at a moment: the rows of all that had committed by then. Rows of
    /// which that is not known are left out.
    pub fn rows_at(&self, moment: u64) -> Vec<Vec<Row>> {
        let mut ended: HashMap<StatementId, u64> = HashMap::new();
        for transaction in &self.transactions {
            let end = transaction.times.map_or(u64::MAX, |(_, end)| end);
            ended.extend(transaction.statements.iter().map(|statement| (statement.id, end)));
        }
        let over = |id: &StatementId| ended.get(id).is_some_and(|end| *end < moment);
        let mut tables = vec![Vec::new(); self.instrument.schema.tables.len()];
        for (row, chain) in self.ledger().rows {
            let Some(end) = &chain.end else { continue };
            let held = end.iter().take_while(|id| over(id)).count();
            let gone = !chain.stored && held == end.len();
            let unborn = held == 0 && (Entry { row, writes: Vec::new() }).inserted_by().is_some();
            let last = held.checked_sub(1).map(|at| end[at]);
            if let Some(holds) = chain.holds.get(&last).filter(|_| !gone && !unborn) {
                tables[chain.table].push(holds.clone());
            }
        }
        tables
    }

    /// What the engine must be asked before there is a history.
    pub fn evaluations(&self) -> Vec<Evaluation> {
        let ledger = self.ledger();
        let mut all: BTreeMap<usize, Evaluation> = BTreeMap::new();
        for predicate in self.predicates() {
            let table = predicate.table;
            let evaluation = all.entry(table).or_insert_with(|| Evaluation {
                table,
                versions: Vec::new(),
                predicates: Vec::new(),
            });
            if !evaluation.predicates.contains(&predicate) {
                evaluation.predicates.push(predicate);
            }
        }
        for (row, chain) in &ledger.rows {
            if let Some(evaluation) = all.get_mut(&chain.table) {
                let mut versions: Vec<_> = chain.holds.iter().collect();
                versions.sort_by_key(|(last, _)| **last);
                let version = |(last, holds): (&Option<StatementId>, &Row)| {
                    (row.clone(), *last, holds.clone())
                };
                evaluation.versions.extend(versions.into_iter().map(version));
            }
        }
        all.into_values().collect()
    }

    /// The predicates of committed statements.
    fn predicates(&self) -> Vec<Predicate> {
        let committed = self.transactions.iter().filter(|t| status(t.how) != Status::Aborted);
        let mut reads = Vec::new();
        for statement in committed.flat_map(|t| &t.statements).filter(|s| !s.undone) {
            self.found(statement, &mut |predicate, _| {
                reads.push(predicate.clone());
            });
        }
        reads
    }

    /// What each predicate of a statement found.
    pub(super) fn found(
        &self,
        statement: &StatementObservation,
        see: &mut dyn FnMut(&Predicate, Vec<Entry>),
    ) {
        for (probe, results) in &statement.results {
            match (probe, results) {
                (Probe::Read { cells, locking, .. }, ProbeResult::Read(found)) => {
                    if *locking && !self.writes_read {
                        continue;
                    }
                    for (cell, entries) in cells.iter().zip(found) {
                        if let Some(predicate) = cell {
                            see(predicate, entries.clone());
                        }
                    }
                }
                (Probe::Rows { predicate: Some(predicate), what, .. }, ProbeResult::Rows(rows))
                    if self.writes_read =>
                {
                    let before = |version: &Version| match what {
                        RowsOf::Written => before(&version.entry, statement.id),
                        _ => version.entry.clone(),
                    };
                    see(predicate, rows.iter().map(before).collect());
                }
                _ => {}
            }
        }
    }
}

impl Ledger {
    fn chain(&mut self, entry: &Entry) -> &mut RowVersions {
        let chain = self.rows.entry(entry.row.clone()).or_default();
        chain.table = entry.table().unwrap_or_default();
        chain
    }

    fn note(&mut self, entry: &Entry) {
        let chain = self.chain(entry);
        if chain.longest.len() < entry.writes.len() {
            chain.longest = without_repetition(&entry.writes);
        }
        for id in &entry.writes {
            self.wrote.entry(*id).or_default().insert(entry.row.clone());
        }
    }

    fn whole(&mut self, version: &Version) {
        let entry = &version.entry;
        self.note(entry);
        // The versions that it was made of may be gone and observed nowhere else.
        version.origin.iter().for_each(|origin| self.note(origin));
        if let Some(creator) = entry.inserted_by()
            && !version.origin.is_empty()
        {
            let origins = self.origins.entry(creator).or_default();
            origins.extend(
                version.origin.iter().filter(|o| !origins.contains(o)).cloned().collect::<Vec<_>>(),
            );
        }
        let chain = self.chain(entry);
        chain.holds.insert(entry.last(), version.holds.clone());
        // The image before the last write is the last one.
        for (back, image) in version.past.iter().rev().enumerate() {
            let Some(length) = entry.writes.len().checked_sub(back + 1) else { break };
            let last = length.checked_sub(1).map(|at| entry.writes[at]);
            // A statement that wrote twice left what it wrote last.
            if last != entry.writes.get(length).copied() {
                chain.holds.insert(last, image.clone());
            }
        }
    }

    fn decode(&mut self, id: StatementId, probe: &Probe, results: &ProbeResult) {
        match results {
            ProbeResult::Nothing | ProbeResult::Count(_) => {}
            ProbeResult::Read(cells) => cells.iter().flatten().for_each(|entry| self.note(entry)),
            ProbeResult::Rows(rows) => {
                let Probe::Rows { what, .. } = probe else { return };
                rows.iter().for_each(|version| self.whole(version));
                if matches!(what, RowsOf::Deleted | RowsOf::Replaced) {
                    let gone = rows.iter().map(|version| version.entry.clone());
                    self.deleted.entry(id).or_default().extend(gone);
                }
            }
        }
    }
}

impl RowVersions {
    /// Whether all versions that a statement may have read are known, with their contents.
    pub(super) fn is_known(&self) -> bool {
        let Some(end) = &self.end else { return false };
        // The statement that deleted it left no contents.
        let held = if self.stored { end.len() } else { end.len().saturating_sub(1) };
        end[..held].iter().all(|id| self.holds.contains_key(&Some(*id)))
    }
}

pub(super) fn status(how: TxEnd) -> Status {
    match how {
        TxEnd::Committed => Status::Committed,
        TxEnd::RolledBack | TxEnd::Aborted => Status::Aborted,
        TxEnd::Lost | TxEnd::Unknown => Status::Unknown,
    }
}

/// A statement that wrote a row twice is one writer.
pub(super) fn without_repetition(writes: &[StatementId]) -> Vec<StatementId> {
    let mut writes = writes.to_vec();
    writes.dedup();
    writes
}

/// A version as it was before a statement wrote it.
fn before(entry: &Entry, id: StatementId) -> Entry {
    let at = entry.writes.iter().position(|writer| *writer == id).unwrap_or(entry.writes.len());
    Entry { row: entry.row.clone(), writes: entry.writes[..at].to_vec() }
}

// The separators are those at which `decode` splits.
const _: () = assert!(NEXT == ',' && WRITTEN_BY == '@');
