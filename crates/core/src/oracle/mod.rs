//! Oracles: what came back, is it allowed?
//!
//! An oracle is an inquiry ([`crate::inquiry`]) about a concurrent run. It asks
//! for other runs of the same statements from the same rows, or for statements
//! on rows of its choice, as often as it needs, and ends with a verdict. It
//! runs nothing itself.
//!
//! ```text
//!   case ──run──► history ──► Oracle::inquire ◄──questions, answers──► engine
//!                                  └──► Verdict: consistent, violated, unknown
//! ```
//!
//! A new oracle is a file here, a variant of [`Oracle`] and a line in its
//! table.

mod compare;
mod crash;
mod executed;
pub mod isolation;
mod merged;
mod promise;
mod semantics;
mod serial;
pub mod topological;
mod wss;

pub use compare::{Difference, differences};
pub use crash::broken;
pub use executed::{Executed, executed};
pub use promise::{forbidden, is_ruled_out};
pub use semantics::NO_SERIAL_ORDER;
pub use serial::{Replay, Serial, serial_statements, serial_transactions, unseen_orders};

use crate::history::ErrorEffect;
use crate::inquiry::Desk;
use crate::semantics::Reading;
use crate::{Anomaly, Case, History};

/// Every oracle there is.
pub const ORACLES: &[Oracle] = &[
    Oracle::Semantics,
    Oracle::TxWss,
    Oracle::StmtWss,
    Oracle::SerialReads,
    Oracle::Crash,
    Oracle::Isolation,
    Oracle::Topological,
    Oracle::Merged,
];

/// Those that judge where nobody has chosen: cases on tables as they are.
pub const USUAL: &[Oracle] =
    &[Oracle::Semantics, Oracle::TxWss, Oracle::StmtWss, Oracle::SerialReads, Oracle::Crash];

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Oracle {
    Semantics,
    TxWss,
    StmtWss,
    SerialReads,
    Crash,
    Isolation,
    Topological,
    Merged,
}

impl Oracle {
    /// Its name, and what it checks in one sentence.
    fn line(self) -> (&'static str, &'static str) {
        match self {
            Oracle::Semantics => ("semantics", semantics::ABOUT),
            Oracle::TxWss => ("tx-wss", wss::ABOUT_TRANSACTIONS),
            Oracle::StmtWss => ("stmt-wss", wss::ABOUT_STATEMENTS),
            Oracle::SerialReads => ("serial-reads", wss::ABOUT_READS),
            Oracle::Crash => ("crash", crash::ABOUT),
            Oracle::Isolation => ("isolation", isolation::ABOUT),
            Oracle::Topological => ("topological", topological::ABOUT),
            Oracle::Merged => ("merged", merged::ABOUT),
        }
    }

    pub fn name(self) -> &'static str {
        self.line().0
    }

    pub fn about(self) -> &'static str {
        self.line().1
    }

    pub async fn inquire(self, run: &Concurrent<'_>, desk: &Desk) -> Judgement {
        if self == Oracle::Crash {
            return Judgement::of(crash::judge(run));
        }
        if let Some(why) = run.unknown() {
            return Judgement::of(Verdict::Unknown(why.into()));
        }
        match self {
            Oracle::Semantics => semantics::judge(run, desk).await,
            Oracle::TxWss => wss::transactions(run, desk).await,
            Oracle::StmtWss => wss::statements(run, desk).await,
            Oracle::SerialReads => wss::reads(run, desk).await,
            Oracle::Isolation => isolation::judge(run, desk).await,
            Oracle::Topological => topological::judge(run, desk).await,
            Oracle::Merged => merged::judge(run, desk).await,
            Oracle::Crash => Judgement::of(crash::judge(run)),
        }
    }
}

impl std::fmt::Display for Oracle {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(self.name())
    }
}

/// What an oracle says, and the serial runs that it says it of.
#[derive(Clone, Debug, PartialEq)]
pub struct Judgement {
    pub verdict: Verdict,
    pub replays: Vec<(Replay, History)>,
    /// What the topological oracle made of the case.
    pub topology: Option<Box<topological::Topology>>,
}

impl Judgement {
    fn with(verdict: Verdict, serial: (Replay, History)) -> Judgement {
        Judgement { verdict, replays: vec![serial], topology: None }
    }

    fn of(verdict: Verdict) -> Judgement {
        Judgement { verdict, replays: Vec::new(), topology: None }
    }
}

pub fn find(name: &str) -> Result<Oracle, String> {
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
    /// Its statements and tables, as far as they are understood.
    pub reading: Option<&'a Reading>,
    /// What the documentation of its level allows; none where its levels differ or nothing
    /// is said.
    pub allows: Option<Vec<Anomaly>>,
    pub topological: topological::Options,
}

impl<'a> Concurrent<'a> {
    pub fn new(case: &'a Case, history: &'a History, commit_ordered: bool) -> Concurrent<'a> {
        let executed = executed(history);
        Concurrent {
            case,
            history,
            executed,
            commit_ordered,
            reading: None,
            allows: None,
            topological: topological::Options::default(),
        }
    }

    /// The same run with other transactions, or in another order.
    fn with_order(&self, order: Vec<&Executed>) -> Concurrent<'a> {
        let executed = order.into_iter().cloned().collect();
        Concurrent { executed, allows: self.allows.clone(), ..*self }
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
                && self
                    .case
                    .steps
                    .iter()
                    .any(|s| s.session == e.session && s.turns_off_autocommit())
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
