//! The rules of each engine: what its levels do, statement by statement, with
//! the page of its manual.
//!
//! A [`Rule`] is one sentence of ours about one thing that an engine does. A
//! [`Conduct`] is what a prediction follows for one transaction: the level and
//! the mode it runs in chose it. A new engine is a file here and a line in
//! [`conduct`].

pub mod dolt;
pub mod duckdb;
pub mod innodb;
pub mod page;
pub mod postgres;
pub mod snapshot;
pub mod sqlite;
pub mod tidb;

use crate::Level;
use crate::generate::BeginForm;
use crate::history::TargetInfo;
use crate::sql::dialect::is_among;

/// One thing that an engine does by design.
#[derive(Debug, PartialEq, Eq)]
pub struct Rule {
    pub id: &'static str,
    /// A few words to call it by.
    pub name: &'static str,
    pub about: &'static str,
    /// The page of the manual that says so.
    pub page: &'static str,
    /// The versions that it holds for, as cases name them (`mariadb@10.11.8-`);
    /// empty where these are all that the engine has rules for ([`HOLD_FOR`]).
    pub versions: &'static str,
    pub seen: Option<Seen>,
    /// How little it tells of a run in which it was used: that a row was looked
    /// at again says more than that rows are locked.
    pub weight: u8,
}

/// What an engine does where its manual is silent, or says something else.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seen {
    pub about: &'static str,
    /// The case of the library that shows it.
    pub case: &'static str,
}

/// The versions that there are rules for. Before PostgreSQL 9.1 SERIALIZABLE
/// was snapshot isolation, before TiDB 4.0 there was no READ COMMITTED; the
/// others are the oldest that were looked at.
const HOLD_FOR: &str = "postgres@9.1- sqlite@3.7- turso@0.2- mysql@5.6- mariadb@10.0- tidb@4.0- \
                        duckdb@2.0- dolt@2.0-";

/// Shorthand for the tables of the engines.
const fn rule(
    id: &'static str,
    name: &'static str,
    page: &'static str,
    about: &'static str,
) -> Rule {
    Rule { id, name, about, page, versions: "", seen: None, weight: 9 }
}

impl Rule {
    const fn telling(mut self, weight: u8) -> Rule {
        self.weight = weight;
        self
    }

    const fn holds_for(mut self, versions: &'static str) -> Rule {
        self.versions = versions;
        self
    }

    /// Beside the manual or against it, with the case that shows it.
    const fn seen(mut self, about: &'static str, case: &'static str) -> Rule {
        self.seen = Some(Seen { about, case });
        self
    }
}

/// When a transaction takes its snapshot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SnapshotAt {
    /// Every statement has its own.
    Statement,
    /// With the first statement after BEGIN.
    FirstStatement,
    Begin,
    /// With the first statement that only reads.
    FirstRead,
    /// There is none: reads see the newest versions, committed or not.
    Dirty,
}

/// What becomes of a statement whose target was changed after its snapshot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Changed {
    /// The newest version is tested again, and acted upon if it still fits.
    Recheck,
    /// The transaction fails.
    Abort,
    /// Writes do not look at the snapshot, but at what is committed now.
    Current,
    /// Writes look at the snapshot alone. Who has changed other columns of a
    /// row is not met; who has changed the same is, in the write or at the
    /// COMMIT.
    Merge,
    /// Writes stay with their transaction and work on its snapshot: nobody
    /// meets them before the COMMIT, which fails if another was faster.
    FailsCommit,
}

/// What keeps writers apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Locks {
    /// Rows that were written or read to be written.
    Rows,
    /// The whole database has one writer.
    Database,
}

/// What makes a statement wait, as far as it is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Waits {
    /// Nobody ever waits.
    Never,
    Unknown,
    /// Rows that another has written or locked.
    Rows,
    /// Whatever another has looked at, to write or to lock.
    Scans,
    /// Another who writes to the database, or reads from it.
    Database,
}

