//! The isolation levels that the checker decides, and the implications between them.
//!
//! PL-1 to PL-3 are Adya's (ICDE 2000); monotonic atomic view and read atomic are Bailis et
//! al.'s (VLDB 2014, SIGMOD 2014); causal consistency follows Biswas and Enea (OOPSLA 2019);
//! the strong session levels are Daudjee and Salem's (VLDB 2006).

use std::fmt;
use std::str::FromStr;

/// An isolation level. `docs/anomalies.md` defines each of them.
///
/// A level with `strong-session` in its name also requires session order; a strict or strong
/// level also requires real-time order.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Level {
    /// Adya's PL-1.
    ReadUncommitted,
    /// Adya's PL-2.
    ReadCommitted,
    /// No lost updates on items that a transaction reads and then writes.
    CursorStability,
    /// Once a transaction has observed one write of another transaction, its later reads miss
    /// none of the other writes.
    MonotonicAtomicView,
    /// The level that AWDIT, Plume and dbcop call read committed.
    StrongSessionMonotonicAtomicView,
    /// A transaction observes all writes of another transaction or none.
    ReadAtomic,
    /// The level that AWDIT, Plume and dbcop call read atomic.
    StrongSessionReadAtomic,
    /// A transaction observes everything that precedes it causally (by reads and sessions).
    Causal,
    /// Adya's PL-2+.
    ConsistentView,
    /// Adya's PL-2.99.
    RepeatableRead,
    /// Adya's PL-SI without real-time order: reads come from one snapshot, and concurrent
    /// transactions do not write the same item.
    SnapshotIsolation,
    /// Snapshot isolation whose snapshots include the earlier transactions of the session.
    StrongSessionSnapshotIsolation,
    /// Snapshot isolation whose snapshots include every transaction that has ended.
    StrongSnapshotIsolation,
    /// Adya's PL-3.
    Serializable,
    /// Serializability with a serial order that respects session order.
    StrongSessionSerializable,
    /// Serializability with a serial order that respects real time.
    StrictSerializable,
}

use Level::*;

impl Level {
    /// All levels; each comes after the levels that it implies.
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

    /// The stable name of the level, as the command line and reports use it.
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

    /// The strongest levels that this one implies: every history at this level satisfies them too.
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

    /// The level without session order or real-time order where these are not needed.
    pub(crate) fn with_orders(self, sessions: bool, times: bool) -> Level {
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

    /// Whether the level requires session order.
    pub fn requires_session_order(self) -> bool {
        self.requires_real_time()
            || matches!(
                self,
                StrongSessionMonotonicAtomicView
                    | StrongSessionReadAtomic
                    | Causal
                    | StrongSessionSnapshotIsolation
                    | StrongSessionSerializable
            )
    }

    /// Whether the level requires real-time order.
    pub fn requires_real_time(self) -> bool {
        matches!(self, StrongSnapshotIsolation | StrictSerializable)
    }
}

impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// The error for a name that is not the name of a level.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("`{0}` is not a level; the levels are {names}", names = Level::ALL.map(Level::name).join(", "))]
pub struct UnknownLevel(pub String);

/// Abbreviations that are accepted as names.
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
