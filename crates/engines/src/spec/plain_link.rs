//! Connections for specs on any engine, through [`Engine`] and [`Session`].
//!
//! A step's SQL is split at its semicolons and sent statement by statement; the
//! first error ends the step, as in one message to PostgreSQL. On engines that
//! answer "busy" instead of blocking, the statement is retried.

use crate::engine::{Engine, EngineResult, Outcome, Reply, Session, WaitState, run_to_end};
use crate::engine::{Notification, SpecAnswer, SpecFailure, SpecLinks};
use isolde_model::Value;
use isolde_model::history::{DbError, ErrorClass};
use isolde_model::profile::Waiting;
use isolde_model::value::hex;
use isolde_sql as sql;
use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// Without a lock view, a statement that takes longer counts as blocked.
const BLIND_PATIENCE: Duration = Duration::from_millis(500);

const ROLLBACK_LIMIT: Duration = Duration::from_secs(10);

struct PlainLink {
    session: Box<dyn Session>,
    /// The rest of the step, the statement in flight first.
    statements: VecDeque<String>,
    in_flight: bool,
    /// Answered "busy": to be sent again.
    refused: Option<DbError>,
    answers: VecDeque<SpecAnswer>,
    since: Instant,
    /// No transaction of the spec can hold the lock that this statement waits
    /// for.
    others_rolled_back: bool,
}

pub struct PlainLinks<'a> {
    engine: &'a mut dyn Engine,
    links: Vec<PlainLink>,
    waiting: Waiting,
}

impl<'a> PlainLinks<'a> {
    pub fn open(engine: &'a mut dyn Engine, sessions: usize) -> EngineResult<PlainLinks<'a>> {
        let mut links = Vec::new();
        for _ in 0..=sessions {
            links.push(PlainLink {
                session: engine.open()?,
                statements: VecDeque::new(),
                in_flight: false,
                refused: None,
                answers: VecDeque::new(),
                since: Instant::now(),
                others_rolled_back: false,
            });
        }
        let waiting = engine.profile().waiting;
        Ok(PlainLinks { engine, links, waiting })
    }

    fn look(&mut self, index: usize, patience: Duration) -> bool {
        let retries = self.waiting == Waiting::Retry;
        let link = &mut self.links[index];
        if link.refused.take().is_some() {
            link.start_next();
        }
        if !link.in_flight {
            return false;
        }
        match link.session.reply(patience) {
            Some(reply) => {
                link.take(reply, retries);
                true
            }
            None => false,
        }
    }
}

impl PlainLink {
    fn start_next(&mut self) {
        if let Some(sql) = self.statements.front() {
            self.session.start(sql);
            self.in_flight = true;
        }
    }

    fn take(&mut self, reply: Reply, retries: bool) {
        self.in_flight = false;
        if let Outcome::Error(error) = &reply.outcome
            && retries
            && error.class == ErrorClass::Busy
        {
            self.refused = Some(error.clone());
            return;
        }
        let statement = self.statements.pop_front();
        let mut answer = answer(reply.outcome);
        if let SpecAnswer::Failed(failed) = &mut answer {
            failed.statement = statement;
            self.statements.clear();
        }
        self.answers.push_back(answer);
        self.start_next();
    }

    fn is_done(&self) -> bool {
        self.statements.is_empty() && !self.in_flight
    }
}

impl SpecLinks for PlainLinks<'_> {
    fn send(&mut self, index: usize, sql: &str) -> Result<(), String> {
        let link = &mut self.links[index];
        link.statements = sql::split(sql).statements.into_iter().map(|(_, s)| s).collect();
        link.since = Instant::now();
        link.others_rolled_back = false;
        if link.statements.is_empty() {
            link.answers.push_back(SpecAnswer::Empty);
        }
        link.start_next();
        Ok(())
    }

    /// Busy until the last statement has its answer: unlike with libpq, the
    /// results of half a step cannot be read here.
    fn is_busy(&mut self, index: usize) -> bool {
        while !self.links[index].is_done() && self.look(index, Duration::ZERO) {
            if self.links[index].refused.is_some() {
                return true;
            }
        }
        !self.links[index].is_done()
    }

