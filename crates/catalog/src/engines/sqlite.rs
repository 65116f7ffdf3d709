//! SQLite: one writer in every journal mode, and table locks in a shared cache.

use crate::anomaly::Anomaly;
use crate::availability::Availability::{Always, Never, Since};
use crate::begin_form::BeginForm;
use crate::capabilities::{CapabilityTable, Gather};
use crate::citation::quoted;
use crate::concurrency::{
    CommitPolicy, ConcurrencyModel, Conflicts, LockGranularity, Locking, SerialOrderPromise,
    SnapshotAt, SnapshotPolicy, Waits,
};
use crate::description::{DialectTable, EngineDescription, PageSection, Semantics};
use crate::dialect::{self, Family, Quirks};
use crate::error_class::{ErrorClass, ErrorEffect};
use crate::feature::Feature::*;
use crate::feature::FeatureExceptions;
use crate::level::Level;
use crate::profile::{Ddl, Profile, Protocol, Waiting, error, promise};
use crate::rule::{Rule, RuleSet, rule};

pub static DESCRIPTION: EngineDescription = EngineDescription {
    name: "sqlite",
    title: "SQLite",
    modes: &[("wal", "write-ahead log"), ("shared-cache", "one cache, READ UNCOMMITTED")],
    dialect: DIALECT,
    capabilities: CAPABILITIES,
    profile: Some(profile),
    semantics: Some(Semantics {
        rules_hold_for: Since("3.7"),
        rules: RULES,
        manual: |page, _| page.into(),
        concurrency_model: |on, level, begun| {
            concurrency_model(&on.engine, level, begun.unwrap_or(BeginForm::Plain))
        },
        page: PageSection {
            title: "SQLite",
            about: Some(
                "`sqlite`, `sqlite+wal` and `sqlite+shared-cache`. SERIALIZABLE is the only level, except \
                 that a shared cache also has READ UNCOMMITTED.",
            ),
            levels: &[Level::ReadUncommitted, Level::Serializable],
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
        &[WriteLimit, Merge, Lateral, ValuesTable, Quantified, Rollup, GroupingSets, Concatenation],
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
            Partition,
            Truncate,
            Prepared,
        ],
    ),
];

pub(super) const CAPABILITIES: CapabilityTable = CapabilityTable {
    returns_written: Always,
    returns_deleted: Always,
    gather: Gather::GroupConcat,
    ..CapabilityTable::NONE
};

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
    quoted(ISOLATION, "There can only be a single writer at a time to an SQLite database."),
    "one connection writes at a time; the others wait or get BUSY",
);
pub static S2: Rule = rule(
    "S2",
    "one snapshot per transaction",
    quoted(
        TRANSACTION,
        "DEFERRED means that the transaction does not actually start until the database is \
             first accessed.",
    ),
    "BEGIN takes no snapshot; the first statement fixes what the transaction sees (BEGIN \
     IMMEDIATE does so itself, and makes the transaction the writer)",
)
.ranked(4);
pub static S3: Rule = rule(
    "S3",
    "no writes on an old snapshot",
    quoted(
        BUSY_SNAPSHOT,
        "another database connection has already written to the database and thus invalidated \
             prior reads",
    ),
    "with a write-ahead log a transaction that has read cannot write once another has committed \
     since: BUSY_SNAPSHOT",
)
.ranked(0);
pub static S4: Rule = rule(
    "S4",
    "commits wait for readers",
    quoted(
        TRANSACTION,
        "An attempt to execute COMMIT might also result in an SQLITE_BUSY return code if an \
             another thread or process has an open read connection.",
    ),
    "with a rollback journal a COMMIT waits until no other transaction reads; transactions that \
     wait for each other get BUSY",
);
pub static S6: Rule = rule(
    "S6",
    "conflict clauses",
    quoted(
        CONFLICT,
        "aborts the current SQL statement with an SQLITE_CONSTRAINT error and backs out any \
             changes made by the current SQL statement",
    ),
    "a violated constraint undoes its statement; IGNORE skips the row, REPLACE deletes the rows \
     that conflict with it",
)
.ranked(2);
pub static S7: Rule = rule(
    "S7",
    "upserts",
    quoted(
        UPSERT,
        "the insert is omitted and the corresponding DO NOTHING or DO UPDATE operation is \
             performed instead",
    ),
    "an upsert changes the row that has its key instead of inserting one",
)
.ranked(1);
pub static S8: Rule = rule(
    "S8",
    "foreign keys",
    quoted(
        FOREIGN,
        "in violation at the conclusion the statement, an exception is thrown and the effects \
             of the statement are reverted",
    ),
    "a foreign key is checked at the end of the statement; its actions are part of the statement",
)
.ranked(2);
pub static S9: Rule = rule(
    "S9",
    "own writes",
    quoted(
        ISOLATION,
        "Changes made in one database connection are invisible to all other database \
             connections prior to commit.",
    ),
    "a transaction sees its own earlier writes; no other transaction does until it commits",
);
pub static S10: Rule = rule(
    "S10",
    "rollback to a savepoint",
    quoted(
        SAVEPOINT,
        "The ROLLBACK TO command reverts the state of the database back to what it was just \
             after the corresponding SAVEPOINT.",
    ),
    "ROLLBACK TO undoes what was written after the savepoint",
);
pub static S11: Rule = rule(
    "S11",
    "rollback",
    quoted(
        ISOLATION,
        "a separate rollback journal file is constructed that is able to restore the database \
             to its original state if the transaction rolls back",
    ),
    "a rollback leaves no trace of what it undoes",
);

