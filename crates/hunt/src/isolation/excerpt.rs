//! From a round at full speed to a scheduled case: the transactions of a cycle, in the
//! order in which their statements were sent, with as few others as it takes to see the
//! anomaly again.
//!
//! The order is the one that the trace tells (`core::order`), and that of the clients' clocks
//! where the inferred one shows nothing. Where neither does, the excerpt is only what was seen.

use super::round::Played;
use crate::error::HuntError;
use crate::executor::{Executor, Fixture};
use isolde_checker::{Anomaly, Witness};
use isolde_core::generate::plan::number_operations;
use isolde_core::generate::{End, OpId, Plan, TxPlan};
use isolde_core::history::TxEnd;
use isolde_core::inquiry::Inquiry;
use isolde_core::oracle::forbidden;
use isolde_core::oracle::isolation::{self, Examination, Examined};
use isolde_core::order::{self, Schedule};
use isolde_core::reduce::{Question, Strategy, Trial, reduce as search};
use isolde_core::semantics::Reading;
use isolde_engines::runner::RunError;

/// Transactions that are tried beside those of a cycle, one at a time, at most.
const MOST_COMPANIONS: usize = 40;
/// Transactions of a replay at most: a schedule of thousands of statements takes seconds.
const MOST_TRANSACTIONS: usize = 120;

/// A scheduled case of a round, and what it shows when it is played.
pub struct Excerpt {
    /// Before it was reduced.
    pub whole: Plan,
    pub plan: Plan,
    /// By which order its statements are sent.
    pub order: Order,
    /// None if it shows nothing that the level forbids.
    pub shown: Option<Shown>,
    pub trials: u32,
    /// Its reduction was told to stop before it had tried everything.
    pub cut: bool,
}

/// How much is done for an excerpt.
#[derive(Clone, Copy)]
pub struct Effort<'e> {
    /// Asked before every replay; true ends the search with what there is.
    pub stop: &'e dyn Fn() -> bool,
    /// Replays of a reduction at most; none: nothing is reduced.
    pub trials: u32,
}

/// Where the order of a scheduled case is from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// The one that times, versions and locks tell.
    Inferred,
    /// That in which the statements were sent.
    Clocks,
}

impl Order {
    /// Rather what was inferred.
    pub const BOTH: [Order; 2] = [Order::Inferred, Order::Clocks];

    /// The place of each operation of the trace; none where nothing can be inferred.
    fn places(self, played: &Played) -> Option<Vec<u64>> {
        let operations = &played.trace.operations;
        match self {
            Order::Clocks => Some(operations.iter().map(|o| o.start).collect()),
            Order::Inferred => {
                let inferred = order::infer(&played.trace, None, order::BUDGET).ok()?;
                let schedule = Schedule::of(&played.trace, &inferred);
                let mut places = vec![0; operations.len()];
                for (place, at) in (1u64..).zip(&schedule.order) {
                    places[*at as usize] = place;
                }
                // What is not sent again keeps its place between the others.
                let mut last = 0;
                for at in &inferred.order {
                    let place = &mut places[*at as usize];
                    last = last.max(*place);
                    *place = if *place == 0 { last } else { *place };
                }
                Some(places)
            }
        }
    }
}

/// What a scheduled run showed.
pub struct Shown {
    pub examination: Examination,
    pub anomaly: Anomaly,
}

/// Plays a scheduled case on tables that tell: what it shows that its level forbids.
pub(super) fn replay(executor: &mut Executor, plan: &Plan) -> Result<Option<Shown>, HuntError> {
    let case = &plan.to_case();
    let reading = &Reading::of_plan(plan);
    let fixture = Fixture { versions: None, ..Fixture::of(plan) };
    let profile = executor.runner.engine.profile();
    let level = plan.level.unwrap_or(profile.default_level);
    let Some(allows) = profile.promise(level).and_then(|p| p.allows.clone()) else {
        return Ok(None);
    };
    let (on, allowed) = (&executor.runner.engine.info().clone(), &allows[..]);
    let about = &Examined { case, reading, on, allows: Some(allowed) };
    let inquiry = Inquiry::new(|desk| async move { isolation::examine(about, &desk).await });
    let examination = match executor.inquire((&fixture, case), inquiry, &mut Vec::new()) {
        Ok(Ok(examination)) => examination,
        Ok(Err(_)) | Err(HuntError::Broke(_)) => return Ok(None),
        Err(error) => return Err(error),
    };
    let found = forbidden(&examination.report, Some(&allows)).first().map(|a| (*a).clone());
    Ok(found.map(|anomaly| Shown { examination, anomaly }))
}

/// The shortest case that shows what a round did, or at least what was seen.
pub fn excerpt(
    executor: &mut Executor,
    played: &Played,
    anomaly: &Anomaly,
    orders: &[Order],
    effort: Effort<'_>,
) -> Result<Excerpt, HuntError> {
    let cycle = transactions_of(played, anomaly);
    let mut known: Vec<(Order, Vec<u64>)> = orders
        .iter()
        .filter_map(|order| order.places(played).map(|places| (*order, places)))
        .collect();
    if known.is_empty() {
        known.extend(Order::Clocks.places(played).map(|places| (Order::Clocks, places)));
    }
    let own = cut(played, &cycle, &known[0].1);
    let mut trials = 0;
    let choices = choices(played, &cycle);
    let choices = choices.iter().flat_map(|c| known.iter().map(move |k| (c, k)));
    for (chosen, (order, places)) in choices {
        if chosen.len() > MOST_TRANSACTIONS || (effort.stop)() {
            continue;
        }
        let plan = cut(played, chosen, places);
        let order = *order;
        trials += 1;
        if let Some(shown) = replay(executor, &plan)? {
            let whole =
                Excerpt { whole: plan.clone(), plan, order, shown: None, trials, cut: false };
            return reduced(executor, whole, shown, effort);
        }
    }
    let order = known[0].0;
    Ok(Excerpt { whole: own.clone(), plan: own, order, shown: None, trials, cut: false })
}

