//! The replay: takes the events of a run in order and applies each to the model.

mod event_order;
mod final_rows;
mod visited_states;

use crate::model::ReferenceModel;
use crate::stop::Stop;
use crate::world::{End, FIRST_ROWS, Tx, TxId};
use isolde_catalog::SnapshotAt;
use isolde_model::history::{EventKind, TxEnd};
use isolde_model::parsed_case::Operation;
use isolde_sql::BeginForm;

/// Every statement names the row versions that it reads, so that more initial rows than this
/// would take minutes.
const MOST_ROWS: usize = 30_000;

impl<'a> ReferenceModel<'a> {
    /// Replays the run from the first event to the final rows.
    pub async fn run(&mut self) -> Result<(), Stop> {
        self.load().await?;
        self.replay_events().await?;
        self.leave_deferred_reads();
        self.final_rows()?;
        self.final_queries().await
    }

    /// Loads the initial rows.
    pub async fn load(&mut self) -> Result<(), Stop> {
        let mut loaded = 0;
        for table in 0..self.subject.reading.schema.tables.len() {
            let sql = self.tables.first_versions(table);
            let fresh_rows = self.fresh(table, sql, None).await?;
            loaded += fresh_rows.len();
            if loaded > MOST_ROWS {
                return Err(Stop::not_modelled(0, "its tables have too many rows"));
            }
            for fresh in fresh_rows {
                let version = self.world.version(fresh, FIRST_ROWS);
                self.world.add_row(table, version);
            }
        }
        Ok(())
    }

    pub async fn event(&mut self, number: usize) -> Result<(), Stop> {
        let events = &self.subject.history.events;
        let event = &events[number];
        let session = event.session.as_str();
        match (&event.what, event.step) {
            (EventKind::Sent { .. }, Some(step)) => {
                self.world.start(step, self.world.now());
                self.commit_implicitly(session, step);
                self.begin_with(session, step);
                self.record_dirty_submission(session, step);
                self.record_scan(session, step);
            }
            (EventKind::Waiting { on }, Some(step)) if !self.world.waiting().contains(&step) => {
                // Some statements, as those of CONCURRENTLY, commit a part of their work before
                // they wait.
                if let Operation::Opaque(why) = &self.subject.reading.operations[step] {
                    return Err(Stop::not_modelled(step, why));
                }
                // A step that is found blocked later may have waited for a
                // transaction that has ended since.
                if self.blocked_immediately(step) {
                    self.waits(session, step, on)?;
                }
                self.world.block(step);
            }
            (EventKind::Resumed, Some(step)) => {
                let retries =
                    self.world.tx_of(session).and_then(|tx| self.world.tx(tx).concurrency.as_ref());
                if retries.is_some_and(|c| c.conflicts.restarts_statement_after_wait) {
                    self.world.start(step, self.world.now());
                    self.record_dirty_submission(session, step);
                }
            }
            (EventKind::Ended { transaction, how }, step) => {
                self.end(step.unwrap_or(0), *transaction, *how).await?;
            }
            (
                EventKind::Rows { .. }
                | EventKind::Affected { .. }
                | EventKind::Done
                | EventKind::Error(_),
                Some(step),
            ) => {
                self.world.unblock(step);
                self.replied(session, step).await?;
            }
            (EventKind::Cancelled, Some(step)) => {
                return Err(Stop::not_modelled(step, "Isolde cancelled it"));
            }
            _ => {}
        }
        Ok(())
    }

    /// Commits the transaction of a session before a DDL statement that ends it. The
    /// history records the end with the reply, but the engine commits first, and the
    /// statement may then wait for a metadata lock.
    fn commit_implicitly(&mut self, session: &str, step: usize) {
        let history = self.subject.history;
        let Some(tx) = self.world.tx_of(session) else { return };
        let recorded = self.world.tx(tx).recorded;
        if recorded.is_some_and(|t| history.implicit_commit(t) == Some(step)) {
            self.world.end(tx, true);
        }
    }

