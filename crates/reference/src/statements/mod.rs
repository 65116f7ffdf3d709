//! Predicts single statements: reads, writes, savepoints.

mod clustered_index;
mod current_read;
pub use current_read::decides_by_row;
pub use limit::leaves_rows_open;
mod dirty_read;
mod foreseen;
mod insert;
mod limit;
mod lock_holders;
mod locking_read;
mod merge;
mod returning;
mod shared_keys;
mod table_locks;
mod waits;
mod write;
mod write_snapshot;

use crate::model::DuplicateKey;
use crate::model::ReferenceModel;
use crate::outcome::{Expected, ExpectedErrors, is_of_rules, is_refused_for_its_role};
use crate::stop::Stop;
use crate::version_tables::{VersionId, View};
use crate::world::{Place, TxId, Version, same_key};
use isolde_catalog::{RowStorage, Waits};
use isolde_model::history::{ErrorClass, EventKind};
use isolde_model::parsed_case::Operation;
use isolde_model::parsed_case::utility::Utility;
use isolde_model::value::{Row, same_multiset};
use isolde_model::{Level, Value};
use isolde_sql::lexer::{TwoPhase, two_phase};
use isolde_sql::{Conflict, Control, Ddl, Select, Stmt, Write};

impl<'a> ReferenceModel<'a> {
    pub async fn statement(
        &mut self,
        tx: TxId,
        step: usize,
        statement: &'a Stmt,
    ) -> Result<(), Stop> {
        let reply = self.subject.reply(step);
        if let Some(why) = beyond(statement) {
            return Err(Stop::not_modelled(step, why));
        }
        if self.world.tx(tx).failed && !matches!(statement, Stmt::Control(Control::RollbackTo(_))) {
            return self.check_failed_transaction(step, reply);
        }
        self.restart_after_schema_lock(tx, step, statement);
        self.hide_duplicate_rows(tx, statement);
        if !matches!(statement, Stmt::Select(select) if select.locking.is_none()) {
            self.foresee_changes(tx, step).await?;
        }
        match statement {
            Stmt::Select(select) => match &select.locking {
                None => self.read(tx, step, select).await,
                Some(_) if self.world.merges(tx) => self.read(tx, step, select).await,
                Some(locking) => {
                    let stop = self.locking_read(tx, step, select, locking).await;
                    self.accept_same_error(tx, step, stop)
                }
            },
            Stmt::Write(Write::Update(update)) => {
                let stop = self.update(tx, step, update).await;
                self.accept_same_error(tx, step, stop)
            }
            Stmt::Write(Write::Delete(delete)) => {
                let stop = self.delete(tx, step, delete).await;
                self.accept_same_error(tx, step, stop)
            }
            Stmt::Write(Write::Merge(merge)) => {
                let stop = self.merge_statement(tx, step, merge).await;
                self.accept_same_error(tx, step, stop)
            }
            Stmt::Write(Write::Insert(insert)) => {
                let stop = self.insert(tx, step, insert).await;
                self.accept_same_error(tx, step, stop)
            }
            Stmt::Control(Control::Savepoint(name)) => {
                if self.world.concurrency(tx).snapshot.taken_by_savepoint {
                    self.snapshot(tx, step);
                }
                if reply.is_some_and(|r| r.error().is_none()) {
                    self.world.add_savepoint(tx, name);
                }
                Ok(())
            }
            Stmt::Control(Control::Release(name)) => {
                if reply.is_some_and(|r| r.error().is_none()) {
                    self.world.release_savepoint(tx, name);
                }
                Ok(())
            }
            Stmt::Control(Control::RollbackTo(name)) => {
                if reply.is_some_and(|r| r.error().is_none()) {
                    self.roll_back_to(tx, step, name);
                }
                Ok(())
            }
            Stmt::Prepare { name, statement } => {
                let session = self.subject.history.steps[step].session.as_str();
                if reply.is_none_or(|r| r.error().is_none()) {
                    self.prepare(session, name, statement);
                }
                if self.world.concurrency(tx).snapshot.taken_by_prepare {
                    self.kept_snapshot(tx, step);
                }
                Ok(())
            }
            Stmt::Execute(name) => {
                let Some(prepared) = self.prepared(step, name) else {
                    let failed = reply.is_some_and(|r| r.error().is_some());
                    if !failed {
                        return Err(Stop::not_modelled(step, "what it executes is not known"));
                    }
                    // There is no such statement, so it fails and does nothing.
                    self.world.fail(tx);
                    return Ok(());
                };
                Box::pin(self.statement(tx, step, prepared)).await
            }
            Stmt::Control(
                Control::Begin(_)
                | Control::Commit
                | Control::Rollback
                | Control::SetAutocommit(_)
                | Control::SetTransaction(_),
            ) => self.control(tx, step).await,
            Stmt::Ddl(Ddl::Truncate(table)) if self.truncates_in_place(tx) => {
                self.truncate(tx, step, table)
            }
            Stmt::Ddl(ddl) if self.changes_no_result(tx, ddl) => match reply {
                Some(EventKind::Error(error)) => match is_refused_for_its_role(error) {
                    true => self.failed(tx, step, error, &ExpectedErrors::default()),
                    false => Err(Stop::not_modelled(step, "a change of the schema that fails")),
                },
                _ => {
                    if self.world.concurrency(tx).snapshot.taken_without_table {
                        self.kept_snapshot(tx, step);
                    }
                    Ok(())
                }
            },
            Stmt::Ddl(_) => Err(Stop::not_modelled(step, "changes of the schema are not modelled")),
        }
    }

