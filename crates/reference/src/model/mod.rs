//! The reference model: the parts of one replay, and what all statements share.
//!
//! [`World`] has the rows, locks and transactions, [`Trace`] what explains each
//! step, [`DirtyReads`] and [`CommitBuffer`] what two kinds of engines need
//! besides, and [`Search`] the choices that the rules leave open.

mod commit_buffer;
mod dirty_reads;
mod trace;

use crate::search::{Choices, EvalCache, Search};
use crate::stop::Stop;
use crate::subject::Subject;
use crate::version_tables::{Fresh, Key, VersionId, VersionTables, View, keys, whole};
use crate::world::{TxId, World};
pub use commit_buffer::{CommitBuffer, DuplicateKey};
pub use dirty_reads::{ChangedRow, DeferredDirtyRead, DirtyReads, ForeseenChange};
use isolde_catalog::Rule;
use isolde_model::breach::Breach;
use isolde_model::inquiry::Channel;
use isolde_model::parsed_case::Operation;
use isolde_model::value::Row;
use isolde_sql::Stmt;
use std::collections::BTreeMap;
pub use trace::{Look, Trace, ViewedRows, WriteEvaluation};

/// One replay of a run: the state of the database and what explains it so far.
pub struct ReferenceModel<'a> {
    pub subject: &'a Subject<'a>,
    pub tables: VersionTables<'a>,
    /// The unique keys of each table.
    pub keys: Vec<Vec<Key>>,
    pub world: World,
    pub trace: Trace,
    pub dirty_reads: DirtyReads<'a>,
    pub commit_buffer: CommitBuffer,
    pub search: Search<'a>,
    /// The transactions run one after the other, not as they were recorded.
    pub serial: bool,
    /// The sessions of a serial replay so far, in its order.
    pub serial_order: Vec<String>,
    /// Whether the replay continues after a breach that is about locking only.
    pub tolerates_locking: bool,
    /// Prepared statements, by session and name.
    prepared: BTreeMap<(&'a str, &'a str), &'a Stmt>,
}

