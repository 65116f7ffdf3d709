//! From a round at full speed to a scheduled case: the transactions of a cycle, in the order in
//! which their statements were sent, with as few other transactions as it takes to reproduce the
//! anomaly.
//!
//! The order is the one inferred from the trace (`order`), or that of the clients' clocks where
//! the inferred one does not reproduce the anomaly. Where neither does, the excerpt is the
//! transactions of the cycle as they were observed.

use super::round::RoundRecord;
use crate::error::HuntError;
use crate::execution::executor::Executor;
use crate::run::Fixture;
use isolde_checker::{Anomaly, Witness};
use isolde_engines::runner::RunError;
use isolde_generator::plan::number_operations;
use isolde_generator::reduce::{Strategy, Trial, TrialRequest, reduce as search};
use isolde_generator::{End, OpId, Plan, TxPlan};
use isolde_model::history::TxEnd;
use isolde_model::inquiry::Inquiry;
use isolde_model::parsed_case::ParsedCase;
use isolde_oracles::forbidden;
use isolde_oracles::instrumented_run::Examined;
use isolde_oracles::isolation;
use isolde_oracles::isolation::Examination;
use isolde_order as order;
use isolde_order::Schedule;

/// How many other transactions are added to those of a cycle at most, one at a time.
const MOST_COMPANIONS: usize = 40;
/// The most transactions of a replay: a schedule of thousands of statements takes seconds.
const MOST_TRANSACTIONS: usize = 120;

/// A scheduled case from a round, and the anomaly that it reproduces.
pub struct Excerpt {
    /// Before it was reduced.
    pub whole: Plan,
    pub plan: Plan,
    /// Where the order of its statements comes from.
    pub order: OrderSource,
    /// None if it shows no anomaly that the level forbids.
    pub replayed: Option<ReplayedAnomaly>,
    pub trials: u32,
    /// Its reduction ended before it had tried everything.
    pub cut: bool,
}

/// The effort that may be spent on an excerpt.
#[derive(Clone, Copy)]
pub struct Effort<'e> {
    /// Asked before every replay; true ends the search with what it has.
    pub stop: &'e dyn Fn() -> bool,
    /// The most replays of a reduction; with none, nothing is reduced.
    pub trials: u32,
}

/// Where the order of a scheduled case comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OrderSource {
    /// Inferred from times, versions and locks.
    Inferred,
    /// The order in which the clients sent the statements.
    Clocks,
}

impl OrderSource {
    /// The inferred order first.
    pub const BOTH: [OrderSource; 2] = [OrderSource::Inferred, OrderSource::Clocks];

