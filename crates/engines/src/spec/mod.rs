//! Runs PostgreSQL's isolation specs, printing what isolationtester prints.
//!
//! ```text
//!   schedule (permutations, who waits, what is reported when)
//!      │
//!      ▼
//!   Links: one control link and one a session
//!      ├── PgLinks     PostgreSQL's protocol, read as libpq reads it
//!      └── PlainLinks  any engine, through Engine and Session
//! ```
//!
//! Against PostgreSQL the output is the original's, byte for byte. Other
//! engines get the same schedule; their answers are put into the same words.

mod blocks;
mod link;
mod pg_link;
mod pg_message;
mod plain_link;
mod report;
mod schedule;

pub use link::{Answer, Failed, Links, Notification};
pub use pg_link::{PgLinks, session_settings};

use crate::engine::{Engine, EngineError};
use isolde_core::spec::Spec;
use plain_link::PlainLinks;
use std::time::Duration;

/// How long a step may take before it is cancelled, as isolationtester has it.
const DEFAULT_STEP_LIMIT: Duration = Duration::from_secs(360);

const DEFAULT_LOCK_LIMIT: Duration = Duration::from_secs(5);

pub struct Options {
    /// The name of the test, for the server's list of connections.
    pub test: String,
    /// A step is cancelled after this long, given up after twice as long.
    pub step_limit: Duration,
    /// The same for a step that waits for a lock which nobody can give up any
    /// more, on engines other than PostgreSQL. InnoDB would wait 50 seconds for
    /// a row, a day for a table.
    pub lock_limit: Duration,
    /// Asked while waiting; true ends the run.
    pub interrupted: fn() -> bool,
}

impl Options {
    pub fn new(test: &str) -> Options {
        let seconds = std::env::var("PGISOLATIONTIMEOUT").ok().and_then(|s| s.parse().ok());
        let given = seconds.map(Duration::from_secs);
        Options {
            test: test.into(),
            step_limit: given.unwrap_or(DEFAULT_STEP_LIMIT),
            lock_limit: given.unwrap_or(DEFAULT_LOCK_LIMIT),
            interrupted: || false,
        }
    }
}

#[derive(Debug, thiserror::Error)]
pub enum SpecError {
    #[error(transparent)]
    Engine(#[from] EngineError),
    #[error("stopped")]
    Interrupted,
}

/// SQL that the engine did not understand.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rejected {
    /// Such as `step s1r` or `setup of session s1`.
    pub place: String,
    pub line: usize,
    pub sql: String,
    pub message: String,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Played {
    /// False when a setup failed or nothing could go on.
    pub finished: bool,
    /// Each place once, in the order of first appearance.
    pub rejected: Vec<Rejected>,
    /// The setups and teardowns that had to wait for transactions left open by
    /// the steps, which were then rolled back. Never on PostgreSQL.
    pub left_open: Vec<String>,
}

/// Runs every permutation of a spec on an emptied database. The output goes
/// to `out` piece by piece.
pub fn run(
    engine: &mut dyn Engine,
    spec: &Spec,
    options: &Options,
    out: &mut dyn FnMut(&str),
) -> Result<Played, SpecError> {
    engine.clear()?;
    let names: Vec<String> = spec.sessions.iter().map(|s| s.name.clone()).collect();
    match engine.spec_links(&options.test, &names)? {
        Some(mut links) => {
            links.interrupted = options.interrupted;
            schedule::run(&mut links, spec, options, out)
        }
        None => {
            let mut links = PlainLinks::open(engine, names.len())?;
            schedule::run(&mut links, spec, options, out)
        }
    }
}