/// Which values the assignments of one statement see.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Assigns {
    /// Those of the old row.
    AtOnce,
    /// Those of the old row in an UPDATE; in an upsert what was assigned before.
    UpsertsInOrder,
    /// What was assigned before, from left to right.
    InOrder,
}

/// What a prediction follows for one transaction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Conduct {
    pub snapshot: SnapshotAt,
    pub changed: Changed,
    pub locks: Locks,
    pub waits: Waits,
    /// A COMMIT that has written waits until nobody else reads.
    pub commit_waits: Option<&'static Rule>,
    /// The engine may abort anyone for the sake of a serial order.
    pub may_abort: Option<&'static Rule>,
    /// The serial order is that of the commits.
    pub commit_ordered: bool,
    /// A statement that had to wait is sent anew, and sees what is new.
    pub retries: bool,
    /// An error leaves the transaction open for nothing but a rollback.
    pub poisons: bool,
    /// An UPDATE looks at the last committed version of a locked row first.
    pub semi_consistent: bool,
    /// Plain reads inside of a transaction lock.
    pub reads_lock: bool,
    /// The SELECT inside of an INSERT or UPDATE takes no locks.
    pub consistent_reads_in_writes: bool,
    /// Values that a query gives to a write are what a plain SELECT would see,
    /// and a condition may be.
    pub plain_subqueries: bool,
    /// A statement by itself locks nothing but what it changes.
    pub alone_is_optimistic: bool,
    /// Current reads fail on rows that the snapshot does not show.
    pub snapshot_writes: bool,
    /// Current reads that waited for a change may fail, whatever the level.
    pub waits_may_abort: bool,
    /// Changes that leave the key alone do not conflict with foreign keys.
    pub key_locks: bool,
    /// Nobody waits: what another has changed or taken is an error, in the
    /// statement or at the COMMIT.
    pub refuses: bool,
    /// A write that leaves a row as it was conflicts with nobody.
    pub equal_is_nothing: bool,
    /// SAVEPOINT takes the snapshot.
    pub savepoint_reads: bool,
    /// A write counts the rows that it changed, not those that it found.
    pub counts_changed_rows: bool,
    /// Foreign keys are checked row by row, not when the statement ends.
    pub foreign_keys_by_row: bool,
    /// A row is found by its primary key: a new one takes the record of a
    /// deleted one that had the same.
    pub clustered: bool,
    pub assigns: Assigns,
    /// A current read finds all its rows in one state of the database, and
    /// looks once more if it has to lock one that was changed meanwhile.
    pub looks_once: bool,
    /// An upsert acts on whichever key is taken, not on one that it names.
    pub upserts_on_any_key: bool,
    /// Whole tables are locked by who reads or writes them.
    pub table_locks: Option<&'static Rule>,
    /// IGNORE also mends NULLs and leaves out rows without a parent.
    pub ignore_forgives_all: bool,
    /// Texts are the same key in any case.
    pub folds_case: bool,
    /// A DELETE with a join counts a row once for each partner, one of all rows
    /// of a table without a primary key counts equal ones once, and REPLACE
    /// counts no more than one row that it deletes.
    pub miscounts: bool,
    /// Writers meet at the COMMIT, where rows are merged by their keys.
    pub merges_at_commit: bool,
    /// Levels have names and no effect: SERIALIZABLE promises no serial order.
    pub ignores_level: bool,
    /// An UPDATE of an indexed column is a DELETE and an INSERT.
    pub moves_indexed: bool,
    /// Keys and foreign keys are looked up in indexes, which have what is
    /// committed now, whatever the snapshot shows, and keep what open
    /// transactions delete, this one among them.
    pub checks_indexes: bool,
    /// A row that ON CONFLICT leaves out may break NOT NULL and CHECK.
    pub conflicts_before_checks: bool,
    /// A failed transaction keeps what it has written until it is rolled back.
    pub failed_holds: bool,
    /// A query that the optimizer answers without a look takes no snapshot.
    pub unread: Option<&'static Rule>,
    /// An UPDATE that does not read the columns that it sets may write a row
    /// that stays as it was.
    pub writes_equal: Option<&'static Rule>,
    pub rules: &'static Used,
}

