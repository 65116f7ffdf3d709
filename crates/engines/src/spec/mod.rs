//! Runs PostgreSQL's isolation specs, printing what isolationtester prints.
//!
//! ```text
//!   schedule (permutations, lock waits, order of the reports)
//!      │
//!      ▼
//!   SpecLinks: one control connection and one per session
//!      ├── PgLinks     (postgres::spec_link) PostgreSQL's protocol, read as libpq reads it
//!      └── PlainLinks  any engine, through Engine and Session
//! ```
//!
//! On PostgreSQL the output equals isolationtester's byte for byte. Other
//! engines get the same schedule, and their answers are printed in the same
//! form.

mod blocks;
mod plain_link;
mod report;
mod schedule;

use crate::engine::{Engine, EngineError};
use isolde_interop::spec::Spec;
use plain_link::PlainLinks;
use std::time::Duration;

/// How long a step may take before it is cancelled, as in isolationtester.
const DEFAULT_STEP_LIMIT: Duration = Duration::from_secs(360);

const DEFAULT_LOCK_LIMIT: Duration = Duration::from_secs(5);

pub struct Options {
    /// The name of the test, for the server's list of connections.
    pub test: String,
    /// A step is cancelled after this long, and given up after twice as long.
    pub step_limit: Duration,
    /// The same for a step that waits for a lock which no session of the run
    /// can release any more, on engines other than PostgreSQL. InnoDB would
    /// wait 50 seconds for a row, a day for a table.
    pub lock_limit: Duration,
    /// Polled while waiting; true ends the run.
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

/// A statement that the engine did not understand.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RejectedStatement {
    /// Such as `step s1r` or `setup of session s1`.
    pub place: String,
    pub line: usize,
    pub sql: String,
    pub message: String,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SpecOutcome {
    /// False when a setup failed or no session could continue.
    pub finished: bool,
    /// Each place once, in the order of first appearance.
    pub rejected: Vec<RejectedStatement>,
    /// The setups and teardowns that were blocked by transactions which the
    /// steps left open, and which were then rolled back. Never on PostgreSQL.
    pub left_open: Vec<String>,
}

/// Runs every permutation of a spec on an emptied database. The output goes to
/// `out` piece by piece.
pub fn run(
    engine: &mut dyn Engine,
    spec: &Spec,
    options: &Options,
    out: &mut dyn FnMut(&str),
) -> Result<SpecOutcome, SpecError> {
    engine.clear()?;
    let names: Vec<String> = spec.sessions.iter().map(|s| s.name.clone()).collect();
    match engine.spec_connections() {
        Some(connections) => {
            let mut links = connections.open_links(&options.test, &names, options.interrupted)?;
            schedule::run(links.as_mut(), spec, options, out)
        }
        None => {
            let mut links = PlainLinks::open(engine, names.len())?;
            schedule::run(&mut links, spec, options, out)
        }
    }
}
