//! An engine that the project does not know: a small dialect that most engines
//! accept, and the concurrency model that a driver's own description starts from.

use crate::availability::Availability::Never;
use crate::capabilities::CapabilityTable;
use crate::citation::Citation;
use crate::concurrency::ConcurrencyModel;
use crate::description::DialectTable;
use crate::dialect::{self, Family, Quirks};
use crate::feature::Feature::*;
use crate::feature::FeatureExceptions;
use crate::rule::{Rule, RuleSet, rule};

pub const DIALECT: DialectTable = DialectTable {
    family: Family::Other,
    spelling: &dialect::POSTGRES,
    lacks: LACKS,
    for_share: Never,
    quirks: Quirks {
        upsert_hits_once: false,
        ignore_needs_key: false,
        lacks_functions: &[],
        values_row: false,
    },
};

const LACKS: FeatureExceptions = &[
    (
        Never,
        &[
            Returning,
            WriteLimit,
            Merge,
            FullJoin,
            JoinUsing,
            Lateral,
            ValuesTable,
            RecursiveCte,
            Limit,
            Quantified,
            RowValue,
            Cast,
            Filter,
            Concatenation,
            Rollup,
            GroupingSets,
            NamedWindow,
            WindowFrame,
        ],
    ),
    (
        Never,
        &[
            ScalarSubquery,
            InSubquery,
            ExistsSubquery,
            Window,
            Cte,
            Union,
            ExceptIntersect,
            ForUpdate,
            ForShare,
            NoWait,
            SkipLocked,
            InsertIgnore,
            Replace,
            Upsert,
            UpdateSubquery,
            UpdateJoin,
            DeleteSubquery,
            DeleteJoin,
            AutocommitOff,
            Savepoint,
            RollbackTo,
            ReleaseSavepoint,
            ReadOnly,
            ConsistentSnapshot,
            Immediate,
            Pessimistic,
            Optimistic,
            ForeignKey,
            ForeignKeyAction,
            Check,
            GeneratedStored,
            GeneratedVirtual,
            Partition,
            DescendingIndex,
            PartialIndex,
            FunctionalIndex,
            Truncate,
            Prepared,
            TypeDate,
            TypeBool,
            TypeBlob,
        ],
    ),
];

pub const CAPABILITIES: CapabilityTable =
    CapabilityTable { addresses_rows: false, ..CapabilityTable::NONE };

static READ: Rule =
    rule("G1", "snapshot", Citation::NONE, "a transaction sees what its snapshot contains");
static OWN_WRITES: Rule = rule(
    "G2",
    "own writes",
    Citation::NONE,
    "a transaction sees what its own earlier statements wrote",
);
static WRITE: Rule = rule("G3", "writes", Citation::NONE, "a write finds its rows in the snapshot");
static CONFLICT: Rule = rule(
    "G4",
    "write conflicts",
    Citation::NONE,
    "a write fails on a row that was changed after the snapshot",
);
static LOCKS: Rule = rule(
    "G5",
    "row locks",
    Citation::NONE,
    "a statement waits for a row that another transaction has locked",
);
static UNIQUE: Rule =
    rule("G6", "unique keys", Citation::NONE, "a key that is taken fails the statement");
static FOREIGN: Rule =
    rule("G7", "foreign keys", Citation::NONE, "a row needs the row that it refers to");
static UPSERT: Rule =
    rule("G8", "upserts", Citation::NONE, "an upsert acts on the row that has its key");
static DEADLOCK: Rule = rule(
    "G9",
    "deadlock",
    Citation::NONE,
    "if transactions wait for each other, one of them fails",
);
static CONSTRAINT: Rule = rule(
    "G10",
    "constraints",
    Citation::NONE,
    "a row that violates a constraint fails its statement",
);
static ROLLBACK: Rule =
    rule("G11", "rollback", Citation::NONE, "a rollback leaves no trace of what it undoes");
static SERIAL: Rule =
    rule("G12", "serial order", Citation::NONE, "the committed transactions have a serial order");

static RULES: RuleSet = RuleSet {
    read: &READ,
    own_writes: &OWN_WRITES,
    write: &WRITE,
    changed_row: &CONFLICT,
    held_row: &LOCKS,
    unique: &UNIQUE,
    foreign: &FOREIGN,
    upsert: &UPSERT,
    deadlock: &DEADLOCK,
    constraint: &CONSTRAINT,
    savepoint: &ROLLBACK,
    rollback: &ROLLBACK,
    serial: &SERIAL,
};

/// One snapshot per transaction, row locks, and failure on rows that were changed
/// after the snapshot.
pub fn concurrency_model() -> ConcurrencyModel {
    ConcurrencyModel::base(&RULES)
}