impl Conduct {
    /// Whether writes stay with their transaction until its COMMIT.
    pub fn buffers(&self) -> bool {
        self.changed == Changed::FailsCommit
    }

    /// A snapshot for the transaction, row locks, failure on rows that were
    /// changed since, and no particulars: an engine states what it has
    /// instead.
    const fn base(rules: &'static Used) -> Conduct {
        Conduct {
            snapshot: SnapshotAt::FirstStatement,
            changed: Changed::Abort,
            locks: Locks::Rows,
            waits: Waits::Unknown,
            commit_waits: None,
            may_abort: None,
            commit_ordered: false,
            retries: false,
            poisons: false,
            semi_consistent: false,
            reads_lock: false,
            consistent_reads_in_writes: false,
            plain_subqueries: false,
            alone_is_optimistic: false,
            snapshot_writes: false,
            waits_may_abort: false,
            key_locks: false,
            refuses: false,
            equal_is_nothing: false,
            savepoint_reads: false,
            counts_changed_rows: false,
            foreign_keys_by_row: false,
            clustered: false,
            assigns: Assigns::AtOnce,
            looks_once: false,
            upserts_on_any_key: false,
            table_locks: None,
            ignore_forgives_all: false,
            folds_case: false,
            miscounts: false,
            merges_at_commit: false,
            ignores_level: false,
            moves_indexed: false,
            checks_indexes: false,
            conflicts_before_checks: false,
            failed_holds: false,
            unread: None,
            writes_equal: None,
            rules,
        }
    }

    /// The same in MySQL's family.
    const fn mysql_base(rules: &'static Used) -> Conduct {
        Conduct {
            changed: Changed::Current,
            counts_changed_rows: true,
            foreign_keys_by_row: true,
            clustered: true,
            assigns: Assigns::InOrder,
            upserts_on_any_key: true,
            ignore_forgives_all: true,
            folds_case: true,
            ..Conduct::base(rules)
        }
    }
}

/// The rules behind the steps of a prediction.
#[derive(Debug, PartialEq, Eq)]
pub struct Used {
    pub read: &'static Rule,
    pub own_writes: &'static Rule,
    pub write: &'static Rule,
    pub changed_row: &'static Rule,
    pub held_row: &'static Rule,
    pub unique: &'static Rule,
    pub foreign: &'static Rule,
    pub upsert: &'static Rule,
    pub deadlock: &'static Rule,
    pub constraint: &'static Rule,
    pub savepoint: &'static Rule,
    pub rollback: &'static Rule,
    /// What makes a serial order of what has committed.
    pub serial: &'static Rule,
}

/// What a transaction of this engine does at this level, by how it was begun;
/// not at all when it is a statement by itself. None without rules.
pub fn conduct(on: &TargetInfo, level: Level, begun: Option<BeginForm>) -> Option<Conduct> {
    if let Some(follows) = &on.follows {
        let engine = follows.engine.clone();
        let followed = TargetInfo { engine, follows: None, ..on.clone() };
        return conduct(&followed, level, begun);
    }
    if !on.version.is_empty() && !is_among(HOLD_FOR, &on.engine, &on.version) {
        return None;
    }
    let plain = on.engine.split('+').next().unwrap_or(&on.engine);
    let form = begun.unwrap_or(BeginForm::Plain);
    match plain {
        "postgres" => Some(postgres::conduct(level)),
        "sqlite" => sqlite::conduct(&on.engine, level, form),
        "turso" if on.engine.ends_with("+mvcc") => Some(snapshot::turso()),
        "tidb" => Some(tidb::conduct(on, level, begun)),
        "turso" => sqlite::conduct("sqlite+wal", level, form)
            .map(|conduct| Conduct { savepoint_reads: true, ..conduct }),
        "dolt" => Some(dolt::conduct()),
        "duckdb" => Some(duckdb::conduct()),
        "mysql" | "mariadb" => Some(innodb::conduct(on, level, form)),
        _ => None,
    }
}
