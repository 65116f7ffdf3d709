//! The analysis of a run: what the reference model concludes, computed once.
//!
//! [`analyse`] replays a run until one way through what the rules leave open
//! explains every event, and looks for a serial order where one is promised or
//! asked for. The oracle, the cause of a violation and the account for people
//! all read the same [`Analysis`].

mod account;
mod anomaly;
pub mod cause;
mod control;
mod serial_order;

use crate::model::ReferenceModel;
use crate::search::{Choices, EvalCache};
use crate::stop::Stop;
use crate::subject::Subject;
use account::Steps;
pub use account::{Account, CitedRule, StepAccount, StepVerdict};
use anomaly::name_anomaly;
pub use anomaly::{AnomalyClass, NamedAnomaly};
pub use control::ControlRun;
use isolde_catalog::Rule;
use isolde_model::breach::Breach;
use isolde_model::inquiry::Channel;
use isolde_sql::BeginForm;
pub use serial_order::SerialOrder;
pub(crate) use serial_order::serial_order;

/// Ways through what the rules leave open that are tried before the run counts
/// as not modelled.
const MOST_WAYS: usize = 400;

/// What the reference model concludes about a run.
#[derive(Clone, Debug, PartialEq)]
pub enum Conclusion {
    /// Every statement and the final rows are within the rules.
    Allowed {
        /// For each step the rules that explain it.
        rules: Vec<Vec<&'static Rule>>,
        /// The serial order, where one is promised, and the rule that promises it.
        order: Option<(Vec<String>, &'static Rule)>,
    },
    /// A statement, or without one the final rows, is what no rule allows.
    /// Without a rule it is the serial order that is missing.
    Broken {
        step: Option<usize>,
        rule: Option<&'static Rule>,
        breach: Breach,
    },
    /// Every result is within the rules, but a statement waited, did not wait or was
    /// aborted where the rules say otherwise.
    LockingDiffers {
        step: usize,
        rule: &'static Rule,
        breach: Breach,
        /// Why the results are not known to be right: a part of the run is not
        /// modelled.
        rest: Option<String>,
    },
    NotModelled {
        step: Option<usize>,
        why: String,
    },
}

/// When to search for a serial order of the committed transactions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SerialSearch {
    /// Only where the level promises one.
    WherePromised,
    /// For every run that is within the rules.
    Always,
}

/// All that the reference model found out about one run.
#[derive(Clone, Debug)]
pub struct Analysis {
    pub conclusion: Conclusion,
    pub(crate) steps: Steps,
    /// The result of the search for a serial order, if there was one.
    pub(crate) serial: Option<SerialOrder>,
    /// The anomaly, if the run is within the rules and no serial order explains it.
    pub anomaly: Option<NamedAnomaly>,
}

impl Analysis {
    /// The control runs for a conclusion that rows or the row count of a statement are wrong.
    pub fn control_runs(&self) -> &[ControlRun] {
        match &self.conclusion {
            Conclusion::Broken {
                breach:
                    Breach::Rows { .. }
                    | Breach::RowCount { .. }
                    | Breach::FinalRows { .. }
                    | Breach::FinalQuery { .. },
                ..
            } => &self.steps.controls,
            _ => &[],
        }
    }
}

/// Replays a run and concludes whether the rules allow it.
pub async fn analyse(subject: &Subject<'_>, channel: &Channel, search: SerialSearch) -> Analysis {
    if !subject.has_rules() {
        let why = "there are no rules for this engine".into();
        let conclusion = Conclusion::NotModelled { step: None, why };
        return Analysis { conclusion, steps: Steps::default(), serial: None, anomaly: None };
    }
    let (conclusion, steps) = predict(subject, channel).await;
    let analysis = Analysis { conclusion, steps, serial: None, anomaly: None };
    match subject.promises_serial_order() || search == SerialSearch::Always {
        true => with_serial_search(subject, channel, analysis).await,
        false => analysis,
    }
}

/// Adds the search for a serial order to an analysis without one, if the run is
/// within the rules.
pub async fn with_serial_search(
    subject: &Subject<'_>,
    channel: &Channel,
    analysis: Analysis,
) -> Analysis {
    let within = matches!(
        analysis.conclusion,
        Conclusion::Allowed { .. } | Conclusion::LockingDiffers { .. }
    );
    if !within || analysis.serial.is_some() {
        return analysis;
    }
    let Analysis { conclusion, steps, .. } = analysis;
    let promised = subject.promises_serial_order();
    let serial = serial_order(subject, channel.clone()).await;
    let conclusion = match promised {
        true => with_serial_order(subject, conclusion, &serial),
        false => conclusion,
    };
    let is_anomaly = matches!(conclusion, Conclusion::Allowed { .. })
        && matches!(serial, SerialOrder::None { .. });
    let anomaly = match is_anomaly {
        true => name_anomaly(subject, channel).await,
        false => None,
    };
    Analysis { conclusion, steps, serial: Some(serial), anomaly }
}

