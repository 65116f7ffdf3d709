//! When statements were answered and transactions ended, and which statements met something
//! else than what was looked at for them.

use super::observed_run::Run;
use crate::instrument::{CurrentReadScope, Probe, StatementObservation};
use isolde_model::Level;
use isolde_model::executed_transactions::executed_transactions;
use isolde_model::history::{ErrorClass, EventKind, TxEnd};
use isolde_model::parsed_case::Operation;
use isolde_sql::Stmt;
use std::collections::{BTreeSet, HashMap};

/// When a step was sent and answered.
#[derive(Clone, Copy, Default)]
pub struct Moment {
    /// The place of the event that answered it.
    pub answered: usize,
    /// Any part of it.
    pub waited: bool,
    /// It failed because of the rows that it met, and would fail on them again.
    pub refused: bool,
    /// How many statements had been sent when its first part was, and when it was answered.
    sent: usize,
    submissions: usize,
}

/// When a transaction ended.
pub struct Ended {
    at: usize,
    submissions: usize,
    autocommit: bool,
}

impl Ended {
    /// Whether it had ended when a statement took effect. Of what happened between the same
    /// two submissions, the end of a transaction released the blocked statement.
    pub fn is_before(&self, moment: &Moment) -> bool {
        match self.submissions.cmp(&moment.submissions) {
            std::cmp::Ordering::Less => true,
            std::cmp::Ordering::Equal => moment.waited || self.at < moment.answered,
            std::cmp::Ordering::Greater => false,
        }
    }
}

impl Run<'_> {
    /// A statement that met others than those that were looked at for it: it waited, and
    /// meanwhile a transaction committed what it may have read.
    pub fn find_blocked(&self) -> Option<usize> {
        let moments = self.moments();
        let ended = self.ended();
        let committed =
            |number: &usize| self.observed.transactions[*number].how == TxEnd::Committed;
        let all: Vec<usize> = (0..self.observed.transactions.len()).filter(committed).collect();
        let mut find_blocked = Vec::new();
        for number in &all {
            for observed in &self.observed.transactions[*number].statements {
                let step = observed.id as usize - 1;
                let (Some(moment), Operation::Statement(statement)) =
                    (moments.get(&step), &self.operations[step])
                else {
                    continue;
                };
                if !moment.waited || !statement.is_data() {
                    continue;
                }
                let meanwhile = |other: &&usize| {
                    let ended = ended[**other].submissions;
                    *other != number && (moment.sent..=moment.submissions).contains(&ended)
                };
                // The order of statements that continued at the same moment is not known.
                let at_once = |(other, of): (&usize, &Moment)| {
                    *other != step && of.waited && of.submissions == moment.submissions
                };
                let autocommit = ended[*number].autocommit;
                let keeps_view =
                    self.keeps_view(step, statement, autocommit) && !moments.iter().any(at_once);
                // A look of its own is a transaction of its own, which is over.
                let parts = self.instrumented.probes(step).filter(|probe| **probe != Probe::View);
                let looked = autocommit && parts.count() > 1;
                if looked || !keeps_view && all.iter().any(|other| meanwhile(&other)) {
                    find_blocked.push(step);
                }
            }
        }
        find_blocked.into_iter().min()
    }

    /// Whether a wait changes nothing of what a statement sees: its transaction has one
    /// snapshot, or it locks what it has passed and reads the rest as it is in the end.
    fn keeps_view(&self, step: usize, statement: &Stmt, autocommit: bool) -> bool {
        let strong = self.levels[step] >= Level::RepeatableRead;
        match self.scopes[step] {
            CurrentReadScope::Nothing => strong && !autocommit,
            CurrentReadScope::Own => false,
            // InnoDB locks what it passes by.
            CurrentReadScope::OwnAndInner => {
                strong && self.instrument.referenced(statement, self.scopes[step]).viewed.is_empty()
            }
        }
    }

    /// For each step when it was answered, and whether any part of it waited.
    pub fn moments(&self) -> HashMap<usize, Moment> {
        let mut moments: HashMap<usize, Moment> = HashMap::new();
        let mut submissions = 0;
        for (at, event) in self.history.events.iter().enumerate() {
            submissions += usize::from(matches!(event.what, EventKind::Sent { .. }));
            let Some(observed) = event.step else { continue };
            let (Some(step), _) = self.instrumented.step(observed) else { continue };
            let first = Moment { sent: submissions, ..Moment::default() };
            let moment = moments.entry(step).or_insert(first);
            if let EventKind::Error(error) = &event.what {
                let by_rows = matches!(error.class, ErrorClass::Constraint | ErrorClass::Other);
                moment.refused = by_rows && !self.instrumented.is_probe(observed);
            }
            match &event.what {
                EventKind::Waiting { .. } => moment.waited = true,
                _ => (moment.answered, moment.submissions) = (at, submissions),
            }
        }
        moments
    }

    /// For each observed transaction when it ended.
    pub fn ended(&self) -> Vec<Ended> {
        let ended = executed_transactions(self.history);
        let end = |statements: &[StatementObservation]| -> Ended {
            let ids: BTreeSet<usize> = statements.iter().map(|s| s.id as usize - 1).collect();
            let of = |observed: &usize| {
                let (step, _) = self.instrumented.step(*observed);
                !self.instrumented.is_probe(*observed)
                    && step.is_some_and(|step| ids.contains(&step))
            };
            let mine = ended.iter().find(|t| t.steps.iter().any(of));
            mine.map_or(Ended { at: usize::MAX, submissions: usize::MAX, autocommit: false }, |t| {
                Ended { at: t.ended_at, submissions: t.moment, autocommit: t.autocommit }
            })
        };
        self.observed.transactions.iter().map(|t| end(&t.statements)).collect()
    }
}