impl<'a> ReferenceModel<'a> {
    pub fn new(
        subject: &'a Subject<'a>,
        channel: &'a Channel,
        cache: &'a mut EvalCache,
        choices: &'a mut Choices,
    ) -> ReferenceModel<'a> {
        let schema = &subject.reading.schema;
        ReferenceModel {
            subject,
            tables: VersionTables { schema, dialect: &subject.reading.dialect },
            keys: schema.tables.iter().map(keys).collect(),
            world: World::new(schema.tables.len()),
            trace: Trace::new(subject.reading.operations.len()),
            dirty_reads: DirtyReads::default(),
            commit_buffer: CommitBuffer::default(),
            search: Search::new(channel, cache, choices),
            serial: false,
            serial_order: Vec::new(),
            tolerates_locking: false,
            prepared: BTreeMap::new(),
        }
    }

    /// The snapshot that a step reads, which its transaction takes if it has
    /// none. None for a dirty read.
    pub fn snapshot(&mut self, tx: TxId, step: usize) -> Option<usize> {
        let snapshot = self.world.take_snapshot(tx, step);
        self.trace.record_look(step, Look { snapshot, at: self.world.now(), by: tx });
        snapshot
    }

    /// Records which versions a statement reads, of the tables that it names.
    pub fn record_view(&mut self, tx: TxId, step: usize, view: &View) {
        let Some(statement) = self.operation(step) else { return };
        let names = statement.tables();
        let tables = self.subject.reading.schema.tables.iter().enumerate();
        let tables: Vec<(usize, Vec<VersionId>)> = tables
            .filter(|(_, table)| names.contains(&table.name.as_str()))
            .map(|(n, _)| (n, view[n].clone()))
            .collect();
        let mut uncommitted = Vec::new();
        for (table, ids) in &tables {
            let versions = self.world.tables()[*table].iter().flat_map(|c| &c.versions);
            let open = versions.filter(|v| v.by != tx && ids.contains(&v.id) && !v.dead);
            uncommitted.extend(open.filter(|v| self.world.is_open(v.by)).map(|v| (*table, v.id)));
        }
        let (statement, now) = (self.world.statement(), self.world.now());
        let snapshot = self.trace.look(step).and_then(|look| look.snapshot).unwrap_or(now + 1);
        let viewed = ViewedRows { step, tx, statement, tables, uncommitted, snapshot, at: now };
        self.trace.record_view(viewed);
    }

    /// The snapshot of a statement that reads one: what is committed now, where
    /// plain reads are dirty.
    pub fn kept_snapshot(&mut self, tx: TxId, step: usize) -> usize {
        self.snapshot(tx, step).unwrap_or(self.world.now())
    }

    /// Whether a blocked step has had no effect yet: it will be restarted.
    pub fn will_restart(&self, step: usize) -> bool {
        let session = self.subject.history.steps[step].session.as_str();
        let tx = self.world.tx_of(session);
        let concurrency = tx.and_then(|tx| self.world.tx(tx).concurrency.as_ref());
        concurrency.is_some_and(|c| c.conflicts.restarts_statement_after_wait)
    }

    /// Whether a blocked statement of another session may already have locked
    /// rows of these tables: how far it has come is unknown.
    pub fn may_be_locked(&self, tables: &[usize], me: TxId) -> bool {
        let locks = |step: &usize| {
            if self.will_restart(*step) {
                return false;
            }
            let Some(statement) = self.operation(*step) else { return false };
            let names = statement.tables();
            tables
                .iter()
                .any(|t| names.contains(&self.subject.reading.schema.tables[*t].name.as_str()))
        };
        let steps = &self.subject.history.steps;
        let session = self.world.session(me);
        self.world.waiting().iter().any(|s| steps[*s].session != session && locks(s))
    }

    pub fn prepare(&mut self, session: &'a str, name: &'a str, statement: &'a Stmt) {
        self.prepared.insert((session, name), statement);
    }

    /// The statement that EXECUTE of a name executes.
    pub fn prepared(&self, step: usize, name: &str) -> Option<&'a Stmt> {
        let steps = &self.subject.history.steps;
        let session = steps[step].session.as_str();
        let known = self.prepared.get(&(session, name)).copied();
        // A prepared statement outlives its transaction, which a serial replay leaves out if it
        // was rolled back.
        let before = || {
            (0..step).rev().filter(|at| steps[*at].session == session).find_map(|at| {
                let done = self.subject.reply(at).is_some_and(|reply| reply.error().is_none());
                match &self.subject.reading.operations[at] {
                    Operation::Statement(other) => match &**other {
                        Stmt::Prepare { name: of, statement } if of == name && done => {
                            Some(&**statement)
                        }
                        _ => None,
                    },
                    _ => None,
                }
            })
        };
        known.or_else(|| before().filter(|_| self.serial))
    }

    /// The index of a table.
    pub fn table(&self, name: &str, step: usize) -> Result<usize, Stop> {
        let place = self.subject.reading.schema.tables.iter().position(|t| t.name == name);
        place.ok_or_else(|| Stop::not_modelled(step, "it writes a table that is not known"))
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
    ) -> Result<Vec<Row>, Stop> {
        let answer = self.search.evaluate(step, sql).await;
        answer.map_err(|error| Stop::Refused { step: step.unwrap_or(0), error })
    }

    /// The statement of a step, or the one that it executes.
    pub fn operation(&self, step: usize) -> Option<&'a Stmt> {
        match &self.subject.reading.operations[step] {
            Operation::Statement(statement) => match &**statement {
                Stmt::Execute(name) => self.prepared(step, name),
                other => Some(other),
            },
            _ => None,
        }
    }

    /// The numbers of versions that a query has in its first column.
    pub async fn found(&mut self, sql: Vec<String>, step: usize) -> Result<Vec<VersionId>, Stop> {
        let rows = self.evaluate(sql, Some(step)).await?;
        let mut ids: Vec<VersionId> =
            rows.iter().filter_map(|row| row.first().and_then(whole)).collect();
        ids.sort_unstable();
        ids.dedup();
        Ok(ids)
    }

    /// Reports a breach. One that is about locking only is recorded where the replay
    /// tolerates it, and the replay goes on.
    pub fn report(&mut self, step: usize, rule: &'static Rule, breach: Breach) -> Result<(), Stop> {
        if self.tolerates_locking && breach.is_about_locking() {
            self.trace.record_locking_breach(step, rule, breach);
            return Ok(());
        }
        Err(Stop::Outside { step: Some(step), rule, breach })
    }

    /// Cites a rule that explains a step.
    pub fn use_rule(&mut self, step: usize, rule: &'static Rule) {
        self.trace.cite(step, rule);
    }
}
