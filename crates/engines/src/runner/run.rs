//! One run under way: the scan of the schedule, what goes out and what must
//! not, and how what is still open at the end is let go.

use super::live::{Live, TxState};
use super::{Limits, RunError};
use crate::engine::{Engine, Outcome};
use isolde_core::Case;
use isolde_core::history::{Event, History, TxEnd, What};
use isolde_core::profile::Waiting;
use isolde_core::sql::{self, Kind};
use std::time::Duration;

/// One run under way. It owns nothing, so that a case that somebody is still
/// typing ([`super::interactive`]) goes the same way as one from a file.
pub(super) struct Run<'a> {
    pub engine: &'a mut dyn Engine,
    pub limits: Limits,
    /// How long to stay with a statement that works; none: to its end.
    pub patience: Option<Duration>,
    pub interrupted: fn() -> bool,
    pub case: &'a Case,
    pub lives: &'a mut Vec<Live>,
    pub submitted: &'a mut Vec<bool>,
    pub history: &'a mut History,
    pub wait_detection: &'a mut Vec<Duration>,
    pub typical_reply: &'a mut Duration,
    /// Orders the sessions by when they began to wait.
    pub wait_counter: &'a mut usize,
}

impl Run<'_> {
    pub(super) fn schedule(&mut self) -> Result<(), RunError> {
        loop {
            if self.scan()? {
                continue;
            }
            // Nothing more can be sent: let go of what still holds locks, so
            // that the statements that wait come to their end.
            if self.lives.iter().all(|l| l.in_flight.is_none()) && self.all_submitted() {
                break;
            }
            if !self.release_something()? {
                self.give_up_waiting()?;
            }
        }
        self.roll_back_open_transactions()
    }

    fn all_submitted(&self) -> bool {
        self.submitted.iter().all(|s| *s)
    }

    /// One pass over the schedule. True when something resumed, so that the
    /// next pass has to start from the beginning.
    pub(super) fn scan(&mut self) -> Result<bool, RunError> {
        for step in 0..self.case.steps.len() {
            if self.submitted[step] {
                continue;
            }
            if (self.interrupted)() {
                return Err(RunError::Interrupted);
            }
            let who = self.session_of(step);
            if self.lives[who].in_flight.is_some() {
                continue;
            }
            self.submitted[step] = true;
            if let Some(why) = self.reason_not_to_send(who, step) {
                self.event(who, Some(step), What::NotSent { why });
                continue;
            }
            let resumed = self.send(who, step)?;
            if resumed {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn session_of(&self, step: usize) -> usize {
        let name = &self.case.steps[step].session;
        self.lives.iter().position(|l| l.name == *name).expect("every session was opened")
    }

    /// Why a statement must not go out: its transaction has ended or failed.
    /// One that is sent anyway leaves the session where it stands, so that
    /// what follows it is not sent unless it says so, too.
    fn reason_not_to_send(&mut self, who: usize, step: usize) -> Option<String> {
        if let Some(death) = &self.history.death {
            return Some(death.how.name().into());
        }
        let kind = self.case.steps[step].kind();
        let anyway = self.case.steps[step].anyway;
        let live = &mut self.lives[who];
        match live.tx {
            TxState::Gone => Some("its session is gone".into()),
            TxState::Dead if anyway && kind.ends_transaction() => {
                live.tx = TxState::None;
                None
            }
            TxState::Dead if anyway && kind != Kind::Begin => None,
            TxState::Dead if kind == Kind::Begin => {
                live.tx = TxState::None;
                None
            }
            TxState::Dead => {
                if kind.ends_transaction() {
                    live.tx = TxState::None;
                }
                Some("the engine has ended its transaction".into())
            }
            TxState::Failed(_) => match kind {
                Kind::Commit | Kind::Rollback | Kind::RollbackTo => None,
                _ if anyway => None,
                _ => Some("its transaction has failed and takes only a rollback".into()),
            },
            TxState::None | TxState::Open(_) => None,
        }
    }

    fn send(&mut self, who: usize, step: usize) -> Result<bool, RunError> {
        let script = &self.case.steps[step];
        let mut sql = script.sql.clone();
        if script.kind() == Kind::Begin {
            let begin = self.begin_text(&sql);
            let mut statements = match script.level {
                Some(level) => self.engine.begin_at_sql(&begin, level),
                // An earlier transaction had a level of its own.
                None if self.lives[who].level_changed => {
                    let mut all = self.engine.level_sql(self.lives[who].level);
                    all.push(begin);
                    all
                }
                None => vec![begin],
            };
            sql = statements.pop().unwrap_or(sql);
            if script.level.is_none() || !statements.is_empty() {
                self.lives[who].level_changed = script.level.is_some();
            }
            for prelude in statements {
                if let Some(reply) = self.run_quietly(who, &prelude)
                    && let Outcome::Error(error) = reply.outcome
                {
                    self.event(who, Some(step), What::Error(error));
                    self.lives[who].tx = TxState::Dead;
                    return Ok(false);
                }
            }
        }
        self.lives[who].tainted |= sql::taints_session(&sql);
        let as_sql = (sql != script.sql).then(|| sql.clone());
        self.event(who, Some(step), What::Sent { as_sql });
        self.lives[who].start(Some(step), &sql);
        self.settle(Some(who))
    }

    /// A bare BEGIN takes the engine's own form; one with options is the
    /// author's choice and stays.
    fn begin_text(&self, sql: &str) -> String {
        let bare = matches!(
            sql.trim().to_ascii_lowercase().as_str(),
            "begin" | "begin transaction" | "start transaction"
        );
        let own = &self.engine.profile().begin;
        if bare && own != "begin" { own.clone() } else { sql.to_string() }
    }

    /// Rolls back the first open transaction whose session is idle. At the
    /// end of the schedule only; false when there is none.
    fn release_something(&mut self) -> Result<bool, RunError> {
        let idle_holder = self.lives.iter().position(|l| {
            l.in_flight.is_none() && matches!(l.tx, TxState::Open(_) | TxState::Failed(_))
        });
        match idle_holder {
            Some(who) => {
                self.roll_back(who, "the case left it open while others waited")?;
                Ok(true)
            }
            None => Ok(false),
        }
    }

    /// Every live session waits for another and no deadlock was reported: the
    /// last one to wait is the victim.
    fn give_up_waiting(&mut self) -> Result<(), RunError> {
        let victim = (0..self.lives.len())
            .filter(|i| self.lives[*i].in_flight.is_some())
            .max_by_key(|i| self.lives[*i].wait_order());
        let Some(victim) = victim else { return Ok(()) };
        match self.engine.profile().waiting {
            Waiting::Retry => self
                .fail_busy(victim, "every session waits for another; this one began to wait last"),
            _ => {
                if (self.interrupted)() {
                    return Err(RunError::Interrupted);
                }
                self.cancel(victim)?;
                self.settle(None).map(|_| ())
            }
        }
    }

    fn roll_back_open_transactions(&mut self) -> Result<(), RunError> {
        while self.release_at_end()? {}
        Ok(())
    }

    fn release_at_end(&mut self) -> Result<bool, RunError> {
        let open =
            self.lives.iter().position(|l| matches!(l.tx, TxState::Open(_) | TxState::Failed(_)));
        let Some(who) = open else { return Ok(false) };
        self.roll_back(who, "the case left it open")?;
        Ok(true)
    }

    pub(super) fn event(&mut self, who: usize, step: Option<usize>, what: What) {
        let session = self.lives[who].name.clone();
        self.history.events.push(Event { session, step, what });
    }

    pub(super) fn end_transaction(
        &mut self,
        who: usize,
        step: Option<usize>,
        transaction: usize,
        how: TxEnd,
    ) {
        self.history.transactions[transaction].how = how;
        self.event(who, step, What::Ended { transaction, how });
    }
}
