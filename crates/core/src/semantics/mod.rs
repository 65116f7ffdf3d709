//! Executable semantics: what the rules of an engine allow a run to be.
//!
//! A prediction takes the schedule of a run as given (what was sent, waited,
//! came back and ended, in this order) and says of each statement whether its
//! outcome is one that the engine's rules allow for the level and the mode of
//! its transaction: *inside*, with the rules that explain it; *outside*, with
//! the rule that was broken; or *not modelled*, and why. Three steps for each:
//! what it sees, with whom it conflicts, and what it does after a wait.
//!
//! ```text
//!   history ──► Walk ──► for each reply: view ──► the engine evaluates ──► compare
//!                │ versions (store), locks, transactions          │
//!                └────────────── Choices: what is left open ◄─────┘ not as observed
//! ```
//!
//! Visibility, conflicts and second tests are ours; the engine evaluates
//! expressions, on rows that it is given ([`version_tables`]). The rules are
//! data ([`rules`]).
//!
//! What it does not verify: for whom exactly a statement waited (only that
//! somebody held what it may have wanted), timing, and plans; whatever is not
//! modelled is said to be.

mod account;
mod cells;
mod choice;
mod commit;
mod conclude;
mod constraints;
mod current;
mod dirty;
mod evaluation;
mod finals;
mod foreign;
mod insert;
mod locking_read;
mod memory;
mod merge;
mod opaque;
mod reading;
mod record;
pub mod rules;
mod serial;
mod statement;
mod store;
mod table_locks;
#[cfg(test)]
mod tests;
mod three_way;
mod transaction;
mod tried;
mod turns;
pub mod version_tables;
mod visibility;
mod waits;
mod walk;
mod write;
mod write_view;

use crate::Level;
use crate::generate::BeginForm;
use crate::history::{DbError, History, What};
use crate::inquiry::Desk;
use account::Steps;
pub use account::{Account, CitedRule, Serially, StepAccount, StepVerdict, Whole, account};
use choice::Choices;
use memory::Memory;
pub(crate) use reading::begin_form;
pub use reading::{Operation, Reading};
use rules::{Conduct, Rule};
pub use serial::{SerialOrder, serial_order};
use walk::Walk;

/// A run of it.
pub struct Subject<'a> {
    pub history: &'a History,
    pub reading: &'a Reading,
}

impl<'a> Subject<'a> {
    /// Whether there are rules for the engine at all.
    pub fn has_rules(&self) -> bool {
        (0..self.reading.levels.len())
            .any(|step| self.conduct(step, Some(BeginForm::Plain)).is_some())
    }

    /// Whether all that is committed must have a serial order.
    pub fn promises_serial_order(&self) -> bool {
        let conduct = || self.conduct(0, Some(BeginForm::Plain));
        self.reading.levels.iter().all(|l| *l == Level::Serializable)
            && !conduct().is_some_and(|c| c.ignores_level)
    }

    fn conduct(&self, step: usize, begun: Option<BeginForm>) -> Option<Conduct> {
        rules::conduct(&self.history.on, self.reading.levels[step], begun)
    }

    fn reply(&self, step: usize) -> Option<&'a What> {
        self.history.outcome(step).reply
    }
}

/// Why a walk did not come to its end.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Stop {
    Outside {
        step: Option<usize>,
        rule: &'static Rule,
        why: String,
    },
    NotModelled {
        step: usize,
        why: String,
    },
    /// A walk that came to the same state has failed.
    Tried,
    /// The engine does not evaluate what the prediction wants.
    Refused {
        step: usize,
        error: DbError,
    },
}

impl Stop {
    fn not_modelled(step: usize, why: &str) -> Stop {
        Stop::NotModelled { step, why: why.into() }
    }
}

/// What the rules say of a run.
#[derive(Clone, Debug, PartialEq)]
pub enum Prediction {
    /// Everything is as the rules have it; for each step those that explain it.
    Inside {
        rules: Vec<Vec<&'static Rule>>,
    },
    /// A statement, or without one the final rows, is what no rule allows.
    Outside {
        step: Option<usize>,
        rule: &'static Rule,
        why: String,
    },
    NotModelled {
        step: Option<usize>,
        why: String,
    },
}

