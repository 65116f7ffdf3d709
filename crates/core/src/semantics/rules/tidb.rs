//! TiDB: pessimistic transactions, which lock as they go, and optimistic ones,
//! which find out at their COMMIT. Both may meet in one run.

use super::{Assigns, Changed, Conduct, Rule, SnapshotAt, Used, rule};
use crate::Level;
use crate::generate::BeginForm;
use crate::history::TargetInfo;

const ISOLATION: &str = "https://docs.pingcap.com/tidb/stable/transaction-isolation-levels";
const PESSIMISTIC: &str = "https://docs.pingcap.com/tidb/stable/pessimistic-transaction";
const OPTIMISTIC: &str = "https://docs.pingcap.com/tidb/stable/optimistic-transaction";
const CONSTRAINTS: &str = "https://docs.pingcap.com/tidb/stable/constraints";

pub static RULES: &[&Rule] =
    &[&T1, &T2, &T3, &T6, &T7, &T9, &T12, &T13, &T14, &T15, &T16, &T17, &T18, &T19, &T20, &T21];

pub static T1: Rule = rule(
    "T1",
    "a snapshot a transaction",
    PESSIMISTIC,
    "at REPEATABLE READ a plain SELECT sees what was committed when the transaction began",
)
.telling(4);
pub static T2: Rule = rule(
    "T2",
    "writes read what is current",
    PESSIMISTIC,
    "writes and locking reads see the newest committed rows, and look again when they had to wait",
)
.telling(2);
pub static T3: Rule = rule(
    "T3",
    "rows are found first and locked then",
    PESSIMISTIC,
    "a write finds its rows first and locks them then; rows that others are adding are neither \
     seen nor waited for",
)
.telling(1);
pub static T6: Rule = rule(
    "T6",
    "a snapshot a statement",
    ISOLATION,
    "at READ COMMITTED every statement sees what was committed when it began",
)
.telling(4);
pub static T7: Rule = rule(
    "T7",
    "row locks",
    PESSIMISTIC,
    "a row that another transaction has locked is waited for; gaps are not locked",
);
pub static T9: Rule = rule(
    "T9",
    "unique keys look at all rows",
    CONSTRAINTS,
    "a key that is taken fails the statement, also when its row is not in the snapshot",
)
.telling(2);
pub static T12: Rule = rule(
    "T12",
    "deadlock",
    PESSIMISTIC,
    "transactions that wait for each other: one of them is rolled back with 1213",
);
pub static T13: Rule =
    rule("T13", "own writes", PESSIMISTIC, "a transaction sees what its own statements wrote");
pub static T14: Rule =
    rule("T14", "rollback", PESSIMISTIC, "what is rolled back leaves nothing behind");
pub static T15: Rule =
    rule("T15", "foreign keys", CONSTRAINTS, "a foreign key is checked on what is current");
pub static T16: Rule = rule(
    "T16",
    "a snapshot an optimistic transaction",
    OPTIMISTIC,
    "an optimistic transaction sees what was committed when it began, at every level, also where \
     it writes or reads FOR UPDATE",
)
.telling(4);
pub static T17: Rule = rule(
    "T17",
    "writes are kept for the COMMIT",
    OPTIMISTIC,
    "the writes of an optimistic transaction stay with it until its COMMIT: they lock nothing, \
     and nobody waits for them",
)
.telling(3);
pub static T18: Rule = rule(
    "T18",
    "the first to commit wins",
    OPTIMISTIC,
    "the COMMIT of an optimistic transaction fails with 9007 if another has changed since it \
     began what it wrote, read FOR UPDATE or refers to",
)
.telling(0);
pub static T19: Rule = rule(
    "T19",
    "keys are checked at the COMMIT",
    CONSTRAINTS,
    "a plain INSERT of an optimistic transaction does not look whether its key is free: if it was \
     taken in the snapshot, the COMMIT fails with 1062",
)
.telling(1);
pub static T20: Rule = rule(
    "T20",
    "a COMMIT that meets a lock",
    OPTIMISTIC,
    "the COMMIT of an optimistic transaction waits for the locks of those that began before it, \
     and fails with 9007 at a lock of one that began later",
)
.telling(1)
.seen("the manual says nothing of pessimistic locks here", "tidb/commit-meets-a-lock");
pub static T21: Rule = rule(
    "T21",
    "foreign keys of a snapshot",
    CONSTRAINTS,
    "an optimistic transaction checks foreign keys on its snapshot; its COMMIT fails if they do \
     not hold any more",
)
.telling(2);

const BASE: Used = Used {
    read: &T1,
    own_writes: &T13,
    write: &T2,
    changed_row: &T3,
    held_row: &T7,
    unique: &T9,
    foreign: &T15,
    upsert: &T9,
    deadlock: &T12,
    constraint: &T9,
    savepoint: &T14,
    rollback: &T14,
    serial: &T2,
};

static REPEATABLE_READ: Used = BASE;
static READ_COMMITTED: Used = Used { read: &T6, ..BASE };

static OPTIMISTICALLY: Used = Used {
    read: &T16,
    write: &T17,
    changed_row: &T18,
    held_row: &T20,
    unique: &T19,
    foreign: &T21,
    upsert: &T17,
    ..BASE
};

/// A statement by itself is tried again until nothing is in its way, so that
/// it does what a pessimistic one would.
pub fn conduct(on: &TargetInfo, level: Level, begun: Option<BeginForm>) -> Conduct {
    let optimistic = match begun {
        None | Some(BeginForm::Pessimistic) => false,
        Some(BeginForm::Optimistic) => true,
        Some(_) => on.engine.ends_with("+optimistic"),
    };
    if optimistic {
        return Conduct {
            snapshot: SnapshotAt::Begin,
            changed: Changed::FailsCommit,
            assigns: Assigns::UpsertsInOrder,
            ..Conduct::mysql_base(&OPTIMISTICALLY)
        };
    }
    let weak = level <= Level::ReadCommitted;
    Conduct {
        snapshot: if weak { SnapshotAt::Statement } else { SnapshotAt::Begin },
        looks_once: true,
        assigns: Assigns::UpsertsInOrder,
        plain_subqueries: true,
        alone_is_optimistic: true,
        ..Conduct::mysql_base(if weak { &READ_COMMITTED } else { &REPEATABLE_READ })
    }
}
