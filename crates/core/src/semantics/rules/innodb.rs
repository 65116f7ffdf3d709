//! InnoDB, in MySQL and in MariaDB.

use super::{Conduct, Rule, SnapshotAt, Used, Waits, rule};
use crate::Level;
use crate::generate::BeginForm;
use crate::history::TargetInfo;
use crate::sql::dialect::is_among;

const CR: &str = "https://dev.mysql.com/doc/refman/8.4/en/innodb-consistent-read.html";
const IL: &str = "https://dev.mysql.com/doc/refman/8.4/en/innodb-transaction-isolation-levels.html";
const LS: &str = "https://dev.mysql.com/doc/refman/8.4/en/innodb-locks-set.html";
const LK: &str = "https://dev.mysql.com/doc/refman/8.4/en/innodb-locking.html";
const ST: &str = "https://dev.mysql.com/doc/refman/8.4/en/commit.html";
const EH: &str = "https://dev.mysql.com/doc/refman/8.4/en/innodb-error-handling.html";
const SP: &str = "https://dev.mysql.com/doc/refman/8.4/en/savepoint.html";
const FK: &str = "https://dev.mysql.com/doc/refman/8.4/en/create-table-foreign-keys.html";
const OD: &str = "https://dev.mysql.com/doc/refman/8.4/en/insert-on-duplicate.html";
const CH: &str = "https://dev.mysql.com/doc/refman/8.4/en/constraint-invalid-data.html";
const UP: &str = "https://dev.mysql.com/doc/refman/8.4/en/update.html";
const MS: &str = "https://mariadb.com/kb/en/innodb-system-variables/#innodb_snapshot_isolation";

pub static RULES: &[&Rule] = &[
    &I1, &I2, &I3, &I4, &I5, &I6, &I7, &I8, &I9, &I10, &I11, &I14, &I18, &I19, &I20, &I21, &I22,
    &I27, &I29, &M2,
];

pub static I1: Rule = rule(
    "I1",
    "the first read makes the view",
    CR,
    "at REPEATABLE READ the first plain SELECT makes the view that all later ones use",
)
.telling(4);
pub static I2: Rule = rule(
    "I2",
    "a view a statement",
    CR,
    "at READ COMMITTED every plain SELECT sees what was committed when it began",
)
.telling(4);
pub static I3: Rule = rule(
    "I3",
    "dirty reads",
    IL,
    "at READ UNCOMMITTED a plain SELECT sees the newest version of each row, committed or not",
)
.telling(3);
pub static I4: Rule = rule(
    "I4",
    "reads lock at SERIALIZABLE",
    IL,
    "at SERIALIZABLE a plain SELECT inside of a transaction locks what it reads; by itself it is \
     a consistent read",
)
.telling(4);
pub static I5: Rule = rule(
    "I5",
    "own writes",
    CR,
    "a transaction sees what its own earlier statements wrote, and at other levels than READ \
     UNCOMMITTED nobody else does before it commits",
);
pub static I6: Rule = rule(
    "I6",
    "writes read what is current",
    CR,
    "UPDATE, DELETE and locking reads see the newest committed rows, whatever the view of the \
     transaction shows",
)
.telling(2);
pub static I7: Rule = rule(
    "I7",
    "consistent snapshot",
    ST,
    "START TRANSACTION WITH CONSISTENT SNAPSHOT makes the view at once, at REPEATABLE READ",
)
.telling(3);
pub static I8: Rule = rule(
    "I8",
    "an empty read makes no view",
    CR,
    "a SELECT whose condition cannot hold is answered without a look at rows, and makes no view; \
     the next one does",
)
.telling(3)
.seen(
    "the manual has the first consistent read make the view, and says nothing of reads that the \
     optimizer answers",
    "mysql/empty-read-makes-no-view",
);
pub static I9: Rule = rule(
    "I9",
    "consistent reads inside of writes",
    LS,
    "below REPEATABLE READ the SELECT inside of an INSERT, REPLACE or UPDATE takes no locks and \
     sees what a plain SELECT would",
)
.telling(1);
pub static I10: Rule = rule(
    "I10",
    "updates that change nothing",
    UP,
    "an UPDATE that leaves a row as it was does not count it; if it does not read all columns that it \
     sets it writes the row all the same, and the view has its newest version from then on",
)
.telling(3)
.holds_for("mysql mariadb@10.0-10.2")
.seen(
    "the manual has MySQL notice that a column is set to what it has, and not update it",
    "mysql/update-that-changes-nothing",
);
pub static I11: Rule = rule(
    "I11",
    "row locks",
    LS,
    "a row that another transaction has added, changed or locked in a conflicting mode is waited \
     for; whatever is scanned may be locked",
);
pub static I14: Rule = rule(
    "I14",
    "semi-consistent read",
    IL,
    "below REPEATABLE READ an UPDATE that meets a locked row looks at its last committed version: \
     if that does not match, it passes by; if it does, it waits and looks at the row again",
)
.telling(0)
.seen(
    "MariaDB's page on SET TRANSACTION has DELETE do so, too; a DELETE waits",
    "mariadb/delete-waits-at-read-committed",
);
pub static I18: Rule = rule(
    "I18",
    "unique keys look at all rows",
    LS,
    "a unique key waits for whoever is writing or deleting it and fails with 1062 when it is \
     taken, also by a row that the view does not show; only the statement is undone",
)
.telling(2);
pub static I19: Rule = rule(
    "I19",
    "upserts act on what is current",
    OD,
    "IGNORE, REPLACE and ON DUPLICATE KEY UPDATE act on the row that has the key now, also on one \
     that the view does not show",
)
.telling(1);
pub static I20: Rule = rule(
    "I20",
    "foreign keys",
    FK,
    "a foreign key is checked row by row on what is current; the row it refers to is locked",
)
.telling(2);
pub static I21: Rule = rule(
    "I21",
    "rollback to a savepoint",
    SP,
    "ROLLBACK TO takes back what was written after the savepoint",
);
pub static I22: Rule = rule(
    "I22",
    "deadlock",
    EH,
    "transactions that wait for each other: one of them is rolled back with 1213",
);
pub static I27: Rule = rule("I27", "rollback", EH, "what is rolled back leaves nothing behind");
pub static I28: Rule = rule(
    "I28",
    "locks make a serial order",
    LK,
    "at SERIALIZABLE whatever is read or written stays locked, gaps included, so the order of the \
     commits is a serial order",
)
.telling(2);
pub static I29: Rule = rule(
    "I29",
    "constraints",
    CH,
    "a row that breaks NOT NULL or CHECK fails its statement; IGNORE leaves it out, or puts the \
     zero of its type in the place of a NULL",
);
pub static M2: Rule = rule(
    "M2",
    "snapshot isolation",
    MS,
    "with innodb_snapshot_isolation whoever writes or locks a row that was changed after its view \
     is rolled back with 1020",
)
.telling(0)
.holds_for("mariadb@10.6.18-");

