//! The levels, in the words of Adya and of those who came after him.

use std::fmt;
use std::str::FromStr;

/// An isolation level that a history can satisfy. `docs/anomalies.md` defines
/// each; a level with `strong-session` in its name also keeps the order of each
/// session, a strict or strong one that of real time.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Level {
    /// Adya's PL-1.
    ReadUncommitted,
    /// Adya's PL-2.
    ReadCommitted,
    CursorStability,
    /// Once a transaction has seen one write of another, it misses none of its
    /// others in the reads that follow.
    MonotonicAtomicView,
    /// What AWDIT, Plume and dbcop call read committed.
    StrongSessionMonotonicAtomicView,
    /// A transaction sees all writes of another or none.
    ReadAtomic,
    /// What AWDIT, Plume and dbcop call read atomic.
    StrongSessionReadAtomic,
    Causal,
    /// Adya's PL-2+.
    ConsistentView,
    /// Adya's PL-2.99.
    RepeatableRead,
    SnapshotIsolation,
    StrongSessionSnapshotIsolation,
    StrongSnapshotIsolation,
    /// Adya's PL-3.
    Serializable,
    StrongSessionSerializable,
    StrictSerializable,
}

use Level::*;

impl Level {
    /// All of them; none stands before one that implies it.
    pub const ALL: [Level; 16] = [
        ReadUncommitted,
        ReadCommitted,
        CursorStability,
        MonotonicAtomicView,
        StrongSessionMonotonicAtomicView,
        ReadAtomic,
        StrongSessionReadAtomic,
        Causal,
        ConsistentView,
        RepeatableRead,
        SnapshotIsolation,
        StrongSessionSnapshotIsolation,
        StrongSnapshotIsolation,
        Serializable,
        StrongSessionSerializable,
        StrictSerializable,
    ];

    pub fn name(self) -> &'static str {
        match self {
            ReadUncommitted => "read-uncommitted",
            ReadCommitted => "read-committed",
            CursorStability => "cursor-stability",
            MonotonicAtomicView => "monotonic-atomic-view",
            StrongSessionMonotonicAtomicView => "strong-session-monotonic-atomic-view",
            ReadAtomic => "read-atomic",
            StrongSessionReadAtomic => "strong-session-read-atomic",
            Causal => "causal",
            ConsistentView => "consistent-view",
            RepeatableRead => "repeatable-read",
            SnapshotIsolation => "snapshot-isolation",
            StrongSessionSnapshotIsolation => "strong-session-snapshot-isolation",
            StrongSnapshotIsolation => "strong-snapshot-isolation",
            Serializable => "serializable",
            StrongSessionSerializable => "strong-session-serializable",
            StrictSerializable => "strict-serializable",
        }
    }

    /// The levels that every history at this one satisfies as well, one step down.
    pub fn implies(self) -> &'static [Level] {
        match self {
            ReadUncommitted => &[],
            ReadCommitted => &[ReadUncommitted],
            CursorStability | MonotonicAtomicView => &[ReadCommitted],
            StrongSessionMonotonicAtomicView => &[MonotonicAtomicView],
            ReadAtomic => &[MonotonicAtomicView],
            StrongSessionReadAtomic => &[ReadAtomic, StrongSessionMonotonicAtomicView],
            Causal => &[StrongSessionReadAtomic],
            ConsistentView | RepeatableRead => &[ReadAtomic, CursorStability],
            SnapshotIsolation => &[ConsistentView],
            StrongSessionSnapshotIsolation => &[SnapshotIsolation, Causal],
            StrongSnapshotIsolation => &[StrongSessionSnapshotIsolation],
            Serializable => &[SnapshotIsolation, RepeatableRead],
            StrongSessionSerializable => &[Serializable, StrongSessionSnapshotIsolation],
            StrictSerializable => &[StrongSessionSerializable, StrongSnapshotIsolation],
        }
    }

    /// The level without those of its orders, sessions' and real time's, that are not needed.
    pub(crate) fn keeping(self, sessions: bool, times: bool) -> Level {
        match (self, sessions, times) {
            (StrictSerializable | StrongSessionSerializable, false, false) => Serializable,
            (StrictSerializable, true, false) => StrongSessionSerializable,
            (StrongSnapshotIsolation | StrongSessionSnapshotIsolation, false, false) => {
                SnapshotIsolation
            }
            (StrongSnapshotIsolation, true, false) => StrongSessionSnapshotIsolation,
            (level, ..) => level,
        }
    }

    /// Whether it says something about the order within sessions.
    pub fn keeps_sessions(self) -> bool {
        self.keeps_times()
            || matches!(
                self,
                StrongSessionMonotonicAtomicView
                    | StrongSessionReadAtomic
                    | Causal
                    | StrongSessionSnapshotIsolation
                    | StrongSessionSerializable
            )
    }

    /// Whether it says something about real time.
    pub fn keeps_times(self) -> bool {
        matches!(self, StrongSnapshotIsolation | StrictSerializable)
    }
}

impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// A name that is none of a level.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("`{0}` is not a level; the levels are {names}", names = Level::ALL.map(Level::name).join(", "))]
pub struct UnknownLevel(pub String);

/// Short names that people type.
const SHORT: [(&str, Level); 13] = [
    ("ru", ReadUncommitted),
    ("pl-1", ReadUncommitted),
    ("rc", ReadCommitted),
    ("pl-2", ReadCommitted),
    ("mav", MonotonicAtomicView),
    ("ra", ReadAtomic),
    ("cc", Causal),
    ("pl-2+", ConsistentView),
    ("rr", RepeatableRead),
    ("pl-2.99", RepeatableRead),
    ("si", SnapshotIsolation),
    ("ser", Serializable),
    ("pl-3", Serializable),
];

impl FromStr for Level {
    type Err = UnknownLevel;

    fn from_str(text: &str) -> Result<Level, UnknownLevel> {
        let name = text.trim().to_lowercase().replace([' ', '_'], "-");
        let short = SHORT.iter().find(|(short, _)| *short == name).map(|(_, level)| *level);
        short
            .or_else(|| Level::ALL.into_iter().find(|level| level.name() == name))
            .ok_or_else(|| UnknownLevel(text.into()))
    }
}