    fn record_dirty_submission(&mut self, session: &str, step: usize) {
        let Some(tx) = self.world.tx_of(session) else { return };
        if self
            .world
            .tx(tx)
            .concurrency
            .as_ref()
            .is_some_and(|c| c.snapshot.taken == SnapshotAt::Dirty)
        {
            let tables = 0..self.world.table_count();
            let newest = tables.clone().map(|t| self.world.dirty_view_of(t)).collect();
            let contended = tables.filter(|t| self.may_be_locked(&[*t], tx)).collect();
            self.dirty_reads.record_submission(step, newest, contended);
        }
    }

    /// Begins the transaction of a step: a BEGIN, or a statement outside of one.
    pub fn begin_with(&mut self, session: &'a str, step: usize) {
        let recorded = self.subject.history.transactions.iter();
        let recorded = recorded.clone().position(|t| t.begin == step && t.session == session);
        if recorded.is_none() && self.world.tx_of(session).is_some() {
            return;
        }
        let autocommit = recorded.is_none_or(|r| self.subject.history.transactions[r].autocommit);
        let form = match &self.subject.reading.operations[step] {
            Operation::Begin(form) => *form,
            _ => BeginForm::Plain,
        };
        self.world.begin(Tx {
            session: session.into(),
            concurrency: self.subject.concurrency(step, (!autocommit).then_some(form)),
            began: self.world.now(),
            end: End::Open,
            snapshot: None,
            writer: false,
            has_read: false,
            failed: false,
            read_only: form == BeginForm::ReadOnly,
            autocommit,
            recorded,
        });
    }

    async fn end(&mut self, step: usize, recorded: usize, how: TxEnd) -> Result<(), Stop> {
        let is_it = |(_, t): &(TxId, &Tx)| t.recorded == Some(recorded);
        let Some((tx, _)) = self.world.transactions().find(is_it) else { return Ok(()) };
        let committed = how == TxEnd::Committed;
        let merges = self.world.tx(tx).concurrency.as_ref().is_some_and(|c| c.merges_writes());
        if committed && merges && self.world.is_open(tx) {
            if self.world.concurrency(tx).merges_at_commit() {
                self.merge_rows(tx, step).await?;
            } else {
                self.merge(tx).await?;
            }
        }
        self.world.end(tx, committed);
        Ok(())
    }

    pub async fn replied(&mut self, session: &'a str, step: usize) -> Result<(), Stop> {
        let Some(tx) = self.world.tx_of(session) else {
            return Err(Stop::not_modelled(step, "it runs in no known transaction"));
        };
        if self.world.tx(tx).concurrency.is_none() {
            return Err(Stop::not_modelled(step, "there are no rules for this level and mode"));
        }
        self.world.next_statement();
        let subject = self.subject;
        match &subject.reading.operations[step] {
            // Its rows are among the first ones.
            Operation::Prepares => {}
            Operation::Begin(form) => self.begun(tx, step, *form)?,
            Operation::AutocommitOff | Operation::Commit | Operation::Rollback => {
                self.control(tx, step).await?;
            }
            Operation::Statement(statement) => self.statement(tx, step, statement).await?,
            Operation::Utility(utility) => self.utility(tx, step, utility)?,
            Operation::Unnumbered(_) => {
                return Err(Stop::not_modelled(step, "the numbers of its rows are not known"));
            }
            Operation::Opaque(why) => return Err(Stop::not_modelled(step, why)),
        }
        self.judge_deferred_reads(step).await?;
        self.trace.settle(step);
        let tx = self.world.tx(tx);
        if tx.autocommit && tx.end == End::Open {
            let failed = self.subject.reply(step).is_some_and(|w| w.error().is_some());
            let tx = self.world.tx_of(session).expect("it is open");
            if !failed {
                self.check_readers(tx, step)?;
            }
            self.world.end(tx, !failed);
        }
        Ok(())
    }
}
