//! One statement after the other: reads, locking reads, savepoints.

use super::Stop;
use super::commit::TakenTwice;
use super::conclude::{Expected, Trouble};
use super::store::{Place, TxId, Version, VersionId};
use super::version_tables::View;
use super::walk::Walk;
use crate::Value;
use crate::history::{ErrorClass, What};
use crate::sql::{Conflict, Select, Stmt};
use crate::value::{Row, same_multiset};

impl<'a> Walk<'a> {
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
        if self.txs[tx].failed && !matches!(statement, Stmt::RollbackTo(_)) {
            return self.poisoned(step, reply);
        }
        self.hide_taken_rows(tx, statement);
        match statement {
            Stmt::Select(select) => match &select.locking {
                None => self.read(tx, step, select).await,
                Some(_) if self.merges(tx) => self.read(tx, step, select).await,
                Some(locking) => {
                    let stop = self.locking_read(tx, step, select, locking).await;
                    self.or_refused_alike(tx, step, stop)
                }
            },
            Stmt::Update(update) => {
                let stop = self.update(tx, step, update).await;
                self.or_refused_alike(tx, step, stop)
            }
            Stmt::Delete(delete) => {
                let stop = self.delete(tx, step, delete).await;
                self.or_refused_alike(tx, step, stop)
            }
            Stmt::Insert(insert) => {
                let stop = self.insert(tx, step, insert).await;
                self.or_refused_alike(tx, step, stop)
            }
            Stmt::Savepoint(name) => {
                if self.conduct(tx).savepoint_reads {
                    self.snapshot(tx, step);
                }
                if reply.is_some_and(|r| r.error().is_none()) {
                    let before = self.statements;
                    let session = self.txs[tx].session.clone();
                    self.savepoints.entry(session).or_default().push((name.clone(), before));
                }
                Ok(())
            }
            Stmt::Release(name) => {
                if reply.is_some_and(|r| r.error().is_none()) {
                    let session = self.txs[tx].session.clone();
                    let points = self.savepoints.entry(session).or_default();
                    let place = points.iter().rposition(|(n, _)| n == name);
                    points.truncate(place.unwrap_or(points.len()));
                }
                Ok(())
            }
            Stmt::RollbackTo(name) => {
                if reply.is_some_and(|r| r.error().is_none()) {
                    self.roll_back_to(tx, step, name);
                }
                Ok(())
            }
            Stmt::Prepare { name, statement } => {
                let session = self.subject.history.steps[step].session.as_str();
                self.prepared.insert((session, name.as_str()), statement);
                self.kept_snapshot(tx, step);
                Ok(())
            }
            Stmt::Execute(name) => {
                let session = self.subject.history.steps[step].session.as_str();
                let Some(prepared) = self.prepared.get(&(session, name.as_str())).copied() else {
                    return Err(Stop::not_modelled(step, "what it executes is not known"));
                };
                Box::pin(self.statement(tx, step, prepared)).await
            }
            Stmt::Begin(_)
            | Stmt::Commit
            | Stmt::Rollback
            | Stmt::SetAutocommit(_)
            | Stmt::SetTransaction(_) => self.control(tx, step).await,
            Stmt::CreateIndex { .. }
            | Stmt::DropIndex { .. }
            | Stmt::AddColumn { .. }
            | Stmt::Truncate(_) => {
                Err(Stop::not_modelled(step, "changes of the schema are not modelled"))
            }
        }
    }

    /// Of two rows with one key a scan finds both, a search by that key the
    /// one that was written last: the optimizer's choice.
    fn hide_taken_rows(&mut self, tx: TxId, statement: &Stmt) {
        self.hidden.clear();
        let names = statement.tables();
        let lives = |place: Place| self.newest(place, tx).is_some_and(|v| !v.dead);
        let shows = |t: &&TakenTwice| {
            let name = self.subject.reading.schema.tables[t.old.table].name.as_str();
            t.by == tx && names.contains(&name) && lives(t.old) && lives(t.new)
        };
        let twice: Vec<TakenTwice> = self.taken_twice.iter().filter(shows).copied().collect();
        let looks = !matches!(statement, Stmt::Insert(i) if i.conflict == Conflict::Fail);
        let chosen = if looks && !twice.is_empty() { self.choices.choose(3) } else { 0 };
        self.hidden = match chosen {
            0 => Vec::new(),
            1 => twice.iter().map(|t| (tx, t.old)).collect(),
            _ => twice.iter().map(|t| (tx, t.new)).collect(),
        };
    }

    fn poisoned(&mut self, step: usize, reply: Option<&What>) -> Result<(), Stop> {
        match reply.and_then(What::error) {
            Some(error) if error.class == ErrorClass::Poisoned => Ok(()),
            Some(_) | None if reply.is_none() => Ok(()),
            _ => Err(Stop::not_modelled(step, "its transaction had failed")),
        }
    }

    /// A statement that the engine refuses to evaluate alone, too, for the
    /// same reason: that is the outcome of the statement itself.
    pub fn or_refused_alike(
        &mut self,
        tx: TxId,
        step: usize,
        result: Result<(), Stop>,
    ) -> Result<(), Stop> {
        let Err(Stop::Refused { error, .. }) = &result else { return result };
        let seen = self.subject.reply(step).and_then(What::error);
        if seen.is_some_and(|seen| seen.code == error.code) {
            self.poison(tx);
            return Ok(());
        }
        result
    }

    fn roll_back_to(&mut self, tx: TxId, step: usize, name: &str) {
        let points = self.savepoints.entry(self.txs[tx].session.clone()).or_default();
        let Some(place) = points.iter().rposition(|(n, _)| n == name) else { return };
        points.truncate(place + 1);
        let before = points[place].1;
        self.txs[tx].failed = false;
        self.store.roll_back(tx, Some(before));
        self.marks.retain(|m| m.by != tx || m.statement <= before);
        // What is to be locked at the COMMIT stays so.
        let stays = self.buffers(tx);
        self.locks.retain(|l| l.by != tx || stays || l.statement <= before);
        self.taken_twice.retain(|t| t.by != tx || t.statement <= before);
        self.use_rule(step, self.conduct(tx).rules.savepoint);
    }

    async fn read(&mut self, tx: TxId, step: usize, select: &'a Select) -> Result<(), Stop> {
        if self.plain_reads_lock(tx, step) {
            return self.locking_query(tx, step, select).await;
        }
        if self.put_off(tx, step, select)? {
            return Ok(());
        }
        let mut trouble = Trouble::default();
        self.lock_tables(tx, step, None, &mut trouble);
        let names = select.sources();
        let had_snapshot = self.txs[tx].snapshot;
        let mut view = View::new();
        for (table, of) in self.subject.reading.schema.tables.iter().enumerate() {
            let read = names.contains(&of.name.as_str());
            view.push(if read { self.plain_view_of(table, tx, step)? } else { Vec::new() });
        }
        let sql = self.tables.select(select, &view);
        let rows = match self.evaluate(sql, Some(step)).await {
            Ok(rows) => rows,
            Err(stop) => return self.or_refused_alike(tx, step, Err(stop)),
        };
        let rows = self.or_materialised(step, select, &view, rows).await?;
        // A query that the optimizer answers without a look makes no view.
        let unread = self.conduct(tx).unread.filter(|_| had_snapshot.is_none());
        if let Some(rule) = unread.filter(|_| is_trivial(&rows))
            && self.choices.choose(2) == 1
        {
            self.txs[tx].snapshot = None;
            self.use_rule(step, rule);
        }
        self.use_rule(step, self.conduct(tx).rules.read);
        self.use_own_writes(tx, step, &view);
        self.conclude(tx, step, Expected::Rows(rows), trouble, None)
    }

    /// What the transaction itself wrote is among what it reads.
    fn use_own_writes(&mut self, tx: TxId, step: usize, view: &View) {
        let own = |v: &Version| v.by == tx && view.iter().any(|ids| ids.contains(&v.id));
        let mut chains = self.store.tables.iter().flatten();
        if chains.any(|chain| chain.versions.iter().any(own)) {
            self.use_rule(step, self.conduct(tx).rules.own_writes);
        }
    }

    /// A query over derived tables goes other ways through an optimizer than
    /// one over tables. If it does not give what was seen, it is asked once
    /// more, over tables.
    pub async fn or_materialised(
        &mut self,
        step: usize,
        select: &Select,
        view: &View,
        rows: Vec<Row>,
    ) -> Result<Vec<Row>, Stop> {
        let seen = self.subject.reply(step).and_then(What::rows);
        if seen.is_none_or(|seen| same_multiset(seen, &rows)) {
            return Ok(rows);
        }
        let sql = self.tables.select_materialised(select, view);
        self.evaluate(sql, Some(step)).await
    }

    pub fn table(&self, name: &str, step: usize) -> Result<usize, Stop> {
        let place = self.subject.reading.schema.tables.iter().position(|t| t.name == name);
        place.ok_or_else(|| Stop::not_modelled(step, "it writes a table that is not known"))
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
    let mut default = false;
    statement.visit(&mut |e| default |= matches!(e, crate::sql::Expr::Default));
    match statement {
        _ if default => Some("DEFAULT as a value is not modelled"),
        Stmt::Select(select) => {
            let open = select.limit.is_some()
                && !matches!(select.order, crate::sql::Order::AllItems { .. });
            let of = select.locking.as_ref().is_some_and(|l| !l.of.is_empty());
            if open {
                Some("which rows LIMIT leaves is not modelled")
            } else {
                of.then_some("a lock OF some tables is not modelled")
            }
        }
        Stmt::Update(u) if u.limit.is_some() || !u.order.is_empty() => {
            Some("UPDATE with ORDER BY or LIMIT is not modelled")
        }
        Stmt::Delete(d) if d.limit.is_some() || !d.order.is_empty() => {
            Some("DELETE with ORDER BY or LIMIT is not modelled")
        }
        Stmt::Update(u) if !u.returning.is_empty() => Some("RETURNING is not modelled"),
        Stmt::Delete(d) if !d.returning.is_empty() => Some("RETURNING is not modelled"),
        Stmt::Insert(i) if !i.returning.is_empty() => Some("RETURNING is not modelled"),
        Stmt::Insert(i) => match &i.conflict {
            Conflict::Update { filter: Some(_), .. } => {
                Some("ON CONFLICT with a condition is not modelled")
            }
            Conflict::DoNothing { key } if !key.is_empty() => {
                Some("ON CONFLICT DO NOTHING with a key is not modelled")
            }
            _ => None,
        },
        _ => None,
    }
}

/// No rows, or one that counts none: what an optimizer may answer by itself.
fn is_trivial(rows: &[Row]) -> bool {
    let nothing = |v: &Value| matches!(v, Value::Null | Value::Int(0));
    rows.is_empty() || rows.len() == 1 && rows[0].iter().all(nothing)
}
