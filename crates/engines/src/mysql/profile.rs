//! What InnoDB promises at each level, and what its writes do by design.

use super::errors::common_errors;
use isolde_core::history::ErrorEffect;
use isolde_core::profile::{Ddl, Profile, Protocol, Sees, Waiting, promise};
use isolde_core::{Anomaly, Level};

fn innodb_profile(documentation: &str, snapshot: bool) -> Profile {
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
                "a snapshot a statement",
                &[Pmp, P4, GSingle, G2Item, G2],
            ),
            promise(Level::RepeatableRead, by, repeatable),
            promise(Level::Serializable, "two-phase locking", &[]),
        ],
        default_level: Level::RepeatableRead,
        begin: "begin".into(),
        waiting: Waiting::Probe,
        ddl: Ddl::CommitsImplicitly,
        errors: common_errors(),
        other_errors: ErrorEffect::Statement,
        documentation: documentation.into(),
        untested: false,
        commit_ordered: vec![Level::Serializable],
        protocol: Protocol::Mvcc2pl,
        sees: vec![
            (Level::RepeatableRead, Sees::SnapshotOfFirstRead),
            (Level::Serializable, Sees::Locked),
        ],
    }
}

pub fn mysql_profile() -> Profile {
    innodb_profile(
        "https://dev.mysql.com/doc/refman/en/innodb-transaction-isolation-levels.html",
        false,
    )
}

pub fn mariadb_profile(snapshot: bool) -> Profile {
    innodb_profile("https://mariadb.com/kb/en/set-transaction/", snapshot)
}
