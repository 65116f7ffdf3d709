//! Oracles: what came back, is it allowed?
//!
//! An oracle reads the history of a concurrent run. It may ask for replays,
//! other runs of the same statements from the same rows, and then judges. It
//! runs nothing itself: who hunts runs what [`Oracle::replays`] asks for and
//! hands the histories to [`Oracle::judge`].
//!
//! ```text
//!   case ──run──► history ──replays──► cases ──run──► histories ──judge──► Verdict
//! ```
//!
//! A new oracle is a file here and a line in [`ORACLES`].

mod compare;
mod counterfactual;
mod crash;
mod executed;
mod serial;
mod wss;

pub use compare::{Difference, differences, writes as write_differences};
pub use counterfactual::{at_level, in_transactions, with_locking_reads};
pub use crash::broken;
pub use executed::{Executed, executed};
pub use serial::{Replay, Serial, other_orders, serial_statements, serial_transactions};

use crate::case::Step;
use crate::history::ErrorEffect;
use crate::sql::{self, Stmt};
use crate::{Case, History};

/// Every oracle there is.
pub const ORACLES: &[&dyn Oracle] = &[&wss::TxWss, &wss::StmtWss, &wss::SerialReads, &crash::Crash];

pub trait Oracle: Sync {
    fn name(&self) -> &'static str;

    /// What it checks, in one sentence.
    fn about(&self) -> &'static str;

    /// The runs that it needs beside the concurrent one.
    fn replays(&self, run: &Concurrent<'_>) -> Vec<Replay>;

    /// `histories` are those of [`Oracle::replays`], in the same order.
    fn judge(&self, run: &Concurrent<'_>, replays: &[Replay], histories: &[&History]) -> Verdict;
}

pub fn find(name: &str) -> Result<&'static dyn Oracle, String> {
    ORACLES.iter().copied().find(|o| o.name() == name).ok_or_else(|| {
        let names: Vec<&str> = ORACLES.iter().map(|o| o.name()).collect();
        format!("`{name}` is not an oracle; there are {}", names.join(", "))
    })
}

/// Why a run that the runner had to interfere with is not judged.
const CANCELLED: &str = "Isolde cancelled a statement that did not end";
/// The same of a serial run.
const CANCELLED_SERIALLY: &str = "Isolde cancelled a statement of the serial run";

/// Why a serial run is no measure for a concurrent one.
pub fn unknown_serial(serial: &History) -> Option<&'static str> {
    if serial.was_cancelled() {
        Some(CANCELLED_SERIALLY)
    } else {
        serial.lost_server().then_some("the server was lost in the serial run")
    }
}

/// A concurrent run, with what the oracles want to know of it.
pub struct Concurrent<'a> {
    pub case: &'a Case,
    pub history: &'a History,
    pub executed: Vec<Executed>,
    /// At this level of this engine the serial order is the commit order, so
    /// that reads can be compared as well.
    pub commit_ordered: bool,
}

impl<'a> Concurrent<'a> {
    pub fn new(case: &'a Case, history: &'a History, commit_ordered: bool) -> Concurrent<'a> {
        Concurrent { case, history, executed: executed(history), commit_ordered }
    }

    /// Transactions that committed, in the order in which they did.
    pub fn committed(&self) -> Vec<&Executed> {
        self.executed.iter().filter(|t| t.committed()).collect()
    }

    /// With autocommit off, the first statement begins the transaction. If it
    /// is a deadlock's victim, there never was one for the runner to follow:
    /// later statements and savepoints are in another than they seem to be.
    fn rolled_back_unseen(&self) -> bool {
        self.history.events.iter().any(|e| {
            let alone = |step: usize| {
                let t = self.history.transactions.iter();
                t.clone().any(|t| t.begin == step && t.autocommit && t.session == e.session)
            };
            e.what.error().is_some_and(|error| error.effect == ErrorEffect::RolledBack)
                && e.step.is_some_and(alone)
                && self.case.steps.iter().any(|s| s.session == e.session && turns_off_autocommit(s))
        })
    }

    /// Why no oracle that compares outcomes can say anything: what happened
    /// to a transaction, or what the rows are, is not known. The words are the
    /// same for all such runs, so that they can be counted.
    pub fn unknown(&self) -> Option<&'static str> {
        if let Some(death) = &self.history.death {
            Some(death.how.name())
        } else if self.history.was_cancelled() {
            Some(CANCELLED)
        } else if self.executed.iter().any(Executed::is_unknown) {
            Some("how a transaction ended is not known")
        } else if self.rolled_back_unseen() {
            Some("autocommit was off, and what the engine rolled back is not known")
        } else if self.history.final_state.iter().any(|f| f.error.is_some()) {
            Some("the final rows could not be read")
        } else {
            None
        }
    }
}

/// What cannot be read, such as a SET of several things, may do it, too.
fn turns_off_autocommit(step: &Step) -> bool {
    match step.statement() {
        Some(statement) => *statement == Stmt::SetAutocommit(false),
        None => {
            let words = sql::outer_words(&step.sql);
            words.iter().any(|(_, word)| word.to_ascii_lowercase().ends_with("autocommit"))
        }
    }
}

#[derive(Clone, Debug, PartialEq)]
pub enum Verdict {
    Consistent,
    Violated(Vec<Difference>),
    /// The oracle has nothing to say of this run, for the reason given.
    Unknown(String),
}

impl Verdict {
    pub fn differences(&self) -> Option<&[Difference]> {
        match self {
            Verdict::Violated(differences) => Some(differences),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests;
