//! InnoDB, in MySQL and in MariaDB.

use super::mysql_errors::mysql_errors;
use crate::anomaly::Anomaly;
use crate::begin_form::BeginForm;
use crate::concurrency::{
    CommitPolicy, ConcurrencyModel, Conflicts, CurrentReads, Locking, ScanPolicy,
    SerialOrderPromise, SnapshotAt, SnapshotCheck, SnapshotPolicy, Waits, WriteSubqueries,
};
use crate::error_class::ErrorEffect;
use crate::level::Level;
use crate::profile::{Ddl, Profile, Protocol, Waiting, promise};
use crate::rule::RuleSet;
use crate::selector::Selector;
use crate::target::TargetInfo;

#[cfg(test)]
use super::innodb_rules::CR;
pub use super::innodb_rules::*;

const BASE: RuleSet = RuleSet {
    read: &I2,
    own_writes: &I5,
    write: &I6,
    changed_row: &I6,
    held_row: &I11,
    unique: &I18,
    foreign: &I20,
    upsert: &I19,
    deadlock: &I22,
    constraint: &I29,
    savepoint: &I21,
    rollback: &I27,
    serial: &I28,
};

static READ_UNCOMMITTED: RuleSet = RuleSet { read: &I3, changed_row: &I14, ..BASE };
static READ_COMMITTED: RuleSet = RuleSet { read: &I2, changed_row: &I14, ..BASE };
static REPEATABLE_READ: RuleSet = RuleSet { read: &I1, ..BASE };
static FROM_THE_START: RuleSet = RuleSet { read: &I7, ..BASE };
static SNAPSHOT: RuleSet = RuleSet { read: &I1, changed_row: &M2, ..BASE };
static SERIALIZABLE: RuleSet = RuleSet { read: &I4, ..BASE };

pub fn concurrency_model(on: &TargetInfo, level: Level, form: BeginForm) -> ConcurrencyModel {
    let weak = level <= Level::ReadCommitted;
    let at_once = form == BeginForm::ConsistentSnapshot && level == Level::RepeatableRead;
    let snapshot_setting = on.settings.get("innodb_snapshot_isolation");
    let checks_snapshot = snapshot_setting.is_some_and(|v| v == "1" || v == "ON");
    let repeatable = level == Level::RepeatableRead;
    let rules = match level {
        Level::ReadUncommitted => &READ_UNCOMMITTED,
        Level::ReadCommitted => &READ_COMMITTED,
        Level::Serializable => &SERIALIZABLE,
        _ if checks_snapshot && repeatable => &SNAPSHOT,
        _ if at_once => &FROM_THE_START,
        _ => &REPEATABLE_READ,
    };
    let base = ConcurrencyModel::mysql_base(rules);
    let noop_update_writes = repeatable && Selector::lists(I10.versions, &on.engine, &on.version);
    ConcurrencyModel {
        snapshot: SnapshotPolicy {
            taken: match level {
                Level::ReadUncommitted => SnapshotAt::Dirty,
                Level::ReadCommitted => SnapshotAt::Statement,
                _ if at_once => SnapshotAt::Begin,
                _ => SnapshotAt::FirstRead,
            },
            not_taken_by_empty_read: (!weak && !at_once).then_some(&I8),
            ..base.snapshot
        },
        current_reads: CurrentReads {
            scan: match weak && !checks_snapshot {
                true => ScanPolicy::SemiConsistentUpdates,
                false => ScanPolicy::RowByRow,
            },
            subqueries: match weak {
                true => WriteSubqueries::ConsistentRead,
                false => WriteSubqueries::SameAsWrite,
            },
            snapshot_check: match (checks_snapshot, weak) {
                (false, _) => SnapshotCheck::Off,
                (true, true) => SnapshotCheck::AfterWait,
                (true, false) => SnapshotCheck::EveryRow,
            },
        },
        conflicts: Conflicts {
            noop_update_may_write: noop_update_writes.then_some(&I10),
            ..base.conflicts
        },
        locking: Locking {
            waits: Waits::Scans,
            plain_reads_lock: level == Level::Serializable,
            gap_locks: Some(&I12),
            skip_locked: Some(&I30),
            no_wait: Some(&I31),
            ..base.locking
        },
        commit: CommitPolicy {
            serial_order: match level {
                Level::Serializable => SerialOrderPromise::CommitOrder,
                _ => SerialOrderPromise::AnyOrder,
            },
            ..base.commit
        },
        ..base
    }
}

