//! Turso: concurrent transactions (snapshot isolation in which no statement
//! waits), and SQLite's single writer.

use super::{ConcurrencyModel, Conflicts, Rule, RuleSet, SnapshotAt, SnapshotPolicy, rule, sqlite};
use isolde_model::Level;
use isolde_sql::BeginForm;

const TURSO: &str = "https://github.com/tursodatabase/turso/blob/main/docs/manual.md";

pub static RULES: &[&Rule] = &[&U2, &U2W, &U4, &U5, &U6];

pub static U2: Rule = rule(
    "U2",
    "one snapshot per transaction",
    TURSO,
    "a concurrent transaction sees what was committed when it began",
)
.ranked(4);
pub static U2W: Rule = rule(
    "U2w",
    "the second writer of a row fails",
    TURSO,
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
    TURSO,
    "a key that another transaction has taken since the snapshot fails the COMMIT",
)
.ranked(2);
pub static U5: Rule =
    rule("U5", "own writes", TURSO, "a transaction sees what its own earlier statements wrote");
pub static U6: Rule = rule("U6", "rollback", TURSO, "a rollback leaves no trace of what it undoes");

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
