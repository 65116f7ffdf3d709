//! Writes down for the checker what the ledger knows.

use super::hearing::{Entry, Heard};
use super::history::{
    Ledger, RowStory, StatementTold, Told, TransactionTold, status, without_repetition,
};
use super::{Evaluation, Predicate, Probe, RowsOf, StatementId};
use crate::sql::render::Renderer;
use crate::value::Row;
use isolde_checker::{Builder, History, Item, Status, Value as Written};
use std::collections::BTreeSet;

pub(super) struct Writer<'t, 'i> {
    told: &'t Told<'i>,
    builder: Builder,
    ledger: &'t Ledger,
    evaluated: &'t [(Evaluation, Vec<Option<Vec<bool>>>)],
    predicate_reads: usize,
}

impl<'t, 'i> Writer<'t, 'i> {
    /// The history, and how many predicate reads are in it.
    pub(super) fn write(
        told: &'t Told<'i>,
        ledger: &'t Ledger,
        evaluated: &'t [(Evaluation, Vec<Option<Vec<bool>>>)],
    ) -> (History, usize) {
        let builder = Builder::new();
        let mut writer = Writer { told, builder, ledger, evaluated, predicate_reads: 0 };
        writer.predicates();
        told.transactions.iter().for_each(|transaction| writer.transaction(transaction));
        writer.end();
        (writer.builder.finish(), writer.predicate_reads)
    }

    fn item(&mut self, row: &str) -> Item {
        let name = self.told.instrument.row_name(row);
        self.builder.item(&name)
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
        // Where they see what is current, they say nothing about the transaction's snapshot.
        let writes_count = told.writes_read || !told.instrument.means.reads_current;
        for (probe, heard) in &statement.heard {
            match (probe, heard) {
                (Probe::Read { locking, .. }, Heard::Read(cells)) if !*locking || writes_count => {
                    self.reads(cells.iter().flatten(), statement);
                }
                (Probe::Rows { what: RowsOf::Deleted, .. }, Heard::Rows(rows)) if writes_count => {
                    self.reads(rows.iter().map(|version| &version.entry), statement);
                }
                _ => {}
            }
        }
        if let Some(origins) = ledger.origins.get(&statement.id)
            && writes_count
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

fn value(last: Option<StatementId>) -> Written {
    last.map_or(Written::INITIAL, Written)
}
