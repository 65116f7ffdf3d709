//! Planted faults: a real engine with a bug put between it and its clients.
//!
//! A tester is as good as the bugs it finds. [`plant`] wraps any engine so that
//! its sessions misbehave in one way of [`FAULTS`], now and then.
//!
//! *When a fault strikes.* A planted fault is a concurrency bug: it strikes
//! inside of a transaction, and only under a condition that such a bug would
//! need: the statement was blocked, another open transaction has written the
//! same rows, the rows have a newer version than the transaction's snapshot, or
//! the level has the rule that is broken. Its entry in [`FAULTS`] states the
//! condition; `condition` evaluates it from the accesses that `traffic` has
//! recorded. So a fault that struck in one run need not strike in a changed
//! one: at another level, with more locks, in another order. Serial runs are
//! always clean. Where the condition holds, a share of the statements is
//! struck: a hash of the seed, the fault's name, the statement's text and its
//! number of repetitions in the transaction decides; for COMMIT and ROLLBACK,
//! which all look alike, the last write is included. So the same case run in
//! the same way is struck at the same places every time. Statements are typed
//! by [`isolde_sql::read`]; an opaque statement is never struck.
//!
//! *What is affected.* Sessions only. The control connection, which empties the
//! database and reads the final rows, is the engine's own.
//!
//! A new fault is an entry in [`FAULTS`], a condition, and a behaviour that
//! replaces the statement (`moment` defines what a behaviour gets and returns).

mod access;
mod condition;
mod endings;
mod engine;
mod link;
mod moment;
mod needs;
mod outside;
mod rewrite;
mod session;
mod traffic;
mod world;
mod writes;

use crate::engine::Engine;
use isolde_model::Profile;
use isolde_sql::Kind;
use moment::{Moment, Next};
use needs::{Lack, Side};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// What a fault affects, and so which oracle can detect it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Concerns {
    Writes,
    Reads,
    Server,
}