    /// A statement that neither reads nor changes rows. What it returns is not compared.
    pub fn utility(&mut self, tx: TxId, step: usize, utility: &Utility) -> Result<(), Stop> {
        let reply = self.subject.reply(step);
        if self.world.tx(tx).failed {
            return self.check_failed_transaction(step, reply);
        }
        if utility.takes_snapshot && self.world.concurrency(tx).snapshot.taken_without_table {
            self.kept_snapshot(tx, step);
        }
        let Some(EventKind::Error(error)) = reply else {
            let sent = &self.subject.history.steps[step];
            if let Some(TwoPhase::Prepare(_)) = two_phase(&sent.sql) {
                self.world.detach(&sent.session);
            }
            return Ok(());
        };
        let changes = self.subject.reading.changes.iter().any(|(at, _)| *at == step);
        if changes || !is_of_rules(error.class) {
            // What a change of the schema needs is not modelled, and other statements of
            // this kind touch no row: one that fails does nothing.
            self.world.fail(tx);
            return Ok(());
        }
        let rules = self.world.concurrency(tx).rules;
        let mut errors = ExpectedErrors::default();
        if utility.locks_tables() {
            errors.permit(ErrorClass::LockTimeout, rules.held_row);
        }
        self.failed(tx, step, error, &errors)
    }

    /// Chooses when a blocked statement began to execute. It may have waited for the
    /// lock that a change of the schema holds on its table, and takes the snapshot of
    /// the statement after that lock is granted.
    fn restart_after_schema_lock(&mut self, tx: TxId, step: usize, statement: &Stmt) {
        if !self.has_waited(step) || self.world.concurrency(tx).locking.waits != Waits::Rows {
            return;
        }
        let session = &self.subject.history.steps[step].session;
        let tables = statement.tables();
        let operations = self.subject.reading.operations.iter().zip(&self.subject.history.steps);
        let locks_table = |operation: &Operation| match operation {
            Operation::Statement(other) => match other.unprepared() {
                Stmt::Ddl(ddl) => ddl.table().is_none_or(|table| tables.contains(&table)),
                _ => false,
            },
            Operation::Utility(utility) => utility.may_lock(&tables),
            _ => false,
        };
        // READ ONLY DEFERRABLE waits for a snapshot that belongs to a serial order.
        let defers = self.world.tx(tx).snapshot.is_none() && self.defers_snapshot(tx);
        if defers || operations.clone().any(|(o, at)| at.session != *session && locks_table(o)) {
            let mut moments = self.moments(step);
            moments.reverse();
            moments.dedup();
            let chosen = moments[self.search.choose(moments.len())];
            self.world.start(step, chosen);
        }
    }

