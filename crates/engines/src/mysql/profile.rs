//! What InnoDB promises at each level, and what its writes do by design.

use super::errors::common_errors;
use isolde_core::history::ErrorEffect;
use isolde_core::profile::{Behaviour, Counterfactual, Ddl, Profile, Waiting, behaviour, promise};
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
        serial_writes: vec![Level::RepeatableRead, Level::Serializable],
        behaviours: behaviours(snapshot),
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

/// What InnoDB's writes do by design. `snapshot`: REPEATABLE READ refuses to
/// write rows that changed since the snapshot.
fn behaviours(snapshot: bool) -> Vec<Behaviour> {
    const MANUAL: &str = "https://dev.mysql.com/doc/refman/8.0/en";
    let weak = [Level::ReadUncommitted, Level::ReadCommitted];
    let mut all = vec![
        behaviour(
            "dirty reads inside of writes",
            &[Level::ReadUncommitted],
            Counterfactual::Level(Level::ReadCommitted),
            "at READ UNCOMMITTED the SELECT of a write sees what others have not committed",
            &format!("{MANUAL}/innodb-transaction-isolation-levels.html"),
        )
        .of_writes_with("select"),
        behaviour(
            "consistent reads inside of writes",
            &weak,
            Counterfactual::Level(Level::RepeatableRead),
            "below REPEATABLE READ the SELECT of an INSERT ... SELECT takes no locks",
            &format!("{MANUAL}/innodb-locks-set.html"),
        )
        .of_writes_with("select"),
        behaviour(
            "semi-consistent read",
            &weak,
            Counterfactual::LockingRead,
            "an UPDATE that meets a locked row looks at its last committed version, and passes \
             by if that does not match; a row that is not committed yet is passed by, too",
            &format!("{MANUAL}/innodb-transaction-isolation-levels.html"),
        ),
        behaviour(
            "no gap locks",
            &weak,
            Counterfactual::Level(Level::RepeatableRead),
            "below REPEATABLE READ rows that do not match are not kept locked, and rows may be \
             inserted between those that are",
            &format!("{MANUAL}/innodb-locking.html#innodb-gap-locks"),
        ),
        behaviour(
            "autocommit reads take no locks",
            &[Level::Serializable],
            Counterfactual::InTransactions,
            "at SERIALIZABLE a SELECT by itself is a consistent read, and so is the subquery of a \
             locking one: the one statement then sees old rows in one place and new ones in \
             another",
            &format!("{MANUAL}/innodb-locking-reads.html"),
        ),
    ];
    if snapshot {
        all.push(behaviour(
            "snapshot isolation",
            &[Level::RepeatableRead],
            Counterfactual::Level(Level::Serializable),
            "with innodb_snapshot_isolation a write sees its snapshot, so write skew is possible",
            "https://mariadb.com/kb/en/innodb-system-variables/#innodb_snapshot_isolation",
        ));
    }
    all
}
