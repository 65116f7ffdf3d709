//! Exports the ledger as a history for the checker.

use super::decode::{Entry, ProbeResult};
use super::history::{
    ExtractedHistory, Ledger, ObservedRun, RowVersions, StatementObservation,
    TransactionObservations, status, without_repetition,
};
use super::{Evaluation, Predicate, Probe, RowsOf, StatementId};
use isolde_checker::{Builder, History, Item, Status, Value as Written};
use isolde_model::value::Row;
use isolde_sql::render::Renderer;
use std::collections::BTreeSet;

impl ObservedRun<'_> {
    /// The history. For each evaluation and each of its predicates, which of the versions
    /// satisfy it; none where the engine could not say.
    pub fn extract_history(
        &self,
        evaluated: &[(Evaluation, Vec<Option<Vec<bool>>>)],
    ) -> ExtractedHistory {
        let ledger = self.ledger();
        let (history, predicate_reads) = Writer::write(self, &ledger, evaluated);
        let vanished = ledger.rows.values().filter(|chain| chain.end.is_none()).count();
        ExtractedHistory { history, predicate_reads, vanished }
    }
}

struct Writer<'t, 'i> {
    observed: &'t ObservedRun<'i>,
    builder: Builder,
    ledger: &'t Ledger,
    evaluated: &'t [(Evaluation, Vec<Option<Vec<bool>>>)],
    predicate_reads: usize,
}

impl<'t, 'i> Writer<'t, 'i> {
    /// The history, and how many predicate reads are in it.
    fn write(
        observed: &'t ObservedRun<'i>,
        ledger: &'t Ledger,
        evaluated: &'t [(Evaluation, Vec<Option<Vec<bool>>>)],
    ) -> (History, usize) {
        let builder = Builder::new();
        let mut writer = Writer { observed, builder, ledger, evaluated, predicate_reads: 0 };
        writer.predicates();
        observed.transactions.iter().for_each(|transaction| writer.transaction(transaction));
        writer.end();
        (writer.builder.finish(), writer.predicate_reads)
    }

    fn item(&mut self, row: &str) -> Item {
        let name = self.observed.instrument.row_name(row);
        self.builder.item(&name)
    }

    fn name(&self, predicate: &Predicate) -> String {
        let instrument = self.observed.instrument;
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
                    if *satisfied && self.ledger.rows.get(row).is_some_and(RowVersions::is_known) {
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

    fn transaction(&mut self, transaction: &TransactionObservations) {
        let session = self.builder.session(&transaction.session);
        self.builder.begin(session);
        self.builder.name_transaction(&transaction.name);
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
            self.builder.name_transaction(&format!("{} (taken back)", transaction.name));
            undone.iter().for_each(|id| self.writes(*id, ""));
            self.builder.end(Status::Aborted);
        }
    }

    fn statement(&mut self, statement: &StatementObservation, status: Status) {
        let (observed, ledger) = (self.observed, self.ledger);
        // Where they see what is current, they say nothing about the transaction's snapshot.
        let writes_count = observed.writes_read || !observed.instrument.capabilities.reads_current;
        for (probe, results) in &statement.results {
            match (probe, results) {
                (Probe::Read { locking, .. }, ProbeResult::Read(cells))
                    if !*locking || writes_count =>
                {
                    self.reads(cells.iter().flatten(), statement);
                }
                (Probe::Rows { what: RowsOf::Deleted, .. }, ProbeResult::Rows(rows))
                    if writes_count =>
                {
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
            observed.found(statement, &mut |p, entries| found.push((p.clone(), entries)));
            for (predicate, entries) in found {
                self.predicate_read(&predicate, entries, statement);
            }
        }
        self.writes(statement.id, &statement.text);
    }

    fn reads<'e>(
        &mut self,
        entries: impl Iterator<Item = &'e Entry>,
        statement: &StatementObservation,
    ) {
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
        statement: &StatementObservation,
    ) {
        // Where the statement and an evaluation on the versions disagree about a row, the
        // condition depends on more than the row.
        if !self.says(predicate) || !entries.iter().all(|entry| self.agrees(predicate, entry)) {
            return;
        }
        let known =
            |entry: &&Entry| self.ledger.rows.get(&entry.row).is_some_and(RowVersions::is_known);
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

    /// Adds a final session that reads all rows after the run.
    fn end(&mut self) {
        let session = self.builder.session("end");
        self.builder.begin(session);
        self.builder.name_transaction("the end");
        if let Some(last) =
            self.observed.transactions.iter().filter_map(|t| t.times).map(|t| t.1).max()
        {
            self.builder.times(last + 1, last + 2);
        }
        for (row, chain) in &self.ledger.rows {
            let Some(end) = &chain.end else { continue };
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
