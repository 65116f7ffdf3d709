//! The walk through a run: who has begun, who sees what, who holds which row,
//! and what each event does to that.

use super::account::Look;
use super::choice::Choices;
use super::commit::TakenTwice;
use super::dirty::PutOff;
use super::memory::Memory;
use super::rules::{Changed, Conduct, Rule, SnapshotAt};
use super::store::{Place, Store, TxId, Version, VersionId};
use super::table_locks::TableLock;
use super::transaction::{End, FIRST_ROWS, Lock, Mark, Tx};
use super::version_tables::{Fresh, Key, VersionTables, View, keys};
use super::{Operation, Stop, Subject};
use crate::generate::BeginForm;
use crate::history::{TxEnd, What};
use crate::inquiry::Desk;
use crate::sql::Stmt;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

/// Whatever later steps may hang on counts in [`Walk::leave_if_tried`], too.
pub struct Walk<'a> {
    pub subject: &'a Subject<'a>,
    pub tables: VersionTables<'a>,
    pub keys: Vec<Vec<Key>>,
    pub desk: &'a Desk,
    pub memory: &'a mut Memory,
    pub choices: &'a mut Choices,
    pub store: Store,
    pub txs: Vec<Tx>,
    pub locks: Vec<Lock>,
    /// Where writers meet column by column, what each has written.
    pub marks: Vec<Mark>,
    /// The transaction that each session is in.
    pub current: BTreeMap<&'a str, TxId>,
    /// Savepoints of each session, with the last statement before each: MySQL
    /// takes one before its transaction has begun.
    pub savepoints: BTreeMap<String, Vec<(String, usize)>>,
    pub prepared: BTreeMap<(&'a str, &'a str), &'a Stmt>,
    /// How far the walk is.
    pub now: usize,
    /// When each step went to work.
    pub started: BTreeMap<usize, usize>,
    /// How many statements have run.
    pub statements: usize,
    /// One transaction after the other, instead of as it happened.
    pub serial: bool,
    /// What was newest when each step of a dirty reader was sent.
    pub dirty: BTreeMap<usize, View>,
    /// The tables that others, who waited, may have been changing then.
    pub beside: BTreeMap<usize, Vec<usize>>,
    /// Dirty reads that hang on what waits.
    pub put_off: Vec<PutOff<'a>>,
    /// Keys that buffered INSERTs took though they were there.
    pub taken_twice: Vec<TakenTwice>,
    /// Those of them whose rows the statement at hand does not find.
    pub hidden: Vec<(TxId, Place)>,
    /// Who has looked in which table for rows to lock at the COMMIT.
    pub searched: Vec<(TxId, usize)>,
    /// Where tables have locks.
    pub table_locks: Vec<TableLock>,
    /// Steps that wait.
    pub waiting: Vec<usize>,
    /// The tables that each transaction may have locks in, though it found
    /// nothing there.
    pub touched: BTreeMap<TxId, BTreeSet<usize>>,
    /// For whom each step waited.
    pub waited_for: BTreeMap<usize, String>,
    /// For each step the rules that explain it.
    pub used: Vec<Vec<&'static Rule>>,
    /// Steps whose outcome is one that the rules allow.
    pub settled: BTreeSet<usize>,
    /// When each statement looked at the rows.
    pub looks: BTreeMap<usize, Look>,
    /// Steps that are not modelled, though they change nothing.
    pub unmodelled: BTreeMap<usize, String>,
}

