//! SQLite, in process. Its three modes differ in what a reader sees of a
//! writer: `sqlite` (rollback journal), `sqlite+wal`, and
//! `sqlite+shared-cache`, the only one with READ UNCOMMITTED.
//!
//! SQLite never waits here (no busy timeout): it answers BUSY at once, and the
//! runner tries again when another session has got on. There is no deadlock
//! error; the runner picks the last one to wait.

mod engine;
mod profile;
mod session;

pub use engine::Sqlite;
pub use profile::profile;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    RollbackJournal,
    Wal,
    SharedCache,
}

impl Mode {
    pub const ALL: [(&'static str, Mode); 3] =
        [("", Mode::RollbackJournal), ("wal", Mode::Wal), ("shared-cache", Mode::SharedCache)];
}

/// The version that is built in.
pub fn version() -> &'static str {
    rusqlite::version()
}
