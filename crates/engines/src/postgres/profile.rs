//! What PostgreSQL promises at each level, and what its writes do by design.

use isolde_core::history::{ErrorClass, ErrorEffect};
use isolde_core::profile::{
    Behaviour, Counterfactual, Ddl, Profile, Waiting, behaviour, promise, rule,
};
use isolde_core::{Anomaly, Level};

pub fn profile() -> Profile {
    use Anomaly::*;
    let weak = [Pmp, P4, GSingle, G2Item, G2];
    let poisoned = ErrorEffect::Poisoned;
    Profile {
        levels: vec![
            promise(Level::ReadUncommitted, "the same as READ COMMITTED", &weak),
            promise(Level::ReadCommitted, "a snapshot a statement", &weak),
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
        serial_writes: vec![Level::Serializable],
        behaviours: behaviours(),
    }
}

fn behaviours() -> Vec<Behaviour> {
    const ISO: &str = "https://www.postgresql.org/docs/current/transaction-iso.html";
    let link = |part: &str| format!("{ISO}#{part}");
    let weak = [Level::ReadUncommitted, Level::ReadCommitted];
    let all =
        [Level::ReadUncommitted, Level::ReadCommitted, Level::RepeatableRead, Level::Serializable];
    vec![
        behaviour(
            "serial order is not commit order",
            &all,
            Counterfactual::AnotherOrder,
            "the outcome is that of a serial order; none of the levels promises that it is the \
             order of the commits",
            &link("XACT-SERIALIZABLE"),
        ),
        behaviour(
            "re-check of updated rows",
            &weak,
            Counterfactual::LockingRead,
            "a write that waited for a row looks at its new version, but at no other row again, \
             so rows that came to match meanwhile are passed by",
            &link("XACT-READ-COMMITTED"),
        ),
        behaviour(
            "no predicate locks",
            &[Level::ReadUncommitted, Level::ReadCommitted, Level::RepeatableRead],
            Counterfactual::Level(Level::Serializable),
            "a write does not see what others have written and not committed, and does not keep \
             rows from appearing, changing or going behind it: write skew and phantoms are \
             possible below SERIALIZABLE",
            ISO,
        ),
    ]
}
