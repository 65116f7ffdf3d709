//! PostgreSQL, chapter 13 of its manual.

use super::{Changed, Conduct, Rule, SnapshotAt, Used, Waits, rule};
use crate::Level;

const RC: &str = "https://www.postgresql.org/docs/current/transaction-iso.html#XACT-READ-COMMITTED";
const RR: &str =
    "https://www.postgresql.org/docs/current/transaction-iso.html#XACT-REPEATABLE-READ";
const SER: &str = "https://www.postgresql.org/docs/current/transaction-iso.html#XACT-SERIALIZABLE";
const LOCKS: &str = "https://www.postgresql.org/docs/current/explicit-locking.html#LOCKING-ROWS";
const DEADLOCKS: &str =
    "https://www.postgresql.org/docs/current/explicit-locking.html#LOCKING-DEADLOCKS";
const UNIQUE: &str = "https://www.postgresql.org/docs/current/index-unique-checks.html";
const INSERT: &str = "https://www.postgresql.org/docs/current/sql-insert.html#SQL-ON-CONFLICT";
const FOREIGN: &str =
    "https://www.postgresql.org/docs/current/ddl-constraints.html#DDL-CONSTRAINTS-FK";
const SAVEPOINT: &str = "https://www.postgresql.org/docs/current/sql-rollback-to.html";
const ROLLBACK: &str = "https://www.postgresql.org/docs/current/sql-rollback.html";
const CHECKS: &str = "https://www.postgresql.org/docs/current/ddl-constraints.html";

pub static RULES: &[&Rule] =
    &[&P1, &P2, &P3, &P5, &P7, &P7W, &P8, &P9, &P10, &P11, &P12, &P12F, &P14, &P15, &P16, &P17];

pub static P1: Rule = rule(
    "P1",
    "a snapshot a statement",
    RC,
    "at READ COMMITTED every statement sees what was committed when it began; READ UNCOMMITTED is \
     the same",
)
.telling(4);
pub static P2: Rule = rule(
    "P2",
    "writes find their rows in a snapshot",
    RC,
    "at READ COMMITTED a write finds its rows in the statement's snapshot, waits for whoever \
     changed one of them, passes by what was deleted and tests what was updated again",
)
.telling(3);
pub static P3: Rule = rule(
    "P3",
    "re-check of updated rows",
    RC,
    "the second test looks at the newest version of that row and at everything else as it was \
     when the statement began",
)
.telling(0);
pub static P5: Rule = rule(
    "P5",
    "upserts act on rows that are not seen",
    RC,
    "at READ COMMITTED an INSERT with ON CONFLICT acts on the row that has its key, also on one \
     that its snapshot does not show",
)
.telling(1);
pub static P7: Rule = rule(
    "P7",
    "a snapshot a transaction",
    RR,
    "from REPEATABLE READ on a transaction sees what was committed when its first statement began",
)
.telling(4);
pub static P7W: Rule = rule(
    "P7w",
    "first updater wins",
    RR,
    "from REPEATABLE READ on whoever writes or locks a row that was changed after the snapshot \
     fails with 40001",
)
.telling(1);
pub static P8: Rule = rule(
    "P8",
    "upserts fail on rows that are not seen",
    INSERT,
    "from REPEATABLE READ on an INSERT with ON CONFLICT fails with 40001 when the row that has its \
     key is not in the snapshot",
)
.telling(1);
pub static P9: Rule = rule(
    "P9",
    "serial order is not commit order",
    SER,
    "at SERIALIZABLE any statement may fail with 40001, for the sake of a serial order",
);
pub static P10: Rule = rule(
    "P10",
    "unique keys look at all rows",
    UNIQUE,
    "a unique key waits for whoever is writing or deleting it and fails with 23505 when it is \
     taken, also by a row that the snapshot does not show",
)
.telling(2);
pub static P11: Rule = rule(
    "P11",
    "rollback to a savepoint",
    SAVEPOINT,
    "ROLLBACK TO takes back what was written and locked after the savepoint",
);
pub static P12: Rule = rule(
    "P12",
    "row locks",
    LOCKS,
    "a row that another transaction has changed or locked in a conflicting mode is waited for",
);
pub static P12F: Rule = rule(
    "P12f",
    "foreign keys",
    FOREIGN,
    "a foreign key is checked when its statement ends; the row it refers to is locked against \
     changes of its key",
)
.telling(2);
pub static P14: Rule = rule(
    "P14",
    "own writes",
    RC,
    "a transaction sees what its own earlier statements wrote, and nobody else does before it \
     commits",
);
pub static P15: Rule = rule(
    "P15",
    "deadlock",
    DEADLOCKS,
    "transactions that wait for each other: one of them fails with 40P01",
);
pub static P16: Rule =
    rule("P16", "constraints", CHECKS, "a row that breaks NOT NULL or CHECK fails its statement");
pub static P17: Rule =
    rule("P17", "rollback", ROLLBACK, "what is rolled back leaves nothing behind");

const BASE: Used = Used {
    read: &P7,
    own_writes: &P14,
    write: &P7,
    changed_row: &P7W,
    held_row: &P12,
    unique: &P10,
    foreign: &P12F,
    upsert: &P8,
    deadlock: &P15,
    constraint: &P16,
    savepoint: &P11,
    rollback: &P17,
    serial: &P9,
};

static READ_COMMITTED: Used = Used { read: &P1, write: &P2, changed_row: &P3, upsert: &P5, ..BASE };
static REPEATABLE_READ: Used = BASE;

pub fn conduct(level: Level) -> Conduct {
    let strong = Conduct {
        waits: Waits::Rows,
        may_abort: (level == Level::Serializable).then_some(&P9),
        poisons: true,
        key_locks: true,
        ..Conduct::base(&REPEATABLE_READ)
    };
    if level > Level::ReadCommitted {
        return strong;
    }
    Conduct {
        snapshot: SnapshotAt::Statement,
        changed: Changed::Recheck,
        rules: &READ_COMMITTED,
        ..strong
    }
}