    /// The place of each operation of the trace; none where no order can be inferred.
    fn places(self, round: &RoundRecord) -> Option<Vec<u64>> {
        let operations = &round.trace.operations;
        match self {
            OrderSource::Clocks => Some(operations.iter().map(|o| o.start).collect()),
            OrderSource::Inferred => {
                let inferred = order::infer(&round.trace, None, order::BUDGET).ok()?;
                let schedule = Schedule::of(&round.trace, &inferred);
                let mut places = vec![0; operations.len()];
                for (place, at) in (1u64..).zip(&schedule.order) {
                    places[*at as usize] = place;
                }
                // Operations that are not sent again keep their place between the others.
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

/// The anomaly of a scheduled run.
pub struct ReplayedAnomaly {
    pub examination: Examination,
    pub anomaly: Anomaly,
}

/// Runs a scheduled case on instrumented tables: the anomaly that its level forbids, if any.
pub(crate) fn replay(
    executor: &mut Executor,
    plan: &Plan,
) -> Result<Option<ReplayedAnomaly>, HuntError> {
    let case = &plan.to_case();
    let reading = &ParsedCase::from(plan);
    let fixture = Fixture { versions: None, ..Fixture::of(plan) };
    let profile = executor.runner.engine.profile();
    let level = plan.level.unwrap_or(profile.default_level);
    let Some(allows) = profile.promise(level).and_then(|p| p.allows.clone()) else {
        return Ok(None);
    };
    let (on, allowed) = (&executor.runner.engine.info().clone(), &allows[..]);
    let about = &Examined { case, reading, on, allows: Some(allowed) };
    let inquiry = Inquiry::new(|channel| async move { isolation::examine(about, &channel).await });
    let examination = match executor.inquire((&fixture, case), inquiry, &mut Vec::new()) {
        Ok(Ok(examination)) => examination,
        Ok(Err(_)) | Err(HuntError::ServerFailure(_)) => return Ok(None),
        Err(error) => return Err(error),
    };
    let found = forbidden(&examination.report, Some(&allows)).first().map(|a| (*a).clone());
    Ok(found.map(|anomaly| ReplayedAnomaly { examination, anomaly }))
}

/// The shortest case that reproduces an anomaly of a round, or at least its transactions.
pub fn excerpt(
    executor: &mut Executor,
    round: &RoundRecord,
    anomaly: &Anomaly,
    orders: &[OrderSource],
    effort: Effort<'_>,
) -> Result<Excerpt, HuntError> {
    let cycle = transactions_of(round, anomaly);
    let mut known: Vec<(OrderSource, Vec<u64>)> = orders
        .iter()
        .filter_map(|order| order.places(round).map(|places| (*order, places)))
        .collect();
    if known.is_empty() {
        known.extend(OrderSource::Clocks.places(round).map(|places| (OrderSource::Clocks, places)));
    }
    let own = excerpt_plan(round, &cycle, &known[0].1);
    let mut trials = 0;
    let choices = choices(round, &cycle);
    let choices = choices.iter().flat_map(|c| known.iter().map(move |k| (c, k)));
    for (chosen, (order, places)) in choices {
        if chosen.len() > MOST_TRANSACTIONS || (effort.stop)() {
            continue;
        }
        let plan = excerpt_plan(round, chosen, places);
        let order = *order;
        trials += 1;
        if let Some(replayed) = replay(executor, &plan)? {
            let whole =
                Excerpt { whole: plan.clone(), plan, order, replayed: None, trials, cut: false };
            return reduce_excerpt(executor, whole, replayed, effort);
        }
    }
    let order = known[0].0;
    Ok(Excerpt { whole: own.clone(), plan: own, order, replayed: None, trials, cut: false })
}

/// The transactions of a witness, by their numbers in the round.
fn transactions_of(round: &RoundRecord, anomaly: &Anomaly) -> Vec<usize> {
    let history = &round.account.history;
    let mut found: Vec<usize> = match &anomaly.witness {
        Witness::Cycle(edges) => edges.iter().map(|edge| edge.from).collect::<Vec<_>>(),
        Witness::Operation { txn, other, .. } => {
            [Some(*txn), *other].into_iter().flatten().collect()
        }
    }
    .into_iter()
    .filter_map(|txn| round.place_of(&history.txn_name(txn)))
    .collect();
    found.sort_unstable();
    found.dedup();
    found
}

/// The sets of transactions that may reproduce an anomaly, the smallest first: those of the cycle;
/// with one more, since another transaction's work may be what makes the engine miss the conflict;
/// and all that ran at the same time, without and with the aborted ones.
fn choices(round: &RoundRecord, cycle: &[usize]) -> Vec<Vec<usize>> {
    let wider = around(round, cycle);
    let committed = |t: &usize| round.trace.transactions[*t].how == TxEnd::Committed;
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

/// All transactions that ran at the same time as those of the cycle.
fn around(round: &RoundRecord, cycle: &[usize]) -> Vec<usize> {
    let times = round.times();
    let begin = cycle.iter().map(|t| times[*t].0).min().unwrap_or(0);
    let end = cycle.iter().map(|t| times[*t].1).max().unwrap_or(0);
    let overlaps = |t: &usize| times[*t].0 <= end && times[*t].1 >= begin;
    (0..round.transactions.len()).filter(overlaps).collect()
}

/// These transactions as a case, in this order. It starts from the rows that were committed when
/// the first of them began.
fn excerpt_plan(round: &RoundRecord, chosen: &[usize], places: &[u64]) -> Plan {
    let mut transactions: Vec<TxPlan> =
        chosen.iter().map(|t| round.transactions[*t].clone()).collect();
    for (transaction, place) in transactions.iter_mut().zip(chosen) {
        if round.trace.transactions[*place].how != TxEnd::Committed {
            transaction.end = End::Rollback;
        }
    }
    number_operations(&mut transactions);
    let mut sent: Vec<(u64, OpId)> = Vec::new();
    for (transaction, place) in transactions.iter().zip(chosen) {
        let sequence = transaction.sequence();
        let starts = round.places(*place, &|at| places[at]);
        let end = starts.iter().flatten().max().copied();
        for (n, (id, _)) in sequence.iter().enumerate() {
            // Statements that were never sent because the engine had aborted the transaction
            // are left out; the end of the transaction is kept.
            let last = n + 1 == sequence.len();
            let start = starts.get(n).copied().flatten();
            let start = start.or(end.filter(|_| last));
            sent.extend(start.map(|start| (start, *id)));
        }
    }
    sent.sort_unstable();
    let schedule = sent.into_iter().map(|(_, id)| id).collect();
    let times = round.times();
    let begin = chosen.iter().map(|t| times[*t].0).min().unwrap_or(0);
    let rows = round.rows_at(begin);
    Plan { transactions, schedule, rows, ..round.plan.clone() }
}

/// The smallest plan that shows an anomaly of the same class.
fn reduce_excerpt(
    executor: &mut Executor,
    mut excerpt: Excerpt,
    replayed: ReplayedAnomaly,
    effort: Effort<'_>,
) -> Result<Excerpt, HuntError> {
    let class = replayed.anomaly.class;
    excerpt.replayed = Some(replayed);
    let (whole, before) = (excerpt.whole.clone(), excerpt.trials);
    let inquiry = Inquiry::new(|channel| search(&whole, Strategy::Pisco, 0, channel));
    let smallest = inquiry.answered_by(|question: TrialRequest<Plan>| {
        if question.subject == excerpt.plan {
            return Ok(Trial::Fails);
        }
        if excerpt.trials - before >= effort.trials || (effort.stop)() {
            return Ok(Trial::OutOfTime);
        }
        excerpt.trials += 1;
        match replay(executor, &question.subject) {
            Ok(Some(replayed)) if replayed.anomaly.class == class => {
                (excerpt.plan, excerpt.replayed) = (question.subject, Some(replayed));
                Ok(Trial::Fails)
            }
            // A schema that the remaining statements do not fit is no smaller case.
            Ok(_) | Err(HuntError::Fixture { .. }) => Ok(Trial::Passes),
            Err(HuntError::Run(RunError::Interrupted)) => Ok(Trial::OutOfTime),
            Err(error) => Err(error),
        }
    })?;
    excerpt.cut = smallest.is_none_or(|smallest| smallest.cut);
    Ok(excerpt)
}