    /// Whether a transaction is SERIALIZABLE, READ ONLY and DEFERRABLE.
    fn defers_snapshot(&self, tx: TxId) -> bool {
        let recorded = self.world.tx(tx).recorded.map(|n| &self.subject.history.transactions[n]);
        let reading = &self.subject.reading;
        recorded.is_some_and(|t| {
            reading.deferrable.contains(&t.begin) && reading.levels[t.begin] == Level::Serializable
        })
    }

    /// Whether a change of the schema has no effect on results: an index that is not
    /// unique, where indexes decide neither what is locked nor what a scan sees.
    fn changes_no_result(&self, tx: TxId, ddl: &Ddl) -> bool {
        let concurrency = self.world.concurrency(tx);
        if concurrency.locking.waits != Waits::Rows || concurrency.storage != RowStorage::Heap {
            return false;
        }
        match ddl {
            Ddl::CreateIndex { index, .. } => !index.unique,
            Ddl::DropIndex { index: name, .. } => {
                let schema = self.subject.reading.schema.tables.iter();
                let mut known = schema.flat_map(|t| &t.indexes).filter(|i| i.name == *name);
                let created = |operation: &Operation| match operation {
                    Operation::Statement(statement) => matches!(
                        &**statement,
                        Stmt::Ddl(Ddl::CreateIndex { index, .. })
                            if index.name == *name && !index.unique
                    ),
                    _ => false,
                };
                match known.next() {
                    Some(index) => !index.unique,
                    None => self.subject.reading.operations.iter().any(created),
                }
            }
            Ddl::AddColumn { .. } | Ddl::Truncate(_) => false,
        }
    }

    /// Whether TRUNCATE is part of its transaction and removes rows from every snapshot.
    fn truncates_in_place(&self, tx: TxId) -> bool {
        let concurrency = self.world.concurrency(tx);
        concurrency.locking.waits == Waits::Rows && concurrency.storage == RowStorage::Heap
    }

    /// TRUNCATE, which has waited until no other transaction uses the table.
    fn truncate(&mut self, tx: TxId, step: usize, table: &str) -> Result<(), Stop> {
        match self.subject.reply(step) {
            None => return Ok(()),
            Some(EventKind::Error(error)) if is_refused_for_its_role(error) => {
                return self.failed(tx, step, error, &ExpectedErrors::default());
            }
            Some(EventKind::Error(_)) => {
                return Err(Stop::not_modelled(step, "a change of the schema that fails"));
            }
            Some(_) => {}
        }
        let table = self.table(table, step)?;
        self.kept_snapshot(tx, step);
        self.use_rule(step, &isolde_catalog::engines::postgres::P20);
        self.world.truncate(table, tx);
        Ok(())
    }

    /// Hides one of two rows with the same key, or none: a scan finds both, a search by
    /// that key finds the one that was written last. The optimizer chooses.
    fn hide_duplicate_rows(&mut self, tx: TxId, statement: &Stmt) {
        self.world.hide_rows(Vec::new());
        let names = statement.tables();
        let lives = |place: Place| self.world.newest(place, tx).is_some_and(|v| !v.dead);
        let shows = |t: &&DuplicateKey| {
            let name = self.subject.reading.schema.tables[t.old.table].name.as_str();
            names.contains(&name) && lives(t.old) && lives(t.new)
        };
        let buffered = self.commit_buffer.duplicates_of(tx).filter(shows);
        let mut twice: Vec<(Place, Place)> = buffered.map(|d| (d.old, d.new)).collect();
        twice.extend(self.keys_seen_twice(tx, &names));
        let looks =
            !matches!(statement, Stmt::Write(Write::Insert(i)) if i.conflict == Conflict::Fail);
        let chosen = if looks && !twice.is_empty() { self.search.choose(3) } else { 0 };
        let hidden = match chosen {
            0 => Vec::new(),
            1 => twice.iter().map(|(old, _)| (tx, *old)).collect(),
            _ => twice.iter().map(|(_, new)| (tx, *new)).collect(),
        };
        self.world.hide_rows(hidden);
    }

