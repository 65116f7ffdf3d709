//! The levels of PostgreSQL, their promises, and its error codes.

use isolde_model::history::{ErrorClass, ErrorEffect};
use isolde_model::profile::{Ddl, Profile, Protocol, ReadVisibility, Waiting, promise, rule};
use isolde_model::{Anomaly, Level};

pub fn profile() -> Profile {
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
            rule("40001", ErrorClass::Serialization, poisoned),
            rule("40P01", ErrorClass::Deadlock, poisoned),
            rule("55P03", ErrorClass::LockTimeout, poisoned),
            rule("25P02", ErrorClass::Poisoned, poisoned),
            rule("25006", ErrorClass::ReadOnly, poisoned),
            rule("57014", ErrorClass::Cancelled, poisoned),
            // Shutdown, crash of another backend, connection failures.
            rule("57P", ErrorClass::Lost, ErrorEffect::Lost),
            rule("08", ErrorClass::Lost, ErrorEffect::Lost),
            rule("23", ErrorClass::Constraint, poisoned),
            rule("XX", ErrorClass::Internal, poisoned),
            rule("42", ErrorClass::Rejected, poisoned),
            rule("0A", ErrorClass::Rejected, poisoned),
            rule("22", ErrorClass::Other, poisoned),
        ],
        other_errors: poisoned,
        documentation: "https://www.postgresql.org/docs/current/transaction-iso.html".into(),
        untested: false,
        commit_ordered: Vec::new(),
        protocol: Protocol::Mvcc2pl,
        read_visibility: vec![(Level::ReadUncommitted, ReadVisibility::Committed)],
    }
}
