//! DuckDB: snapshots, and writers that meet column by column. Nobody waits.

use super::{Changed, Conduct, Rule, Used, Waits, rule};

const CONCURRENCY: &str = "https://duckdb.org/docs/stable/connect/concurrency";
const TRANSACTIONS: &str = "https://duckdb.org/docs/stable/sql/statements/transactions";
const INDEXES: &str = "https://duckdb.org/docs/stable/sql/indexes";
const CONSTRAINTS: &str = "https://duckdb.org/docs/stable/sql/constraints";
const INSERT: &str = "https://duckdb.org/docs/stable/sql/statements/insert";

pub static RULES: &[&Rule] = &[&D1, &D2, &D2C, &D3, &D4, &D5, &D6, &D7, &D8, &D9];

pub static D1: Rule = rule(
    "D1",
    "a snapshot a transaction",
    TRANSACTIONS,
    "a transaction sees what was committed when its first statement on a table began",
)
.telling(4);
pub static D2: Rule = rule(
    "D2",
    "the second writer of a row fails",
    CONCURRENCY,
    "who changes a value that another has changed since the snapshot, or who changes or deletes a \
     row that another has deleted, or deletes one that another has changed, fails, in the write or \
     at the COMMIT",
)
.telling(1);
pub static D2C: Rule = rule(
    "D2c",
    "columns apart",
    CONCURRENCY,
    "transactions that write different columns of a row do not meet, and both changes stay",
)
.telling(0)
.seen("the manual has the second transaction fail that edits the same row", "duckdb/columns-apart");
pub static D3: Rule = rule(
    "D3",
    "keys are looked up in the index",
    INDEXES,
    "a key is taken by a committed row that has it, also by one that the snapshot does not show \
     or that an open transaction deletes; what others add meanwhile fails the COMMIT",
)
.telling(2);
pub static D4: Rule = rule(
    "D4",
    "foreign keys are looked up in the index",
    CONSTRAINTS,
    "a row must find the key that it refers to among committed or own rows; a key that a \
     committed or own row refers to cannot go, also when this transaction has deleted that row",
)
.telling(2);
pub static D5: Rule = rule(
    "D5",
    "own writes",
    TRANSACTIONS,
    "a transaction sees what its own earlier statements wrote, and nobody else does before it \
     commits",
);
pub static D6: Rule =
    rule("D6", "rollback", TRANSACTIONS, "what is rolled back leaves nothing behind");
pub static D7: Rule = rule(
    "D7",
    "constraints",
    CONSTRAINTS,
    "a row that breaks NOT NULL or CHECK fails its statement",
);
pub static D8: Rule = rule(
    "D8",
    "upserts act on what they see",
    INSERT,
    "an INSERT with ON CONFLICT acts on the row of its snapshot that has its key, and fails when \
     a row that it does not see has it",
)
.telling(1);
pub static D9: Rule = rule(
    "D9",
    "writes find their rows in the snapshot",
    CONCURRENCY,
    "a write finds its rows in the snapshot; an UPDATE of an indexed column deletes the row and \
     adds another",
)
.telling(5);

static USED: Used = Used {
    read: &D1,
    own_writes: &D5,
    write: &D9,
    changed_row: &D2,
    held_row: &D2C,
    unique: &D3,
    foreign: &D4,
    upsert: &D8,
    deadlock: &D2,
    constraint: &D7,
    savepoint: &D6,
    rollback: &D6,
    serial: &D1,
};

pub fn conduct() -> Conduct {
    Conduct {
        changed: Changed::Merge,
        waits: Waits::Never,
        poisons: true,
        moves_indexed: true,
        checks_indexes: true,
        conflicts_before_checks: true,
        failed_holds: true,
        ..Conduct::base(&USED)
    }
}
