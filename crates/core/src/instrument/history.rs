//! What all answers of a run tell together: a history for the checker.
//!
//! ```text
//!   Told ──► Ledger: rows, who wrote them, what they held ──► Evaluation ──► engine
//!     └──────────────┴──► Account: checker::History ◄────────── which versions satisfy ─┘
//! ```

use super::hearing::{Entry, Heard, Version};
use super::writer::Writer;
use super::{Evaluation, Instrument, Predicate, Probe, RowsOf, StatementId};
use crate::history::TxEnd;
use crate::instrument::tables::{NEXT, WRITTEN_BY};
use crate::value::Row;
use isolde_checker::{History, Status};
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// A statement and what its answers told, in the order in which they came.
#[derive(Clone, Debug)]
pub struct StatementTold {
    pub id: StatementId,
    /// As it would stand in a case.
    pub text: String,
    pub heard: Vec<(Probe, Heard)>,
    /// A savepoint took it back.
    pub undone: bool,
}

#[derive(Clone, Debug)]
pub struct TransactionTold {
    pub name: String,
    pub session: String,
    pub how: TxEnd,
    pub times: Option<(u64, u64)>,
    pub statements: Vec<StatementTold>,
}

/// A run, as its answers tell it.
pub struct Told<'i> {
    pub instrument: &'i Instrument,
    pub transactions: Vec<TransactionTold>,
    /// All rows before the run and after it.
    pub first: Vec<Version>,
    pub last: Vec<Version>,
    /// What writes and locking reads looked for counts as read, too: so it is where
    /// everything has to look as if one transaction had run after the other.
    pub writes_read: bool,
}

/// A history, and what could not be said in it.
pub struct Account {
    pub history: History,
    /// Predicate reads that are in it.
    pub predicate_reads: usize,
    /// Rows that are gone without a word, of which no predicate says anything.
    pub vanished: usize,
}

/// What is known of each row.
#[derive(Default)]
pub(super) struct Ledger {
    pub(super) rows: BTreeMap<String, RowStory>,
    /// The rows that each statement wrote.
    pub(super) wrote: HashMap<StatementId, BTreeSet<String>>,
    /// The rows that each statement took away, as they were.
    pub(super) deleted: HashMap<StatementId, Vec<Entry>>,
    /// What INSERT … SELECT read.
    pub(super) origins: HashMap<StatementId, Vec<Entry>>,
}

#[derive(Default)]
pub(super) struct RowStory {
    pub(super) table: usize,
    /// By the last writer.
    pub(super) holds: HashMap<Option<StatementId>, Row>,
    /// Its writers at the end, with who took it away.
    pub(super) end: Option<Vec<StatementId>>,
    /// The longest list of writers that anybody saw.
    pub(super) longest: Vec<StatementId>,
    pub(super) stored: bool,
}

impl<'i> Told<'i> {
    pub(super) fn ledger(&self) -> Ledger {
        let mut ledger = Ledger::default();
        self.first.iter().for_each(|version| ledger.whole(version));
        for version in &self.last {
            ledger.whole(version);
            let story = ledger.story(&version.entry);
            (story.end, story.stored) = (Some(without_repetition(&version.entry.writes)), true);
        }
        for statement in self.transactions.iter().flat_map(|t| &t.statements) {
            for (probe, heard) in &statement.heard {
                ledger.hear(statement.id, probe, heard);
            }
        }
        self.bury(&mut ledger);
        ledger
    }

    /// Rows that are gone: whoever says that it took them away has, if it has committed.
    fn bury(&self, ledger: &mut Ledger) {
        let mut ended: Vec<&TransactionTold> =
            self.transactions.iter().filter(|t| status(t.how) != Status::Aborted).collect();
        ended.sort_by_key(|t| t.times.map(|(_, end)| end));
        for statement in ended.iter().flat_map(|t| &t.statements).filter(|s| !s.undone) {
            let gone = ledger.deleted.get(&statement.id).cloned().unwrap_or_default();
            for entry in gone {
                let story = ledger.story(&entry);
                if story.stored {
                    continue;
                }
                let end = story.end.get_or_insert_with(|| without_repetition(&entry.writes));
                end.push(statement.id);
            }
        }
        // What a REPLACE found and left where it was.
        let stored: BTreeSet<String> = ledger
            .rows
            .iter()
            .filter(|(_, story)| story.stored)
            .map(|(row, _)| row.clone())
            .collect();
        for statement in self.transactions.iter().flat_map(|t| &t.statements) {
            let only_looked = statement
                .heard
                .iter()
                .any(|(probe, _)| matches!(probe, Probe::Rows { what: RowsOf::Replaced, .. }));
            if only_looked && let Some(gone) = ledger.deleted.get_mut(&statement.id) {
                gone.retain(|entry| !stored.contains(&entry.row));
            }
        }
    }

