//! TiDB: pessimistic transactions, which lock the rows that they write, and
//! optimistic ones, which detect conflicts at COMMIT. One run may have both.

use super::mysql_errors::mysql_errors;
use crate::anomaly::Anomaly;
use crate::availability::Availability::{Always, Never, Since};
use crate::begin_form::BeginForm;
use crate::capabilities::{CapabilityTable, CurrentReadScope};
use crate::citation::{section, silent};
use crate::concurrency::{
    AssignmentOrder, ConcurrencyModel, Conflicts, CurrentReads, Locking, ScanPolicy, SnapshotAt,
    SnapshotPolicy, WriteConflictPolicy, WriteSubqueries,
};
use crate::description::{DialectTable, EngineDescription, PageSection, Semantics};
use crate::dialect::{self, Family, Quirks};
use crate::error_class::{ErrorClass, ErrorEffect};
use crate::feature::Feature::*;
use crate::feature::FeatureExceptions;
use crate::level::Level;
use crate::profile::{Ddl, Profile, Protocol, Waiting, error, promise};
use crate::rule::{Rule, RuleSet, rule};
use crate::target::TargetInfo;

pub static DESCRIPTION: EngineDescription = EngineDescription {
    name: "tidb",
    title: "TiDB",
    modes: &[("optimistic", "BEGIN OPTIMISTIC")],
    dialect: DIALECT,
    capabilities: CAPABILITIES,
    profile: Some(profile),
    semantics: Some(Semantics {
        rules_hold_for: // Before 4.0 there was no READ COMMITTED.
        Since("4.0"),
        rules: RULES,
        manual: |page, _| page.into(),
        concurrency_model: |on, level, begun| Some(concurrency_model(on, level, begun)),
        page: PageSection {
            title: "TiDB",
            about: Some(
                "`tidb` and `tidb+optimistic`. The form of BEGIN decides whether a transaction is \
                 pessimistic or optimistic; for a plain BEGIN the target does.",
            ),
            levels: &[Level::ReadCommitted, Level::RepeatableRead],
            settings: &[],
            also: &[],
        },
    }),
};

const DIALECT: DialectTable = DialectTable {
    family: Family::Mysql,
    spelling: &dialect::MYSQL,
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
    (Never, &[Returning, Merge, FullJoin, Lateral, ValuesTable, Filter, GroupingSets, Rollup]),
    (Never, &[ForShare, SkipLocked, ReadOnly, Immediate, Check, PartialIndex, FunctionalIndex]),
];

pub(super) const CAPABILITIES: CapabilityTable = CapabilityTable {
    current_reads: CurrentReadScope::Own,
    gathers: Always,
    assigns_in_order: false,
    ..super::mysql::CAPABILITIES
};

const ISOLATION: &str = "https://docs.pingcap.com/tidb/stable/transaction-isolation-levels";
const PESSIMISTIC: &str = "https://docs.pingcap.com/tidb/stable/pessimistic-transaction";
const OPTIMISTIC: &str = "https://docs.pingcap.com/tidb/stable/optimistic-transaction";
const ROLLBACK: &str = "https://docs.pingcap.com/tidb/stable/sql-statement-rollback";
const FOREIGN_KEY: &str = "https://docs.pingcap.com/tidb/stable/foreign-key";
const CONSTRAINTS: &str = "https://docs.pingcap.com/tidb/stable/constraints";

pub static RULES: &[&Rule] =
    &[&T1, &T2, &T3, &T6, &T7, &T9, &T12, &T13, &T14, &T15, &T16, &T17, &T18, &T19, &T20, &T21];

