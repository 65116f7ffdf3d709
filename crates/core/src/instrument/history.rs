//! What all answers of a run tell together: a history for the checker.
//!
//! ```text
//!   Told ──► Ledger: rows, who wrote them, what they held ──► Evaluation ──► engine
//!     └──────────────┴──► Account: checker::History ◄────────── which versions satisfy ─┘
//! ```

use super::hearing::{Entry, Heard, Version};
use super::{Evaluation, Instrument, Predicate, Probe, RowsOf, StatementId};
use crate::history::TxEnd;
use crate::instrument::tables::{NEXT, WRITTEN_BY};
use crate::sql::render::Renderer;
use crate::value::Row;
use isolde_checker::{Builder, History, Item, Status, Value as Written};
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
struct Ledger {
    rows: BTreeMap<String, RowStory>,
    /// The rows that each statement wrote.
    wrote: HashMap<StatementId, BTreeSet<String>>,
    /// The rows that each statement took away, as they were.
    deleted: HashMap<StatementId, Vec<Entry>>,
    /// What INSERT … SELECT read.
    origins: HashMap<StatementId, Vec<Entry>>,
}

#[derive(Default)]
struct RowStory {
    table: usize,
    /// By the last writer.
    holds: HashMap<Option<StatementId>, Row>,
    /// Its writers at the end, with who took it away.
    end: Option<Vec<StatementId>>,
    stored: bool,
}

impl<'i> Told<'i> {
    fn ledger(&self) -> Ledger {
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
    fn found(&self, statement: &StatementTold, see: &mut dyn FnMut(&Predicate, Vec<Entry>)) {
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
        let mut writer = Writer {
            told: self,
            builder: Builder::new(),
            ledger: &ledger,
            evaluated,
            predicate_reads: 0,
        };
        writer.predicates();
        self.transactions.iter().for_each(|transaction| writer.transaction(transaction));
        writer.end();
        let vanished = ledger.rows.values().filter(|story| story.end.is_none()).count();
        let predicate_reads = writer.predicate_reads;
        Account { history: writer.builder.finish(), predicate_reads, vanished }
    }
}

impl Ledger {
    fn story(&mut self, entry: &Entry) -> &mut RowStory {
        let story = self.rows.entry(entry.row.clone()).or_default();
        story.table = entry.table().unwrap_or_default();
        story
    }