    /// Rows of the snapshot that share a key with a row of the transaction's own: the
    /// write found the key free, because others have deleted or changed the old row
    /// since, while the snapshot still contains it.
    fn keys_seen_twice(&self, tx: TxId, names: &[&str]) -> Vec<(Place, Place)> {
        let Some(snapshot) = self.world.snapshot_of(tx) else { return Vec::new() };
        let folds = self.case_insensitive_keys(tx);
        let mut twice = Vec::new();
        for (table, of) in self.subject.reading.schema.tables.iter().enumerate() {
            if !names.contains(&of.name.as_str()) {
                continue;
            }
            let seen = |place| Some((place, self.world.visible(place, tx, snapshot)?));
            let rows: Vec<(Place, &Version)> = self.world.places(table).filter_map(seen).collect();
            for (new, own) in rows.iter().filter(|(_, version)| version.by == tx) {
                for (old, version) in rows.iter().filter(|(place, _)| place != new) {
                    let same = |key: usize| {
                        let keys = (self.key_of(table, key, own), self.key_of(table, key, version));
                        matches!(keys, (Some(a), Some(b)) if same_key(&a, &b, folds))
                    };
                    if (0..self.keys[table].len()).any(same) {
                        twice.push((*old, *new));
                    }
                }
            }
        }
        twice
    }

    fn check_failed_transaction(
        &mut self,
        step: usize,
        reply: Option<&EventKind>,
    ) -> Result<(), Stop> {
        match reply.and_then(EventKind::error) {
            Some(error) if error.class == ErrorClass::Poisoned => Ok(()),
            Some(_) | None if reply.is_none() => Ok(()),
            _ => Err(Stop::not_modelled(step, "its transaction had failed")),
        }
    }

    /// A statement that the engine refuses to evaluate alone, too, for the
    /// same reason: that is the outcome of the statement itself.
    pub fn accept_same_error(
        &mut self,
        tx: TxId,
        step: usize,
        result: Result<(), Stop>,
    ) -> Result<(), Stop> {
        let Err(Stop::Refused { error, .. }) = &result else { return result };
        let seen = self.subject.reply(step).and_then(EventKind::error);
        if seen.is_some_and(|seen| seen.code == error.code) {
            self.world.fail(tx);
            return Ok(());
        }
        result
    }

    fn roll_back_to(&mut self, tx: TxId, step: usize, name: &str) {
        let Some(before) = self.world.roll_back_to(tx, name) else { return };
        self.commit_buffer.roll_back_to(tx, before);
        self.use_rule(step, self.world.concurrency(tx).rules.savepoint);
    }