pub static T1: Rule = rule(
    "T1",
    "one snapshot per transaction",
    section(PESSIMISTIC, "Behaviors"),
    "at REPEATABLE READ a plain SELECT sees what was committed when the transaction began",
)
.ranked(4);
pub static T2: Rule = rule(
    "T2",
    "writes read the newest committed rows",
    section(PESSIMISTIC, "Behaviors"),
    "writes and locking reads see the newest committed rows, and scan again after a wait",
)
.ranked(2);
pub static T3: Rule = rule(
    "T3",
    "rows are found first and locked afterwards",
    section(PESSIMISTIC, "Differences from MySQL InnoDB"),
    "a write first finds its rows and then locks them; it neither sees nor waits for rows that \
     others are inserting",
)
.ranked(1);
pub static T6: Rule = rule(
    "T6",
    "one snapshot per statement",
    section(ISOLATION, "Read Committed isolation level"),
    "at READ COMMITTED each statement sees what was committed when it began",
)
.ranked(4);
pub static T7: Rule = rule(
    "T7",
    "row locks",
    section(PESSIMISTIC, "Differences from MySQL InnoDB"),
    "a statement waits for a row that another transaction has locked; gaps are not locked",
);
pub static T9: Rule = rule(
    "T9",
    "unique keys cover all rows",
    section(CONSTRAINTS, "UNIQUE KEY: Pessimistic transactions"),
    "a key that is taken fails the statement, even if its row is not in the snapshot",
)
.ranked(2);
pub static T12: Rule = rule(
    "T12",
    "deadlock",
    section(PESSIMISTIC, "Behaviors"),
    "if transactions wait for each other, one of them is rolled back with 1213",
);
pub static T13: Rule = rule(
    "T13",
    "own writes",
    section(ISOLATION, "Repeatable Read isolation level"),
    "a transaction sees what its own statements wrote",
);
pub static T14: Rule = rule(
    "T14",
    "rollback",
    section(ROLLBACK, "ROLLBACK"),
    "a rollback leaves no trace of what it undoes",
);
pub static T15: Rule = rule(
    "T15",
    "foreign keys",
    section(FOREIGN_KEY, "Locking"),
    "a foreign key is checked against the newest committed rows",
);
pub static T16: Rule = rule(
    "T16",
    "one snapshot per optimistic transaction",
    section(OPTIMISTIC, "Principles of optimistic transactions"),
    "an optimistic transaction sees what was committed when it began, at every level, even where \
     it writes or reads FOR UPDATE",
)
.ranked(4);
pub static T17: Rule = rule(
    "T17",
    "writes are buffered until COMMIT",
    section(OPTIMISTIC, "Principles of optimistic transactions"),
    "the writes of an optimistic transaction are buffered until its COMMIT: they lock nothing, \
     and no other transaction waits for them",
)
.ranked(3);
pub static T18: Rule = rule(
    "T18",
    "first committer wins",
    section(OPTIMISTIC, "Conflict detection"),
    "the COMMIT of an optimistic transaction fails with 9007 if another transaction has changed, \
     since it began, a row that it wrote, read FOR UPDATE or refers to",
)
.ranked(0);
pub static T19: Rule = rule(
    "T19",
    "keys are checked at COMMIT",
    section(CONSTRAINTS, "UNIQUE KEY: Optimistic transactions"),
    "a plain INSERT of an optimistic transaction does not check whether its key is free: if it \
     was taken in the snapshot, the COMMIT fails with 1062",
)
.ranked(1);
pub static T20: Rule = rule(
    "T20",
    "a COMMIT that meets a lock",
    silent(OPTIMISTIC),
    "the COMMIT of an optimistic transaction waits for locks of transactions that began before \
     it, and fails with 9007 on a lock of one that began later",
)
.ranked(1)
.undocumented("the manual does not mention pessimistic locks here", "tidb/commit-meets-a-lock");
pub static T21: Rule = rule(
    "T21",
    "foreign keys are checked on the snapshot",
    section(FOREIGN_KEY, "Locking"),
    "an optimistic transaction checks foreign keys on its snapshot; its COMMIT fails if they no \
     longer hold",
)
.ranked(2);

