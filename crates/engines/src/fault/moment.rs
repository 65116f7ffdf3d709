//! What a behaviour gets to know of a statement, and what it may answer.
//!
//! A struck statement becomes a chain: run this, and go on with its reply. The
//! session drives the chain from its own `reply`, so that nothing here ever
//! blocks; a link of the chain that has to wait for a lock just keeps the
//! client's statement waiting.

use super::text;
use super::touch::Touch;
use super::traffic::Watch;
use super::world::World;
use crate::engine::{Outcome, Reply, Session, TxStatus};
use isolde_core::Level;
use isolde_core::history::ErrorEffect;
use isolde_core::sql::Kind;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A connection that more than one session may come to use.
pub(super) type Link = Arc<Mutex<Box<dyn Session>>>;

/// The state behind a lock is whole even if a holder has panicked: each of
/// them only moves single values.
pub(super) fn lock<T: ?Sized>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

pub(super) type Then = Box<dyn FnOnce(Reply) -> Next + Send>;

pub(super) enum Next {
    Run {
        on: Link,
        sql: String,
        then: Then,
    },
    /// The client's statement as it is, now that all is prepared for it.
    Go,
    /// The same, because the fault cannot be had here: it has not struck.
    Plain,
    /// The engine's own answer: there was nothing to spoil.
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

/// The genuine reply to the client's statement, with the server's last word on
/// the transaction. A follow-up that has cost the client its transaction
/// cannot be kept from it.
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

/// What is remembered of a transaction under way.
#[derive(Default)]
pub(super) struct Note {
    /// What began it; empty when it began by itself (`autocommit = 0`).
    pub begin: Vec<String>,
    /// The statements so far, without what began it.
    pub seen: Vec<String>,
    pub first_struck: bool,
    pub last_write: Option<String>,
    pub last_write_struck: bool,
    pub last_write_waited: bool,
    /// One of its statements had to wait.
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
                if sql.trim_start().get(..6).is_some_and(|w| w.eq_ignore_ascii_case("insert")) {
                    self.inserts.push(sql.into());
                }
                self.last_write = Some(sql.into());
                self.last_write_struck = struck;
                self.last_write_waited = waited;
            }
            // The wrapper's own savepoints behind it are gone.
            Kind::RollbackTo => self.last_write_struck = false,
            _ => {}
        }
    }

    /// Two-phase transactions take none of the statements that faults add.
    fn is_two_phase(&self) -> bool {
        self.begin.last().is_some_and(|b| b.trim_start().to_ascii_lowercase().starts_with("xa"))
    }
}

/// What became of a statement.
#[derive(Clone, Copy)]
pub(super) struct Done {
    pub worked: bool,
    pub struck: bool,
    pub waited: bool,
}

/// One statement that is about to go out.
pub(super) struct Moment<'a> {
    pub world: &'a World,
    pub me: u64,
    pub own: &'a Link,
    pub sql: &'a str,
    pub kind: Kind,
    pub status: TxStatus,
    pub note: &'a Note,
    /// What it reads and writes.
    pub touches: &'a [Touch],
    /// The level at which its transaction runs.
    pub level: Level,
    /// What set the session's level, if anything did.
    pub level_sql: &'a [String],
    /// Tells afterwards whether it had to wait.
    pub watch: &'a Watch,
    /// The engine was busy; what was decided then still holds.
    pub decided: Option<bool>,
}

impl Moment<'_> {
    pub fn in_transaction(&self) -> bool {
        self.status == TxStatus::Open && !self.note.is_two_phase()
    }

    /// Whether the fault strikes here: where its condition holds, as often as
    /// the dice say.
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
        self.kind == Kind::Write && self.in_transaction() && self.strikes()
    }

    pub fn strikes_read(&self) -> bool {
        self.in_transaction() && text::is_plain_read(self.sql) && self.strikes()
    }

    /// A ROLLBACK after which the session is idle.
    pub fn is_rollback(&self) -> bool {
        self.kind == Kind::Rollback && text::is_plain_rollback(self.sql)
    }

    pub fn first_word_is(&self, word: &str) -> bool {
        let text = self.sql.trim_start();
        text.get(..word.len()).is_some_and(|w| w.eq_ignore_ascii_case(word))
    }

    /// Answers with what another connection says; the client's own has not
    /// heard of the statement. Whatever goes wrong there, it runs inside.
    pub fn answered_by(&self, link: &Link) -> Next {
        let status = self.status;
        run(link, self.sql, move |reply| match reply.outcome {
            Outcome::Error(_) => Next::Plain,
            outcome => Next::Answer(Reply::new(outcome, Some(status))),
        })
    }
}
