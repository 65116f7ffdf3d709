//! The reference model: an executable description of what each engine may do.
//!
//! The model replays a recorded run event by event. It keeps one version chain
//! per row, the locks held and the state of each transaction. For each reply it
//! computes the snapshot that the statement reads, the transactions that it
//! conflicts with and how it continues after a lock wait; then it compares the
//! predicted result with the observed one. The schedule is given (what was
//! submitted, blocked, replied and ended, in which order), the outcome of every
//! statement is predicted. The result is a [`Conclusion`]: *allowed*, with the
//! rules that explain each step; *broken*, with the rule and the breach; or *not
//! modelled*, with the reason.
//!
//! ```text
//!   history ─► replay ─► each reply: snapshot ─► the engine evaluates ─► compare
//!                 │  world: versions, locks, transactions                  │
//!                 └────────── search: the next choice ◄── not as observed ─┘
//! ```
//!
//! # Worked example
//! Table `t(id, v)` has one row, `(1, 10)`. On PostgreSQL at READ COMMITTED two
//! sessions have begun a transaction each. After every event the table shows the
//! version chain of the row (the value, and the transaction that wrote it), the
//! transaction that has locked the row, and the version that a SELECT of s2 would
//! see now.
//!
//! ```text
//! event                             version chain                   lock  s2 sees
//! 1  s2 SELECT v: 10                10                              -     10
//! 2  s1 UPDATE v = v + 1: 1 row     10 <- 11 (s1, open)             s1    10
//! 3  s2 UPDATE v = v + 5: blocked   10 <- 11 (s1, open)             s1    10
//! 4  s1 COMMIT                      10 <- 11 (s1)                   -     11
//! 5  s2 UPDATE continues: 1 row     10 <- 11 (s1) <- 16 (s2, open)  s2    16
//! 6  s2 COMMIT                      10 <- 11 (s1) <- 16 (s2)        -     -
//! ```
//!
//! 1. The initial version is committed, so the SELECT sees it (rule P1: one
//!    snapshot per statement).
//! 2. The UPDATE adds a version to the chain and locks the row. The version is
//!    not committed: s2 still sees 10.
//! 3. s2 finds version 10 in the snapshot of its UPDATE, but s1 has locked the
//!    row. A blocked statement must have such a lock holder (P12).
//! 4. COMMIT releases the lock. A new statement of s2 would see 11.
//! 5. The row has changed since the snapshot of the UPDATE. At READ COMMITTED it
//!    tests the newest version again and acts on it (P3): 11 + 5 is 16.
//! 6. s2 commits. The final rows must be the newest committed versions.
//!
//! At REPEATABLE READ (P7: one snapshot per transaction) the first SELECT fixes
//! what s2 sees, and a row that changed after the snapshot is an error (P7w:
//! first updater wins):
//!
//! ```text
//! event                             version chain                   lock  s2 sees
//! 1  s2 SELECT v: 10                10                              -     10
//! 2  s1 UPDATE v = v + 1: 1 row     10 <- 11 (s1, open)             s1    10
//! 3  s2 UPDATE v = v + 5: blocked   10 <- 11 (s1, open)             s1    10
//! 4  s1 COMMIT                      10 <- 11 (s1)                   -     10
//! 5  s2 UPDATE fails: 40001         10 <- 11 (s1)                   -     -
//! ```
//!
//! Had s2's UPDATE succeeded here, the model would report a breach of P7w; had
//! it left `v = 15` at READ COMMITTED, a lost update, the final rows would break
//! the rules.
//!
//! # How the crate is arranged
//! Visibility, conflicts and re-checks are the model's own; the engine itself
//! evaluates expressions, on the row versions that a statement sees
//! ([`version_tables`]). The behaviour of engines is data, in the catalogue of
//! engines. `subject`
//! is the recorded run, `world` the state of the database, `model` the parts of
//! one replay, `statements`, `constraints` and `commit` what statements do,
//! `outcome` the comparison with what was observed, `replay` the order of events,
//! `search` the choices that the rules leave open, `stop` the reasons for which a
//! replay ends early, and `analysis` what is concluded from replays.
//!
//! # What is not verified
//! Which transaction exactly a statement waited for (only that some transaction
//! held a lock that it may have needed), timing, and query plans. What is not
//! modelled is reported as such.
#![forbid(unsafe_code)]

mod analysis;
mod commit;
mod constraints;
mod model;
mod outcome;
mod replay;
mod search;
mod statements;
mod stop;
mod subject;
#[cfg(test)]
mod tests;
pub mod version_tables;
mod world;

pub use analysis::{
    Account, Analysis, AnomalyClass, CitedRule, Conclusion, ControlRun, NamedAnomaly, SerialOrder,
    SerialSearch, StepAccount, StepVerdict, analyse, cause, with_serial_search,
};
pub use subject::Subject;