    fn wait(&mut self, index: usize, patience: Duration) -> Result<bool, String> {
        if self.links[index].refused.is_some() {
            return Ok(false);
        }
        Ok(self.look(index, patience) && self.links[index].refused.is_none())
    }

    fn next_answer(&mut self, index: usize) -> Option<SpecAnswer> {
        self.links[index].answers.pop_front()
    }

    fn take_notices(&mut self, _who: usize) -> Vec<String> {
        Vec::new()
    }

    fn take_notifications(&mut self, _who: usize) -> Vec<Notification> {
        Vec::new()
    }

    fn id(&self, index: usize) -> u64 {
        self.links[index].session.id()
    }

    fn is_blocked(&mut self, index: usize) -> EngineResult<bool> {
        let link = &self.links[index];
        match self.waiting {
            Waiting::Never => Ok(false),
            Waiting::Retry => Ok(link.refused.is_some()),
            Waiting::Timeout => Ok(link.since.elapsed() > BLIND_PATIENCE),
            Waiting::Probe => {
                let states = self.engine.waiting(&[link.session.id()])?;
                Ok(matches!(states.first(), Some(WaitState::Waiting(_))))
            }
        }
    }

    fn cancel(&mut self, index: usize) -> EngineResult<()> {
        self.engine.cancel(self.links[index].session.id())
    }

    fn give_up_retrying(&mut self, index: usize) {
        let link = &mut self.links[index];
        if let Some(error) = link.refused.take() {
            link.statements.clear();
            link.answers.push_back(answer(Outcome::Error(error)));
        }
    }

    fn waits_in_vain(&mut self, index: usize) -> EngineResult<bool> {
        for other in 1..self.links.len() {
            if self.links[other].in_flight && !self.is_blocked(other)? {
                return Ok(false);
            }
        }
        self.is_blocked(index)
    }

    /// PostgreSQL releases the locks of a failed transaction. These engines
    /// keep them, so that a spec's teardown would wait for ever.
    fn roll_back_open_transactions(&mut self, index: usize) -> EngineResult<bool> {
        if !self.is_blocked(index)? {
            return Ok(false);
        }
        if self.links[index].others_rolled_back {
            // No session of this run can hold the lock.
            match self.waiting {
                Waiting::Retry => self.give_up_retrying(index),
                _ => self.cancel(index)?,
            }
            return Ok(false);
        }
        self.links[index].others_rolled_back = true;
        self.roll_back_others(index);
        Ok(true)
    }
}

impl PlainLinks<'_> {
    /// Rolls back all other sessions; a session without a transaction ignores
    /// it.
    fn roll_back_others(&mut self, index: usize) {
        for (_, link) in self.links.iter_mut().enumerate().filter(|(i, _)| *i != index) {
            let _ = run_to_end(link.session.as_mut(), "rollback", ROLLBACK_LIMIT);
        }
    }
}

fn answer(outcome: Outcome) -> SpecAnswer {
    match outcome {
        Outcome::Rows { columns, rows } => {
            let rows = rows.iter().map(|r| r.iter().map(cell).collect()).collect();
            SpecAnswer::Table { columns, rows }
        }
        Outcome::Affected(_) | Outcome::Done => SpecAnswer::Done,
        Outcome::Error(error) => {
            let line = format!("ERROR:  {}", error.message);
            let rejected = error.class == ErrorClass::Rejected;
            SpecAnswer::Failed(SpecFailure {
                full: format!("{line}\n"),
                line,
                rejected,
                statement: None,
            })
        }
    }
}

/// A value as PostgreSQL would print it.
fn cell(value: &Value) -> Option<String> {
    match value {
        Value::Null => None,
        Value::Bool(b) => Some(if *b { "t" } else { "f" }.into()),
        Value::Int(i) => Some(i.to_string()),
        Value::Float(f) => Some(f.to_string()),
        Value::Decimal(text) | Value::Text(text) => Some(text.clone()),
        Value::Bytes(bytes) => Some(format!("\\x{}", hex(bytes))),
    }
}
