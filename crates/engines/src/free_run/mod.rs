//! Sessions at full speed: no schedule, one thread that polls them all, and a
//! trace of what they did.
//!
//! ```text
//!   each idle session sends what comes next ──► whoever has an answer is
//!    ▲                                          written down and goes on
//!    └──────────────────────────────────────────┘
//! ```
//!
//! The runner decides who is next and waits until everybody has settled. Here
//! nobody waits for anybody but the database's own locks; the order is told
//! afterwards, by the times. A transaction that the engine aborts is given up
//! or repeated. Limits and deaths are the runner's: no statement is without
//! end, and a server that falls is in the trace.

mod overdue;
mod worker;

use crate::connect::poll::which_readable;
use crate::engine::{ANSWER_LIMIT, Outcome, Reply};
use crate::runner::{LAST_WORDS, RunError, Runner, set_level};
use isolde_core::history::{Death, ErrorClass, ErrorEffect, Fall};
use isolde_core::profile::Waiting;
use isolde_core::trace::{Operation, OperationResult, Recorder, Trace};
use isolde_core::{Level, Profile};
use std::sync::Arc;
use std::time::{Duration, Instant};
use worker::Worker;

/// How long nothing may happen before limits are looked at.
const TICK: Duration = Duration::from_millis(20);
/// The pause between two looks where no socket tells of an answer.
const PAUSE: Duration = Duration::from_micros(50);

/// The statements of a transaction, with what begins and ends it. One that has
/// neither commits each statement by itself.
pub type Statements = Arc<[String]>;

/// What an aborted transaction is worth.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnAbort {
    GiveUp,
    /// The same statements again, at most so often, where a conflict with
    /// others ended it: whatever else did would do so again.
    Repeat {
        at_most: u32,
    },
}

/// When no more transactions begin. Those under way come to their end.
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
    /// Runs on the database as it stands. `next` is asked for a session's next
    /// transaction until it has none.
    pub fn run(
        &self,
        runner: &mut Runner,
        next: &mut dyn FnMut(usize) -> Option<Statements>,
    ) -> Result<Trace, RunError> {
        self.run_watched(runner, next, &mut |_| {})
    }

    /// The same, and `watch` sees every answer with its rows, which the trace only
    /// counts.
    pub fn run_watched(
        &self,
        runner: &mut Runner,
        next: &mut dyn FnMut(usize) -> Option<Statements>,
        watch: &mut dyn FnMut(&Answer<'_>),
    ) -> Result<Trace, RunError> {
        runner.bring_back()?;
        let names = (1..=self.sessions).map(|n| format!("s{n}")).collect();
        let mut recorder = Recorder::new(runner.engine.info().clone(), self.level, names);
        let profile = runner.engine.profile();
        recorder.controlled(profile.control(self.level.unwrap_or(profile.default_level)));
        let workers = match self.open_sessions(runner) {
            Ok(workers) => workers,
            Err(error) => {
                let death = runner.death_by(error)?;
                return Ok(recorder.finish(Some(death)));
            }
        };
        let profile = runner.engine.profile().clone();
        let now = Instant::now();
        let mut free = Free {
            watch,
            plan: *self,
            runner,
            profile,
            recorder,
            workers,
            began: now,
            last_answer: now,
            last_look: now,
            transactions: 0,
            waits: 0,
            death: None,
        };
        free.run(next)?;
        let Free { runner, recorder, death, .. } = free;
        let death = death.or_else(|| runner.look_for_death(false));
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

/// What a statement of a free run was answered.
#[derive(Debug)]
pub struct Answer<'r> {
    /// The place of its transaction in the trace.
    pub transaction: u32,
    /// Its place among the statements of the transaction; none for the rollback that
    /// ends one which cannot go on.
    pub statement: Option<usize>,
    pub reply: &'r Reply,
}

struct Free<'r> {
    watch: &'r mut dyn FnMut(&Answer<'_>),
    plan: FreeRun,
    runner: &'r mut Runner,
    profile: Profile,
    recorder: Recorder,
    workers: Vec<Worker>,
    began: Instant,
    last_answer: Instant,
    /// When limits were looked at.
    last_look: Instant,
    /// Transactions begun, without repetitions.
    transactions: u64,
    /// Counts those that a busy engine made wait.
    waits: u64,
    death: Option<Death>,
}

