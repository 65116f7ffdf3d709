//! PostgreSQL, chapter 13 of its manual.

use super::STANDARD_LEVELS;
use crate::anomaly::Anomaly;
use crate::availability::Availability::{Always, Never, Since};
use crate::capabilities::CapabilityTable;
use crate::citation::quoted;
use crate::concurrency::{
    ConcurrencyModel, Conflicts, Constraints, ErrorScope, Locking, SnapshotAt, SnapshotPolicy,
    Waits, WriteConflictPolicy,
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
    name: "postgres",
    title: "PostgreSQL",
    modes: &[],
    dialect: DIALECT,
    capabilities: CAPABILITIES,
    profile: Some(profile),
    semantics: Some(Semantics {
        rules_hold_for: // Before 9.1 SERIALIZABLE was snapshot isolation.
        Since("9.1"),
        rules: RULES,
        manual: |page, _| page.into(),
        concurrency_model: |_, level, _| Some(concurrency_model(level)),
        page: PageSection {
            title: "PostgreSQL",
            about: Some(
                "`postgres`, from its manual's chapter on concurrency control.",
            ),
            levels: STANDARD_LEVELS,
            settings: &[],
            also: &[],
        },
    }),
};

const DIALECT: DialectTable = DialectTable {
    family: Family::Postgres,
    spelling: &dialect::POSTGRES,
    lacks: LACKS,
    for_share: Always,
    quirks: Quirks {
        upsert_hits_once: true,
        ignore_needs_key: false,
        lacks_functions: &[],
        values_row: false,
    },
};

const LACKS: FeatureExceptions = &[
    (Never, &[WriteLimit]),
    (Since("15"), &[Merge]),
    (Never, &[Replace, AutocommitOff, ConsistentSnapshot, Immediate, Pessimistic, Optimistic]),
    (Since("12"), &[GeneratedStored, Partition]),
    (Since("18"), &[GeneratedVirtual]),
];

pub(super) const CAPABILITIES: CapabilityTable =
    CapabilityTable { returns_written: Always, returns_deleted: Always, ..CapabilityTable::NONE };

const RC: &str = "https://www.postgresql.org/docs/current/transaction-iso.html#XACT-READ-COMMITTED";
const RR: &str =
    "https://www.postgresql.org/docs/current/transaction-iso.html#XACT-REPEATABLE-READ";
const SER: &str = "https://www.postgresql.org/docs/current/transaction-iso.html#XACT-SERIALIZABLE";
const LOCKS: &str = "https://www.postgresql.org/docs/current/explicit-locking.html#LOCKING-ROWS";
const DEADLOCKS: &str =
    "https://www.postgresql.org/docs/current/explicit-locking.html#LOCKING-DEADLOCKS";
const UNIQUE: &str = "https://www.postgresql.org/docs/current/index-unique-checks.html";
const FOREIGN: &str = "https://www.postgresql.org/docs/current/sql-createtable.html";
const SAVEPOINT: &str = "https://www.postgresql.org/docs/current/sql-rollback-to.html";
const ROLLBACK: &str = "https://www.postgresql.org/docs/current/sql-rollback.html";
const LOCKING_CLAUSE: &str =
    "https://www.postgresql.org/docs/current/sql-select.html#SQL-FOR-UPDATE-SHARE";
const TRUNCATE: &str = "https://www.postgresql.org/docs/current/sql-truncate.html";
const CHECKS: &str = "https://www.postgresql.org/docs/current/ddl-constraints.html";

pub static RULES: &[&Rule] = &[
    &P1, &P2, &P3, &P5, &P7, &P7W, &P8, &P9, &P10, &P11, &P12, &P12F, &P14, &P15, &P16, &P17, &P18,
    &P19, &P20,
];

