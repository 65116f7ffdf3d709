//! DuckDB: snapshot isolation with write conflicts per column. No statement waits.

use crate::availability::Availability::{Always, Never, Since};
use crate::capabilities::CapabilityTable;
use crate::citation::{section, silent};
use crate::concurrency::{
    ConcurrencyModel, Conflicts, Constraints, ErrorScope, Locking, RowStorage, Waits,
    WriteConflictPolicy,
};
use crate::description::{DialectTable, EngineDescription, PageSection, Semantics};
use crate::dialect::{self, Family, Quirks};
use crate::feature::Feature::*;
use crate::feature::FeatureExceptions;
use crate::level::Level;
use crate::rule::{Rule, RuleSet, rule};

pub static DESCRIPTION: EngineDescription = EngineDescription {
    name: "duckdb",
    title: "DuckDB",
    modes: &[],
    dialect: DIALECT,
    capabilities: CAPABILITIES,
    profile: None,
    semantics: Some(Semantics {
        rules_hold_for: Since("2.0"),
        rules: RULES,
        manual: |page, _| page.into(),
        concurrency_model: |_, _, _| Some(concurrency_model()),
        page: PageSection {
            title: "DuckDB",
            about: Some("`duckdb`. Snapshot isolation is its only level."),
            levels: &[Level::Snapshot],
            settings: &[],
            also: &[],
        },
    }),
};

const DIALECT: DialectTable = DialectTable {
    family: Family::Duckdb,
    spelling: &dialect::DUCKDB,
    lacks: LACKS,
    for_share: Never,
    quirks: Quirks {
        upsert_hits_once: true,
        ignore_needs_key: true,
        lacks_functions: &[],
        values_row: false,
    },
};

const LACKS: FeatureExceptions = &[
    (Never, &[Returning, WriteLimit, Merge, RowValue]),
    (
        Never,
        &[
            ForUpdate,
            ForShare,
            NoWait,
            SkipLocked,
            Replace,
            AutocommitOff,
            Savepoint,
            RollbackTo,
            ReleaseSavepoint,
            ReadOnly,
            ConsistentSnapshot,
            Immediate,
            Pessimistic,
            Optimistic,
            ForeignKeyAction,
            GeneratedStored,
            Partition,
            DescendingIndex,
            PartialIndex,
        ],
    ),
];

pub(super) const CAPABILITIES: CapabilityTable =
    CapabilityTable { returns_written: Always, returns_deleted: Always, ..CapabilityTable::NONE };

const CONCURRENCY: &str = "https://duckdb.org/docs/stable/connect/concurrency";
const TRANSACTIONS: &str = "https://duckdb.org/docs/stable/sql/statements/transactions";
const INDEXES: &str = "https://duckdb.org/docs/stable/sql/indexes";
const CONSTRAINTS: &str = "https://duckdb.org/docs/stable/sql/constraints";
const INSERT: &str = "https://duckdb.org/docs/stable/sql/statements/insert";

pub static RULES: &[&Rule] = &[&D1, &D2, &D2C, &D3, &D4, &D5, &D6, &D7, &D8, &D9];

pub static D1: Rule = rule(
    "D1",
    "one snapshot per transaction",
    silent(TRANSACTIONS),
    "a transaction sees what was committed when its first statement on a table began",
)
.ranked(4)
.undocumented(
    "the manual promises isolation and does not say when the snapshot is taken",
    "hermitage/g-single",
);
pub static D2: Rule = rule(
    "D2",
    "the second writer of a row fails",
    section(CONCURRENCY, "Concurrency Model within a Single Process"),
    "a transaction fails, in the write or at COMMIT, if it changes a value that another has \
     changed since its snapshot, changes or deletes a row that another has deleted, or deletes a \
     row that another has changed",
)
.ranked(1);
pub static D2C: Rule = rule(
    "D2c",
    "conflicts are per column",
    silent(CONCURRENCY),
    "transactions that write different columns of a row do not conflict, and both changes are \
     kept",
)
.ranked(0)
.undocumented(
    "the manual says that the second transaction that edits the same row fails",
    "duckdb/columns-apart",
);
pub static D3: Rule = rule(
    "D3",
    "unique keys are checked in the index",
    silent(INDEXES),
    "a key is taken by any committed row that has it, even if the snapshot does not show the row \
     or an open transaction deletes it; keys that others add in the meantime fail the COMMIT",
)
.ranked(2)
.undocumented(
    "the manual says that an index enforces the key, and not which transactions' rows it \
             contains",
    "duckdb/key-outside-the-snapshot",
);
pub static D4: Rule = rule(
    "D4",
    "foreign keys are checked in the index",
    section(INDEXES, "Over-Eager Constraint Checking in Foreign Keys"),
    "a row must find the key that it refers to among committed rows and those of its \
     transaction; a key that such a row refers to cannot be deleted, even if this transaction \
     has deleted that row",
)
.ranked(2);
pub static D5: Rule = rule(
    "D5",
    "own writes",
    section(TRANSACTIONS, "Transaction Management"),
    "a transaction sees what its own earlier statements wrote; no other transaction does until \
     it commits",
);
pub static D6: Rule = rule(
    "D6",
    "rollback",
    section(TRANSACTIONS, "Rolling Back a Transaction"),
    "a rollback leaves no trace of what it undoes",
);
pub static D7: Rule = rule(
    "D7",
    "constraints",
    section(CONSTRAINTS, "Check Constraint"),
    "a row that violates NOT NULL or CHECK fails its statement",
);
pub static D8: Rule = rule(
    "D8",
    "upserts act on the snapshot",
    silent(INSERT),
    "an INSERT with ON CONFLICT acts on the row of its snapshot that has its key, and fails if a \
     row outside the snapshot has it",
)
.ranked(1)
.undocumented(
    "the manual does not mention rows outside the snapshot",
    "duckdb/upsert-outside-the-snapshot",
);
pub static D9: Rule = rule(
    "D9",
    "writes find their rows in the snapshot",
    section(INDEXES, "Constraint Checking in UPDATE Statements"),
    "a write finds its rows in the snapshot; an UPDATE of an indexed column deletes the row and \
     inserts another",
)
.ranked(5);

static RULE_SET: RuleSet = RuleSet {
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

pub fn concurrency_model() -> ConcurrencyModel {
    let base = ConcurrencyModel::base(&RULE_SET);
    ConcurrencyModel {
        conflicts: Conflicts {
            changed_row: WriteConflictPolicy::MergeColumns,
            error_scope: ErrorScope::TransactionAtRollback,
            ..base.conflicts
        },
        locking: Locking { waits: Waits::Never, ..base.locking },
        constraints: Constraints {
            checked_in_indexes: true,
            conflicts_resolved_before_checks: true,
            ..base.constraints
        },
        storage: RowStorage::ReinsertsOnIndexedUpdate,
        ..base
    }
}
