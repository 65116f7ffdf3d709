//! Transactions: how they begin and end, and their savepoints.

use super::ids::{FIRST_ROWS, Place, TxId};
use super::{Store, World};
use isolde_catalog::ConcurrencyModel;

#[derive(Clone, Debug)]
pub struct Tx {
    pub session: String,
    /// None where the level or the mode has no rules.
    pub concurrency: Option<ConcurrencyModel>,
    pub began: usize,
    pub end: End,
    pub snapshot: Option<usize>,
    /// It has tried to write.
    pub writer: bool,
    /// One of its statements has succeeded.
    pub has_read: bool,
    /// It accepts nothing but a rollback.
    pub failed: bool,
    pub read_only: bool,
    pub autocommit: bool,
    /// Its index in the transactions of the history.
    pub recorded: Option<usize>,
}

impl Tx {
    /// The transaction that wrote the initial rows.
    pub(super) fn first() -> Tx {
        Tx {
            session: String::new(),
            concurrency: None,
            began: 0,
            end: End::Committed(0),
            snapshot: None,
            writer: false,
            has_read: false,
            failed: false,
            read_only: false,
            autocommit: false,
            recorded: None,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    Open,
    Committed(usize),
    RolledBack,
}

/// A savepoint of a session: its name, and the last statement before it.
#[derive(Clone, Debug)]
pub struct Savepoint {
    pub name: String,
    pub after: usize,
}

impl World {
    pub fn tx(&self, tx: TxId) -> &Tx {
        &self.transactions[tx]
    }

    pub fn tx_mut(&mut self, tx: TxId) -> &mut Tx {
        &mut self.transactions[tx]
    }

    pub fn session(&self, tx: TxId) -> &str {
        &self.transactions[tx].session
    }

    /// All transactions, the one that wrote the initial rows first.
    pub fn transactions(&self) -> impl Iterator<Item = (TxId, &Tx)> {
        self.transactions.iter().enumerate()
    }

    /// The transaction that a session is in.
    pub fn tx_of(&self, session: &str) -> Option<TxId> {
        self.current.get(session).copied()
    }

    /// The concurrency model of a transaction that has one: a reply of a
    /// transaction without rules ends the replay.
    pub fn concurrency(&self, tx: TxId) -> &ConcurrencyModel {
        self.transactions[tx].concurrency.as_ref().expect("it was checked when the reply came")
    }

    /// Whether the writes of a transaction are buffered until its COMMIT.
    pub fn buffers(&self, tx: TxId) -> bool {
        let concurrency = self.transactions[tx].concurrency.as_ref();
        concurrency.is_some_and(ConcurrencyModel::buffers_writes)
    }

    /// Whether the writes of a transaction are merged with those of others.
    pub fn merges(&self, tx: TxId) -> bool {
        self.concurrency(tx).merges_writes()
    }

    pub fn is_open(&self, tx: TxId) -> bool {
        self.transactions[tx].end == End::Open
    }

    pub fn committed_before(&self, tx: TxId, moment: usize) -> bool {
        matches!(self.transactions[tx].end, End::Committed(at) if at < moment)
    }

    /// Whether a transaction committed at this moment or later.
    pub fn committed_since(&self, tx: TxId, moment: usize) -> bool {
        matches!(self.transactions[tx].end, End::Committed(at) if at >= moment)
    }

    /// The other open transactions.
    pub fn others(&self, tx: TxId) -> impl Iterator<Item = TxId> {
        (0..self.transactions.len()).filter(move |o| *o != tx && self.is_open(*o))
    }

    /// Whether another transaction was open at some time while this one was.
    pub fn overlaps_others(&self, tx: TxId) -> bool {
        let since = self.transactions[tx].began;
        self.transactions().any(|(other, t)| {
            other != tx
                && other != FIRST_ROWS
                && match t.end {
                    End::Open => true,
                    End::Committed(at) => at >= since,
                    End::RolledBack => false,
                }
        })
    }

    /// Begins a transaction in its session.
    pub fn begin(&mut self, tx: Tx) {
        self.current.insert(tx.session.clone(), self.transactions.len());
        self.transactions.push(tx);
    }

    /// Takes a transaction from its session; it stays open until it is ended by name.
    pub fn detach(&mut self, session: &str) {
        self.current.remove(session);
        self.savepoints.remove(session);
    }

    /// Ends a transaction that is open: releases its locks and, if it is rolled
    /// back, removes its versions.
    pub fn end(&mut self, tx: TxId, committed: bool) {
        if self.transactions[tx].end != End::Open {
            return;
        }
        self.transactions[tx].end =
            if committed { End::Committed(self.now) } else { End::RolledBack };
        if !committed {
            self.store.roll_back(tx, None);
            self.marks.retain(|m| m.by != tx);
        }
        for (by, table, statement) in std::mem::take(&mut self.truncated) {
            match by == tx {
                true if committed => self.store.forget_deleted(table, tx, statement),
                true => {}
                false => self.truncated.push((by, table, statement)),
            }
        }
        self.locks.retain(|l| l.by != tx);
        self.table_locks.retain(|l| l.by != tx);
        if !self.transactions[tx].autocommit {
            self.savepoints.remove(&self.transactions[tx].session);
        }
        self.current.retain(|_, t| *t != tx);
    }

    /// Undoes the current statement, which has failed. `before` are the rows as
    /// they were before it, if it wrote any.
    pub fn undo_statement(&mut self, tx: TxId, before: Option<Store>) {
        if let Some(before) = before {
            self.store = before;
        }
        let statement = self.statement;
        self.truncated.retain(|(by, _, at)| *by != tx || *at != statement);
        self.locks.retain(|l| l.by != tx || l.statement != statement);
        self.make_marks_uncertain(tx);
        self.table_locks.retain(|l| l.by != tx || l.statement != statement);
    }

    /// An error: where it leaves nothing but a rollback, rows and locks since the
    /// last savepoint are released at once.
    pub fn fail(&mut self, tx: TxId) {
        if !self.concurrency(tx).error_aborts_transaction() || self.transactions[tx].autocommit {
            return;
        }
        self.transactions[tx].failed = true;
        if self.concurrency(tx).failed_transaction_keeps_writes() {
            return;
        }
        let points = self.savepoints.get(&self.transactions[tx].session);
        let since = points.and_then(|p| p.last()).map(|point| point.after);
        self.store.roll_back(tx, since);
        self.truncated.retain(|(by, _, at)| *by != tx || since.is_some_and(|s| *at <= s));
        self.locks.retain(|l| l.by != tx || since.is_some_and(|s| l.statement <= s));
    }

    /// SAVEPOINT. Savepoints belong to the session: MySQL accepts one before its
    /// transaction has begun.
    pub fn add_savepoint(&mut self, tx: TxId, name: &str) {
        let point = Savepoint { name: name.into(), after: self.statement };
        let session = self.transactions[tx].session.clone();
        self.savepoints.entry(session).or_default().push(point);
    }

    /// RELEASE: removes a savepoint and all that came after it.
    pub fn release_savepoint(&mut self, tx: TxId, name: &str) {
        let session = self.transactions[tx].session.clone();
        let points = self.savepoints.entry(session).or_default();
        let found = points.iter().rposition(|p| p.name == name);
        points.truncate(found.unwrap_or(points.len()));
    }

    /// ROLLBACK TO: undoes all statements after the savepoint, and returns the
    /// last one before it. None when there is no such savepoint.
    pub fn roll_back_to(&mut self, tx: TxId, name: &str) -> Option<usize> {
        let points = self.savepoints.get_mut(&self.transactions[tx].session)?;
        let found = points.iter().rposition(|p| p.name == name)?;
        points.truncate(found + 1);
        let before = points[found].after;
        self.transactions[tx].failed = false;
        self.store.roll_back(tx, Some(before));
        self.truncated.retain(|(by, _, at)| *by != tx || *at <= before);
        self.marks.retain(|m| m.by != tx || m.statement <= before);
        // A buffering transaction keeps what it will lock at COMMIT.
        let keeps = self.buffers(tx);
        self.locks.retain(|l| l.by != tx || keeps || l.statement <= before);
        Some(before)
    }

    /// Hides rows of duplicate keys from the statements of a transaction.
    pub fn hide_rows(&mut self, hidden: Vec<(TxId, Place)>) {
        self.hidden = hidden;
    }
}
