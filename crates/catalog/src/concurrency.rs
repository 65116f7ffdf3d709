//! The concurrency model: how an engine behaves at one isolation level, as data.
//!
//! The reference model follows one [`ConcurrencyModel`] per transaction. Its
//! fields are grouped by the question that they answer: what a statement reads,
//! what it conflicts with, what it locks, how constraints are checked, how rows
//! are stored and counted, and what COMMIT does.

use crate::rule::{
    Rule, RuleSet, deserialize_optional_rule as optional_rule, deserialize_rule_set,
};
use serde::{Deserialize, Serialize};

/// The behaviour of one transaction, selected by engine, level and BEGIN form.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ConcurrencyModel {
    pub snapshot: SnapshotPolicy,
    pub current_reads: CurrentReads,
    pub conflicts: Conflicts,
    pub locking: Locking,
    pub constraints: Constraints,
    pub storage: RowStorage,
    pub counting: RowCounts,
    pub assignments: AssignmentOrder,
    pub commit: CommitPolicy,
    #[serde(deserialize_with = "deserialize_rule_set")]
    pub rules: &'static RuleSet,
}

/// What plain reads see.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SnapshotPolicy {
    pub taken: SnapshotAt,
    /// A SELECT that reads no table takes the transaction's snapshot.
    pub taken_without_table: bool,
    /// PREPARE takes the transaction's snapshot.
    pub taken_by_prepare: bool,
    /// SAVEPOINT takes the transaction's snapshot.
    pub taken_by_savepoint: bool,
    /// The rule by which a query that the optimizer answers without reading a
    /// row takes no snapshot.
    #[serde(deserialize_with = "optional_rule")]
    pub not_taken_by_empty_read: Option<&'static Rule>,
}

/// When a transaction takes its snapshot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SnapshotAt {
    /// One snapshot per statement.
    Statement,
    /// At the first statement after BEGIN.
    FirstStatement,
    Begin,
    /// At the first plain read.
    FirstRead,
    /// Never: reads see the newest versions, committed or not.
    Dirty,
}

/// How writes and locking reads see rows where they read the newest committed
/// versions ([`WriteConflictPolicy::ReadCurrent`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CurrentReads {
    pub scan: ScanPolicy,
    pub subqueries: WriteSubqueries,
    pub snapshot_check: SnapshotCheck,
}

/// How the scan of a current read treats rows that other transactions have
/// locked or change during the scan.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ScanPolicy {
    /// It waits for each locked row that it reaches.
    RowByRow,
    /// As `RowByRow`, except that an UPDATE first tests the last committed
    /// version of a locked row, and skips the row if that does not match.
    SemiConsistentUpdates,
    /// It finds all rows in a single snapshot and then locks them; if one of
    /// them has changed by then, it scans once more.
    SingleSnapshot,
}

/// What the queries inside of a write read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WriteSubqueries {
    /// The same rows as the write itself.
    SameAsWrite,
    /// In an INSERT or UPDATE they are consistent reads that take no locks.
    ConsistentRead,
    /// Values come from what a plain SELECT would see; conditions may, too.
    PlainRead,
}

/// Whether current reads fail on rows that changed after the transaction's
/// snapshot (MariaDB's `innodb_snapshot_isolation`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SnapshotCheck {
    Off,
    /// A current read that waited for a change may fail.
    AfterWait,
    /// A current read fails on every row version that is not in the snapshot.
    EveryRow,
}

/// What happens when two transactions write the same row, and on errors.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Conflicts {
    pub changed_row: WriteConflictPolicy,
    /// No statement waits: a row that another transaction has changed or a key
    /// that it has taken is an error, in the statement or at COMMIT.
    pub fails_instead_of_waiting: bool,
    /// A statement that had to wait is restarted, with a new snapshot.
    pub restarts_statement_after_wait: bool,
    /// An UPDATE that leaves a row unchanged does not conflict with other writes.
    pub noop_update_does_not_conflict: bool,
    /// The rule by which an UPDATE that does not read the columns that it sets
    /// may write a new version of a row that it leaves unchanged.
    #[serde(deserialize_with = "optional_rule")]
    pub noop_update_may_write: Option<&'static Rule>,
    /// The rule by which the engine may abort any transaction in order to keep
    /// a serial order.
    #[serde(deserialize_with = "optional_rule")]
    pub may_abort: Option<&'static Rule>,
    pub error_scope: ErrorScope,
}

/// What happens to a write whose target row was changed after its snapshot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WriteConflictPolicy {
    /// The write tests the newest version again, and acts on it if it matches.
    Recheck,
    /// The transaction fails.
    Abort,
    /// Writes ignore the snapshot and read the newest committed rows.
    ReadCurrent,
    /// Writes read only the snapshot. Changes to different columns of a row do
    /// not conflict; changes to the same column fail the write or the COMMIT.
    MergeColumns,
    /// As `MergeColumns`, except that conflicts are found at COMMIT only, which
    /// merges the tables row by row, by primary key.
    MergeAtCommit,
    /// Writes are buffered in their transaction and read its snapshot. They
    /// conflict at COMMIT, which fails if another transaction committed first.
    FailCommit,
}