impl<'a> Walk<'a> {
    pub fn new(
        subject: &'a Subject<'a>,
        desk: &'a Desk,
        memory: &'a mut Memory,
        choices: &'a mut Choices,
    ) -> Walk<'a> {
        let first = Tx {
            session: String::new(),
            conduct: None,
            began: 0,
            end: End::Committed(0),
            snapshot: None,
            writer: false,
            has_read: false,
            failed: false,
            read_only: false,
            autocommit: false,
            recorded: None,
        };
        Walk {
            subject,
            tables: VersionTables {
                schema: &subject.reading.schema,
                dialect: &subject.reading.dialect,
            },
            keys: subject.reading.schema.tables.iter().map(keys).collect(),
            desk,
            memory,
            choices,
            store: Store { tables: vec![Vec::new(); subject.reading.schema.tables.len()] },
            txs: vec![first],
            locks: Vec::new(),
            marks: Vec::new(),
            current: BTreeMap::new(),
            savepoints: BTreeMap::new(),
            prepared: BTreeMap::new(),
            now: 1,
            started: BTreeMap::new(),
            statements: 0,
            serial: false,
            dirty: BTreeMap::new(),
            beside: BTreeMap::new(),
            put_off: Vec::new(),
            taken_twice: Vec::new(),
            hidden: Vec::new(),
            searched: Vec::new(),
            table_locks: Vec::new(),
            waiting: Vec::new(),
            touched: BTreeMap::new(),
            waited_for: BTreeMap::new(),
            used: vec![Vec::new(); subject.reading.operations.len()],
            settled: BTreeSet::new(),
            looks: BTreeMap::new(),
            unmodelled: BTreeMap::new(),
        }
    }

    /// From the first event to the final rows.
    pub async fn run(&mut self) -> Result<(), Stop> {
        self.load().await?;
        self.take_turns().await?;
        self.leave_put_off();
        self.final_rows()?;
        self.final_queries().await
    }

    /// The rows that were there before.
    pub async fn load(&mut self) -> Result<(), Stop> {
        for table in 0..self.subject.reading.schema.tables.len() {
            let sql = self.tables.first_versions(table);
            for fresh in self.fresh(table, sql, None).await? {
                let version = self.version(fresh, FIRST_ROWS);
                self.store.add_row(table, version);
            }
        }
        Ok(())
    }

    pub async fn event(&mut self, number: usize) -> Result<(), Stop> {
        let events = &self.subject.history.events;
        let event = &events[number];
        let session = event.session.as_str();
        match (&event.what, event.step) {
            (What::Sent { .. }, Some(step)) => {
                self.started.insert(step, self.now);
                self.begin_with(session, step);
                self.note_dirty(session, step);
                self.note_scan(session, step);
            }
            (What::Waiting { on }, Some(step)) if !self.waiting.contains(&step) => {
                // Who is found waiting later may have done so for one who has ended.
                if self.waits_at_once(step) {
                    self.waits(session, step, on)?;
                }
                self.waiting.push(step);
            }
            (What::Resumed, Some(step)) => {
                let retries = self.tx_of(session).and_then(|tx| self.txs[tx].conduct.as_ref());
                if retries.is_some_and(|c| c.retries) {
                    self.started.insert(step, self.now);
                    self.note_dirty(session, step);
                }
            }
            (What::Ended { transaction, how }, step) => {
                self.end(step.unwrap_or(0), *transaction, *how).await?;
            }
            (
                What::Rows { .. } | What::Affected { .. } | What::Done | What::Error(_),
                Some(step),
            ) => {
                self.waiting.retain(|s| *s != step);
                self.replied(session, step).await?;
            }
            (What::Cancelled, Some(step)) => {
                return Err(Stop::not_modelled(step, "Isolde cancelled it"));
            }
            _ => {}
        }
        Ok(())
    }

    pub fn tx_of(&self, session: &str) -> Option<TxId> {
        self.current.get(session).copied()
    }

    fn note_dirty(&mut self, session: &str, step: usize) {
        let Some(tx) = self.tx_of(session) else { return };
        if self.txs[tx].conduct.as_ref().is_some_and(|c| c.snapshot == SnapshotAt::Dirty) {
            let tables = 0..self.store.tables.len();
            self.dirty.insert(step, tables.clone().map(|t| self.newest_of_all(t)).collect());
            self.beside.insert(step, tables.filter(|t| self.may_be_taken(&[*t], tx)).collect());
        }
    }

    /// The transaction that a step begins, by itself or by being sent outside
    /// of one.
    pub fn begin_with(&mut self, session: &'a str, step: usize) {
        let recorded = self.subject.history.transactions.iter();
        let recorded = recorded.clone().position(|t| t.begin == step && t.session == session);
        if recorded.is_none() && self.tx_of(session).is_some() {
            return;
        }
        let autocommit = recorded.is_none_or(|r| self.subject.history.transactions[r].autocommit);
        let form = match &self.subject.reading.operations[step] {
            Operation::Begin(form) => *form,
            _ => BeginForm::Plain,
        };
        self.txs.push(Tx {
            session: session.into(),
            conduct: self.subject.conduct(step, (!autocommit).then_some(form)),
            began: self.now,
            end: End::Open,
            snapshot: None,
            writer: false,
            has_read: false,
            failed: false,
            read_only: form == BeginForm::ReadOnly,
            autocommit,
            recorded,
        });
        self.current.insert(session, self.txs.len() - 1);
    }

    async fn end(&mut self, step: usize, recorded: usize, how: TxEnd) -> Result<(), Stop> {
        let Some(tx) = self.txs.iter().position(|t| t.recorded == Some(recorded)) else {
            return Ok(());
        };
        let committed = how == TxEnd::Committed;
        let merges = self.txs[tx].conduct.as_ref().is_some_and(|c| c.changed == Changed::Merge);
        if committed && merges && self.is_open(tx) {
            if self.conduct(tx).merges_at_commit {
                self.merge_rows(tx, step).await?;
            } else {
                self.merge(tx).await?;
            }
        }
        self.end_tx(tx, committed);
        Ok(())
    }

    pub fn end_tx(&mut self, tx: TxId, committed: bool) {
        if self.txs[tx].end != End::Open {
            return;
        }
        self.txs[tx].end = if committed { End::Committed(self.now) } else { End::RolledBack };
        if !committed {
            self.store.roll_back(tx, None);
            self.marks.retain(|m| m.by != tx);
        }
        self.locks.retain(|l| l.by != tx);
        self.table_locks.retain(|l| l.by != tx);
        if !self.txs[tx].autocommit {
            self.savepoints.remove(&self.txs[tx].session);
        }
        self.current.retain(|_, t| *t != tx);
    }

    pub async fn replied(&mut self, session: &'a str, step: usize) -> Result<(), Stop> {
        let Some(tx) = self.tx_of(session) else {
            return Err(Stop::not_modelled(step, "it runs in no known transaction"));
        };
        if self.txs[tx].conduct.is_none() {
            return Err(Stop::not_modelled(step, "there are no rules for this level and mode"));
        }
        self.statements += 1;
        let subject = self.subject;
        match &subject.reading.operations[step] {
            // Its rows are among the first ones.
            Operation::Prepares => {}
            Operation::Begin(form) => self.begun(tx, step, *form)?,
            Operation::AutocommitOff | Operation::Commit | Operation::Rollback => {
                self.control(tx, step).await?;
            }
            Operation::Statement(statement) => self.statement(tx, step, statement).await?,
            Operation::Opaque(why) => return Err(Stop::not_modelled(step, why)),
        }
        self.judge_put_off(step).await?;
        self.settled.insert(step);
        let tx = &self.txs[tx];
        if tx.autocommit && tx.end == End::Open {
            let failed = self.subject.reply(step).is_some_and(|w| w.error().is_some());
            let tx = self.tx_of(session).expect("it is open");
            if !failed {
                self.commits_beside_readers(tx, step)?;
            }
            self.end_tx(tx, !failed);
        }
        Ok(())
    }

    pub fn conduct(&self, tx: TxId) -> &Conduct {
        self.txs[tx].conduct.as_ref().expect("it was looked at when the reply came")
    }

    pub fn version(&self, fresh: Fresh, by: TxId) -> Version {
        Version {
            id: fresh.id,
            row: Rc::new(fresh.row),
            conditions: Rc::new(fresh.conditions),
            by,
            at: self.now,
            statement: self.statements,
            dead: false,
        }
    }

    /// Versions that a statement makes, as the engine computes them.
    pub async fn fresh(
        &mut self,
        table: usize,
        sql: Vec<String>,
        step: Option<usize>,
    ) -> Result<Vec<Fresh>, Stop> {
        let rows = self.evaluate(sql, step).await?;
        let table = &self.subject.reading.schema.tables[table];
        rows.into_iter()
            .map(|row| Fresh::read(table, row))
            .collect::<Option<_>>()
            .ok_or_else(|| Stop::not_modelled(step.unwrap_or(0), "its versions cannot be read"))
    }

    pub async fn evaluate(
        &mut self,
        sql: Vec<String>,
        step: Option<usize>,
    ) -> Result<Vec<crate::value::Row>, Stop> {
        let answer = self.memory.evaluate(self.desk, step, sql).await;
        answer.map_err(|error| Stop::Refused { step: step.unwrap_or(0), error })
    }

    /// The statement of a step, or the one that it executes.
    pub fn operation(&self, step: usize) -> Option<&'a Stmt> {
        match &self.subject.reading.operations[step] {
            Operation::Statement(statement) => match &**statement {
                Stmt::Execute(name) => {
                    let session = self.subject.history.steps[step].session.as_str();
                    self.prepared.get(&(session, name.as_str())).copied()
                }
                other => Some(other),
            },
            _ => None,
        }
    }

    /// The numbers of versions that a query has in its first column.
    pub async fn found(&mut self, sql: Vec<String>, step: usize) -> Result<Vec<VersionId>, Stop> {
        let rows = self.evaluate(sql, Some(step)).await?;
        let mut ids: Vec<VersionId> = rows
            .iter()
            .filter_map(|row| row.first().and_then(super::version_tables::whole))
            .collect();
        ids.sort_unstable();
        ids.dedup();
        Ok(ids)
    }

    /// A rule that explains a step.
    pub fn use_rule(&mut self, step: usize, rule: &'static Rule) {
        if !self.used[step].contains(&rule) {
            self.used[step].push(rule);
        }
    }
}
