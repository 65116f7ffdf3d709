//! Turso: concurrent transactions (snapshot isolation in which no statement
//! waits), and SQLite's single writer.

use super::sqlite;
use crate::availability::Availability::{Never, Since};
use crate::begin_form::BeginForm;
use crate::capabilities::CapabilityTable;
use crate::citation::{section, silent};
use crate::concurrency::{ConcurrencyModel, Conflicts, SnapshotAt, SnapshotPolicy};
use crate::description::{DialectTable, EngineDescription, PageSection, Semantics};
use crate::dialect::{self, Family, Quirks};
use crate::feature::Feature::*;
use crate::feature::FeatureExceptions;
use crate::level::Level;
use crate::rule::{Rule, RuleSet, rule};
use crate::target::TargetInfo;

pub static DESCRIPTION: EngineDescription = EngineDescription {
    name: "turso",
    title: "Turso",
    modes: &[("mvcc", "BEGIN CONCURRENT")],
    dialect: DIALECT,
    capabilities: CAPABILITIES,
    profile: None,
    semantics: Some(Semantics {
        rules_hold_for: Since("0.2"),
        rules: RULES,
        manual: |page, _| page.into(),
        concurrency_model,
        page: PageSection {
            title: "Turso",
            about: Some(
                "`turso+mvcc`: concurrent transactions. `turso` follows the rules of SQLite's write-ahead \
                 log, except that SAVEPOINT takes the snapshot.",
            ),
            levels: &[Level::Snapshot],
            settings: &[],
            also: &[],
        },
    }),
};

const DIALECT: DialectTable = DialectTable {
    family: Family::Sqlite,
    spelling: &dialect::SQLITE,
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
            Quantified,
            RowValue,
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
            ForUpdate,
            ForShare,
            NoWait,
            SkipLocked,
            DeleteJoin,
            AutocommitOff,
            ReadOnly,
            ConsistentSnapshot,
            Pessimistic,
            Optimistic,
            ForeignKey,
            ForeignKeyAction,
            GeneratedStored,
            GeneratedVirtual,
            Partition,
            Truncate,
            Prepared,
        ],
    ),
    (
        Since("0.3"),
        &[ScalarSubquery, InSubquery, ExistsSubquery, InsertIgnore, Upsert, DescendingIndex],
    ),
    (Since("0.4"), &[Replace]),
    (
        Since("0.6"),
        &[
            Union,
            ExceptIntersect,
            UpdateSubquery,
            UpdateJoin,
            DeleteSubquery,
            Savepoint,
            RollbackTo,
            ReleaseSavepoint,
        ],
    ),
    (Since("0.8"), &[Window, Check, PartialIndex, FunctionalIndex]),
];

pub(super) const CAPABILITIES: CapabilityTable = CapabilityTable {
    returns_written: Since("0.3"),
    returns_deleted: Since("0.3"),
    ..super::sqlite::CAPABILITIES
};

const TURSO: &str = "https://github.com/tursodatabase/turso/blob/main/docs/manual.md";

pub static RULES: &[&Rule] = &[&U2, &U2W, &U4, &U5, &U6];

pub static U2: Rule = rule(
    "U2",
    "one snapshot per transaction",
    section(TURSO, "Read snapshot isolation"),
    "a concurrent transaction sees what was committed when it began",
)
.ranked(4);
pub static U2W: Rule = rule(
    "U2w",
    "the second writer of a row fails",
    section(TURSO, "Commit and conflict detection"),
    "a transaction that writes a row changed by another since its snapshot fails, at the write \
     or at COMMIT",
)
.ranked(1)
.undocumented(
    "the manual says that conflicts are reported at COMMIT; a write that meets one fails \
     immediately",
    "turso/conflict-at-the-write",
);
pub static U4: Rule = rule(
    "U4",
    "keys are checked at COMMIT",
    silent(TURSO),
    "a key that another transaction has taken since the snapshot fails the COMMIT",
)
.ranked(2)
.undocumented("the manual mentions conflicts of rows, not of keys", "turso/key-at-the-commit");
pub static U5: Rule = rule(
    "U5",
    "own writes",
    section(TURSO, "Read snapshot isolation"),
    "a transaction sees what its own earlier statements wrote",
);
pub static U6: Rule = rule(
    "U6",
    "rollback",
    section(TURSO, "Transactions"),
    "a rollback leaves no trace of what it undoes",
);

static TURSO_RULES: RuleSet = RuleSet {
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

/// The model of `BEGIN CONCURRENT` on multi-version rows.
pub fn concurrent() -> ConcurrencyModel {
    let base = ConcurrencyModel::base(&TURSO_RULES);
    ConcurrencyModel {
        snapshot: SnapshotPolicy { taken: SnapshotAt::Begin, ..base.snapshot },
        conflicts: Conflicts {
            restarts_statement_after_wait: true,
            fails_instead_of_waiting: true,
            noop_update_does_not_conflict: true,
            ..base.conflicts
        },
        ..base
    }
}

/// Turso without concurrent transactions: SQLite's write-ahead log, except that
/// SAVEPOINT takes the snapshot.
pub fn single_writer(level: Level, form: BeginForm) -> Option<ConcurrencyModel> {
    let sqlite = sqlite::concurrency_model("sqlite+wal", level, form)?;
    let snapshot = SnapshotPolicy { taken_by_savepoint: true, ..sqlite.snapshot };
    Some(ConcurrencyModel { snapshot, ..sqlite })
}

fn concurrency_model(
    on: &TargetInfo,
    level: Level,
    begun: Option<BeginForm>,
) -> Option<ConcurrencyModel> {
    match on.engine.ends_with("+mvcc") {
        true => Some(concurrent()),
        false => single_writer(level, begun.unwrap_or(BeginForm::Plain)),
    }
}
