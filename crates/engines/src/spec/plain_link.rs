//! Specs on any engine, through [`Engine`] and [`Session`].
//!
//! A step's SQL is cut at its semicolons and sent statement by statement; the
//! first error ends the step, as one message to PostgreSQL would. Engines that
//! answer "busy" instead of waiting have the statement tried again.

use super::link::{Answer, Failed, Links, Notification};
use crate::engine::{Engine, EngineResult, Outcome, Reply, Session, WaitState, run_to_end};
use isolde_core::Value;
use isolde_core::history::{DbError, ErrorClass};
use isolde_core::profile::Waiting;
use isolde_core::sql;
use isolde_core::value::hex;
use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// Without any lock view, a statement that takes longer counts as waiting.
const BLIND_PATIENCE: Duration = Duration::from_millis(500);

const ROLLBACK_LIMIT: Duration = Duration::from_secs(10);

struct PlainLink {
    session: Box<dyn Session>,
    /// What is left of the step, the statement in flight first.
    statements: VecDeque<String>,
    in_flight: bool,
    /// Answered "busy": to be sent again.
    refused: Option<DbError>,
    answers: VecDeque<Answer>,
    since: Instant,
    /// What this statement waits for is no transaction of the spec.
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

    fn look(&mut self, who: usize, patience: Duration) -> bool {
        let retries = self.waiting == Waiting::Retry;
        let link = &mut self.links[who];
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
        if let Answer::Failed(failed) = &mut answer {
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

impl Links for PlainLinks<'_> {
    fn send(&mut self, who: usize, sql: &str) -> Result<(), String> {
        let link = &mut self.links[who];
        link.statements = sql::split(sql).statements.into_iter().map(|(_, s)| s).collect();
        link.since = Instant::now();
        link.others_rolled_back = false;
        if link.statements.is_empty() {
            link.answers.push_back(Answer::Empty);
        }
        link.start_next();
        Ok(())
    }

    /// Busy until the last statement has its answer: unlike libpq, nobody can
    /// ask here for the results of half a step.
    fn is_busy(&mut self, who: usize) -> bool {
        while !self.links[who].is_done() && self.look(who, Duration::ZERO) {
            if self.links[who].refused.is_some() {
                return true;
            }
        }
        !self.links[who].is_done()
    }

    fn wait(&mut self, who: usize, patience: Duration) -> Result<bool, String> {
        if self.links[who].refused.is_some() {
            return Ok(false);
        }
        Ok(self.look(who, patience) && self.links[who].refused.is_none())
    }

    fn next_answer(&mut self, who: usize) -> Option<Answer> {
        self.links[who].answers.pop_front()
    }

    fn take_notices(&mut self, _who: usize) -> Vec<String> {
        Vec::new()
    }

    fn take_notifications(&mut self, _who: usize) -> Vec<Notification> {
        Vec::new()
    }

    fn id(&self, who: usize) -> u64 {
        self.links[who].session.id()
    }

    fn is_blocked(&mut self, who: usize) -> EngineResult<bool> {
        let link = &self.links[who];
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

    fn cancel(&mut self, who: usize) -> EngineResult<()> {
        self.engine.cancel(self.links[who].session.id())
    }

    fn give_up_retrying(&mut self, who: usize) {
        let link = &mut self.links[who];
        if let Some(error) = link.refused.take() {
            link.statements.clear();
            link.answers.push_back(answer(Outcome::Error(error)));
        }
    }

    fn waits_in_vain(&mut self, who: usize) -> EngineResult<bool> {
        for other in 1..self.links.len() {
            if self.links[other].in_flight && !self.is_blocked(other)? {
                return Ok(false);
            }
        }
        self.is_blocked(who)
    }

    /// PostgreSQL gives up the locks of a failed transaction, where these
    /// engines keep them, so that a spec's teardown would wait for ever.
    fn end_what_was_left_open(&mut self, who: usize) -> EngineResult<bool> {
        if !self.is_blocked(who)? {
            return Ok(false);
        }
        if self.links[who].others_rolled_back {
            // Nobody of this run is left who could be waited for.
            match self.waiting {
                Waiting::Retry => self.give_up_retrying(who),
                _ => self.cancel(who)?,
            }
            return Ok(false);
        }
        self.links[who].others_rolled_back = true;
        self.roll_back_others(who);
        Ok(true)
    }
}

impl PlainLinks<'_> {
    /// Whatever a session does not have open, it is glad to roll back.
    fn roll_back_others(&mut self, who: usize) {
        for (_, link) in self.links.iter_mut().enumerate().filter(|(i, _)| *i != who) {
            let _ = run_to_end(link.session.as_mut(), "rollback", ROLLBACK_LIMIT);
        }
    }
}

fn answer(outcome: Outcome) -> Answer {
    match outcome {
        Outcome::Rows { columns, rows } => {
            let rows = rows.iter().map(|r| r.iter().map(cell).collect()).collect();
            Answer::Table { columns, rows }
        }
        Outcome::Affected(_) | Outcome::Done => Answer::Done,
        Outcome::Error(error) => {
            let line = format!("ERROR:  {}", error.message);
            let rejected = error.class == ErrorClass::Rejected;
            Answer::Failed(Failed { full: format!("{line}\n"), line, rejected, statement: None })
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
