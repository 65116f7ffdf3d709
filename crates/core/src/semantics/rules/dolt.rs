//! Dolt: transactions by themselves, merged when they commit. Nobody waits.

use super::{Changed, Conduct, Rule, SnapshotAt, Used, Waits, rule};

const TRANSACTIONS: &str = "https://docs.dolthub.com/concepts/dolt/sql/transaction";
const MERGE: &str = "https://docs.dolthub.com/concepts/dolt/merge";
const STATEMENTS: &str = "https://docs.dolthub.com/sql-reference/sql-support/supported-statements";

pub static RULES: &[&Rule] = &[&O1, &O2, &O2C, &O3, &O4, &O5, &O6, &O7, &O8, &O9];

pub static O1: Rule = rule(
    "O1",
    "a snapshot a transaction",
    TRANSACTIONS,
    "at every level a transaction sees what was committed when it began; locking reads lock nothing",
)
.telling(4)
.seen("the manual speaks of READ COMMITTED", "dolt/reads-are-repeatable");
pub static O2: Rule = rule(
    "O2",
    "conflicts fail the COMMIT",
    MERGE,
    "a COMMIT fails with 1213 when another has committed another value of a cell that it changes, \
     has deleted a row that it changes or changed one that it deletes, or has added another row \
     with the same key; without a primary key, when both change how many equal rows there are",
)
.telling(1);
pub static O2C: Rule = rule(
    "O2c",
    "cells are merged",
    MERGE,
    "at the COMMIT what others have committed since and what the transaction changed are merged \
     cell by cell; changes that are alike are one change",
)
.telling(0);
pub static O3: Rule = rule(
    "O3",
    "keys",
    MERGE,
    "a statement fails on a key that a row of its snapshot has; a COMMIT fails when the merged \
     table has a key twice",
)
.telling(2);
pub static O4: Rule = rule(
    "O4",
    "foreign keys",
    MERGE,
    "a foreign key is checked on the snapshot; a COMMIT fails when the merged tables break it",
)
.telling(2);
pub static O5: Rule = rule(
    "O5",
    "own writes",
    TRANSACTIONS,
    "a transaction sees what its own earlier statements wrote, and nobody else does before it \
     commits",
);
pub static O6: Rule =
    rule("O6", "rollback", TRANSACTIONS, "what is rolled back leaves nothing behind");
pub static O7: Rule = rule(
    "O7",
    "constraints",
    MERGE,
    "a row that breaks NOT NULL or CHECK fails its statement, a merged one the COMMIT",
);
pub static O8: Rule = rule(
    "O8",
    "upserts act on what they see",
    STATEMENTS,
    "an upsert changes, REPLACE deletes and IGNORE leaves alone the row of the snapshot that has \
     its key",
)
.telling(1);
pub static O9: Rule = rule(
    "O9",
    "writes find their rows in the snapshot",
    TRANSACTIONS,
    "a write finds its rows in the snapshot and meets nobody before the COMMIT",
)
.telling(5);

static USED: Used = Used {
    read: &O1,
    own_writes: &O5,
    write: &O9,
    changed_row: &O2,
    held_row: &O2C,
    unique: &O3,
    foreign: &O4,
    upsert: &O8,
    deadlock: &O2,
    constraint: &O7,
    savepoint: &O6,
    rollback: &O6,
    serial: &O1,
};

pub fn conduct() -> Conduct {
    Conduct {
        snapshot: SnapshotAt::Begin,
        changed: Changed::Merge,
        waits: Waits::Never,
        miscounts: true,
        merges_at_commit: true,
        ignores_level: true,
        clustered: false,
        folds_case: false,
        ..Conduct::mysql_base(&USED)
    }
}