/// The transactions of a witness, by their places in the round.
fn transactions_of(played: &Played, anomaly: &Anomaly) -> Vec<usize> {
    let history = &played.account.history;
    let mut found: Vec<usize> = match &anomaly.witness {
        Witness::Cycle(edges) => edges.iter().map(|edge| edge.from).collect::<Vec<_>>(),
        Witness::Operation { txn, other, .. } => {
            [Some(*txn), *other].into_iter().flatten().collect()
        }
    }
    .into_iter()
    .filter_map(|txn| played.place_of(&history.txn_name(txn)))
    .collect();
    found.sort_unstable();
    found.dedup();
    found
}

/// Which transactions may show it, the fewest first: those of the cycle; a third one beside
/// them, since what the engine overlooks may be hidden behind another's work; and all that ran
/// at the same time, without and with those that were aborted.
fn choices(played: &Played, cycle: &[usize]) -> Vec<Vec<usize>> {
    let wider = around(played, cycle);
    let committed = |t: &usize| played.trace.transactions[*t].how == TxEnd::Committed;
    let others: Vec<usize> = wider.iter().filter(|t| !cycle.contains(t)).copied().collect();
    let with = |others: &[usize]| {
        let mut chosen = [cycle, others].concat();
        chosen.sort_unstable();
        chosen
    };
    let mut choices = vec![cycle.to_vec()];
    choices.extend(others.iter().take(MOST_COMPANIONS).map(|other| with(&[*other])));
    choices.push(with(&others.iter().copied().filter(committed).collect::<Vec<_>>()));
    choices.push(wider);
    choices.dedup();
    choices
}

/// With all that ran at the same time.
fn around(played: &Played, cycle: &[usize]) -> Vec<usize> {
    let times = played.times();
    let begin = cycle.iter().map(|t| times[*t].0).min().unwrap_or(0);
    let end = cycle.iter().map(|t| times[*t].1).max().unwrap_or(0);
    let overlaps = |t: &usize| times[*t].0 <= end && times[*t].1 >= begin;
    (0..played.transactions.len()).filter(overlaps).collect()
}

/// These transactions as a case, in this order, from the rows that had been committed when the
/// first of them began.
fn cut(played: &Played, chosen: &[usize], places: &[u64]) -> Plan {
    let mut transactions: Vec<TxPlan> =
        chosen.iter().map(|t| played.transactions[*t].clone()).collect();
    for (transaction, place) in transactions.iter_mut().zip(chosen) {
        if played.trace.transactions[*place].how != TxEnd::Committed {
            transaction.end = End::Rollback;
        }
    }
    number_operations(&mut transactions);
    let mut sent: Vec<(u64, OpId)> = Vec::new();
    for (transaction, place) in transactions.iter().zip(chosen) {
        let sequence = transaction.sequence();
        let starts = played.places(*place, &|at| places[at]);
        let end = starts.iter().flatten().max().copied();
        for (n, (id, _)) in sequence.iter().enumerate() {
            // What was never sent because the engine had ended it: only its end matters.
            let last = n + 1 == sequence.len();
            let start = starts.get(n).copied().flatten();
            let start = start.or(end.filter(|_| last));
            sent.extend(start.map(|start| (start, *id)));
        }
    }
    sent.sort_unstable();
    let schedule = sent.into_iter().map(|(_, id)| id).collect();
    let times = played.times();
    let begin = chosen.iter().map(|t| times[*t].0).min().unwrap_or(0);
    let rows = played.rows_at(begin);
    Plan { transactions, schedule, rows, ..played.plan.clone() }
}

/// The smallest plan that shows an anomaly of the same class as the whole does.
fn reduced(
    executor: &mut Executor,
    mut excerpt: Excerpt,
    shown: Shown,
    effort: Effort<'_>,
) -> Result<Excerpt, HuntError> {
    let class = shown.anomaly.class;
    excerpt.shown = Some(shown);
    let (whole, played) = (excerpt.whole.clone(), excerpt.trials);
    let inquiry = Inquiry::new(|desk| search(&whole, Strategy::Pisco, 0, desk));
    let smallest = inquiry.answered_by(|question: Question<Plan>| {
        if question.of == excerpt.plan {
            return Ok(Trial::Fails);
        }
        if excerpt.trials - played >= effort.trials || (effort.stop)() {
            return Ok(Trial::OutOfTime);
        }
        excerpt.trials += 1;
        match replay(executor, &question.of) {
            Ok(Some(shown)) if shown.anomaly.class == class => {
                (excerpt.plan, excerpt.shown) = (question.of, Some(shown));
                Ok(Trial::Fails)
            }
            // A schema that lacks what something needs is no smaller case.
            Ok(_) | Err(HuntError::Fixture { .. }) => Ok(Trial::Passes),
            Err(HuntError::Run(RunError::Interrupted)) => Ok(Trial::OutOfTime),
            Err(error) => Err(error),
        }
    })?;
    excerpt.cut = smallest.is_none_or(|smallest| smallest.cut);
    Ok(excerpt)
}
