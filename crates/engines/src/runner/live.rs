//! One session during a run: what is in flight, and where its transaction
//! stands.

use super::run::Run;
use crate::engine::{ANSWER_LIMIT, Outcome, Reply, Session, TxStatus};
use isolde_core::Level;
use isolde_core::history::{DbError, ErrorClass, ErrorEffect, Transaction, TxEnd, What};
use isolde_core::profile::{Ddl, Waiting};
use isolde_core::sql::{self, Kind};
use std::time::{Duration, Instant};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TxState {
    None,
    /// The index of the transaction in the history.
    Open(usize),
    Failed(usize),
    /// The engine ended it; the rest of its statements must not go out.
    Dead,
    /// The connection is gone.
    Gone,
}

pub struct InFlight {
    pub step: Option<usize>,
    pub sql: String,
    pub since: Instant,
    /// The same without the time in which it waited: what it is cancelled by.
    pub works_since: Instant,
    /// Set when the server first said that it waits; orders the waiters.
    pub waiting: Option<usize>,
    /// When the runner first told it to end.
    pub cancelled: Option<Instant>,
}

pub struct Live {
    pub name: String,
    pub session: Box<dyn Session>,
    pub level: Level,
    pub tx: TxState,
    pub in_flight: Option<InFlight>,
    /// Something may be left in the session that the next run must not see.
    pub tainted: bool,
    /// The engine has ended a transaction of this session by itself; be it
    /// that of a single statement.
    pub aborted: bool,
    /// A transaction with a level of its own has left it to the session.
    pub level_changed: bool,
}

impl Live {
    pub fn new(name: &str, session: Box<dyn Session>, level: Level) -> Live {
        Live {
            name: name.into(),
            session,
            level,
            tx: TxState::None,
            in_flight: None,
            tainted: false,
            aborted: false,
            level_changed: false,
        }
    }

    pub fn start(&mut self, step: Option<usize>, sql: &str) {
        self.in_flight = Some(InFlight {
            step,
            sql: sql.into(),
            since: Instant::now(),
            works_since: Instant::now(),
            waiting: None,
            cancelled: None,
        });
        self.session.start(sql);
    }

    pub fn is_idle(&self) -> bool {
        self.in_flight.is_none() && matches!(self.tx, TxState::None | TxState::Dead)
    }

    pub fn wait_order(&self) -> Option<usize> {
        self.in_flight.as_ref().and_then(|f| f.waiting)
    }
}

/// The statement whose reply is being followed.
#[derive(Clone, Copy)]
struct Did<'a> {
    step: Option<usize>,
    kind: Kind,
    sql: &'a str,
}