/// Ways through what is left open that are tried before nothing is said.
const MOST_WAYS: usize = 400;

pub async fn predict(subject: &Subject<'_>, desk: Desk) -> Prediction {
    predict_steps(subject, desk).await.0
}

/// The same, and what is known of each step, also when it stops half way.
async fn predict_steps(subject: &Subject<'_>, desk: Desk) -> (Prediction, Steps) {
    let (mut memory, mut choices) = (Memory::default(), Choices::default());
    let mut farthest: Option<(usize, Stop, Steps)> = None;
    for _ in 0..MOST_WAYS {
        let mut walk = Walk::new(subject, &desk, &mut memory, &mut choices);
        let stop = match walk.run().await {
            Ok(()) => {
                let steps = walk.steps();
                let prediction = match walk.unmodelled.pop_first() {
                    Some((step, why)) => Prediction::NotModelled { step: Some(step), why },
                    None => Prediction::Inside { rules: walk.used },
                };
                return (prediction, steps);
            }
            Err(stop) => stop,
        };
        let reached = walk.now;
        match stop {
            Stop::NotModelled { step, why } => {
                return (Prediction::NotModelled { step: Some(step), why }, walk.steps());
            }
            Stop::Refused { step, error } => {
                let why = format!("it cannot be evaluated: {error}");
                return (Prediction::NotModelled { step: Some(step), why }, walk.steps());
            }
            Stop::Tried => {}
            outside @ Stop::Outside { .. } => {
                if farthest.as_ref().is_none_or(|(at, ..)| reached > *at) {
                    farthest = Some((reached, outside, walk.steps()));
                }
            }
        }
        if !choices.advance() {
            let Some((_, Stop::Outside { step, rule, why }, steps)) = farthest else { break };
            return (Prediction::Outside { step, rule, why }, steps);
        }
    }
    let why = "too many orders are open to try them all".into();
    (Prediction::NotModelled { step: None, why }, Steps::default())
}

/// A run as a whole: prediction, and at SERIALIZABLE a serial order.
#[derive(Clone, Debug, PartialEq)]
pub enum Explanation {
    Inside {
        rules: Vec<Vec<&'static Rule>>,
        /// The serial order, where one must exist, and what makes it so.
        order: Option<(Vec<String>, &'static Rule)>,
    },
    /// Without a rule it is the serial order that is missing.
    Outside {
        step: Option<usize>,
        rule: Option<&'static Rule>,
        why: String,
    },
    NotModelled {
        step: Option<usize>,
        why: String,
    },
}

pub async fn explain(subject: &Subject<'_>, desk: &Desk) -> Explanation {
    let prediction = predict(subject, desk.clone()).await;
    explained(subject, desk, prediction).await
}

async fn explained(subject: &Subject<'_>, desk: &Desk, prediction: Prediction) -> Explanation {
    let rules = match prediction {
        Prediction::Inside { rules } => rules,
        Prediction::NotModelled { step, why } => return Explanation::NotModelled { step, why },
        Prediction::Outside { step, rule, why } => {
            return Explanation::Outside { step, rule: Some(rule), why };
        }
    };
    if !subject.promises_serial_order() {
        return Explanation::Inside { rules, order: None };
    }
    match serial_order(subject, desk.clone()).await {
        SerialOrder::Found(order) => {
            let conduct = subject.conduct(0, Some(BeginForm::Plain));
            let order = conduct.map(|conduct| (order, conduct.rules.serial));
            Explanation::Inside { rules, order }
        }
        SerialOrder::None { step, why } => {
            let why = format!("no serial order of the committed transactions explains it: {why}");
            Explanation::Outside { step, rule: None, why }
        }
        SerialOrder::CutOff => {
            let why = "too many serial orders are open to try them all".into();
            Explanation::NotModelled { step: None, why }
        }
        SerialOrder::NotModelled { step, why } => Explanation::NotModelled { step, why },
    }
}
