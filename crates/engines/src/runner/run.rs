//! One run in progress: the scan of the schedule, which statements are sent,
//! and how open transactions are ended.

use super::session::{RunningSession, TxState};
use super::{Limits, RunError};
use crate::engine::{Engine, Outcome};
use isolde_model::Case;
use isolde_model::history::{Event, EventKind, History, TxEnd};
use isolde_model::profile::Waiting;
use isolde_sql as sql;
use isolde_sql::Kind;
use std::time::Duration;

/// One run in progress. It owns nothing, so that an interactive case
/// ([`super::interactive`]) takes the same path as one from a file.
pub(super) struct Run<'a> {
    pub engine: &'a mut dyn Engine,
    pub limits: Limits,
    /// How long to wait for a statement that is executing; none: to its end.
    pub patience: Option<Duration>,
    pub interrupted: fn() -> bool,
    pub case: &'a Case,
    pub sessions: &'a mut Vec<RunningSession>,
    pub submitted: &'a mut Vec<bool>,
    pub history: &'a mut History,
    pub wait_detection: &'a mut Vec<Duration>,
    pub typical_reply: &'a mut Duration,
    /// Numbers the lock waits in the order in which they began.
    pub wait_counter: &'a mut usize,
}

impl Run<'_> {
    pub(super) fn schedule(&mut self) -> Result<(), RunError> {
        loop {
            if self.scan()? {
                continue;
            }
            // Nothing more can be sent: release held locks, so that the blocked
            // statements finish.
            if self.sessions.iter().all(|l| l.in_flight.is_none()) && self.all_submitted() {
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

    /// One pass over the schedule. True when a blocked statement has resumed,
    /// so that the next pass must start from the beginning.
    pub(super) fn scan(&mut self) -> Result<bool, RunError> {
        for step in 0..self.case.steps.len() {
            if self.submitted[step] {
                continue;
            }
            if (self.interrupted)() {
                return Err(RunError::Interrupted);
            }
            let index = self.session_of(step);
            if self.sessions[index].in_flight.is_some() {
                continue;
            }
            self.submitted[step] = true;
            if let Some(why) = self.reason_not_to_send(index, step) {
                self.event(index, Some(step), EventKind::NotSent { why });
                continue;
            }
            let resumed = self.send(index, step)?;
            if resumed {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn session_of(&self, step: usize) -> usize {
        let name = &self.case.steps[step].session;
        self.sessions.iter().position(|l| l.name == *name).expect("every session was opened")
    }

    /// Why a statement must not be sent: its transaction has ended or failed. A
    /// statement marked `anyway` does not change that state, so that later
    /// statements are not sent unless they are marked, too.
    fn reason_not_to_send(&mut self, index: usize, step: usize) -> Option<String> {
        if let Some(death) = &self.history.death {
            return Some(death.how.name().into());
        }
        let kind = self.case.steps[step].kind();
        let anyway = self.case.steps[step].anyway;
        let running = &mut self.sessions[index];
        match running.tx {
            TxState::Gone => Some("its session is gone".into()),
            TxState::Aborted if anyway && kind.ends_transaction() => {
                running.tx = TxState::None;
                None
            }
            TxState::Aborted if anyway && kind != Kind::Begin => None,
            TxState::Aborted if kind == Kind::Begin => {
                running.tx = TxState::None;
                None
            }
            TxState::Aborted => {
                if kind.ends_transaction() {
                    running.tx = TxState::None;
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

    fn send(&mut self, index: usize, step: usize) -> Result<bool, RunError> {
        let script = &self.case.steps[step];
        let mut sql = script.sql.clone();
        if script.kind() == Kind::Begin {
            let begin = self.begin_text(&sql);
            let mut statements = match script.level {
                Some(level) => self.engine.begin_at_sql(&begin, level),
                // An earlier transaction had a level of its own.
                None if self.sessions[index].level_changed => {
                    let mut all = self.engine.level_sql(self.sessions[index].level);
                    all.push(begin);
                    all
                }
                None => vec![begin],
            };
            sql = statements.pop().unwrap_or(sql);
            if script.level.is_none() || !statements.is_empty() {
                self.sessions[index].level_changed = script.level.is_some();
            }
            for prelude in statements {
                if let Some(reply) = self.run_internally(index, &prelude)
                    && let Outcome::Error(error) = reply.outcome
                {
                    self.event(index, Some(step), EventKind::Error(error));
                    self.sessions[index].tx = TxState::Aborted;
                    return Ok(false);
                }
            }
        }
        self.sessions[index].tainted |= sql::taints_session(&sql);
        let as_sql = (sql != script.sql).then(|| sql.clone());
        self.event(index, Some(step), EventKind::Sent { as_sql });
        self.sessions[index].start(Some(step), &sql);
        self.settle(Some(index))
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

    /// Rolls back the first open transaction whose session is idle. Only at the
    /// end of the schedule; false when there is none.
    fn release_something(&mut self) -> Result<bool, RunError> {
        let idle_holder = self.sessions.iter().position(|l| {
            l.in_flight.is_none() && matches!(l.tx, TxState::Open(_) | TxState::Failed(_))
        });
        match idle_holder {
            Some(index) => {
                self.roll_back(index, "the case left it open while others waited")?;
                Ok(true)
            }
            None => Ok(false),
        }
    }

    /// Every session is blocked by another one and no deadlock was reported:
    /// the last one to become blocked is the victim.
    fn give_up_waiting(&mut self) -> Result<(), RunError> {
        let victim = (0..self.sessions.len())
            .filter(|i| self.sessions[*i].in_flight.is_some())
            .max_by_key(|i| self.sessions[*i].wait_order());
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
        let open = self
            .sessions
            .iter()
            .position(|l| matches!(l.tx, TxState::Open(_) | TxState::Failed(_)));
        let Some(index) = open else { return Ok(false) };
        self.roll_back(index, "the case left it open")?;
        Ok(true)
    }

    pub(super) fn event(&mut self, index: usize, step: Option<usize>, what: EventKind) {
        let session = self.sessions[index].name.clone();
        self.history.events.push(Event { session, step, what });
    }

    pub(super) fn end_transaction(
        &mut self,
        index: usize,
        step: Option<usize>,
        transaction: usize,
        how: TxEnd,
    ) {
        self.history.transactions[transaction].how = how;
        self.event(index, step, EventKind::Ended { transaction, how });
    }
}
