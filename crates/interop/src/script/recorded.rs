//! A recorded run as a script needs it: the statements in the order in which they
//! were sent, and for each the statement after which its result arrived.
//!
//! The order of a case is not enough. A statement behind a blocked one of its
//! session is sent later than the case lists it, the remaining statements of a
//! transaction that has ended are not sent at all, and transactions that a case
//! leaves open are rolled back.

use super::Unsupported;
use isolde_model::Case;
use isolde_model::history::{ErrorEffect, EventKind, History};
use isolde_sql as sql;
use isolde_sql::Kind;

pub(super) struct Recorded<'a> {
    pub case: &'a Case,
    pub history: &'a History,
    pub turns: Vec<Turn<'a>>,
    /// Steps that were not sent: the turn before which each was due, the step, and the reason.
    pub not_sent: Vec<(usize, usize, &'a str)>,
}

/// A statement that was sent.
pub(super) struct Turn<'a> {
    pub session: &'a str,
    /// None for the rollback of a transaction that the case left open.
    pub step: Option<usize>,
    /// The text that was sent.
    pub sql: &'a str,
    pub reply: Option<&'a EventKind>,
    /// Whether it was still waiting when the next one was sent.
    pub waits: bool,
    /// The turns whose results arrived before the next one was sent, in the
    /// recorded order.
    pub answered: Vec<usize>,
}

impl<'a> Recorded<'a> {
    pub fn of(case: &'a Case, history: &'a History) -> Result<Recorded<'a>, Unsupported> {
        check(case, history)?;
        let mut run = Recorded { case, history, turns: Vec::new(), not_sent: Vec::new() };
        for event in &history.events {
            let sent = |sql: &'a str| Turn {
                session: &event.session,
                step: event.step,
                sql,
                reply: None,
                waits: false,
                answered: Vec::new(),
            };
            match (&event.what, event.step) {
                (EventKind::Sent { as_sql }, Some(step)) => {
                    run.note_waits();
                    run.turns.push(sent(as_sql.as_deref().unwrap_or(&case.steps[step].sql)));
                }
                (EventKind::RolledBackByRunner { .. }, _) => {
                    run.note_waits();
                    run.turns.push(Turn { step: None, ..sent("rollback") });
                    let own = run.turns.len() - 1;
                    run.turns[own].reply = Some(&EventKind::Done);
                    run.turns[own].answered.push(own);
                }
                (EventKind::NotSent { why }, Some(step)) => {
                    run.not_sent.push((run.turns.len(), step, why));
                }
                (
                    what @ (EventKind::Rows { .. }
                    | EventKind::Affected { .. }
                    | EventKind::Done
                    | EventKind::Error(_)),
                    Some(step),
                ) => {
                    let Some(turn) = run.turns.iter().position(|t| t.step == Some(step)) else {
                        let message = "the level of this transaction could not be set";
                        return Err(Unsupported::at(case.steps[step].line.0, message));
                    };
                    run.turns[turn].reply = Some(what);
                    let last = run.turns.len() - 1;
                    run.turns[last].answered.push(turn);
                }
                _ => {}
            }
        }
        run.note_waits();
        Ok(run)
    }

    /// Marks the last statement as still waiting, because another one is sent.
    fn note_waits(&mut self) {
        if let Some(last) = self.turns.last_mut() {
            last.waits = last.reply.is_none();
        }
    }

    pub fn sessions(&self) -> Vec<&'a str> {
        self.case.sessions()
    }

    /// `s2.3`, or `s2.end` for what ends a transaction that the case leaves open.
    pub fn label(&self, turn: usize) -> String {
        match self.turns[turn].step {
            Some(step) => self.case.label(step),
            None => format!("{}.end", self.turns[turn].session),
        }
    }

    /// Whether a statement ends a transaction that does not exist, begins one that
    /// already exists, or changes the schema: servers then send warnings as well.
    pub fn may_warn(&self) -> bool {
        let mut open: Vec<&str> = Vec::new();
        let mut turns = self.turns.iter();
        turns.any(|turn| {
            let is_open = open.contains(&turn.session);
            let odd = match sql::kind(turn.sql) {
                Kind::Begin => is_open,
                Kind::Commit | Kind::Rollback | Kind::RollbackTo => !is_open,
                Kind::Ddl | Kind::Other => true,
                Kind::Select | Kind::Write | Kind::Savepoint | Kind::Release => false,
            };
            match sql::kind(turn.sql) {
                Kind::Begin => open.push(turn.session),
                Kind::Commit | Kind::Rollback => open.retain(|s| *s != turn.session),
                _ => {}
            }
            odd
        })
    }
}

/// Refuses runs that no script can repeat.
fn check(case: &Case, history: &History) -> Result<(), Unsupported> {
    let same = history.steps.len() == case.steps.len()
        && history
            .steps
            .iter()
            .zip(&case.steps)
            .all(|(h, c)| h.session == c.session && h.sql == c.sql);
    if !same {
        return Err(Unsupported::key("case", "the recorded run is of another case"));
    }
    if history.events.iter().any(|e| e.step.is_some_and(|step| step >= case.steps.len())) {
        return Err(Unsupported::key(
            "case",
            "the recorded run has events of steps that are not there",
        ));
    }
    if let Some(death) = &history.death {
        return Err(Unsupported::key(
            "case",
            format!("{}: no test can go on after that", death.how.name()),
        ));
    }
    if let Some(why) = history.cancelled() {
        return Err(Unsupported::key("case", why));
    }
    for event in &history.events {
        let lost = event.what.error().is_some_and(|e| e.effect == ErrorEffect::Lost);
        if let (true, Some(step)) = (lost, event.step) {
            return Err(Unsupported::at(case.steps[step].line.0, "the connection was lost here"));
        }
    }
    let unread = history.final_state.iter().find_map(|f| f.error.as_ref());
    match unread {
        Some(error) => {
            Err(Unsupported::key("final", format!("the final rows could not be read: {error}")))
        }
        None => Ok(()),
    }
}
