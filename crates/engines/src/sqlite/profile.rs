//! The levels of each mode and their promises.

use super::Mode;
use isolde_model::history::{ErrorClass, ErrorEffect};
use isolde_model::profile::{Ddl, Profile, Protocol, Waiting, promise, rule};
use isolde_model::{Anomaly, Level};

pub fn profile(mode: Mode) -> Profile {
    let mut levels = vec![promise(Level::Serializable, "one writer at a time", &[])];
    if mode == Mode::SharedCache {
        let allows = [
            Anomaly::G1a,
            Anomaly::G1b,
            Anomaly::G1c,
            Anomaly::Otv,
            Anomaly::Pmp,
            Anomaly::P4,
            Anomaly::GSingle,
            Anomaly::G2Item,
            Anomaly::G2,
        ];
        let dirty = promise(Level::ReadUncommitted, "PRAGMA read_uncommitted, one writer", &allows);
        levels.insert(0, dirty);
    }
    let gone = ErrorEffect::RolledBack;
    Profile {
        levels,
        default_level: Level::Serializable,
        begin: "begin".into(),
        waiting: Waiting::Retry,
        ddl: Ddl::Transactional,
        errors: vec![
            // The snapshot is too old to write on; only a new transaction
            // helps.
            rule("SQLITE_BUSY_SNAPSHOT", ErrorClass::Serialization, gone),
            rule("SQLITE_BUSY", ErrorClass::Busy, ErrorEffect::Statement),
            rule("SQLITE_LOCKED", ErrorClass::Busy, ErrorEffect::Statement),
            rule("SQLITE_CONSTRAINT", ErrorClass::Constraint, ErrorEffect::Statement),
            rule("SQLITE_INTERRUPT", ErrorClass::Cancelled, ErrorEffect::Statement),
            rule("SQLITE_READONLY", ErrorClass::ReadOnly, ErrorEffect::Statement),
            rule("SQLITE_CORRUPT", ErrorClass::Internal, ErrorEffect::Statement),
            rule("SQLITE_ERROR", ErrorClass::Rejected, ErrorEffect::Statement),
        ],
        other_errors: ErrorEffect::Statement,
        documentation: "https://sqlite.org/isolation.html".into(),
        untested: false,
        // A reader of the write-ahead log keeps its snapshot while a writer
        // commits, so it may precede a transaction that ended earlier.
        commit_ordered: if mode == Mode::Wal { vec![] } else { vec![Level::Serializable] },
        protocol: Protocol::Mvcc2pl,
        read_visibility: Vec::new(),
    }
}