pub static S12: Rule = rule(
    "S12",
    "one shared cache",
    quoted(
        SHARED_CACHE_PAGE,
        "Once a connection obtains a table lock, it is not released until the current \
             transaction (read or write) is concluded.",
    ),
    "in a shared cache a statement reads the present rows; the tables that it has read cannot \
     change until its transaction ends",
)
.ranked(4);
pub static S13: Rule = rule(
    "S13",
    "table locks",
    quoted(
        SHARED_CACHE_PAGE,
        "a single table may have any number of active read-locks or a single active write \
             lock",
    ),
    "in a shared cache one transaction writes at a time, and a table has either readers or one \
     writer; a statement that needs a conflicting lock gets LOCKED",
);
pub static S14: Rule = rule(
    "S14",
    "uncommitted reads",
    quoted(
        SHARED_CACHE_PAGE,
        "A database connection in read-uncommitted mode does not attempt to obtain read-locks \
             before reading from database tables",
    ),
    "with PRAGMA read_uncommitted a SELECT takes no locks and sees what others have not \
     committed",
)
.ranked(1);

const BASE: RuleSet = RuleSet {
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

static ROLLBACK_JOURNAL: RuleSet = BASE;
static WRITE_AHEAD_LOG: RuleSet = RuleSet { changed_row: &S3, deadlock: &S1, ..BASE };

static SHARED_CACHE: RuleSet = RuleSet { read: &S12, held_row: &S13, deadlock: &S13, ..BASE };
static DIRTY_SHARED_CACHE: RuleSet = RuleSet { read: &S14, ..SHARED_CACHE };

/// The model of a transaction; READ UNCOMMITTED exists in shared caches only.
pub fn concurrency_model(engine: &str, level: Level, form: BeginForm) -> Option<ConcurrencyModel> {
    if engine.ends_with("+shared-cache") {
        return shared_cache(level);
    }
    if level != Level::Serializable {
        return None;
    }
    let at_begin = form == BeginForm::Immediate;
    let log = engine.ends_with("+wal");
    let base = ConcurrencyModel::base(if log { &WRITE_AHEAD_LOG } else { &ROLLBACK_JOURNAL });
    Some(ConcurrencyModel {
        snapshot: SnapshotPolicy {
            taken: if at_begin { SnapshotAt::Begin } else { SnapshotAt::FirstStatement },
            ..base.snapshot
        },
        conflicts: Conflicts { restarts_statement_after_wait: true, ..base.conflicts },
        locking: Locking {
            granularity: LockGranularity::Database,
            waits: Waits::Database,
            ..base.locking
        },
        commit: CommitPolicy {
            waits_for_readers: (!log).then_some(&S4),
            serial_order: match log {
                true => SerialOrderPromise::AnyOrder,
                false => SerialOrderPromise::CommitOrder,
            },
        },
        ..base
    })
}

fn shared_cache(level: Level) -> Option<ConcurrencyModel> {
    let (taken, rules) = match level {
        Level::ReadUncommitted => (SnapshotAt::Dirty, &DIRTY_SHARED_CACHE),
        Level::Serializable => (SnapshotAt::Statement, &SHARED_CACHE),
        _ => return None,
    };
    let base = ConcurrencyModel::base(rules);
    Some(ConcurrencyModel {
        snapshot: SnapshotPolicy { taken, ..base.snapshot },
        conflicts: Conflicts { restarts_statement_after_wait: true, ..base.conflicts },
        locking: Locking {
            granularity: LockGranularity::Database,
            table_locks: Some(&S13),
            ..base.locking
        },
        commit: CommitPolicy { serial_order: SerialOrderPromise::CommitOrder, ..base.commit },
        ..base
    })
}

fn profile(mode: &str) -> Profile {
    let mut levels = vec![promise(Level::Serializable, "one writer at a time", &[])];
    if mode == "shared-cache" {
        let allows = [
            Anomaly::G1a,
            Anomaly::G1b,
            Anomaly::G1c,
            Anomaly::Otv,
            Anomaly::Pmp,
            Anomaly::P4,
            Anomaly::GSingle,
            Anomaly::G2Item,
            Anomaly::G2,
        ];
        let dirty = promise(Level::ReadUncommitted, "PRAGMA read_uncommitted, one writer", &allows);
        levels.insert(0, dirty);
    }
    let gone = ErrorEffect::RolledBack;
    Profile {
        levels,
        default_level: Level::Serializable,
        begin: "begin".into(),
        waiting: Waiting::Retry,
        ddl: Ddl::Transactional,
        errors: vec![
            // The snapshot is too old to write on; only a new transaction
            // helps.
            error("SQLITE_BUSY_SNAPSHOT", ErrorClass::Serialization, gone),
            error("SQLITE_BUSY", ErrorClass::Busy, ErrorEffect::Statement),
            error("SQLITE_LOCKED", ErrorClass::Busy, ErrorEffect::Statement),
            error("SQLITE_CONSTRAINT", ErrorClass::Constraint, ErrorEffect::Statement),
            error("SQLITE_INTERRUPT", ErrorClass::Cancelled, ErrorEffect::Statement),
            error("SQLITE_READONLY", ErrorClass::ReadOnly, ErrorEffect::Statement),
            error("SQLITE_CORRUPT", ErrorClass::Internal, ErrorEffect::Statement),
            error("SQLITE_ERROR", ErrorClass::Rejected, ErrorEffect::Statement),
        ],
        other_errors: ErrorEffect::Statement,
        documentation: "https://sqlite.org/isolation.html".into(),
        untested: false,
        commit_ordered: Vec::new(),
        protocol: Protocol::Mvcc2pl,
        read_visibility: Vec::new(),
    }
    .completed_by(|level| concurrency_model(&format!("sqlite+{mode}"), level, BeginForm::Plain))
}