impl Free<'_> {
    fn run(&mut self, next: &mut dyn FnMut(usize) -> Option<Statements>) -> Result<(), RunError> {
        loop {
            if (self.runner.interrupted)() {
                return Err(RunError::Interrupted);
            }
            for who in 0..self.workers.len() {
                self.send_next(who, next);
            }
            if self.workers.iter().all(|w| w.out.is_none()) {
                return Ok(());
            }
            let answered = self.collect();
            self.try_busy_again(answered);
            if self.last_look.elapsed() >= TICK {
                self.look_at_limits()?;
                self.last_look = Instant::now();
            }
            if self.death.is_some() {
                self.bury();
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

    /// Takes the answers that are there; waits a moment where none is.
    fn collect(&mut self) -> bool {
        let out: Vec<usize> = (0..self.workers.len())
            .filter(|who| self.workers[*who].out.as_ref().is_some_and(|o| o.busy.is_none()))
            .collect();
        let sockets: Option<Vec<_>> =
            out.iter().map(|who| self.workers[*who].session.as_ref()?.socket()).collect();
        let ready: Vec<usize> = match sockets {
            Some(sockets) if !sockets.is_empty() => {
                let ready = which_readable(&sockets, TICK);
                let ready = ready.unwrap_or_else(|_| vec![true; out.len()]);
                out.into_iter().zip(ready).filter(|(_, ready)| *ready).map(|(who, _)| who).collect()
            }
            _ => out,
        };
        let blind = ready
            .iter()
            .any(|who| self.workers[*who].session.as_ref().is_some_and(|s| s.socket().is_none()));
        let mut answered = false;
        for who in ready {
            answered |= self.take_reply(who, Duration::ZERO);
        }
        if !answered && blind {
            std::thread::sleep(PAUSE);
        }
        answered
    }

    /// True when the session has got on: a busy engine's answer is none.
    fn take_reply(&mut self, who: usize, patience: Duration) -> bool {
        let Some(session) = &mut self.workers[who].session else { return false };
        let Some(reply) = session.reply(patience) else { return false };
        let busy = reply.error().is_some_and(|e| e.class == ErrorClass::Busy);
        if busy && self.profile.waiting == Waiting::Retry {
            self.waits += 1;
            let order = self.waits;
            if let Some(out) = &mut self.workers[who].out {
                out.busy.get_or_insert(order);
            }
            return false;
        }
        self.last_answer = Instant::now();
        self.record(who, &reply);
        if reply.error().is_some_and(|e| e.effect == ErrorEffect::Lost) {
            self.workers[who].lose();
            self.death = self.death.take().or_else(|| self.runner.look_for_death(true));
            return true;
        }
        self.follow(who, &reply);
        true
    }

    fn record(&mut self, who: usize, reply: &Reply) {
        if let Some(work) = &self.workers[who].work {
            let (transaction, statement) = (work.transaction, work.under_way());
            (self.watch)(&Answer { transaction, statement, reply });
        }
        let cancelled = self.workers[who].out.as_ref().is_some_and(|o| o.cancelled.is_some());
        let result = match &reply.outcome {
            Outcome::Rows { rows, .. } => OperationResult::Rows(rows.len() as u64),
            Outcome::Affected(count) => OperationResult::Affected(*count),
            Outcome::Done => OperationResult::Done,
            Outcome::Error(e) if cancelled && e.effect != ErrorEffect::Lost => {
                OperationResult::Error(ErrorClass::Cancelled)
            }
            Outcome::Error(error) => OperationResult::Error(error.class),
        };
        self.record_result(who, result);
    }

    fn record_result(&mut self, who: usize, result: OperationResult) {
        let end = self.now();
        let worker = &self.workers[who];
        let (Some(work), Some(out)) = (&worker.work, &worker.out) else { return };
        self.recorder.operation(Operation {
            session: u32::try_from(who).unwrap_or(u32::MAX),
            transaction: work.transaction,
            statement: out.statement,
            start: out.start,
            end,
            result,
            accesses: None,
        });
    }

    /// The last words of those that are still out, or that they have none.
    fn bury(&mut self) {
        let patience = match self.death.as_ref().map(|d| d.how) {
            Some(Fall::Died) => LAST_WORDS,
            _ => Duration::ZERO,
        };
        for who in 0..self.workers.len() {
            if self.workers[who].out.is_none() {
                continue;
            }
            let session = self.workers[who].session.as_mut();
            match session.and_then(|session| session.reply(patience)) {
                Some(reply) => self.record(who, &reply),
                None => self.record_result(who, OperationResult::Unanswered),
            }
            self.workers[who].lose();
        }
    }
}
