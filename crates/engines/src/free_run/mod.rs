//! Runs sessions at full speed: without a schedule, one thread polls all
//! sessions and records a trace.
//!
//! ```text
//!   each idle session sends its next statement ──► each answer is recorded,
//!    ▲                                             its session is idle again
//!    └─────────────────────────────────────────────┘
//! ```
//!
//! In a normal run the runner decides the order of statements and waits until
//! all sessions have settled. Here only the database's locks delay a session,
//! and the order is reconstructed afterwards from the times. A transaction that
//! the engine aborts is given up or repeated. Time limits and server failures
//! are handled as in the runner: every statement ends, and a failure is
//! recorded in the trace.

mod overdue;
mod worker;

use crate::connect::poll::which_readable;
use crate::engine::{ANSWER_LIMIT, Outcome, Reply};
use crate::runner::{FINAL_REPLY_LIMIT, RunError, Runner, set_level};
use isolde_model::history::{ErrorClass, ErrorEffect, FailureKind, ServerFailure};
use isolde_model::profile::Waiting;
use isolde_model::trace::{Operation, OperationResult, Recorder, Trace};
use isolde_model::{Level, Profile};
use std::sync::Arc;
use std::time::{Duration, Instant};
use worker::Worker;

/// How long nothing may happen before limits are checked.
const TICK: Duration = Duration::from_millis(20);
/// The pause between two polls where no socket reports an answer.
const PAUSE: Duration = Duration::from_micros(50);

/// The statements of a transaction, including BEGIN and COMMIT. Without them
/// each statement commits by itself.
pub type Statements = Arc<[String]>;

/// What to do with an aborted transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnAbort {
    GiveUp,
    /// Run the same statements again, at most so often, if a conflict with
    /// other transactions aborted it: any other error would recur.
    Repeat {
        at_most: u32,
    },
}

/// When no more transactions begin. Running ones are completed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stop {
    /// After so many, repetitions not counted.
    pub transactions: Option<u64>,
    pub time: Option<Duration>,
}

#[derive(Clone, Copy, Debug)]
pub struct FreeRun {
    pub sessions: usize,
    pub level: Option<Level>,
    pub on_abort: OnAbort,
    pub stop: Stop,
}

impl FreeRun {
    /// Runs on the database as it is. `next` returns a session's next
    /// transaction, or none at the end.
    pub fn run(
        &self,
        runner: &mut Runner,
        next: &mut dyn FnMut(usize) -> Option<Statements>,
    ) -> Result<Trace, RunError> {
        self.run_watched(runner, next, &mut |_| {})
    }

    /// The same; `watch` also sees every answer with its rows, which the trace
    /// only counts.
    pub fn run_watched(
        &self,
        runner: &mut Runner,
        next: &mut dyn FnMut(usize) -> Option<Statements>,
        watch: &mut dyn FnMut(&Answer<'_>),
    ) -> Result<Trace, RunError> {
        runner.restore_server()?;
        let names = (1..=self.sessions).map(|n| format!("s{n}")).collect();
        let mut recorder = Recorder::new(runner.engine.info().clone(), self.level, names);
        let profile = runner.engine.profile();
        recorder.controlled(profile.control(self.level.unwrap_or(profile.default_level)));
        let workers = match self.open_sessions(runner) {
            Ok(workers) => workers,
            Err(error) => {
                let death = runner.server_failure(error)?;
                return Ok(recorder.finish(Some(death)));
            }
        };
        let profile = runner.engine.profile().clone();
        let now = Instant::now();
        let mut free = FreeRunState {
            watch,
            plan: *self,
            runner,
            profile,
            recorder,
            workers,
            began: now,
            last_answer: now,
            last_limit_check: now,
            transactions: 0,
            waits: 0,
            death: None,
        };
        free.run(next)?;
        let FreeRunState { runner, recorder, death, .. } = free;
        let death = death.or_else(|| runner.check_server(false));
        Ok(recorder.finish(death))
    }

    fn open_sessions(&self, runner: &mut Runner) -> Result<Vec<Worker>, RunError> {
        let level = self.level.unwrap_or(runner.engine.profile().default_level);
        let limit = runner.limits.statement.max(ANSWER_LIMIT);
        let mut workers = Vec::new();
        for _ in 0..self.sessions {
            let mut session = runner.engine.open()?;
            set_level(runner.engine.as_ref(), session.as_mut(), level, limit)?;
            workers.push(Worker::new(session));
        }
        Ok(workers)
    }
}

/// The answer to one statement of a free run.
#[derive(Debug)]
pub struct Answer<'r> {
    /// The index of its transaction in the trace.
    pub transaction: u32,
    /// The index of the statement in its transaction; none for the rollback
    /// that ends an aborted one.
    pub statement: Option<usize>,
    pub reply: &'r Reply,
}

struct FreeRunState<'r> {
    watch: &'r mut dyn FnMut(&Answer<'_>),
    plan: FreeRun,
    runner: &'r mut Runner,
    profile: Profile,
    recorder: Recorder,
    workers: Vec<Worker>,
    began: Instant,
    last_answer: Instant,
    /// When limits were last checked.
    last_limit_check: Instant,
    /// Transactions begun, without repetitions.
    transactions: u64,
    /// Numbers the statements that a busy engine refused.
    waits: u64,
    death: Option<ServerFailure>,
}

