//! The concurrent run that oracles judge.

use crate::options::OracleOptions;
use isolde_model::executed_transactions::{ExecutedTransaction, executed_transactions};
use isolde_model::history::ErrorEffect;
use isolde_model::parsed_case::ParsedCase;
use isolde_model::{Anomaly, Case, History};

/// Why a run in which the runner cancelled a statement is not judged.
pub(crate) const CANCELLED: &str = "Isolde cancelled a statement that did not end";
/// The same for a serial run.
const CANCELLED_SERIALLY: &str = "Isolde cancelled a statement of the serial run";

/// Why a serial run cannot be compared with a concurrent one.
pub fn unknown_serial(serial: &History) -> Option<&'static str> {
    if serial.was_cancelled() {
        Some(CANCELLED_SERIALLY)
    } else {
        serial.lost_server().then_some("the server was lost in the serial run")
    }
}

/// A concurrent run, with what the oracles need to judge it.
pub struct ConcurrentRun<'a> {
    pub case: &'a Case,
    pub history: &'a History,
    pub executed: Vec<ExecutedTransaction>,
    /// At this level of this engine the serial order is the commit order, so that reads can be
    /// compared as well.
    pub commit_ordered: bool,
    /// Its parsed statements and tables; none if they could not be parsed.
    pub reading: Option<&'a ParsedCase>,
    /// The anomalies that the documentation of its level allows; none where its sessions use
    /// different levels or the documentation does not say.
    pub allows: Option<Vec<Anomaly>>,
    pub options: OracleOptions,
}

impl<'a> ConcurrentRun<'a> {
    pub fn new(case: &'a Case, history: &'a History, commit_ordered: bool) -> ConcurrentRun<'a> {
        let executed = executed_transactions(history);
        ConcurrentRun {
            case,
            history,
            executed,
            commit_ordered,
            reading: None,
            allows: None,
            options: OracleOptions::default(),
        }
    }

    /// The same run with other transactions, or in another order.
    pub(crate) fn with_order(&self, order: Vec<&ExecutedTransaction>) -> ConcurrentRun<'a> {
        let executed = order.into_iter().cloned().collect();
        let (allows, options) = (self.allows.clone(), self.options.clone());
        ConcurrentRun { executed, allows, options, ..*self }
    }

    /// The committed transactions, in commit order.
    pub fn committed(&self) -> Vec<&ExecutedTransaction> {
        self.executed.iter().filter(|t| t.committed()).collect()
    }

    /// Whether the engine rolled back a transaction of which the runner does not know. With
    /// autocommit off, the first statement begins the transaction. If it is the victim of a
    /// deadlock, the runner has no transaction to follow: later statements and savepoints belong
    /// to another transaction than they seem to.
    fn has_untracked_rollback(&self) -> bool {
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

    /// Why no oracle that compares outcomes can judge the run: how a transaction ended, or what
    /// the final rows are, is not known. The texts are constant, so that they can be counted.
    pub fn unknown(&self) -> Option<&'static str> {
        let untracked = "autocommit was off, and what the engine rolled back is not known";
        self.unknown_history().or_else(|| self.has_untracked_rollback().then_some(untracked))
    }

    /// Why not even the statements one by one can be judged.
    pub fn unknown_history(&self) -> Option<&'static str> {
        if let Some(death) = &self.history.death {
            Some(death.how.name())
        } else if self.history.was_cancelled() {
            Some(CANCELLED)
        } else if self.executed.iter().any(ExecutedTransaction::is_unknown) {
            Some("how a transaction ended is not known")
        } else if self.history.final_state.iter().any(|f| f.error.is_some()) {
            Some("the final rows could not be read")
        } else {
            None
        }
    }
}
