//! What a fault's behaviour is given about a statement, and what it may return.
//!
//! A struck statement becomes a chain of steps: run a statement, and continue
//! with its reply. The session drives the chain from its own `reply`, so that
//! nothing here ever blocks; while a step of the chain is blocked by a lock,
//! the client's statement appears blocked.

use super::access::Access;
use super::link::Link;
use super::traffic::Watch;
use super::world::World;
use crate::engine::{Outcome, Reply, TxStatus};
use isolde_model::Level;
use isolde_model::history::ErrorEffect;
use isolde_sql as sql;
use isolde_sql::Control;
use isolde_sql::{Kind, Stmt};
use std::sync::Arc;

pub(super) type Then = Box<dyn FnOnce(Reply) -> Next + Send>;

pub(super) enum Next {
    Run {
        on: Link,
        sql: String,
        then: Then,
    },
    /// Run the client's statement unchanged, after the preparations.
    Go,
    /// The same, because the fault is impossible here: it has not struck.
    Plain,
    /// The engine's own answer: there was nothing to falsify.
    Innocent(Reply),
    Answer(Reply),
}

pub(super) fn run(
    on: &Link,
    sql: impl Into<String>,
    then: impl FnOnce(Reply) -> Next + Send + 'static,
) -> Next {
    Next::Run { on: Arc::clone(on), sql: sql.into(), then: Box::new(then) }
}

/// Runs these one after the other; the first error is the answer.
pub(super) fn run_all(
    on: &Link,
    sql: Vec<String>,
    then: impl FnOnce() -> Next + Send + 'static,
) -> Next {
    let mut rest = sql.into_iter();
    let Some(first) = rest.next() else { return then() };
    let link = Arc::clone(on);
    run(on, first, move |reply| match reply.error() {
        Some(_) => Next::Innocent(reply),
        None => run_all(&link, rest.collect(), then),
    })
}

/// Returns the genuine reply to the client's statement, with the transaction
/// status of the last one. If a follow-up has cost the client its transaction,
/// its error cannot be hidden.
pub(super) fn answer(first: Reply, last: Reply) -> Next {
    let fatal = last
        .error()
        .is_some_and(|e| e.effect == ErrorEffect::Lost || e.effect == ErrorEffect::RolledBack);
    let ended = last.error().is_some() && last.tx == Some(TxStatus::Idle);
    if fatal || ended {
        return Next::Answer(last);
    }
    Next::Answer(Reply { tx: last.tx.or(first.tx), ..first })
}

/// The record of an open transaction.
#[derive(Default)]
pub(super) struct Note {
    /// The statements that began it; empty when it began implicitly
    /// (`autocommit = 0`).
    pub begin: Vec<String>,
    /// The statements so far, without those that began it.
    pub seen: Vec<String>,
    pub first_struck: bool,
    pub last_write: Option<String>,
    pub last_write_struck: bool,
    pub last_write_waited: bool,
    /// One of its statements was blocked.
    pub waited: bool,
    pub inserts: Vec<String>,
    pub has_savepoints: bool,
}

impl Note {
    pub fn begun_by(begin: Vec<String>) -> Note {
        Note { begin, ..Note::default() }
    }

    pub fn add(&mut self, sql: &str, kind: Kind, done: Done) {
        let Done { worked, struck, waited } = done;
        self.waited |= waited;
        self.first_struck |= self.seen.is_empty() && struck;
        self.seen.push(sql.into());
        self.has_savepoints |= kind == Kind::Savepoint;
        match kind {
            Kind::Write if worked => {
                if sql::first_word(sql).eq_ignore_ascii_case("insert") {
                    self.inserts.push(sql.into());
                }
                self.last_write = Some(sql.into());
                self.last_write_struck = struck;
                self.last_write_waited = waited;
            }
            // The savepoints that the wrapper has set after it are released.
            Kind::RollbackTo => self.last_write_struck = false,
            _ => {}
        }
    }

    /// Two-phase transactions accept none of the statements that faults add.
    fn is_two_phase(&self) -> bool {
        self.begin.last().is_some_and(|b| sql::first_word(b).eq_ignore_ascii_case("xa"))
    }
}

/// The result of a statement.
#[derive(Clone, Copy)]
pub(super) struct Done {
    pub worked: bool,
    pub struck: bool,
    pub waited: bool,
}

/// One statement that is about to be sent.
pub(super) struct Moment<'a> {
    pub world: &'a World,
    pub me: u64,
    pub own: &'a Link,
    pub sql: &'a str,
    /// The typed statement; none if it is opaque, and then no fault strikes.
    pub statement: Option<&'a Stmt>,
    pub kind: Kind,
    pub status: TxStatus,
    pub note: &'a Note,
    /// The tables and rows that it reads and writes.
    pub accesses: &'a [Access],
    /// The level at which its transaction runs.
    pub level: Level,
    /// The statement that set the session's level, if any.
    pub level_sql: &'a [String],
    /// Reports afterwards whether it was blocked.
    pub watch: &'a Watch,
    /// The decision of an earlier attempt that the engine answered with busy.
    pub decided: Option<bool>,
}

impl Moment<'_> {
    pub fn in_transaction(&self) -> bool {
        self.status == TxStatus::Open && !self.note.is_two_phase()
    }

    /// Whether the fault strikes here: where its condition holds, at the given
    /// rate.
    pub fn strikes(&self) -> bool {
        self.decided.unwrap_or_else(|| {
            let again = self.note.seen.iter().filter(|s| *s == self.sql).count();
            let subject = match self.kind {
                Kind::Commit | Kind::Rollback | Kind::RollbackTo => {
                    self.note.last_write.as_deref().unwrap_or("")
                }
                _ => "",
            };
            (self.world.planted.fault.condition)(self)
                && self.world.dice(&[self.sql, subject], again)
        })
    }

    pub fn strikes_write(&self) -> bool {
        let known = self.kind == Kind::Write && self.statement.is_some();
        known && self.in_transaction() && self.strikes()
    }

    pub fn strikes_read(&self) -> bool {
        self.in_transaction() && self.is_plain_read() && self.strikes()
    }

    /// A query that takes no locks and leaves nothing behind in its session.
    fn is_plain_read(&self) -> bool {
        let plain = matches!(self.statement, Some(Stmt::Select(s)) if s.locking.is_none());
        plain && !sql::taints_session(self.sql)
    }

    /// A ROLLBACK after which the session is idle: not AND CHAIN, nor the end of
    /// a two-phase transaction.
    pub fn is_rollback(&self) -> bool {
        self.statement == Some(&Stmt::Control(Control::Rollback))
    }

    pub fn first_word_is(&self, word: &str) -> bool {
        sql::first_word(self.sql).eq_ignore_ascii_case(word)
    }

    /// Answers from another connection; the client's own never gets the
    /// statement. On any error there, the statement runs on the client's own.
    pub fn answered_by(&self, link: &Link) -> Next {
        let status = self.status;
        run(link, self.sql, move |reply| match reply.outcome {
            Outcome::Error(_) => Next::Plain,
            outcome => Next::Answer(Reply::new(outcome, Some(status))),
        })
    }
}