const BASE: RuleSet = RuleSet {
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

static REPEATABLE_READ: RuleSet = BASE;
static READ_COMMITTED: RuleSet = RuleSet { read: &T6, ..BASE };

static OPTIMISTIC_RULES: RuleSet = RuleSet {
    read: &T16,
    write: &T17,
    changed_row: &T18,
    held_row: &T20,
    unique: &T19,
    foreign: &T21,
    upsert: &T17,
    ..BASE
};

/// An autocommitted statement is retried until it meets no conflict, so that its
/// effect is that of a pessimistic one.
pub fn concurrency_model(
    on: &TargetInfo,
    level: Level,
    begun: Option<BeginForm>,
) -> ConcurrencyModel {
    let optimistic = match begun {
        None | Some(BeginForm::Pessimistic) => false,
        Some(BeginForm::Optimistic) => true,
        Some(_) => on.engine.ends_with("+optimistic"),
    };
    let weak = level <= Level::ReadCommitted;
    let base = ConcurrencyModel {
        assignments: AssignmentOrder::LeftToRightInUpserts,
        ..ConcurrencyModel::mysql_base(match optimistic {
            true => &OPTIMISTIC_RULES,
            false if weak => &READ_COMMITTED,
            false => &REPEATABLE_READ,
        })
    };
    if optimistic {
        return ConcurrencyModel {
            snapshot: SnapshotPolicy { taken: SnapshotAt::Begin, ..base.snapshot },
            conflicts: Conflicts { changed_row: WriteConflictPolicy::FailCommit, ..base.conflicts },
            ..base
        };
    }
    ConcurrencyModel {
        snapshot: SnapshotPolicy {
            taken: if weak { SnapshotAt::Statement } else { SnapshotAt::Begin },
            ..base.snapshot
        },
        current_reads: CurrentReads {
            scan: ScanPolicy::SingleSnapshot,
            subqueries: WriteSubqueries::PlainRead,
            ..base.current_reads
        },
        locking: Locking { autocommit_locks_only_changes: true, ..base.locking },
        ..base
    }
}

fn profile(mode: &str) -> Profile {
    let optimistic = mode == "optimistic";
    use Anomaly::*;
    let mut errors = vec![
        error("9007", ErrorClass::WriteConflict, ErrorEffect::RolledBack),
        error("8002", ErrorClass::WriteConflict, ErrorEffect::RolledBack),
        error("8022", ErrorClass::WriteConflict, ErrorEffect::RolledBack),
        error("8028", ErrorClass::WriteConflict, ErrorEffect::RolledBack),
    ];
    errors.extend(mysql_errors());
    let snapshot: &[Anomaly] =
        if optimistic { &[G2Item, G2] } else { &[Pmp, P4, GSingle, G2Item, G2] };
    let mut levels = vec![promise(Level::RepeatableRead, "snapshot isolation", snapshot)];
    if !optimistic {
        // READ COMMITTED has no effect on optimistic transactions.
        let weak = [Pmp, P4, GSingle, G2Item, G2];
        levels.insert(0, promise(Level::ReadCommitted, "one snapshot per statement", &weak));
    }
    Profile {
        levels,
        default_level: Level::RepeatableRead,
        begin: if optimistic { "begin optimistic" } else { "begin pessimistic" }.into(),
        waiting: Waiting::Probe,
        ddl: Ddl::CommitsImplicitly,
        errors,
        other_errors: ErrorEffect::Statement,
        documentation: "https://docs.pingcap.com/tidb/stable/transaction-isolation-levels".into(),
        untested: false,
        commit_ordered: Vec::new(),
        protocol: if optimistic { Protocol::Occ } else { Protocol::Mvcc2pl },
        read_visibility: Vec::new(),
    }
    .completed_by(|level| {
        Some(concurrency_model(&TargetInfo::default(), level, Some(BeginForm::Pessimistic)))
    })
}