impl FreeRunState<'_> {
    fn run(&mut self, next: &mut dyn FnMut(usize) -> Option<Statements>) -> Result<(), RunError> {
        loop {
            if (self.runner.interrupted)() {
                return Err(RunError::Interrupted);
            }
            for index in 0..self.workers.len() {
                self.send_next(index, next);
            }
            if self.workers.iter().all(|w| w.in_flight.is_none()) {
                return Ok(());
            }
            let answered = self.collect();
            self.retry_busy(answered);
            if self.last_limit_check.elapsed() >= TICK {
                self.check_limits()?;
                self.last_limit_check = Instant::now();
            }
            if self.death.is_some() {
                self.finish_lost_statements();
                return Ok(());
            }
        }
    }

    fn stops(&self) -> bool {
        self.plan.stop.transactions.is_some_and(|most| self.transactions >= most)
            || self.out_of_time()
    }

    fn out_of_time(&self) -> bool {
        self.plan.stop.time.is_some_and(|time| self.began.elapsed() >= time)
    }

    /// Nanoseconds since the run began; 584 years fit.
    fn now(&self) -> u64 {
        u64::try_from(self.began.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }

    /// Takes the answers that have arrived; waits a moment if there are none.
    fn collect(&mut self) -> bool {
        let in_flight: Vec<usize> = (0..self.workers.len())
            .filter(|index| {
                self.workers[*index].in_flight.as_ref().is_some_and(|o| o.busy.is_none())
            })
            .collect();
        let sockets: Option<Vec<_>> =
            in_flight.iter().map(|index| self.workers[*index].session.as_ref()?.socket()).collect();
        let ready: Vec<usize> = match sockets {
            Some(sockets) if !sockets.is_empty() => {
                let ready = which_readable(&sockets, TICK);
                let ready = ready.unwrap_or_else(|_| vec![true; in_flight.len()]);
                in_flight
                    .into_iter()
                    .zip(ready)
                    .filter(|(_, ready)| *ready)
                    .map(|(index, _)| index)
                    .collect()
            }
            _ => in_flight,
        };
        let blind = ready.iter().any(|index| {
            self.workers[*index].session.as_ref().is_some_and(|s| s.socket().is_none())
        });
        let mut answered = false;
        for index in ready {
            answered |= self.take_reply(index, Duration::ZERO);
        }
        if !answered && blind {
            std::thread::sleep(PAUSE);
        }
        answered
    }

    /// True when the session has made progress; "busy" is no progress.
    fn take_reply(&mut self, index: usize, patience: Duration) -> bool {
        let Some(session) = &mut self.workers[index].session else { return false };
        let Some(reply) = session.reply(patience) else { return false };
        let busy = reply.error().is_some_and(|e| e.class == ErrorClass::Busy);
        if busy && self.profile.waiting == Waiting::Retry {
            self.waits += 1;
            let order = self.waits;
            if let Some(in_flight) = &mut self.workers[index].in_flight {
                in_flight.busy.get_or_insert(order);
            }
            return false;
        }
        self.last_answer = Instant::now();
        self.record(index, &reply);
        if reply.error().is_some_and(|e| e.effect == ErrorEffect::Lost) {
            self.workers[index].drop_session();
            self.death = self.death.take().or_else(|| self.runner.check_server(true));
            return true;
        }
        self.apply_reply(index, &reply);
        true
    }

    fn record(&mut self, index: usize, reply: &Reply) {
        if let Some(work) = &self.workers[index].work {
            let (transaction, statement) = (work.transaction, work.current_statement());
            (self.watch)(&Answer { transaction, statement, reply });
        }
        let cancelled =
            self.workers[index].in_flight.as_ref().is_some_and(|o| o.cancelled.is_some());
        let result = match &reply.outcome {
            Outcome::Rows { rows, .. } => OperationResult::Rows(rows.len() as u64),
            Outcome::Affected(count) => OperationResult::Affected(*count),
            Outcome::Done => OperationResult::Done,
            Outcome::Error(e) if cancelled && e.effect != ErrorEffect::Lost => {
                OperationResult::Error(ErrorClass::Cancelled)
            }
            Outcome::Error(error) => OperationResult::Error(error.class),
        };
        self.record_result(index, result);
    }

    fn record_result(&mut self, index: usize, result: OperationResult) {
        let end = self.now();
        let worker = &self.workers[index];
        let (Some(work), Some(in_flight)) = (&worker.work, &worker.in_flight) else { return };
        self.recorder.operation(Operation {
            session: u32::try_from(index).unwrap_or(u32::MAX),
            transaction: work.transaction,
            statement: in_flight.statement,
            start: in_flight.start,
            end,
            result,
            accesses: None,
        });
    }

    /// After a server failure: takes final replies, or records that there are
    /// none.
    fn finish_lost_statements(&mut self) {
        let patience = match self.death.as_ref().map(|d| d.how) {
            Some(FailureKind::Died) => FINAL_REPLY_LIMIT,
            _ => Duration::ZERO,
        };
        for index in 0..self.workers.len() {
            if self.workers[index].in_flight.is_none() {
                continue;
            }
            let session = self.workers[index].session.as_mut();
            match session.and_then(|session| session.reply(patience)) {
                Some(reply) => self.record(index, &reply),
                None => self.record_result(index, OperationResult::Unanswered),
            }
            self.workers[index].drop_session();
        }
    }
}