/// The levels of InnoDB, their promises, and its error codes.
pub(super) fn profile(documentation: &str, snapshot: bool) -> Profile {
    use Anomaly::*;
    let repeatable: &[Anomaly] =
        if snapshot { &[G2Item, G2] } else { &[Pmp, P4, GSingle, G2Item, G2] };
    let by = if snapshot { "snapshot isolation" } else { "snapshot for reads, current for writes" };
    Profile {
        levels: vec![
            promise(
                Level::ReadUncommitted,
                "dirty reads",
                &[G1a, G1b, G1c, Otv, Pmp, P4, GSingle, G2Item, G2],
            ),
            promise(
                Level::ReadCommitted,
                "one snapshot per statement",
                &[Pmp, P4, GSingle, G2Item, G2],
            ),
            promise(Level::RepeatableRead, by, repeatable),
            promise(Level::Serializable, "two-phase locking", &[]),
        ],
        default_level: Level::RepeatableRead,
        begin: "begin".into(),
        waiting: Waiting::Probe,
        ddl: Ddl::CommitsImplicitly,
        errors: mysql_errors(),
        other_errors: ErrorEffect::Statement,
        documentation: documentation.into(),
        untested: false,
        commit_ordered: Vec::new(),
        protocol: Protocol::Mvcc2pl,
        read_visibility: Vec::new(),
    }
    .completed_by(|level| Some(concurrency_model(&TargetInfo::default(), level, BeginForm::Plain)))
}

/// The rules cite this edition of MySQL's manual.
const EDITION: &str = "https://dev.mysql.com/doc/refman/8.4/en/";

/// The same page in the edition of a version: 5.7, 8.0, 8.4, 9.0 and so on.
pub(super) fn mysql_page(page: &str, version: &str) -> String {
    let mut numbers = version.split('.');
    let (major, minor) = (numbers.next().unwrap_or_default(), numbers.next().unwrap_or_default());
    let known = !major.is_empty() && minor.chars().all(|c| c.is_ascii_digit()) && !minor.is_empty();
    match page.strip_prefix(EDITION) {
        Some(rest) if known => {
            format!("https://dev.mysql.com/doc/refman/{major}.{minor}/en/{rest}")
        }
        _ => page.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_are_those_of_the_engine_and_its_version() {
        let mysql = "https://dev.mysql.com/doc/refman/9.7/en/innodb-consistent-read.html";
        assert_eq!(mysql_page(CR, "9.7.4"), mysql);
        assert_eq!(mysql_page(CR, ""), CR);
        assert_eq!(mysql_page(CR, "8.0.33"), CR.replace("8.4", "8.0"));
    }

    #[test]
    fn rules_cite_the_manual_of_the_engine_that_ran() {
        let on = |engine: &str, version: &str| TargetInfo {
            engine: engine.into(),
            version: version.into(),
            ..TargetInfo::default()
        };
        for rule in RULES.iter().chain([&&I28]) {
            for engine in ["mariadb", "mariadb+snapshot"] {
                let page = on(engine, "10.11.8").manual_page(rule);
                assert!(page.starts_with("https://mariadb.com/"), "{}: {page}", rule.id);
            }
            if rule.id != "M2" {
                let page = on("mysql", "9.7.4").manual_page(rule);
                assert!(page.starts_with("https://dev.mysql.com/doc/refman/9.7/"), "{page}");
            }
        }
    }
}