/// The conclusion about a run that must have a serial order.
fn with_serial_order(
    subject: &Subject<'_>,
    conclusion: Conclusion,
    serial: &SerialOrder,
) -> Conclusion {
    let rules = match &conclusion {
        Conclusion::Allowed { rules, .. } => rules.clone(),
        _ if matches!(serial, SerialOrder::Found(_)) => return conclusion,
        _ => Vec::new(),
    };
    match serial.clone() {
        SerialOrder::Found(order) => {
            let concurrency = subject.concurrency(0, Some(BeginForm::Plain));
            let order = concurrency.map(|concurrency| (order, concurrency.rules.serial));
            Conclusion::Allowed { rules, order }
        }
        SerialOrder::None { step, nearest, attempts } => {
            let breach = Breach::NoSerialOrder { nearest, attempts };
            Conclusion::Broken { step, rule: None, breach }
        }
        SerialOrder::CutOff => {
            let why = "too many serial orders are open to try them all".into();
            Conclusion::NotModelled { step: None, why }
        }
        SerialOrder::NotModelled { step, why } => Conclusion::NotModelled { step, why },
    }
}

/// Whether the rules allow each statement of the run and its final rows, and
/// what is known of each step, also where the replay stops half way.
pub(crate) async fn predict(subject: &Subject<'_>, channel: &Channel) -> (Conclusion, Steps) {
    let (conclusion, steps) = search_replays(subject, channel, false).await;
    match &conclusion {
        // Is locking all that differs?
        Conclusion::Broken { step: Some(step), rule: Some(rule), breach }
            if breach.is_about_locking() =>
        {
            match search_replays(subject, channel, true).await {
                (Conclusion::NotModelled { why, .. }, steps) => {
                    let (step, breach, rest) = (*step, breach.clone(), Some(why));
                    (Conclusion::LockingDiffers { step, rule, breach, rest }, steps)
                }
                // A wrong result proves that the lock is missing: the statement that
                // it should have stopped is to blame.
                (Conclusion::Broken { .. }, _) => (conclusion, steps),
                other => other,
            }
        }
        _ => (conclusion, steps),
    }
}

/// Tries the ways through what the rules leave open until one explains every event.
async fn search_replays(
    subject: &Subject<'_>,
    channel: &Channel,
    tolerates_locking: bool,
) -> (Conclusion, Steps) {
    let (mut cache, mut choices) = (EvalCache::default(), Choices::default());
    let mut farthest: Option<(usize, Conclusion, Steps)> = None;
    for _ in 0..MOST_WAYS {
        let mut model = ReferenceModel::new(subject, channel, &mut cache, &mut choices);
        model.tolerates_locking = tolerates_locking;
        let stop = match model.run().await {
            Ok(()) => {
                let steps = model.steps();
                if let Some((step, rule, breach)) = model.trace.locking_breach().cloned() {
                    // Without the lock, a constraint may be violated by what has
                    // been committed: that is a result.
                    let conclusion = match model.constraints_hold() {
                        true => Conclusion::LockingDiffers { step, rule, breach, rest: None },
                        false => Conclusion::Broken { step: Some(step), rule: Some(rule), breach },
                    };
                    return (conclusion, steps);
                }
                let conclusion = match steps.unmodelled.first_key_value() {
                    Some((step, why)) => {
                        Conclusion::NotModelled { step: Some(*step), why: why.clone() }
                    }
                    None => Conclusion::Allowed { rules: steps.rules.clone(), order: None },
                };
                return (conclusion, steps);
            }
            Err(stop) => stop,
        };
        let reached = model.world.now();
        match stop {
            Stop::NotModelled { step, why } => {
                return (Conclusion::NotModelled { step: Some(step), why }, model.steps());
            }
            Stop::Refused { step, error } => {
                let why = format!("it cannot be evaluated: {error}");
                return (Conclusion::NotModelled { step: Some(step), why }, model.steps());
            }
            Stop::Tried => {}
            Stop::Outside { step, rule, breach } => {
                if farthest.as_ref().is_none_or(|(at, ..)| reached > *at) {
                    let mut steps = model.steps();
                    steps.controls = model.control_runs(step);
                    let broken = Conclusion::Broken { step, rule: Some(rule), breach };
                    farthest = Some((reached, broken, steps));
                }
            }
        }
        if !choices.advance() {
            let Some((_, broken, steps)) = farthest else { break };
            return (broken, steps);
        }
    }
    let why = "too many orders are open to try them all".into();
    (Conclusion::NotModelled { step: None, why }, Steps::default())
}
