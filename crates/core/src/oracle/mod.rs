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
pub use executed::{Executed, executed};
pub use serial::{Replay, Serial, other_orders, serial_statements, serial_transactions};

use crate::history::ErrorEffect;
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
    fn rolled_back_unseen(&self) -> Option<&str> {
        let victim = self.history.events.iter().find(|e| {
            let alone = |step: usize| {
                let t = self.history.transactions.iter();
                t.clone().any(|t| t.begin == step && t.autocommit && t.session == e.session)
            };
            e.what.error().is_some_and(|error| error.effect == ErrorEffect::RolledBack)
                && e.step.is_some_and(alone)
                && self.case.steps.iter().any(|s| {
                    s.session == e.session && s.sql.to_ascii_lowercase().contains("autocommit")
                })
        });
        victim.map(|e| e.session.as_str())
    }

    /// Why no oracle that compares outcomes can say anything: what happened
    /// to a transaction, or what the rows are, is not known.
    pub fn unknown(&self) -> Option<String> {
        if let Some(lost) = self.executed.iter().find(|t| t.is_unknown()) {
            return Some(format!("how a transaction of {} ended is not known", lost.session));
        }
        if let Some(session) = self.rolled_back_unseen() {
            return Some(format!(
                "{session} had autocommit off, and what the engine rolled back is not known"
            ));
        }
        let failed = self.history.final_state.iter().find_map(|f| f.error.as_ref());
        failed.map(|error| format!("the final rows could not be read: {error}"))
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