impl Run<'_> {
    /// A statement of the runner's own, which nobody can block.
    pub(super) fn run_quietly(&mut self, who: usize, sql: &str) -> Option<Reply> {
        if self.history.death.is_some() {
            return None;
        }
        let session = &mut self.lives[who].session;
        session.start(sql);
        let reply = session.reply(self.limits.statement.max(ANSWER_LIMIT));
        if reply.is_none()
            && let Err(error) = self.engine.control("select 1")
        {
            // Any other error than its end leaves this session lost, as it is.
            let _ = self.fall(error);
        }
        reply
    }

    /// Rolls the session's transaction back and records why.
    pub(super) fn roll_back(&mut self, who: usize, why: &str) -> Result<(), super::RunError> {
        let (transaction, failed) = match self.lives[who].tx {
            TxState::Open(t) => (t, false),
            TxState::Failed(t) => (t, true),
            _ => return Ok(()),
        };
        if self.history.death.is_none() {
            self.event(who, None, What::RolledBackByRunner { why: why.into() });
        }
        let reply = self.run_quietly(who, "rollback");
        let lost = reply.as_ref().is_none_or(
            |r| matches!(&r.outcome, Outcome::Error(e) if e.effect == ErrorEffect::Lost),
        );
        let how = match (lost, failed) {
            (true, _) => TxEnd::Lost,
            (_, true) => TxEnd::Aborted,
            _ => TxEnd::RolledBack,
        };
        self.lives[who].tx = if lost { TxState::Gone } else { TxState::None };
        self.end_transaction(who, None, transaction, how);
        self.settle(None)?;
        Ok(())
    }

    /// Records a reply and follows what it did to the transaction.
    pub(super) fn record(&mut self, who: usize, reply: Reply) {
        let in_flight = self.lives[who].in_flight.take().expect("a reply to something sent");
        let step = in_flight.step;
        if in_flight.waiting.is_some() {
            self.event(who, step, What::Resumed);
        }
        let mut reply = reply;
        // SQLite works inside of the call: its limit is ours, and nobody else's.
        let by_limit = self.engine.profile().waiting == Waiting::Retry
            && reply.error().is_some_and(|e| e.class == ErrorClass::Cancelled);
        let cancelled = in_flight.cancelled.is_some();
        if cancelled || by_limit {
            self.event(who, step, What::Cancelled);
        }
        if let (true, Outcome::Error(error)) = (cancelled, &mut reply.outcome)
            && error.effect != ErrorEffect::Lost
        {
            error.class = ErrorClass::Cancelled;
        }
        self.event(who, step, what_of(&reply.outcome));
        let kind = sql::kind(&in_flight.sql);
        let before = match self.lives[who].tx {
            TxState::Open(_) => TxStatus::Open,
            TxState::Failed(_) => TxStatus::Failed,
            _ => TxStatus::Idle,
        };
        let after = reply.status_after(kind, before, self.engine.profile().ddl);
        let did = Did { step, kind, sql: &in_flight.sql };
        self.follow(who, did, &reply, after);
    }

    fn follow(&mut self, who: usize, did: Did<'_>, reply: &Reply, after: TxStatus) {
        let Did { step, kind, .. } = did;
        let error = reply.error();
        let lost = error.is_some_and(|e| e.effect == ErrorEffect::Lost);
        match self.lives[who].tx {
            TxState::Open(transaction) | TxState::Failed(transaction) => {
                if lost {
                    self.lives[who].tx = TxState::Gone;
                    return self.end_transaction(who, step, transaction, TxEnd::Lost);
                }
                self.follow_open(who, did, reply, after, transaction);
            }
            _ if lost => {
                if matches!(kind, Kind::Write | Kind::Ddl) {
                    self.open_transaction(who, step, true, TxEnd::Lost);
                }
                self.lives[who].tx = TxState::Gone;
            }
            _ => match after {
                TxStatus::Open | TxStatus::Failed => {
                    let transaction = self.open_transaction(who, step, false, TxEnd::RolledBack);
                    self.lives[who].tx = match after {
                        TxStatus::Failed => TxState::Failed(transaction),
                        _ => TxState::Open(transaction),
                    };
                }
                TxStatus::Idle => {
                    if kind == Kind::Begin && error.is_some() {
                        // The rest was meant for a transaction that never was;
                        // sent, it would commit by itself.
                        self.lives[who].tx = TxState::Dead;
                    } else if matches!(kind, Kind::Select | Kind::Write | Kind::Ddl) {
                        let how = if error.is_some() { TxEnd::Aborted } else { TxEnd::Committed };
                        self.lives[who].aborted |= error.is_some();
                        self.open_transaction(who, step, true, how);
                    }
                }
            },
        }
    }

    fn follow_open(
        &mut self,
        who: usize,
        did: Did<'_>,
        reply: &Reply,
        after: TxStatus,
        transaction: usize,
    ) {
        let Did { step, kind, sql } = did;
        let failed_before = matches!(self.lives[who].tx, TxState::Failed(_));
        let error = reply.error();
        // The engine wants the transaction gone but leaves the rollback to us:
        // a snapshot that is too old to write on never gets younger.
        let hopeless = |e: &DbError| {
            e.effect == ErrorEffect::RolledBack || e.class == ErrorClass::Serialization
        };
        let must_roll_back = error.is_some_and(hopeless) && after == TxStatus::Open;
        if must_roll_back {
            self.roll_back_victim(who, step, transaction, "the engine leaves no other way");
            return;
        }
        // MySQL's BEGIN commits what was open.
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
                self.end_transaction(who, step, transaction, how);
                let next = self.open_transaction(who, step, false, TxEnd::RolledBack);
                self.lives[who].tx = TxState::Open(next);
            }
            TxStatus::Open if implicit => {
                self.end_transaction(who, step, transaction, TxEnd::Committed);
                let next = self.open_transaction(who, step, false, TxEnd::RolledBack);
                self.lives[who].tx = TxState::Open(next);
            }
            TxStatus::Open => self.lives[who].tx = TxState::Open(transaction),
            TxStatus::Failed => self.lives[who].tx = TxState::Failed(transaction),
            TxStatus::Idle => {
                let commits = self.engine.profile().ddl == Ddl::CommitsImplicitly;
                let gave_up = |e: &DbError| {
                    e.effect != ErrorEffect::Statement || e.class == ErrorClass::Deadlock
                };
                let how = match (kind, error) {
                    // It had committed before it failed: error 1050 after an
                    // implicit commit, say.
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
                self.lives[who].tx = if by_its_own_end { TxState::None } else { TxState::Dead };
                self.lives[who].aborted |= !by_its_own_end;
                self.end_transaction(who, step, transaction, how);
            }
        }
    }

    /// Rolls back a transaction that the engine has given up.
    pub(super) fn roll_back_victim(
        &mut self,
        who: usize,
        step: Option<usize>,
        transaction: usize,
        why: &str,
    ) {
        self.event(who, None, What::RolledBackByRunner { why: why.into() });
        let reply = self.run_quietly(who, "rollback");
        let gone = reply.is_none_or(
            |r| matches!(&r.outcome, Outcome::Error(e) if e.effect == ErrorEffect::Lost),
        );
        self.lives[who].tx = if gone { TxState::Gone } else { TxState::Dead };
        self.end_transaction(who, step, transaction, TxEnd::Aborted);
    }

    fn open_transaction(
        &mut self,
        who: usize,
        step: Option<usize>,
        autocommit: bool,
        how: TxEnd,
    ) -> usize {
        self.history.transactions.push(Transaction {
            session: self.lives[who].name.clone(),
            begin: step.unwrap_or_default(),
            autocommit,
            how,
        });
        self.history.transactions.len() - 1
    }

    /// A statement that an engine without a deadlock detector would refuse
    /// for ever: its transaction is rolled back.
    pub(super) fn fail_busy(&mut self, who: usize, why: &str) -> Result<(), super::RunError> {
        let Some(in_flight) = self.lives[who].in_flight.take() else { return Ok(()) };
        let error = DbError {
            code: "BUSY".into(),
            sqlstate: None,
            message: why.into(),
            class: ErrorClass::Busy,
            effect: ErrorEffect::RolledBack,
        };
        self.event(who, in_flight.step, What::Resumed);
        self.event(who, in_flight.step, What::Error(error));
        match self.lives[who].tx {
            TxState::Open(t) | TxState::Failed(t) => {
                self.roll_back_victim(who, in_flight.step, t, "the last to wait is the victim");
                // COMMIT and ROLLBACK of the victim have nothing left to skip.
                if sql::kind(&in_flight.sql).ends_transaction() {
                    self.lives[who].tx = TxState::None;
                }
            }
            _ => {
                self.open_transaction(who, in_flight.step, true, TxEnd::Aborted);
            }
        }
        self.settle(None)?;
        Ok(())
    }

    pub(super) fn cancel(&mut self, who: usize) -> Result<(), super::RunError> {
        let live = &mut self.lives[who];
        if let Some(in_flight) = &mut live.in_flight {
            let first = *in_flight.cancelled.get_or_insert_with(Instant::now);
            in_flight.since = Instant::now();
            if first.elapsed() > self.limits.cancel {
                return self.does_not_end(who);
            }
        }
        if let Err(error) = self.engine.cancel(live.session.id()) {
            return self.fall(error);
        }
        // The answer to a cancelled statement may take its time.
        std::thread::sleep(Duration::from_millis(1));
        Ok(())
    }
}

fn what_of(outcome: &Outcome) -> What {
    match outcome {
        Outcome::Rows { columns, rows } => {
            What::Rows { columns: columns.clone(), rows: rows.clone() }
        }
        Outcome::Affected(count) => What::Affected { count: *count },
        Outcome::Done => What::Done,
        Outcome::Error(error) => What::Error(error.clone()),
    }
}
