//! Dolt: isolated transactions that are merged at COMMIT. No statement waits.

use super::STANDARD_LEVELS;
use super::mysql_errors::mysql_errors;
use crate::availability::Availability::{Always, Never, Since};
use crate::capabilities::{CapabilityTable, CurrentReadScope};
use crate::citation::{section, silent};
use crate::concurrency::{
    CommitPolicy, ConcurrencyModel, Conflicts, Constraints, Locking, RowCounts, RowStorage,
    SerialOrderPromise, SnapshotAt, SnapshotPolicy, Waits, WriteConflictPolicy,
};
use crate::description::{DialectTable, EngineDescription, PageSection, Semantics};
use crate::dialect::{self, Family, Quirks};
use crate::error_class::{ErrorClass, ErrorEffect};
use crate::feature::Feature::*;
use crate::feature::FeatureExceptions;
use crate::level::Level;
use crate::profile::{Ddl, ErrorRule, Profile, Promise, Protocol, Waiting, error};
use crate::rule::{Rule, RuleSet, rule};

pub static DESCRIPTION: EngineDescription = EngineDescription {
    name: "dolt",
    title: "Dolt",
    modes: &[],
    dialect: DIALECT,
    capabilities: CAPABILITIES,
    profile: Some(profile),
    semantics: Some(Semantics {
        rules_hold_for: Since("2.0"),
        rules: RULES,
        manual: |page, _| page.into(),
        concurrency_model: |_, _, _| Some(concurrency_model()),
        page: PageSection {
            title: "Dolt",
            about: Some("`dolt`. It accepts the names of all levels, which have no effect."),
            levels: STANDARD_LEVELS,
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
    (
        Never,
        &[
            Returning,
            WriteLimit,
            Merge,
            FullJoin,
            Lateral,
            ValuesTable,
            Filter,
            GroupingSets,
            Rollup,
            WindowFrame,
            NamedWindow,
            RecursiveCte,
            Quantified,
        ],
    ),
    (
        Never,
        &[
            NoWait,
            SkipLocked,
            ConsistentSnapshot,
            Immediate,
            Pessimistic,
            Optimistic,
            GeneratedVirtual,
            Partition,
            PartialIndex,
            FunctionalIndex,
        ],
    ),
];

pub(super) const CAPABILITIES: CapabilityTable = CapabilityTable {
    gathers: Always,
    current_reads: CurrentReadScope::Nothing,
    ..super::mysql::CAPABILITIES
};

const TRANSACTIONS: &str = "https://docs.dolthub.com/concepts/dolt/sql/transaction";
const CONFLICTS: &str = "https://docs.dolthub.com/concepts/dolt/conflicts";
const MERGE: &str = "https://docs.dolthub.com/concepts/dolt/merge";
const STATEMENTS: &str = "https://docs.dolthub.com/sql-reference/sql-support/supported-statements";

pub static RULES: &[&Rule] = &[&O1, &O2, &O2C, &O3, &O4, &O5, &O6, &O7, &O8, &O9];

pub static O1: Rule = rule(
    "O1",
    "one snapshot per transaction",
    silent(TRANSACTIONS),
    "at every level a transaction sees what was committed when it began; locking reads lock \
     nothing",
)
.ranked(4)
.undocumented("the manual describes READ COMMITTED", "dolt/reads-are-repeatable");
pub static O2: Rule = rule(
    "O2",
    "conflicts fail the COMMIT",
    section(CONFLICTS, "Data"),
    "a COMMIT fails with 1213 if another transaction has committed a different value of a cell \
     that it changes, has deleted a row that it changes, has changed a row that it deletes, or \
     has inserted a different row with the same key; without a primary key, if both change how \
     many equal rows there are",
)
.ranked(1);
pub static O2C: Rule = rule(
    "O2c",
    "cells are merged",
    section(MERGE, "What is a merge?"),
    "COMMIT merges the changes of the transaction, cell by cell, with what others have committed \
     since its snapshot; equal changes are one change",
)
.ranked(0);
pub static O3: Rule = rule(
    "O3",
    "keys",
    silent(MERGE),
    "a statement fails on a key that a row of its snapshot has; a COMMIT fails if the merged \
     table has a duplicate key",
)
.ranked(2)
.undocumented(
    "the manual says that COMMIT merges, and does not mention keys",
    "dolt/key-in-the-merge",
);
pub static O4: Rule = rule(
    "O4",
    "foreign keys",
    silent(MERGE),
    "a foreign key is checked on the snapshot; a COMMIT fails if the merged tables violate it",
)
.ranked(2)
.undocumented(
    "the manual says that COMMIT merges, and does not mention foreign keys",
    "dolt/orphan-in-the-merge",
);
pub static O5: Rule = rule(
    "O5",
    "own writes",
    section(TRANSACTIONS, "How to use Transactions"),
    "a transaction sees what its own earlier statements wrote; no other transaction does until \
     it commits",
);
pub static O6: Rule = rule(
    "O6",
    "rollback",
    section(TRANSACTIONS, "How to use Transactions"),
    "a rollback leaves no trace of what it undoes",
);
pub static O7: Rule = rule(
    "O7",
    "constraints",
    silent(MERGE),
    "a row that violates NOT NULL or CHECK fails its statement; a merged row fails the COMMIT",
)
.undocumented(
    "the manual says that COMMIT merges, and does not mention constraints",
    "dolt/keyless-null-violation",
);
pub static O8: Rule = rule(
    "O8",
    "upserts act on the snapshot",
    silent(STATEMENTS),
    "an upsert changes, REPLACE deletes and IGNORE keeps the row of the snapshot that has its \
     key",
)
.ranked(1)
.undocumented(
    "the manual lists the statements as supported and says nothing about other \
             transactions",
    "dolt/upsert-on-the-snapshot",
);
pub static O9: Rule = rule(
    "O9",
    "writes find their rows in the snapshot",
    silent(TRANSACTIONS),
    "a write finds its rows in the snapshot and conflicts with no other transaction before the \
     COMMIT",
)
.ranked(5)
.undocumented("the manual does not say which rows a write finds", "hermitage/pmp-write");

static RULE_SET: RuleSet = RuleSet {
    read: &O1,
    own_writes: &O5,
    write: &O9,
    changed_row: &O2,
    held_row: &O2C,
    unique: &O3,
    foreign: &O4,
    upsert: &O8,
    deadlock: &O2,
    constraint: &O7,
    savepoint: &O6,
    rollback: &O6,
    serial: &O1,
};

pub fn concurrency_model() -> ConcurrencyModel {
    let base = ConcurrencyModel::mysql_base(&RULE_SET);
    ConcurrencyModel {
        snapshot: SnapshotPolicy { taken: SnapshotAt::Begin, ..base.snapshot },
        conflicts: Conflicts { changed_row: WriteConflictPolicy::MergeAtCommit, ..base.conflicts },
        locking: Locking { waits: Waits::Never, ..base.locking },
        constraints: Constraints { case_insensitive_keys: false, ..base.constraints },
        storage: RowStorage::Heap,
        counting: RowCounts::Dolt,
        commit: CommitPolicy { serial_order: SerialOrderPromise::None, ..base.commit },
        ..base
    }
}

fn profile(_: &str) -> Profile {
    // All four names are accepted; the manual describes one behaviour and does
    // not state which anomalies it allows.
    let level = |level: Level| Promise { level, allows: None, by: "merge at commit".into() };
    Profile {
        levels: vec![
            level(Level::ReadUncommitted),
            level(Level::ReadCommitted),
            level(Level::RepeatableRead),
            level(Level::Serializable),
        ],
        default_level: Level::RepeatableRead,
        begin: "begin".into(),
        waiting: Waiting::Never,
        ddl: Ddl::CommitsImplicitly,
        errors: errors(),
        other_errors: ErrorEffect::Statement,
        documentation: "https://docs.dolthub.com/sql-reference/sql-support/supported-statements"
            .into(),
        untested: false,
        commit_ordered: Vec::new(),
        protocol: Protocol::Occ,
        read_visibility: Vec::new(),
    }
    .completed_by(|_| Some(concurrency_model()))
}

fn errors() -> Vec<ErrorRule> {
    let mut errors = mysql_errors();
    // Dolt's code for errors that have no other: a CHECK, or a merge that
    // violates a constraint.
    for says in ["constraint violations", "Check constraint"] {
        errors.push(ErrorRule {
            says: Some(says.into()),
            ..error("1105", ErrorClass::Constraint, ErrorEffect::Statement)
        });
    }
    errors
}