/// What an error in a statement undoes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ErrorScope {
    /// The statement.
    Statement,
    /// The transaction, which accepts nothing but a rollback.
    Transaction,
    /// As `Transaction`, but its writes continue to conflict with those of
    /// other transactions until it is rolled back.
    TransactionAtRollback,
}

/// What is locked, and what a statement waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Locking {
    pub granularity: LockGranularity,
    pub waits: Waits,
    /// The rule by which reading or writing a table locks the whole table.
    #[serde(deserialize_with = "optional_rule")]
    pub table_locks: Option<&'static Rule>,
    /// The rule by which a scan locks the gaps between the rows that it reads, so
    /// that an INSERT into one of them waits. Below REPEATABLE READ only the checks
    /// of keys lock gaps.
    #[serde(deserialize_with = "optional_rule")]
    pub gap_locks: Option<&'static Rule>,
    /// The rule by which SKIP LOCKED leaves out rows that others have locked.
    #[serde(deserialize_with = "optional_rule")]
    pub skip_locked: Option<&'static Rule>,
    /// The rule by which NOWAIT fails on a row that another transaction has locked.
    #[serde(deserialize_with = "optional_rule")]
    pub no_wait: Option<&'static Rule>,
    /// Plain reads inside of a transaction lock what they read.
    pub plain_reads_lock: bool,
    /// Locks on a row differ by whether its key changes: changes to other
    /// columns do not conflict with foreign keys that refer to the row.
    pub key_share_locks: bool,
    /// An autocommitted statement locks nothing but the rows that it changes.
    pub autocommit_locks_only_changes: bool,
}

/// The unit that writers lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LockGranularity {
    /// Rows that were written, or read by a locking read.
    Rows,
    /// The whole database, which has one writer at a time.
    Database,
}

/// What makes a statement wait, as far as it is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Waits {
    /// No statement ever waits.
    Never,
    Unknown,
    /// Rows that another transaction has written or locked.
    Rows,
    /// All rows that another transaction has scanned in order to write or lock.
    Scans,
    /// Another transaction that writes to the database, or reads from it.
    Database,
}

/// How keys, foreign keys and checks are enforced.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Constraints {
    pub foreign_keys: ForeignKeyTiming,
    /// Unique and foreign keys are looked up in indexes. These contain what is
    /// committed now, whatever the snapshot shows, and still contain rows that
    /// open transactions (including the transaction itself) have deleted.
    pub checked_in_indexes: bool,
    /// An UPDATE of a row that the same transaction has written checks its foreign
    /// keys again, even if they stay as they are.
    pub rechecks_own_rows: bool,
    pub upsert_key: UpsertKey,
    /// A row that ON CONFLICT skips may violate NOT NULL and CHECK.
    pub conflicts_resolved_before_checks: bool,
    /// IGNORE also replaces NULLs and skips rows whose parent is missing.
    pub ignore_covers_all_errors: bool,
    /// Texts that differ only in case are the same key.
    pub case_insensitive_keys: bool,
}

/// When foreign keys are checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ForeignKeyTiming {
    EndOfStatement,
    EachRow,
}

/// Which key an upsert acts on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum UpsertKey {
    /// The one that the statement names.
    Named,
    /// Whichever is taken.
    Any,
}

/// Where a row is stored, which decides what becomes of it when its key changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RowStorage {
    /// Independently of its key.
    Heap,
    /// In a clustered index: a new row reuses the record of a deleted row that
    /// had the same primary key.
    ClusteredIndex,
    /// As `Heap`, except that an UPDATE of an indexed column is a DELETE and an
    /// INSERT.
    ReinsertsOnIndexedUpdate,
}

/// Which rows a write reports as affected.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RowCounts {
    /// Those that it found.
    Matched,
    /// Those that it changed.
    Changed,
    /// As `Changed`, except that a DELETE with a join counts a row once for each
    /// partner, a DELETE of all rows of a table without a primary key counts
    /// equal rows once, and REPLACE counts at most one row that it deletes.
    Dolt,
}

impl RowCounts {
    /// Whether a row that a write leaves unchanged is not counted.
    pub fn omits_unchanged(self) -> bool {
        self != RowCounts::Matched
    }
}

/// Which values the assignments of one statement see.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AssignmentOrder {
    /// Those of the old row.
    Simultaneous,
    /// Those of the old row in an UPDATE; in an upsert, earlier assignments.
    LeftToRightInUpserts,
    /// Earlier assignments.
    LeftToRight,
}

/// What COMMIT waits for and what it promises.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CommitPolicy {
    /// The rule by which the COMMIT of a writer waits until no other
    /// transaction reads.
    #[serde(deserialize_with = "optional_rule")]
    pub waits_for_readers: Option<&'static Rule>,
    pub serial_order: SerialOrderPromise,
}

