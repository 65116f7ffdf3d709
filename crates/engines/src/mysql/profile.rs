//! The levels of InnoDB, their promises, and its error codes.

use super::errors::common_errors;
use isolde_model::history::ErrorEffect;
use isolde_model::profile::{Ddl, Profile, Protocol, ReadVisibility, Waiting, promise};
use isolde_model::{Anomaly, Level};

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
        errors: common_errors(),
        other_errors: ErrorEffect::Statement,
        documentation: documentation.into(),
        untested: false,
        commit_ordered: vec![Level::Serializable],
        protocol: Protocol::Mvcc2pl,
        read_visibility: vec![
            (Level::RepeatableRead, ReadVisibility::SnapshotOfFirstRead),
            (Level::Serializable, ReadVisibility::Locked),
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
