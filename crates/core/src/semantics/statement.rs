//! One statement after the other: reads, locking reads, savepoints.

use super::Stop;
use super::conclude::{Expected, Trouble};
use super::current::Scan;
use super::rules::{Changed, SnapshotAt};
use super::store::{Place, TxId, VersionId};
use super::version_tables::{View, Views, whole};
use super::walk::{Strength, Walk};
use crate::Value;
use crate::history::{ErrorClass, What};
use crate::sql::select::sources_below;
use crate::sql::{LockPatience, LockStrength, Locking, Select, Stmt};
use crate::value::{Row, compare_rows, same_multiset};
use std::cmp::Ordering;

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
        match statement {
            Stmt::Select(select) => match &select.locking {
                None => self.read(tx, step, select).await,
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
            | Stmt::SetTransaction(_) => self.control(tx, step),
            Stmt::CreateIndex { .. }
            | Stmt::DropIndex { .. }
            | Stmt::AddColumn { .. }
            | Stmt::Truncate(_) => {
                Err(Stop::not_modelled(step, "changes of the schema are not modelled"))
            }
        }
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
    fn or_refused_alike(
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
        self.locks.retain(|l| l.by != tx || l.statement <= before);
        self.use_rule(step, self.conduct(tx).rules.savepoint);
    }

    async fn read(&mut self, tx: TxId, step: usize, select: &Select) -> Result<(), Stop> {
        if self.conduct(tx).reads_lock && !self.txs[tx].autocommit {
            return self.locking_query(tx, step, select).await;
        }
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
        let first_read = self.conduct(tx).snapshot == SnapshotAt::FirstRead;
        if first_read && had_snapshot.is_none() && is_trivial(&rows) && self.choices.choose(2) == 1
        {
            self.txs[tx].snapshot = None;
        }
        self.use_rule(step, self.conduct(tx).rules.read);
        self.conclude(tx, step, Expected::Rows(rows), Trouble::default(), None)
    }

    /// A query over derived tables goes other ways through an optimizer than
    /// one over tables. If it does not give what was seen, it is asked once
    /// more, over tables.
    async fn or_materialised(
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

    /// A query that locks all it reads, whatever it makes of it.
    async fn locking_query(&mut self, tx: TxId, step: usize, select: &Select) -> Result<(), Stop> {
        let rules = self.conduct(tx).rules;
        let all: Vec<usize> = (0..self.store.tables.len()).collect();
        let view = self.current_view(tx, step, &all, Scan::Waits)?;
        let sql = self.tables.select(select, &view);
        let rows = match self.evaluate(sql, Some(step)).await {
            Ok(rows) => rows,
            Err(stop) => return self.or_refused_alike(tx, step, Err(stop)),
        };
        // Whether it had to wait depends on the index that it read.
        let mut trouble = Trouble::default();
        self.may_meet_changes(tx, &mut trouble);
        let rows = self.or_materialised(step, select, &view, rows).await?;
        self.use_rule(step, rules.read);
        self.conclude(tx, step, Expected::Rows(rows), trouble, None)
    }

    /// A locking read: as a write, each row is waited for, and looked at again
    /// when it has changed.
    async fn locking_read(
        &mut self,
        tx: TxId,
        step: usize,
        select: &Select,
        locking: &Locking,
    ) -> Result<(), Stop> {
        if self.serial && locking.patience == LockPatience::SkipLocked {
            // What it leaves out depends on who else is at work: no serial
            // order has to explain it.
            return Ok(());
        }
        let rules = self.conduct(tx).rules;
        let changed = self.conduct(tx).changed;
        let is_current = changed == Changed::Current;
        let view = if is_current {
            let all: Vec<usize> = (0..self.store.tables.len()).collect();
            self.current_view(tx, step, &all, Scan::Waits)?
        } else {
            let snapshot = self.kept_snapshot(tx, step);
            self.view(tx, snapshot)
        };
        let mut trouble = Trouble::default();
        self.may_meet_changes(tx, &mut trouble);
        if self.txs[tx].read_only && is_current {
            trouble.may(ErrorClass::ReadOnly, rules.write);
        } else if self.txs[tx].read_only {
            trouble.must(ErrorClass::ReadOnly, rules.write, "its transaction is read only");
        }
        let sources = self.sources(select, step)?;
        let twice = sources.iter().enumerate().any(|(n, t)| sources[..n].contains(t));
        if is_current && twice && !self.serial && self.subject.history.outcome(step).waited {
            let why = "a table that is read twice while others commit is not modelled";
            return Err(Stop::not_modelled(step, why));
        }
        let strength = match locking.strength {
            LockStrength::Update => Strength::Update,
            LockStrength::NoKeyUpdate => Strength::NoKeyUpdate,
            LockStrength::Share => Strength::Share,
            LockStrength::KeyShare => Strength::KeyShare,
        };
        let inner = self.inner_view(tx, step, select, &view)?;
        let views = Views { outer: &view, inner: &inner };
        let sql = self.tables.select_with_sources(select, views);
        let found = self.evaluate(sql, Some(step)).await?;
        let mut rows: Vec<Row> = Vec::new();
        // Whatever others scanned may be locked, not only what they found.
        let unclear = self.may_be_taken(&sources, tx) || is_current && self.others_open(tx);
        if unclear && locking.patience == LockPatience::NoWait {
            trouble.may(ErrorClass::LockTimeout, rules.held_row);
        }
        // Which rows were skipped is up to what others scanned: those that were
        // seen must be among those that were there.
        let open_to_skip = unclear && locking.patience == LockPatience::SkipLocked;
        let mut unseen = self.subject.reply(step).and_then(What::rows).unwrap_or_default().to_vec();
        for mut cells in found {
            let row = cells.split_off(sources.len());
            let versions: Vec<VersionId> = cells.iter().filter_map(whole).collect();
            let places: Vec<Option<Place>> =
                sources.iter().zip(&versions).map(|(t, id)| self.store.find(*t, *id)).collect();
            let Some(places) = places.into_iter().collect::<Option<Vec<Place>>>() else {
                return Err(Stop::not_modelled(step, "a row of no known version"));
            };
            if open_to_skip && !take_one(&mut unseen, &row) {
                continue;
            }
            let waits = !(self.conduct(tx).alone_is_optimistic && self.txs[tx].autocommit);
            let holder =
                places.iter().filter(|_| waits).find_map(|p| self.holder(*p, tx, strength));
            if let Some(holder) = holder {
                match locking.patience {
                    LockPatience::SkipLocked => continue,
                    LockPatience::NoWait => {
                        let why = format!("{} holds a row", self.txs[holder].session);
                        trouble.must(ErrorClass::LockTimeout, rules.held_row, why);
                    }
                    LockPatience::Wait | LockPatience::Seconds(_)
                        if is_current && strength != Strength::Update => {}
                    LockPatience::Wait | LockPatience::Seconds(_) => {
                        let why = format!("{} holds a row that it locks", self.txs[holder].session);
                        trouble.held(rules.held_row, why);
                    }
                }
            }
            let newest: Vec<Option<VersionId>> = places
                .iter()
                .map(|p| self.newest(*p, tx).filter(|v| !v.dead).map(|v| v.id))
                .collect();
            let same = newest.iter().zip(&versions).all(|(n, v)| *n == Some(*v));
            if same {
                rows.push(row);
            } else if is_current {
                let why = "it returns a version that was not the newest".into();
                return Err(Stop::Outside { step: Some(step), rule: rules.changed_row, why });
            } else if changed == Changed::Abort {
                let why = "a row that it locks was changed after its snapshot";
                trouble.must(ErrorClass::Serialization, rules.changed_row, why);
                continue;
            } else {
                self.use_rule(step, rules.changed_row);
                let Some(newest) = newest.into_iter().collect::<Option<Vec<VersionId>>>() else {
                    continue;
                };
                if sources.iter().enumerate().any(|(n, t)| sources[..n].contains(t)) {
                    let why = "a second look at one table that was read twice is not modelled";
                    return Err(Stop::not_modelled(step, why));
                }
                let mut narrow = view.clone();
                for (table, id) in sources.iter().zip(&newest) {
                    narrow[*table] = vec![*id];
                }
                let views = Views { outer: &narrow, inner: &inner };
                let sql = self.tables.select_with_sources(select, views);
                let again = self.evaluate(sql, Some(step)).await?;
                rows.extend(again.into_iter().map(|mut cells| cells.split_off(sources.len())));
            }
            for place in places {
                self.not_in_snapshot(place, tx, &mut trouble);
                // A shared lock may be on an index alone, where it is in nobody's way.
                if !is_current || strength == Strength::Update {
                    self.lock(place, tx, strength);
                }
            }
        }
        self.use_rule(step, rules.write);
        self.conclude(tx, step, Expected::Rows(rows), trouble, None)
    }

    /// What the queries inside of a locking read see: where writes look at
    /// what is current, only the statement itself does, unless all reads lock.
    fn inner_view(
        &mut self,
        tx: TxId,
        step: usize,
        select: &Select,
        outer: &View,
    ) -> Result<View, Stop> {
        let conduct = self.conduct(tx);
        let all_lock = conduct.reads_lock && !self.txs[tx].autocommit;
        if conduct.changed != Changed::Current || all_lock {
            return Ok(outer.clone());
        }
        let mut below: Vec<&str> = Vec::new();
        select.own_expressions().for_each(|e| below.extend(sources_below(e)));
        let mut view = outer.clone();
        for (table, of) in self.subject.reading.schema.tables.iter().enumerate() {
            if below.contains(&of.name.as_str()) {
                view[table] = self.plain_view_of(table, tx, step)?;
            }
        }
        Ok(view)
    }

    /// The tables of a plain query, each of them once.
    fn sources(&self, select: &Select, step: usize) -> Result<Vec<usize>, Stop> {
        let plain = select.ctes.is_empty()
            && select.set_operation.is_none()
            && select.group_by.is_empty()
            && !select.distinct;
        let place = |s: &crate::sql::Source| {
            let name = s.table()?;
            self.subject.reading.schema.tables.iter().position(|t| t.name == name)
        };
        let tables: Option<Vec<usize>> = select.from_and_joined().map(place).collect();
        let Some(tables) = tables.filter(|_| plain) else {
            return Err(Stop::not_modelled(step, "a locking read of more than plain tables"));
        };
        Ok(tables)
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
            crate::sql::Conflict::Update { filter: Some(_), .. } => {
                Some("ON CONFLICT with a condition is not modelled")
            }
            crate::sql::Conflict::DoNothing { key } if !key.is_empty() => {
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

/// Takes one row like this away; false when there is none.
fn take_one(rows: &mut Vec<Row>, like: &Row) -> bool {
    let place = rows.iter().position(|row| compare_rows(row, like) == Ordering::Equal);
    place.map(|place| rows.swap_remove(place)).is_some()
}