pub struct Fault {
    pub name: &'static str,
    /// One sentence for the help and for tables.
    pub about: &'static str,
    /// The condition that must hold in the run.
    pub when: &'static str,
    pub concerns: Concerns,
    side: Side,
    lack: Lack,
    /// Whether a statement of this kind does the harm; at others the fault only
    /// prepares or cleans up.
    harms: fn(Kind) -> bool,
    condition: fn(&Moment<'_>) -> bool,
    behaviour: fn(&Moment<'_>) -> Option<Next>,
}

const fn fault(
    name: &'static str,
    concerns: Concerns,
    (about, when): (&'static str, &'static str),
    lack: Lack,
    condition: fn(&Moment<'_>) -> bool,
    behaviour: fn(&Moment<'_>) -> Option<Next>,
) -> Fault {
    Fault {
        name,
        about,
        when,
        concerns,
        side: Side::Plain,
        lack,
        harms: |_| true,
        condition,
        behaviour,
    }
}

use Concerns::{Reads, Server, Writes};

const SNAPSHOT_IS_OLD: &str = "at REPEATABLE READ and above, if its rows were changed and committed \
     since its transaction began";

pub const FAULTS: &[Fault] = &[
    Fault {
        harms: |kind| !kind.ends_transaction(),
        ..fault(
            "weaker-level",
            Writes,
            (
                "a transaction runs at the weakest level that the engine has",
                "at its first statement, if that meets rows that another open transaction has \
                 written, and its level is not the weakest",
            ),
            needs::one_level,
            condition::is_dirty_above_the_weakest,
            endings::weaker_level,
        )
    },
    fault(
        "rollback-commits",
        Writes,
        ("ROLLBACK commits", "while another session waits for a lock"),
        needs::nothing,
        condition::others_wait,
        endings::rollback_commits,
    ),
    Fault {
        harms: |kind| kind == Kind::Commit,
        ..fault(
            "commit-loses-last-write",
            Writes,
            ("COMMIT keeps all of the transaction but its last write", "if that write had to wait"),
            needs::savepoints,
            condition::may_wait,
            endings::commit_loses_last_write,
        )
    },
    fault(
        "statement-dropped",
        Writes,
        ("a write is answered as if it had been done, and is not", "if it had to wait"),
        needs::savepoints,
        condition::may_wait,
        writes::statement_dropped,
    ),
    fault(
        "update-twice",
        Writes,
        (
            "an UPDATE is applied a second time",
            "if it had to wait, or its rows were changed and committed since its transaction began",
        ),
        needs::nothing,
        condition::rows_may_have_changed,
        writes::update_twice,
    ),
    fault(
        "row-skipped",
        Writes,
        (
            "an UPDATE or DELETE leaves out one of the rows that match",
            "while another open transaction has written to the table",
        ),
        needs::row_places,
        condition::table_is_held,
        writes::row_skipped,
    ),
    fault(
        "rollback-to-ignored",
        Writes,
        (
            "ROLLBACK TO a savepoint undoes nothing",
            "if the transaction had to wait, or another has used a table that it has written",
        ),
        needs::savepoints,
        condition::met_others,
        endings::rollback_to_ignored,
    ),
    fault(
        "write-outside",
        Writes,
        ("a write runs outside of its transaction and is committed at once", SNAPSHOT_IS_OLD),
        needs::nothing,
        condition::snapshot_is_old,
        outside::write_outside,
    ),
    Fault {
        side: Side::Dirty,
        ..fault(
            "dirty-read",
            Reads,
            (
                "a SELECT sees what another transaction has not committed",
                "above READ UNCOMMITTED, of rows that another open transaction has written",
            ),
            needs::nothing,
            condition::is_dirty,
            outside::dirty_read,
        )
    },
    Fault {
        side: Side::Snapshot,
        ..fault(
            "stale-read",
            Reads,
            (
                "a SELECT sees the rows as they were before the first transaction began",
                "of rows that were changed and committed since then",
            ),
            needs::snapshots,
            condition::older_version_exists,
            outside::stale_read,
        )
    },
    fault(
        "nonrepeatable-read",
        Reads,
        ("a SELECT is answered from outside of its transaction", SNAPSHOT_IS_OLD),
        needs::nothing,
        condition::snapshot_is_old,
        outside::nonrepeatable_read,
    ),
    fault(
        "aborted-insert-stays",
        Writes,
        (
            "what a transaction has inserted stays after its ROLLBACK",
            "if another transaction has used the table since its own began, and no session is blocked by it",
        ),
        needs::nothing,
        condition::own_table_was_used,
        outside::aborted_insert_stays,
    ),
    fault(
        "early-unlock",
        Writes,
        (
            "a transaction loses its locks after a write, which is committed early",
            "if that write had to wait",
        ),
        needs::nothing,
        condition::may_wait,
        endings::early_unlock,
    ),
    fault(
        "duplicate-key-accepted",
        Writes,
        (
            "an INSERT of a key that is there replaces the row instead of failing",
            "if another transaction has written to the table since its own began",
        ),
        needs::replacing,
        condition::table_has_changed,
        writes::duplicate_key_accepted,
    ),
    fault(
        "error-swallowed",
        Writes,
        (
            "a write that a constraint refused is answered as if it had been done",
            "if another transaction has written to the table since its own began",
        ),
        needs::undone_alone,
        condition::table_has_changed,
        writes::error_swallowed,
    ),
    fault(
        "crash",
        Server,
        ("the server dies under a write", "while another session waits for a lock"),
        needs::nothing,
        condition::others_wait,
        endings::crash,
    ),
];

/// The fault of that name; the error lists all names.
pub fn find(name: &str) -> Result<&'static Fault, String> {
    FAULTS.iter().find(|f| f.name == name).ok_or_else(|| {
        let names: Vec<&str> = FAULTS.iter().map(|f| f.name).collect();
        format!("there is no fault `{name}`; there are {}", names.join(", "))
    })
}

impl Fault {
    /// Why the fault cannot be planted in this engine, named as in its info:
    /// `sqlite+wal`. If planted all the same, it would never strike.
    pub fn unsupported_on(&self, engine: &str, profile: &Profile) -> Option<&'static str> {
        (self.lack)(engine, profile)
    }
}

/// A fault, how often it strikes (0 to 1) and the seed.
#[derive(Clone, Copy)]
pub struct Planted {
    pub fault: &'static Fault,
    pub rate: f64,
    pub seed: u64,
}

/// How many statements a planted fault has struck so far: an oracle that found
/// nothing has missed nothing if this is zero.
#[derive(Clone, Default)]
pub struct Strikes(Arc<AtomicU64>);

impl Strikes {
    pub fn count(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    fn add(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

/// The same engine with the fault in its sessions.
pub fn plant(engine: Box<dyn Engine>, planted: Planted) -> Box<dyn Engine> {
    plant_counted(engine, planted).0
}

/// The same, and the count of its strikes.
pub fn plant_counted(engine: Box<dyn Engine>, planted: Planted) -> (Box<dyn Engine>, Strikes) {
    let faulty = engine::Faulty::new(engine, planted);
    let strikes = faulty.strikes();
    (Box::new(faulty), strikes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fault_is_found_by_its_name_and_a_wrong_name_lists_all() {
        assert!(find("early-unlock").is_ok_and(|f| f.concerns == Concerns::Writes));
        let error = find("nothing").err().unwrap();
        assert!(FAULTS.iter().all(|f| error.contains(f.name)), "{error}");
    }

    #[test]
    fn unsupported_on_names_what_an_engine_lacks() {
        let on = |name: &str, engine: &str| {
            let profile = isolde_catalog::engines::profile("sqlite", "");
            find(name).unwrap().unsupported_on(engine, &profile)
        };
        assert!(on("weaker-level", "sqlite").is_some());
        assert!(on("stale-read", "sqlite").is_some());
        assert!(on("stale-read", "sqlite+wal").is_none());
        assert!(on("statement-dropped", "duckdb").is_some());
        assert!(on("rollback-commits", "duckdb").is_none());
    }
}
