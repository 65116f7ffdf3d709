//! Snapshot isolation in which nobody waits: Turso's concurrent transactions.

use super::{Conduct, Rule, SnapshotAt, Used, rule};

const TURSO: &str = "https://github.com/tursodatabase/turso/blob/main/docs/manual.md";

pub static RULES: &[&Rule] = &[&U2, &U2W, &U4, &U5, &U6];

pub static U2: Rule = rule(
    "U2",
    "a snapshot a transaction",
    TURSO,
    "a concurrent transaction sees what was committed when it began",
)
.telling(4);
pub static U2W: Rule = rule(
    "U2w",
    "the second writer of a row fails",
    TURSO,
    "who writes a row that another transaction has changed since the snapshot fails, at the write \
     or at the COMMIT",
)
.telling(1)
.seen(
    "the manual has conflicts show at the COMMIT; a write that meets one fails at once",
    "turso/conflict-at-the-write",
);
pub static U4: Rule = rule(
    "U4",
    "keys are checked at the commit",
    TURSO,
    "a key that another transaction has taken since the snapshot fails the COMMIT",
)
.telling(2);
pub static U5: Rule =
    rule("U5", "own writes", TURSO, "a transaction sees what its own earlier statements wrote");
pub static U6: Rule = rule("U6", "rollback", TURSO, "what is rolled back leaves nothing behind");

static OF_TURSO: Used = Used {
    read: &U2,
    own_writes: &U5,
    write: &U2,
    changed_row: &U2W,
    held_row: &U2W,
    unique: &U4,
    foreign: &U4,
    upsert: &U4,
    deadlock: &U2W,
    constraint: &U4,
    savepoint: &U6,
    rollback: &U6,
    serial: &U2,
};

pub fn turso() -> Conduct {
    Conduct {
        snapshot: SnapshotAt::Begin,
        retries: true,
        refuses: true,
        equal_is_nothing: true,
        ..Conduct::base(&OF_TURSO)
    }
}