/// The serial order that SERIALIZABLE promises.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SerialOrderPromise {
    /// None: levels have names and no effect.
    None,
    /// Some serial order of the committed transactions.
    AnyOrder,
    /// The order of the commits.
    CommitOrder,
}

impl ConcurrencyModel {
    /// Whether writes are buffered in their transaction until its COMMIT.
    pub fn buffers_writes(&self) -> bool {
        self.conflicts.changed_row == WriteConflictPolicy::FailCommit
    }

    /// Whether concurrent writes to one row are merged.
    pub fn merges_writes(&self) -> bool {
        let policy = self.conflicts.changed_row;
        policy == WriteConflictPolicy::MergeColumns || self.merges_at_commit()
    }

    /// Whether COMMIT merges the tables, and is the only place of conflicts.
    pub fn merges_at_commit(&self) -> bool {
        self.conflicts.changed_row == WriteConflictPolicy::MergeAtCommit
    }

    /// Whether writes read the newest committed rows.
    pub fn reads_current(&self) -> bool {
        self.conflicts.changed_row == WriteConflictPolicy::ReadCurrent
    }

    /// Whether a scan finds all its rows in a single snapshot.
    pub fn single_scan_snapshot(&self) -> bool {
        self.current_reads.scan == ScanPolicy::SingleSnapshot
    }

    /// Whether an error leaves the transaction open for nothing but a rollback.
    pub fn error_aborts_transaction(&self) -> bool {
        self.conflicts.error_scope != ErrorScope::Statement
    }

    /// Whether a failed transaction keeps its writes until it is rolled back.
    pub fn failed_transaction_keeps_writes(&self) -> bool {
        self.conflicts.error_scope == ErrorScope::TransactionAtRollback
    }

    /// Whether the whole database has one writer at a time.
    pub fn has_single_writer(&self) -> bool {
        self.locking.granularity == LockGranularity::Database
    }

    /// Whether foreign keys are checked row by row.
    pub fn checks_foreign_keys_by_row(&self) -> bool {
        self.constraints.foreign_keys == ForeignKeyTiming::EachRow
    }

    /// One snapshot per transaction, row locks, failure on rows that were
    /// changed after the snapshot, and nothing particular to an engine. Engines
    /// state their differences from this.
    pub const fn base(rules: &'static RuleSet) -> ConcurrencyModel {
        ConcurrencyModel {
            snapshot: SnapshotPolicy {
                taken: SnapshotAt::FirstStatement,
                taken_without_table: false,
                taken_by_prepare: false,
                taken_by_savepoint: false,
                not_taken_by_empty_read: None,
            },
            current_reads: CurrentReads {
                scan: ScanPolicy::RowByRow,
                subqueries: WriteSubqueries::SameAsWrite,
                snapshot_check: SnapshotCheck::Off,
            },
            conflicts: Conflicts {
                changed_row: WriteConflictPolicy::Abort,
                fails_instead_of_waiting: false,
                restarts_statement_after_wait: false,
                noop_update_does_not_conflict: false,
                noop_update_may_write: None,
                may_abort: None,
                error_scope: ErrorScope::Statement,
            },
            locking: Locking {
                granularity: LockGranularity::Rows,
                waits: Waits::Unknown,
                table_locks: None,
                gap_locks: None,
                skip_locked: None,
                no_wait: None,
                plain_reads_lock: false,
                key_share_locks: false,
                autocommit_locks_only_changes: false,
            },
            constraints: Constraints {
                foreign_keys: ForeignKeyTiming::EndOfStatement,
                checked_in_indexes: false,
                rechecks_own_rows: false,
                upsert_key: UpsertKey::Named,
                conflicts_resolved_before_checks: false,
                ignore_covers_all_errors: false,
                case_insensitive_keys: false,
            },
            storage: RowStorage::Heap,
            counting: RowCounts::Matched,
            assignments: AssignmentOrder::Simultaneous,
            commit: CommitPolicy {
                waits_for_readers: None,
                serial_order: SerialOrderPromise::AnyOrder,
            },
            rules,
        }
    }

    /// The same for MySQL's family: writes read the newest committed rows.
    pub const fn mysql_base(rules: &'static RuleSet) -> ConcurrencyModel {
        let base = ConcurrencyModel::base(rules);
        ConcurrencyModel {
            conflicts: Conflicts {
                changed_row: WriteConflictPolicy::ReadCurrent,
                ..base.conflicts
            },
            constraints: Constraints {
                foreign_keys: ForeignKeyTiming::EachRow,
                upsert_key: UpsertKey::Any,
                ignore_covers_all_errors: true,
                case_insensitive_keys: true,
                ..base.constraints
            },
            storage: RowStorage::ClusteredIndex,
            counting: RowCounts::Changed,
            assignments: AssignmentOrder::LeftToRight,
            ..base
        }
    }
}