pub static P1: Rule = rule(
    "P1",
    "one snapshot per statement",
    quoted(
        RC,
        "In effect, a SELECT query sees a snapshot of the database as of the instant the \
             query begins to run.",
    ),
    "at READ COMMITTED each statement sees what was committed when it began; READ UNCOMMITTED is \
     the same",
)
.ranked(4);
pub static P2: Rule = rule(
    "P2",
    "writes find their rows in a snapshot",
    quoted(RC, "they will only find target rows that were committed as of the command start time"),
    "at READ COMMITTED a write finds its rows in the statement's snapshot, waits for \
     transactions that have changed one of them, skips rows that were deleted, and tests updated \
     rows again",
)
.ranked(3);
pub static P3: Rule = rule(
    "P3",
    "re-check of updated rows",
    quoted(
        RC,
        "it can see the effects of concurrent updating commands on the same rows it is trying \
             to update, but it does not see effects of those commands on other rows",
    ),
    "the second test uses the newest version of the updated row, and everything else as it was \
     when the statement began",
)
.ranked(0);
pub static P5: Rule = rule(
    "P5",
    "upserts act on rows outside the snapshot",
    quoted(
        RC,
        "the UPDATE clause will affect that row, even though possibly no version of that row \
             is conventionally visible to the command",
    ),
    "at READ COMMITTED an INSERT with ON CONFLICT acts on the row that has its key, even if the \
     row is not in its snapshot",
)
.ranked(1);
pub static P7: Rule = rule(
    "P7",
    "one snapshot per transaction",
    quoted(
        RR,
        "a query in a repeatable read transaction sees a snapshot as of the start of the \
             first non-transaction-control statement in the transaction",
    ),
    "from REPEATABLE READ on a transaction sees what was committed when its first statement \
     began",
)
.ranked(4);
pub static P7W: Rule = rule(
    "P7w",
    "first updater wins",
    quoted(
        RR,
        "a repeatable read transaction cannot modify or lock rows changed by other \
             transactions after the repeatable read transaction began",
    ),
    "from REPEATABLE READ on a statement that writes or locks a row changed after the snapshot \
     fails with 40001",
)
.ranked(1);
pub static P8: Rule = rule(
    "P8",
    "upserts fail on rows outside the snapshot",
    quoted(
        RC,
        "due to the outcome of another transaction whose effects are not visible to the INSERT \
         snapshot. Again, this is only the case in Read Committed mode.",
    ),
    "from REPEATABLE READ on an INSERT with ON CONFLICT fails with 40001 if the row that has its \
     key is not in the snapshot",
)
.ranked(1)
.undocumented(
    "the manual says that upserts act on such rows at READ COMMITTED only, and not that \
             they fail at the other levels",
    "postgres/upsert-outside-the-snapshot",
);
pub static P9: Rule = rule(
    "P9",
    "serialization failures keep a serial order",
    quoted(
        SER,
        "detection of the conditions which could cause a serialization anomaly will trigger a \
             serialization failure",
    ),
    "at SERIALIZABLE any statement may fail with 40001 in order to keep a serial order",
);
pub static P10: Rule = rule(
    "P10",
    "unique keys cover all rows",
    quoted(
        UNIQUE,
        "If a conflicting row has been inserted by an as-yet-uncommitted transaction, the \
             would-be inserter must wait to see if that transaction commits.",
    ),
    "a statement waits for transactions that are writing or deleting its unique key, and fails \
     with 23505 if the key is taken, even by a row that is not in the snapshot",
)
.ranked(2);
pub static P11: Rule = rule(
    "P11",
    "rollback to a savepoint",
    quoted(
        SAVEPOINT,
        "Roll back all commands that were executed after the savepoint was established.",
    ),
    "ROLLBACK TO undoes all writes and releases all locks made after the savepoint",
);
pub static P12: Rule = rule(
    "P12",
    "row locks",
    quoted(
        LOCKS,
        "Row-level locks do not affect data querying; they block only writers and lockers to \
             the same row.",
    ),
    "a statement waits for a row that another transaction has changed or locked in a conflicting \
     mode",
);
pub static P12F: Rule = rule(
    "P12f",
    "foreign keys",
    quoted(
        FOREIGN,
        "A constraint that is not deferrable will be checked immediately after every command.",
    ),
    "a foreign key is checked at the end of the statement; the referenced row is locked against \
     changes of its key",
)
.ranked(2)
.undocumented(
    "the manual does not say that the check locks the referenced row",
    "postgres/foreign-key-locks-the-parent",
);
pub static P14: Rule = rule(
    "P14",
    "own writes",
    quoted(
        RC,
        "SELECT does see the effects of previous updates executed within its own transaction, \
             even though they are not yet committed",
    ),
    "a transaction sees what its own earlier statements wrote; no other transaction does until \
     it commits",
);
pub static P15: Rule = rule(
    "P15",
    "deadlock",
    quoted(
        DEADLOCKS,
        "PostgreSQL automatically detects deadlock situations and resolves them by aborting \
             one of the transactions involved",
    ),
    "if transactions wait for each other, one of them fails with 40P01",
);
pub static P16: Rule = rule(
    "P16",
    "constraints",
    quoted(
        CHECKS,
        "If a user attempts to store data in a column that would violate a constraint, an \
             error is raised.",
    ),
    "a row that violates NOT NULL or CHECK fails its statement",
);
pub static P17: Rule = rule(
    "P17",
    "rollback",
    quoted(
        ROLLBACK,
        "ROLLBACK rolls back the current transaction and causes all the updates made by the \
             transaction to be discarded.",
    ),
    "a rollback leaves no trace of what it undoes",
);
pub static P18: Rule = rule(
    "P18",
    "SKIP LOCKED",
    quoted(
        LOCKING_CLAUSE,
        "With SKIP LOCKED, any selected rows that cannot be immediately locked are skipped.",
    ),
    "a locking read with SKIP LOCKED leaves out the rows that other transactions have locked in a \
     conflicting mode, and does not wait for them",
)
.ranked(1);
pub static P19: Rule = rule(
    "P19",
    "NOWAIT",
    quoted(
        LOCKING_CLAUSE,
        "With NOWAIT, the statement reports an error, rather than waiting, if a selected row \
             cannot be locked immediately.",
    ),
    "a locking read with NOWAIT fails with 55P03 instead of waiting for a row that another \
     transaction has locked in a conflicting mode",
)
.ranked(1);
pub static P20: Rule = rule(
    "P20",
    "TRUNCATE ignores snapshots",
    quoted(
        TRUNCATE,
        "After truncation, the table will appear empty to concurrent transactions, if they are \
             using a snapshot taken before the truncation occurred.",
    ),
    "TRUNCATE waits until no other transaction uses the table; once it is committed, no snapshot \
     shows the rows that it removed",
)
.ranked(0);