    /// The rows that each statement wrote or took away, as far as any answer told.
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
        for (row, story) in self.ledger().rows {
            let Some(end) = &story.end else { continue };
            let held = end.iter().take_while(|id| over(id)).count();
            let gone = !story.stored && held == end.len();
            let unborn = held == 0 && (Entry { row, writes: Vec::new() }).inserted_by().is_some();
            let last = held.checked_sub(1).map(|at| end[at]);
            if let Some(holds) = story.holds.get(&last).filter(|_| !gone && !unborn) {
                tables[story.table].push(holds.clone());
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
        for (row, story) in &ledger.rows {
            if let Some(evaluation) = all.get_mut(&story.table) {
                let mut versions: Vec<_> = story.holds.iter().collect();
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
        statement: &StatementTold,
        see: &mut dyn FnMut(&Predicate, Vec<Entry>),
    ) {
        for (probe, heard) in &statement.heard {
            match (probe, heard) {
                (Probe::Read { cells, locking, .. }, Heard::Read(found)) => {
                    if *locking && !self.writes_read {
                        continue;
                    }
                    for (cell, entries) in cells.iter().zip(found) {
                        if let Some(predicate) = cell {
                            see(predicate, entries.clone());
                        }
                    }
                }
                (Probe::Rows { predicate: Some(predicate), what, .. }, Heard::Rows(rows))
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

    /// The history. For each evaluation and each of its predicates, which of the versions
    /// satisfy it; none where the engine could not say.
    pub fn account(&self, evaluated: &[(Evaluation, Vec<Option<Vec<bool>>>)]) -> Account {
        let ledger = self.ledger();
        let (history, predicate_reads) = Writer::write(self, &ledger, evaluated);
        let vanished = ledger.rows.values().filter(|story| story.end.is_none()).count();
        Account { history, predicate_reads, vanished }
    }
}

impl Ledger {
    fn story(&mut self, entry: &Entry) -> &mut RowStory {
        let story = self.rows.entry(entry.row.clone()).or_default();
        story.table = entry.table().unwrap_or_default();
        story
    }

    fn note(&mut self, entry: &Entry) {
        let story = self.story(entry);
        if story.longest.len() < entry.writes.len() {
            story.longest = without_repetition(&entry.writes);
        }
        for id in &entry.writes {
            self.wrote.entry(*id).or_default().insert(entry.row.clone());
        }
    }

    fn whole(&mut self, version: &Version) {
        let entry = &version.entry;
        self.note(entry);
        // What it was made of may be gone without anybody else having seen it.
        version.origin.iter().for_each(|origin| self.note(origin));
        if let Some(creator) = entry.inserted_by()
            && !version.origin.is_empty()
        {
            let origins = self.origins.entry(creator).or_default();
            origins.extend(
                version.origin.iter().filter(|o| !origins.contains(o)).cloned().collect::<Vec<_>>(),
            );
        }
        let story = self.story(entry);
        story.holds.insert(entry.last(), version.holds.clone());
        // The image before the last write is the last one.
        for (back, image) in version.past.iter().rev().enumerate() {
            let Some(length) = entry.writes.len().checked_sub(back + 1) else { break };
            let last = length.checked_sub(1).map(|at| entry.writes[at]);
            // A statement that wrote twice left what it wrote last.
            if last != entry.writes.get(length).copied() {
                story.holds.insert(last, image.clone());
            }
        }
    }

    fn hear(&mut self, id: StatementId, probe: &Probe, heard: &Heard) {
        match heard {
            Heard::Nothing | Heard::Count(_) => {}
            Heard::Read(cells) => cells.iter().flatten().for_each(|entry| self.note(entry)),
            Heard::Rows(rows) => {
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

impl RowStory {
    /// Whether all versions that anybody may have seen are known, with what they hold.
    pub(super) fn is_known(&self) -> bool {
        let Some(end) = &self.end else { return false };
        // Who took it away left nothing.
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

// The separators are what `hearing` splits at.
const _: () = assert!(NEXT == ',' && WRITTEN_BY == '@');
