//! Records the replies of sessions and what they do to the transactions, and ends
//! transactions and statements that the schedule leaves open.

use super::RunError;
use super::run::Run;
use super::session::TxState;
use crate::engine::{ANSWER_LIMIT, Outcome, Reply, TxStatus};
use isolde_model::history::{DbError, ErrorClass, ErrorEffect, EventKind, Transaction, TxEnd};
use isolde_model::profile::{Ddl, Waiting};
use isolde_sql as sql;
use isolde_sql::Kind;
use std::time::{Duration, Instant};

/// The statement that a reply belongs to.
#[derive(Clone, Copy)]
struct SentStatement<'a> {
    step: Option<usize>,
    kind: Kind,
    sql: &'a str,
}

impl Run<'_> {
    /// Runs a statement of the runner itself, which no lock can block.
    pub(super) fn run_internally(&mut self, index: usize, sql: &str) -> Option<Reply> {
        if self.history.death.is_some() {
            return None;
        }
        let session = &mut self.sessions[index].session;
        session.start(sql);
        let reply = session.reply(self.limits.statement.max(ANSWER_LIMIT));
        if reply.is_none()
            && let Err(error) = self.engine.control("select 1")
        {
            // With any other error only this session is lost.
            let _ = self.record_failure(error);
        }
        reply
    }

    /// Rolls the session's transaction back and records the reason.
    pub(super) fn roll_back(&mut self, index: usize, why: &str) -> Result<(), RunError> {
        let (transaction, failed) = match self.sessions[index].tx {
            TxState::Open(t) => (t, false),
            TxState::Failed(t) => (t, true),
            _ => return Ok(()),
        };
        if self.history.death.is_none() {
            self.event(index, None, EventKind::RolledBackByRunner { why: why.into() });
        }
        let reply = self.run_internally(index, "rollback");
        let lost = reply.as_ref().is_none_or(
            |r| matches!(&r.outcome, Outcome::Error(e) if e.effect == ErrorEffect::Lost),
        );
        let how = match (lost, failed) {
            (true, _) => TxEnd::Lost,
            (_, true) => TxEnd::Aborted,
            _ => TxEnd::RolledBack,
        };
        self.sessions[index].tx = if lost { TxState::Gone } else { TxState::None };
        self.end_transaction(index, None, transaction, how);
        self.settle(None)?;
        Ok(())
    }

    /// Records a reply and its effect on the transaction.
    pub(super) fn record(&mut self, index: usize, reply: Reply) {
        let in_flight = self.sessions[index].in_flight.take().expect("a reply to something sent");
        let step = in_flight.step;
        if in_flight.waiting.is_some() {
            self.event(index, step, EventKind::Resumed);
        }
        let mut reply = reply;
        // SQLite executes inside of the call, so a cancelled statement there
        // means the runner's own limit.
        let by_limit = self.engine.profile().waiting == Waiting::Retry
            && reply.error().is_some_and(|e| e.class == ErrorClass::Cancelled);
        let cancelled = in_flight.cancelled.is_some();
        if cancelled || by_limit {
            self.event(index, step, EventKind::Cancelled);
        }
        if let (true, Outcome::Error(error)) = (cancelled, &mut reply.outcome)
            && error.effect != ErrorEffect::Lost
        {
            error.class = ErrorClass::Cancelled;
        }
        self.event(index, step, event_of(&reply.outcome));
        let kind = sql::kind(&in_flight.sql);
        let before = match self.sessions[index].tx {
            TxState::Open(_) => TxStatus::Open,
            TxState::Failed(_) => TxStatus::Failed,
            _ => TxStatus::Idle,
        };
        let after = reply.status_after(kind, before, self.engine.profile().ddl);
        let sent = SentStatement { step, kind, sql: &in_flight.sql };
        self.follow(index, sent, &reply, after);
    }

    fn follow(&mut self, index: usize, sent: SentStatement<'_>, reply: &Reply, after: TxStatus) {
        let SentStatement { step, kind, .. } = sent;
        let error = reply.error();
        let lost = error.is_some_and(|e| e.effect == ErrorEffect::Lost);
        match self.sessions[index].tx {
            TxState::Open(transaction) | TxState::Failed(transaction) => {
                if lost {
                    self.sessions[index].tx = TxState::Gone;
                    return self.end_transaction(index, step, transaction, TxEnd::Lost);
                }
                self.follow_open(index, sent, reply, after, transaction);
            }
            _ if lost => {
                if matches!(kind, Kind::Write | Kind::Ddl) {
                    self.open_transaction(index, step, true, TxEnd::Lost);
                }
                self.sessions[index].tx = TxState::Gone;
            }
            _ => match after {
                TxStatus::Open | TxStatus::Failed => {
                    let transaction = self.open_transaction(index, step, false, TxEnd::RolledBack);
                    self.sessions[index].tx = match after {
                        TxStatus::Failed => TxState::Failed(transaction),
                        _ => TxState::Open(transaction),
                    };
                }
                TxStatus::Idle => {
                    if kind == Kind::Begin && error.is_some() {
                        // The following statements were meant for a transaction
                        // that was never opened; sent now, each would commit by
                        // itself.
                        self.sessions[index].tx = TxState::Aborted;
                    } else if error.is_none() && sql::two_phase(sent.sql).is_some() {
                        self.end_prepared(index, step, sent.sql);
                    } else if matches!(kind, Kind::Select | Kind::Write | Kind::Ddl) {
                        let how = if error.is_some() { TxEnd::Aborted } else { TxEnd::Committed };
                        self.sessions[index].aborted |= error.is_some();
                        self.open_transaction(index, step, true, how);
                    }
                }
            },
        }
    }

    fn follow_open(
        &mut self,
        index: usize,
        sent: SentStatement<'_>,
        reply: &Reply,
        after: TxStatus,
        transaction: usize,
    ) {
        let SentStatement { step, kind, sql } = sent;
        let failed_before = matches!(self.sessions[index].tx, TxState::Failed(_));
        let error = reply.error();
        // The engine requires a rollback and leaves it to the client: a
        // snapshot that is too old to write on stays so.
        let hopeless = |e: &DbError| {
            e.effect == ErrorEffect::RolledBack || e.class == ErrorClass::Serialization
        };
        let must_roll_back = error.is_some_and(hopeless) && after == TxStatus::Open;
        if must_roll_back {
            self.roll_back_victim(index, step, transaction, "the engine leaves no other way");
            return;
        }
        // MySQL's BEGIN commits the open transaction.
        let implicit = kind == Kind::Begin
            && error.is_none()
            && self.engine.profile().ddl == Ddl::CommitsImplicitly;
        let chained = kind.ends_transaction() && error.is_none() && after != TxStatus::Idle;
        match after {
            TxStatus::Open if chained => {
                let how = match kind {
                    Kind::Commit if !failed_before && !reply.commit_rolled_back => TxEnd::Committed,
                    _ if failed_before => TxEnd::Aborted,
                    _ => TxEnd::RolledBack,
                };
                self.end_transaction(index, step, transaction, how);
                let next = self.open_transaction(index, step, false, TxEnd::RolledBack);
                self.sessions[index].tx = TxState::Open(next);
            }
            TxStatus::Open if implicit => {
                self.end_transaction(index, step, transaction, TxEnd::Committed);
                let next = self.open_transaction(index, step, false, TxEnd::RolledBack);
                self.sessions[index].tx = TxState::Open(next);
            }
            TxStatus::Open => self.sessions[index].tx = TxState::Open(transaction),
            TxStatus::Failed => self.sessions[index].tx = TxState::Failed(transaction),
            TxStatus::Idle
                if error.is_none()
                    && !failed_before
                    && matches!(sql::two_phase(sql), Some(sql::TwoPhase::Prepare(_))) =>
            {
                // It stays open, and belongs to no session any more.
                self.sessions[index].tx = TxState::None;
                self.history.transactions[transaction].how = TxEnd::Unknown;
            }
            TxStatus::Idle => {
                let commits = self.engine.profile().ddl == Ddl::CommitsImplicitly;
                let gave_up = |e: &DbError| {
                    e.effect != ErrorEffect::Statement || e.class == ErrorClass::Deadlock
                };
                let how = match (kind, error) {
                    // It committed before it failed, such as error 1050 after
                    // an implicit commit.
                    (Kind::Ddl | Kind::Other, Some(e)) if commits && !gave_up(e) => {
                        TxEnd::Committed
                    }
                    (_, Some(_)) => TxEnd::Aborted,
                    _ if failed_before => TxEnd::Aborted,
                    (Kind::Commit, _) if reply.commit_rolled_back => TxEnd::Aborted,
                    (Kind::Rollback, _) => TxEnd::RolledBack,
                    (Kind::Commit | Kind::Ddl | Kind::Begin, _) => TxEnd::Committed,
                    _ if sql::hides_its_end(sql) => TxEnd::Unknown,
                    _ => TxEnd::Committed,
                };
                let by_its_own_end =
                    kind.ends_transaction() || error.is_none() || how == TxEnd::Committed;
                self.sessions[index].tx =
                    if by_its_own_end { TxState::None } else { TxState::Aborted };
                self.sessions[index].aborted |= !by_its_own_end;
                self.end_transaction(index, step, transaction, how);
            }
        }
    }

    /// Ends the transaction that COMMIT PREPARED or ROLLBACK PREPARED names.
    fn end_prepared(&mut self, index: usize, step: Option<usize>, sql: &str) {
        let (wanted, how) = match sql::two_phase(sql) {
            Some(sql::TwoPhase::Commit(name)) => (name, TxEnd::Committed),
            Some(sql::TwoPhase::Rollback(name)) => (name, TxEnd::RolledBack),
            _ => return,
        };
        let history = &*self.history;
        let prepares = |at: &usize| {
            sql::two_phase(&history.steps[*at].sql) == Some(sql::TwoPhase::Prepare(wanted))
                && matches!(history.outcome(*at).reply, Some(EventKind::Done))
        };
        let Some(prepared) = (0..history.steps.len()).rev().find(prepares) else { return };
        let session = &history.steps[prepared].session;
        let begun = |t: &Transaction| t.session == *session && t.begin <= prepared;
        if let Some(transaction) = history.transactions.iter().rposition(begun) {
            self.end_transaction(index, step, transaction, how);
        }
    }

    /// Rolls back a transaction that the engine has aborted.
    pub(super) fn roll_back_victim(
        &mut self,
        index: usize,
        step: Option<usize>,
        transaction: usize,
        why: &str,
    ) {
        self.event(index, None, EventKind::RolledBackByRunner { why: why.into() });
        let reply = self.run_internally(index, "rollback");
        let gone = reply.is_none_or(
            |r| matches!(&r.outcome, Outcome::Error(e) if e.effect == ErrorEffect::Lost),
        );
        self.sessions[index].tx = if gone { TxState::Gone } else { TxState::Aborted };
        self.end_transaction(index, step, transaction, TxEnd::Aborted);
    }

    fn open_transaction(
        &mut self,
        index: usize,
        step: Option<usize>,
        autocommit: bool,
        how: TxEnd,
    ) -> usize {
        self.history.transactions.push(Transaction {
            session: self.sessions[index].name.clone(),
            begin: step.unwrap_or_default(),
            autocommit,
            how,
        });
        self.history.transactions.len() - 1
    }

    /// Fails a statement that an engine without deadlock detection would refuse
    /// for ever, and rolls back its transaction.
    pub(super) fn fail_busy(&mut self, index: usize, why: &str) -> Result<(), RunError> {
        let Some(in_flight) = self.sessions[index].in_flight.take() else { return Ok(()) };
        let error = DbError {
            code: "BUSY".into(),
            sqlstate: None,
            message: why.into(),
            class: ErrorClass::Busy,
            effect: ErrorEffect::RolledBack,
        };
        self.event(index, in_flight.step, EventKind::Resumed);
        self.event(index, in_flight.step, EventKind::Error(error));
        match self.sessions[index].tx {
            TxState::Open(t) | TxState::Failed(t) => {
                self.roll_back_victim(index, in_flight.step, t, "the last to wait is the victim");
                // The victim's own COMMIT or ROLLBACK: nothing is left to skip.
                if sql::kind(&in_flight.sql).ends_transaction() {
                    self.sessions[index].tx = TxState::None;
                }
            }
            _ => {
                self.open_transaction(index, in_flight.step, true, TxEnd::Aborted);
            }
        }
        self.settle(None)?;
        Ok(())
    }

    pub(super) fn cancel(&mut self, index: usize) -> Result<(), RunError> {
        let running = &mut self.sessions[index];
        if let Some(in_flight) = &mut running.in_flight {
            let first = *in_flight.cancelled.get_or_insert_with(Instant::now);
            in_flight.since = Instant::now();
            if first.elapsed() > self.limits.cancel {
                return self.report_uncancellable(index);
            }
        }
        if let Err(error) = self.engine.cancel(running.session.id()) {
            return self.record_failure(error);
        }
        // The answer to a cancelled statement may take a moment.
        std::thread::sleep(Duration::from_millis(1));
        Ok(())
    }
}

fn event_of(outcome: &Outcome) -> EventKind {
    match outcome {
        Outcome::Rows { columns, rows } => {
            EventKind::Rows { columns: columns.clone(), rows: rows.clone() }
        }
        Outcome::Affected(count) => EventKind::Affected { count: *count },
        Outcome::Done => EventKind::Done,
        Outcome::Error(error) => EventKind::Error(error.clone()),
    }
}
