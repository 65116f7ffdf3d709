//! The input of the reference model: one recorded run.

use isolde_catalog::{self as catalog, ConcurrencyModel, SerialOrderPromise};
use isolde_model::Level;
use isolde_model::history::{EventKind, History};
use isolde_model::parsed_case::{Operation, ParsedCase};
use isolde_sql::BeginForm;
use std::borrow::Cow;

/// A recorded run and its parsed case.
pub struct Subject<'a> {
    pub history: &'a History,
    pub reading: Cow<'a, ParsedCase>,
}

impl<'a> Subject<'a> {
    pub fn new(history: &'a History, reading: &'a ParsedCase) -> Subject<'a> {
        Subject { history, reading: reading.in_run(history) }
    }

    /// Whether there are rules for the engine at all.
    pub fn has_rules(&self) -> bool {
        (0..self.reading.levels.len())
            .any(|step| self.concurrency(step, Some(BeginForm::Plain)).is_some())
    }

    /// Whether all that is committed must have a serial order.
    pub fn promises_serial_order(&self) -> bool {
        let concurrency = || self.concurrency(0, Some(BeginForm::Plain));
        self.reading.levels.iter().all(|l| *l == Level::Serializable)
            && !concurrency().is_some_and(|c| c.commit.serial_order == SerialOrderPromise::None)
    }

    pub(crate) fn concurrency(
        &self,
        step: usize,
        begun: Option<BeginForm>,
    ) -> Option<ConcurrencyModel> {
        catalog::concurrency_model(&self.history.on, self.reading.levels[step], begun)
    }

    /// Whether a step neither reads nor changes rows.
    pub(crate) fn is_utility(&self, step: usize) -> bool {
        matches!(self.reading.operations[step], Operation::Utility(_))
    }

    pub(crate) fn reply(&self, step: usize) -> Option<&'a EventKind> {
        self.history.outcome(step).reply
    }
}
