//! SQLite: one writer, in all journal modes, and in a shared cache locks on
//! tables.

use super::{Conduct, Locks, Rule, SnapshotAt, Used, Waits, rule};
use crate::Level;
use crate::generate::BeginForm;

const ISOLATION: &str = "https://sqlite.org/isolation.html";
const TRANSACTION: &str = "https://sqlite.org/lang_transaction.html";
const BUSY_SNAPSHOT: &str = "https://sqlite.org/rescode.html#busy_snapshot";
const CONFLICT: &str = "https://sqlite.org/lang_conflict.html";
const UPSERT: &str = "https://sqlite.org/lang_upsert.html";
const FOREIGN: &str = "https://sqlite.org/foreignkeys.html";
const SHARED_CACHE_PAGE: &str = "https://sqlite.org/sharedcache.html";
const SAVEPOINT: &str = "https://sqlite.org/lang_savepoint.html";

pub static RULES: &[&Rule] =
    &[&S1, &S2, &S3, &S4, &S6, &S7, &S8, &S9, &S10, &S11, &S12, &S13, &S14];

pub static S1: Rule = rule(
    "S1",
    "one writer",
    ISOLATION,
    "one connection writes at a time; the others wait or are told BUSY",
);
pub static S2: Rule = rule(
    "S2",
    "a snapshot a transaction",
    TRANSACTION,
    "BEGIN takes nothing; the first statement fixes what the transaction sees (BEGIN IMMEDIATE \
     does so itself, and makes it the writer)",
)
.telling(4);
pub static S3: Rule = rule(
    "S3",
    "no writes on an old snapshot",
    BUSY_SNAPSHOT,
    "in the write-ahead log a transaction that has read cannot write once another has committed \
     since: BUSY_SNAPSHOT",
)
.telling(0);
pub static S4: Rule = rule(
    "S4",
    "commits wait for readers",
    TRANSACTION,
    "with a rollback journal a COMMIT waits until nobody reads; whoever waits for each other is \
     told BUSY",
);
pub static S6: Rule = rule(
    "S6",
    "conflict clauses",
    CONFLICT,
    "a broken constraint takes its statement back; IGNORE leaves the row out, REPLACE deletes \
     the rows in its way",
)
.telling(2);
pub static S7: Rule = rule(
    "S7",
    "upserts",
    UPSERT,
    "an upsert changes the row that has its key instead of adding one",
)
.telling(1);
pub static S8: Rule = rule(
    "S8",
    "foreign keys",
    FOREIGN,
    "a foreign key is checked when its statement ends; its actions are part of the statement",
)
.telling(2);
pub static S9: Rule = rule(
    "S9",
    "own writes",
    ISOLATION,
    "a transaction sees its own earlier writes, and nobody else does before it commits",
);
pub static S10: Rule = rule(
    "S10",
    "rollback to a savepoint",
    SAVEPOINT,
    "ROLLBACK TO takes back what was written after the savepoint",
);
pub static S11: Rule =
    rule("S11", "rollback", TRANSACTION, "what is rolled back leaves nothing behind");

pub static S12: Rule = rule(
    "S12",
    "one cache for all",
    SHARED_CACHE_PAGE,
    "in a shared cache a statement reads what is there now; the tables that it has read stay as \
     they are until its transaction ends",
)
.telling(4);
pub static S13: Rule = rule(
    "S13",
    "table locks",
    SHARED_CACHE_PAGE,
    "in a shared cache one transaction writes at a time, and a table has readers or a writer: \
     whoever comes too late is told LOCKED",
);
pub static S14: Rule = rule(
    "S14",
    "uncommitted reads",
    SHARED_CACHE_PAGE,
    "with PRAGMA read_uncommitted a SELECT locks nothing, and sees what others have not committed",
)
.telling(1);

const BASE: Used = Used {
    read: &S2,
    own_writes: &S9,
    write: &S1,
    changed_row: &S4,
    held_row: &S1,
    unique: &S6,
    foreign: &S8,
    upsert: &S7,
    deadlock: &S4,
    constraint: &S6,
    savepoint: &S10,
    rollback: &S11,
    serial: &S1,
};

static ROLLBACK_JOURNAL: Used = BASE;
static WRITE_AHEAD_LOG: Used = Used { changed_row: &S3, deadlock: &S1, ..BASE };

static SHARED_CACHE: Used = Used { read: &S12, held_row: &S13, deadlock: &S13, ..BASE };
static DIRTY_SHARED_CACHE: Used = Used { read: &S14, ..SHARED_CACHE };

/// READ UNCOMMITTED is there in shared caches only.
pub fn conduct(engine: &str, level: Level, form: BeginForm) -> Option<Conduct> {
    if engine.ends_with("+shared-cache") {
        return shared_cache(level);
    }
    if level != Level::Serializable {
        return None;
    }
    let at_begin = form == BeginForm::Immediate;
    let log = engine.ends_with("+wal");
    Some(Conduct {
        snapshot: if at_begin { SnapshotAt::Begin } else { SnapshotAt::FirstStatement },
        locks: Locks::Database,
        waits: Waits::Database,
        commit_waits: (!log).then_some(&S4),
        commit_ordered: !log,
        retries: true,
        ..Conduct::base(if log { &WRITE_AHEAD_LOG } else { &ROLLBACK_JOURNAL })
    })
}

fn shared_cache(level: Level) -> Option<Conduct> {
    let (snapshot, rules) = match level {
        Level::ReadUncommitted => (SnapshotAt::Dirty, &DIRTY_SHARED_CACHE),
        Level::Serializable => (SnapshotAt::Statement, &SHARED_CACHE),
        _ => return None,
    };
    Some(Conduct {
        snapshot,
        locks: Locks::Database,
        commit_ordered: true,
        retries: true,
        table_locks: Some(&S13),
        ..Conduct::base(rules)
    })
}
