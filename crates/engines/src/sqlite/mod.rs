//! SQLite, in process. Its three modes differ in what a reader sees of a
//! writer: `sqlite` (rollback journal), `sqlite+wal`, and
//! `sqlite+shared-cache`, the only one with READ UNCOMMITTED.
//!
//! SQLite never blocks here (no busy timeout): it answers BUSY at once, and the
//! runner retries when another session has made progress. There is no deadlock
//! error; the runner chooses the last session to become blocked as the victim.

mod engine;
mod session;

pub use engine::Sqlite;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    RollbackJournal,
    Wal,
    SharedCache,
}

impl Mode {
    pub const ALL: [(&'static str, Mode); 3] =
        [("", Mode::RollbackJournal), ("wal", Mode::Wal), ("shared-cache", Mode::SharedCache)];

    /// What users write after the `+`.
    pub fn name(self) -> &'static str {
        Mode::ALL.iter().find(|(_, mode)| *mode == self).map_or("", |(name, _)| name)
    }
}

/// The SQLite version that is linked.
pub fn version() -> &'static str {
    rusqlite::version()
}