const BASE: RuleSet = RuleSet {
    read: &P7,
    own_writes: &P14,
    write: &P7,
    changed_row: &P7W,
    held_row: &P12,
    unique: &P10,
    foreign: &P12F,
    upsert: &P8,
    deadlock: &P15,
    constraint: &P16,
    savepoint: &P11,
    rollback: &P17,
    serial: &P9,
};

static READ_COMMITTED: RuleSet =
    RuleSet { read: &P1, write: &P2, changed_row: &P3, upsert: &P5, ..BASE };
static REPEATABLE_READ: RuleSet = BASE;

pub fn concurrency_model(level: Level) -> ConcurrencyModel {
    let base = ConcurrencyModel::base(&REPEATABLE_READ);
    let strong = ConcurrencyModel {
        snapshot: SnapshotPolicy {
            taken_without_table: true,
            taken_by_prepare: true,
            ..base.snapshot
        },
        conflicts: Conflicts {
            may_abort: (level == Level::Serializable).then_some(&P9),
            error_scope: ErrorScope::Transaction,
            ..base.conflicts
        },
        locking: Locking {
            waits: Waits::Rows,
            key_share_locks: true,
            skip_locked: Some(&P18),
            no_wait: Some(&P19),
            ..base.locking
        },
        constraints: Constraints { rechecks_own_rows: true, ..base.constraints },
        ..base
    };
    if level > Level::ReadCommitted {
        return strong;
    }
    ConcurrencyModel {
        snapshot: SnapshotPolicy { taken: SnapshotAt::Statement, ..strong.snapshot },
        conflicts: Conflicts { changed_row: WriteConflictPolicy::Recheck, ..strong.conflicts },
        rules: &READ_COMMITTED,
        ..strong
    }
}

pub(super) fn profile(_: &str) -> Profile {
    use Anomaly::*;
    let weak = [Pmp, P4, GSingle, G2Item, G2];
    let poisoned = ErrorEffect::Poisoned;
    Profile {
        levels: vec![
            promise(Level::ReadUncommitted, "the same as READ COMMITTED", &weak),
            promise(Level::ReadCommitted, "one snapshot per statement", &weak),
            promise(Level::RepeatableRead, "snapshot isolation", &[G2Item, G2]),
            promise(Level::Serializable, "serializable snapshot isolation", &[]),
        ],
        default_level: Level::ReadCommitted,
        begin: "begin".into(),
        waiting: Waiting::Probe,
        ddl: Ddl::Transactional,
        errors: vec![
            error("40001", ErrorClass::Serialization, poisoned),
            error("40P01", ErrorClass::Deadlock, poisoned),
            error("55P03", ErrorClass::LockTimeout, poisoned),
            error("25P02", ErrorClass::Poisoned, poisoned),
            error("25006", ErrorClass::ReadOnly, poisoned),
            error("57014", ErrorClass::Cancelled, poisoned),
            // Shutdown, crash of another backend, connection failures.
            error("57P", ErrorClass::Lost, ErrorEffect::Lost),
            error("08", ErrorClass::Lost, ErrorEffect::Lost),
            error("23", ErrorClass::Constraint, poisoned),
            error("XX", ErrorClass::Internal, poisoned),
            error("42", ErrorClass::Rejected, poisoned),
            error("0A", ErrorClass::Rejected, poisoned),
            error("22", ErrorClass::Other, poisoned),
        ],
        other_errors: poisoned,
        documentation: "https://www.postgresql.org/docs/current/transaction-iso.html".into(),
        untested: false,
        commit_ordered: Vec::new(),
        protocol: Protocol::Mvcc2pl,
        read_visibility: Vec::new(),
    }
    .completed_by(|level| Some(concurrency_model(level)))
}