    fn note(&mut self, entry: &Entry) {
        self.story(entry);
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

struct Writer<'t, 'i> {
    told: &'t Told<'i>,
    builder: Builder,
    ledger: &'t Ledger,
    evaluated: &'t [(Evaluation, Vec<Option<Vec<bool>>>)],
    predicate_reads: usize,
}

impl Writer<'_, '_> {
    fn item(&mut self, row: &str) -> Item {
        let digits = row.find(|c: char| !c.is_ascii_digit()).unwrap_or(0);
        let table = row[..digits].parse::<usize>().ok();
        let table = table.and_then(|t| self.told.instrument.schema.tables.get(t));
        let name = table.map_or("", |t| t.name.as_str());
        let number = row[digits..].trim_start_matches(['r', 's']);
        let number = number.trim_end_matches('+');
        // Rows of the setup and inserted ones are told apart: `t#3`, `t#17.0`.
        self.builder.item(&format!("{name}#{number}"))
    }

    fn name(&self, predicate: &Predicate) -> String {
        let instrument = self.told.instrument;
        let table = &instrument.schema.tables[predicate.table].name;
        match &predicate.filter {
            None => format!("all rows of {table}"),
            Some(filter) => {
                let filter = Renderer::new(&instrument.dialect).expr(filter);
                format!("{table} where {filter}")
            }
        }
    }

    /// Which versions satisfy what, of rows whose versions are all known.
    fn predicates(&mut self) {
        for (evaluation, satisfied) in self.evaluated {
            for (predicate, satisfied) in evaluation.predicates.iter().zip(satisfied) {
                let Some(satisfied) = satisfied else { continue };
                let name = self.name(predicate);
                for ((row, last, _), satisfied) in evaluation.versions.iter().zip(satisfied) {
                    if *satisfied && self.ledger.rows.get(row).is_some_and(RowStory::is_known) {
                        let item = self.item(row);
                        self.builder.satisfies(&name, (item, value(*last)));
                    }
                }
            }
        }
    }

    fn says(&self, predicate: &Predicate) -> bool {
        self.evaluated.iter().any(|(evaluation, satisfied)| {
            let at = evaluation.predicates.iter().position(|p| p == predicate);
            at.is_some_and(|at| satisfied[at].is_some())
        })
    }

    /// Whether the engine says of a version, which a statement has found, that it
    /// satisfies the predicate.
    fn agrees(&self, predicate: &Predicate, entry: &Entry) -> bool {
        self.evaluated.iter().any(|(evaluation, satisfied)| {
            let Some(at) = evaluation.predicates.iter().position(|p| p == predicate) else {
                return false;
            };
            let version = |(row, last, _): &(String, Option<StatementId>, Row)| {
                *row == entry.row && *last == entry.last()
            };
            let place = evaluation.versions.iter().position(version);
            let says = |place: usize| satisfied[at].as_ref().is_some_and(|s| s[place]);
            // Of a version that was never seen whole nothing can be said against it.
            place.is_none_or(says)
        })
    }

    fn transaction(&mut self, transaction: &TransactionTold) {
        let session = self.builder.session(&transaction.session);
        self.builder.begin(session);
        self.builder.call(&transaction.name);
        let status = status(transaction.how);
        if let Some((begin, end)) = transaction.times {
            self.builder.times(begin, if status == Status::Unknown { u64::MAX } else { end });
        }
        for statement in transaction.statements.iter().filter(|s| !s.undone) {
            self.statement(statement, status);
        }
        self.builder.end(status);
        // What a savepoint took back may have been seen by others, as what was rolled back.
        let undone: Vec<StatementId> =
            transaction.statements.iter().filter(|s| s.undone).map(|s| s.id).collect();
        let seen = undone.iter().any(|id| self.ledger.wrote.contains_key(id));
        if seen {
            let session = self.builder.new_session();
            self.builder.begin(session);
            self.builder.call(&format!("{} (taken back)", transaction.name));
            undone.iter().for_each(|id| self.writes(*id, ""));
            self.builder.end(Status::Aborted);
        }
    }

    fn statement(&mut self, statement: &StatementTold, status: Status) {
        let (told, ledger) = (self.told, self.ledger);
        for (probe, heard) in &statement.heard {
            match (probe, heard) {
                (Probe::Read { locking, .. }, Heard::Read(cells)) => {
                    let counts =
                        !*locking || told.writes_read || !told.instrument.means.reads_current;
                    if counts {
                        self.reads(cells.iter().flatten(), statement);
                    }
                }
                (Probe::Rows { what: RowsOf::Deleted, .. }, Heard::Rows(rows)) => {
                    if told.writes_read || !told.instrument.means.reads_current {
                        self.reads(rows.iter().map(|version| &version.entry), statement);
                    }
                }
                _ => {}
            }
        }
        if let Some(origins) = ledger.origins.get(&statement.id)
            && (told.writes_read || !told.instrument.means.reads_current)
        {
            self.reads(origins.iter(), statement);
        }
        if status != Status::Aborted {
            let mut found = Vec::new();
            told.found(statement, &mut |p, entries| found.push((p.clone(), entries)));
            for (predicate, entries) in found {
                self.predicate_read(&predicate, entries, statement);
            }
        }
        self.writes(statement.id, &statement.text);
    }

    fn reads<'e>(&mut self, entries: impl Iterator<Item = &'e Entry>, statement: &StatementTold) {
        let mut before: Vec<&Entry> = Vec::new();
        for entry in entries {
            if before.contains(&entry) {
                continue;
            }
            before.push(entry);
            let item = self.item(&entry.row);
            let list: Vec<Written> =
                without_repetition(&entry.writes).into_iter().map(Written).collect();
            self.builder.read_list(item, &list);
            self.builder.statement(&statement.text);
        }
    }

    fn predicate_read(
        &mut self,
        predicate: &Predicate,
        entries: Vec<Entry>,
        statement: &StatementTold,
    ) {
        // Where the statement and a look at the versions do not say the same of a row, the
        // condition hangs on more than the row.
        if !self.says(predicate) || !entries.iter().all(|entry| self.agrees(predicate, entry)) {
            return;
        }
        let known =
            |entry: &&Entry| self.ledger.rows.get(&entry.row).is_some_and(RowStory::is_known);
        let known: Vec<Entry> = entries.iter().filter(known).cloned().collect();
        let mut matched = Vec::new();
        for entry in known {
            matched.push((self.item(&entry.row), value(entry.last())));
        }
        matched.sort_unstable();
        matched.dedup();
        let name = self.name(predicate);
        self.builder.predicate_read(&name, &matched);
        self.builder.statement(&statement.text);
        self.predicate_reads += 1;
    }

    fn writes(&mut self, id: StatementId, text: &str) {
        let ledger = self.ledger;
        let rows: BTreeSet<&String> = ledger.wrote.get(&id).into_iter().flatten().collect();
        let gone = ledger.deleted.get(&id).into_iter().flatten().map(|entry| &entry.row);
        for row in rows.into_iter().chain(gone.collect::<BTreeSet<_>>()) {
            let item = self.item(row);
            self.builder.append(item, Written(id));
            self.builder.statement(text);
        }
    }

    /// Whoever looks at everything when all is over.
    fn end(&mut self) {
        let session = self.builder.session("end");
        self.builder.begin(session);
        self.builder.call("the end");
        if let Some(last) = self.told.transactions.iter().filter_map(|t| t.times).map(|t| t.1).max()
        {
            self.builder.times(last + 1, last + 2);
        }
        for (row, story) in &self.ledger.rows {
            let Some(end) = &story.end else { continue };
            let item = self.item(row);
            let list: Vec<Written> = end.iter().copied().map(Written).collect();
            self.builder.read_list(item, &list);
            self.builder.statement("all rows at the end");
        }
        self.builder.end(Status::Committed);
    }
}

impl RowStory {
    /// Whether all versions that anybody may have seen are known, with what they hold.
    fn is_known(&self) -> bool {
        let Some(end) = &self.end else { return false };
        // Who took it away left nothing.
        let held = if self.stored { end.len() } else { end.len().saturating_sub(1) };
        end[..held].iter().all(|id| self.holds.contains_key(&Some(*id)))
    }
}

fn value(last: Option<StatementId>) -> Written {
    last.map_or(Written::INITIAL, Written)
}

fn status(how: TxEnd) -> Status {
    match how {
        TxEnd::Committed => Status::Committed,
        TxEnd::RolledBack | TxEnd::Aborted => Status::Aborted,
        TxEnd::Lost | TxEnd::Unknown => Status::Unknown,
    }
}

/// A statement that wrote a row twice is one writer.
fn without_repetition(writes: &[StatementId]) -> Vec<StatementId> {
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