const BASE: Used = Used {
    read: &I2,
    own_writes: &I5,
    write: &I6,
    changed_row: &I6,
    held_row: &I11,
    unique: &I18,
    foreign: &I20,
    upsert: &I19,
    deadlock: &I22,
    constraint: &I29,
    savepoint: &I21,
    rollback: &I27,
    serial: &I28,
};

static READ_UNCOMMITTED: Used = Used { read: &I3, changed_row: &I14, ..BASE };
static READ_COMMITTED: Used = Used { read: &I2, changed_row: &I14, ..BASE };
static REPEATABLE_READ: Used = Used { read: &I1, ..BASE };
static FROM_THE_START: Used = Used { read: &I7, ..BASE };
static SNAPSHOT: Used = Used { read: &I1, changed_row: &M2, ..BASE };
static SERIALIZABLE: Used = Used { read: &I4, ..BASE };

pub fn conduct(on: &TargetInfo, level: Level, form: BeginForm) -> Conduct {
    let weak = level <= Level::ReadCommitted;
    let at_once = form == BeginForm::ConsistentSnapshot && level == Level::RepeatableRead;
    let snapshot_setting = on.settings.get("innodb_snapshot_isolation");
    let snapshot_writes = snapshot_setting.is_some_and(|v| v == "1" || v == "ON");
    let repeatable = level == Level::RepeatableRead;
    let rules = match level {
        Level::ReadUncommitted => &READ_UNCOMMITTED,
        Level::ReadCommitted => &READ_COMMITTED,
        Level::Serializable => &SERIALIZABLE,
        _ if snapshot_writes && repeatable => &SNAPSHOT,
        _ if at_once => &FROM_THE_START,
        _ => &REPEATABLE_READ,
    };
    Conduct {
        snapshot: match level {
            Level::ReadUncommitted => SnapshotAt::Dirty,
            Level::ReadCommitted => SnapshotAt::Statement,
            _ if at_once => SnapshotAt::Begin,
            _ => SnapshotAt::FirstRead,
        },
        unread: (!weak && !at_once).then_some(&I8),
        writes_equal: (repeatable && is_among(I10.versions, &on.engine, &on.version))
            .then_some(&I10),
        waits: Waits::Scans,
        commit_ordered: level == Level::Serializable,
        semi_consistent: weak && !snapshot_writes,
        reads_lock: level == Level::Serializable,
        consistent_reads_in_writes: weak,
        snapshot_writes: snapshot_writes && !weak,
        waits_may_abort: snapshot_writes,
        ..Conduct::mysql_base(rules)
    }
}