    async fn read(&mut self, tx: TxId, step: usize, select: &'a Select) -> Result<(), Stop> {
        if self.plain_reads_lock(tx, step) {
            return self.locking_query(tx, step, select).await;
        }
        if self.defer_dirty_read(tx, step, select)? {
            return Ok(());
        }
        let mut errors = ExpectedErrors::default();
        self.lock_tables(tx, step, None, &mut errors);
        let names = select.sources();
        let had_snapshot = self.world.tx(tx).snapshot;
        if self.world.concurrency(tx).snapshot.taken_without_table {
            self.snapshot(tx, step);
        }
        // A plain read that is blocked waits for a lock on the table, which a change of
        // the schema holds, and may take its snapshot afterwards.
        let moment = self.inner_moment(tx, step);
        let mut view = View::new();
        for (table, of) in self.subject.reading.schema.tables.iter().enumerate() {
            let read = names.contains(&of.name.as_str());
            view.push(match read {
                true => self.inner_view_of(table, (tx, step), moment)?,
                false => Vec::new(),
            });
        }
        self.record_view(tx, step, &view);
        let rows = match self.evaluate_select(step, select, &view).await {
            Ok(rows) => rows,
            Err(stop) => return self.accept_same_error(tx, step, Err(stop)),
        };
        // A query that the optimizer answers without a look makes no view.
        let unread = self.world.concurrency(tx).snapshot.not_taken_by_empty_read;
        let unread = unread.filter(|_| had_snapshot.is_none());
        let unread = unread.filter(|_| is_trivial(&rows)).filter(|_| self.search.choose(2) == 1);
        if let Some(rule) = unread {
            self.world.tx_mut(tx).snapshot = None;
            self.use_rule(step, rule);
            return self.conclude(tx, step, Expected::Rows(rows), errors, None);
        }
        let concurrency = self.world.concurrency(tx);
        let reads_table = |name: &&str| {
            self.subject.reading.schema.tables.iter().any(|table| table.name == **name)
        };
        if concurrency.snapshot.taken_without_table || names.iter().any(reads_table) {
            self.use_rule(step, concurrency.rules.read);
        }
        self.use_own_writes(tx, step, &view);
        self.conclude(tx, step, Expected::Rows(rows), errors, None)
    }

    /// Cites the rule about own writes if the view contains any.
    fn use_own_writes(&mut self, tx: TxId, step: usize, view: &View) {
        let own = |v: &Version| v.by == tx && view.iter().any(|ids| ids.contains(&v.id));
        if self.world.chains().any(|chain| chain.versions.iter().any(own)) {
            self.use_rule(step, self.world.concurrency(tx).rules.own_writes);
        }
    }

    /// Evaluates a query again over tables, if its rows differ from the observed ones:
    /// an optimizer treats a query over derived tables differently.
    pub async fn or_materialised(
        &mut self,
        step: usize,
        select: &Select,
        view: &View,
        rows: Vec<Row>,
    ) -> Result<Vec<Row>, Stop> {
        let seen = self.subject.reply(step).and_then(EventKind::rows);
        if seen.is_none_or(|seen| same_multiset(seen, &rows)) {
            return Ok(rows);
        }
        let sql = self.tables.select_materialised(select, view);
        self.evaluate(sql, Some(step)).await
    }

    /// The view with one table replaced by some of its versions.
    pub fn narrowed(view: &View, table: usize, ids: Vec<VersionId>) -> View {
        let mut view = view.clone();
        view[table] = ids;
        view
    }
}

/// What a statement has in it that no rule here is about.
fn beyond(statement: &Stmt) -> Option<&'static str> {
    let mut locks_below = false;
    statement.visit(&mut |e| {
        locks_below |= e.subquery().is_some_and(|select| select.locking.is_some());
    });
    match statement {
        _ if locks_below => Some("a subquery that locks rows is not modelled"),
        Stmt::Select(select) => {
            let of = select.locking.as_ref().is_some_and(|l| !l.of.is_empty());
            of.then_some("a lock OF some tables is not modelled")
        }
        Stmt::Write(Write::Update(u)) if u.limit.is_none() && !u.order.is_empty() => {
            Some("UPDATE with ORDER BY is not modelled")
        }
        Stmt::Write(Write::Delete(d)) if d.limit.is_none() && !d.order.is_empty() => {
            Some("DELETE with ORDER BY is not modelled")
        }
        Stmt::Write(Write::Update(u)) => returning::beyond(&u.returning, u.join.is_some()),
        Stmt::Write(Write::Delete(d)) => returning::beyond(&d.returning, d.join.is_some()),
        Stmt::Write(Write::Insert(i)) => returning::beyond(&i.returning, false),
        _ => None,
    }
}

/// No rows, or one that counts none: what an optimizer may answer by itself.
fn is_trivial(rows: &[Row]) -> bool {
    let nothing = |v: &Value| matches!(v, Value::Null | Value::Int(0));
    rows.is_empty() || rows.len() == 1 && rows[0].iter().all(nothing)
}
