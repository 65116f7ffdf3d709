//! TiDB: pessimistic transactions. What optimistic ones find out at their
//! COMMIT is not modelled.

use super::{Conduct, Rule, SnapshotAt, Used, rule};
use crate::Level;
use crate::generate::BeginForm;
use crate::history::TargetInfo;

const ISOLATION: &str = "https://docs.pingcap.com/tidb/stable/transaction-isolation-levels";
const PESSIMISTIC: &str = "https://docs.pingcap.com/tidb/stable/pessimistic-transaction";
const CONSTRAINTS: &str = "https://docs.pingcap.com/tidb/stable/constraints";

pub static RULES: &[&Rule] = &[&T1, &T2, &T3, &T6, &T7, &T9, &T12, &T13, &T14, &T15];

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

pub fn conduct(on: &TargetInfo, level: Level, form: BeginForm) -> Option<Conduct> {
    let optimistic = match form {
        BeginForm::Optimistic => true,
        BeginForm::Pessimistic => false,
        _ => on.engine.ends_with("+optimistic"),
    };
    let weak = level <= Level::ReadCommitted;
    (!optimistic).then_some(Conduct {
        snapshot: if weak { SnapshotAt::Statement } else { SnapshotAt::Begin },
        // Not under this name, but to the same effect: rows are found in what
        // was committed when the search began, and looked at again when locked.
        semi_consistent: true,
        plain_subqueries: true,
        alone_is_optimistic: true,
        ..Conduct::mysql_base(if weak { &READ_COMMITTED } else { &REPEATABLE_READ })
    })
}
