//! From a round at full speed to a scheduled case: the transactions of a cycle, in the
//! order in which their statements were sent, with as few others as it takes to see the
//! anomaly again.
//!
//! The order is that of the clients' clocks. Where the engine took another, the case may
//! show nothing; then the excerpt is only what was seen.

use super::round::Played;
use crate::error::HuntError;
use crate::executor::{Executor, Fixture};
use isolde_checker::{Anomaly, Class, Witness};
use isolde_core::generate::plan::number_operations;
use isolde_core::generate::{End, OpId, Plan, TxPlan};
use isolde_core::history::TxEnd;
use isolde_core::inquiry::Inquiry;
use isolde_core::oracle::forbidden;
use isolde_core::oracle::isolation::{self, Examination, Examined};
use isolde_core::semantics::Reading;

/// Replays of one excerpt at most.
const TRIALS: u32 = 120;
/// Transactions of a replay at most: a schedule of thousands of statements takes seconds.
const MOST_TRANSACTIONS: usize = 120;

/// A scheduled case of a round, and what it shows when it is played.
pub struct Excerpt {
    pub plan: Plan,
    /// None if it shows nothing that the level forbids.
    pub shown: Option<Shown>,
    pub trials: u32,
    /// Steps before it was reduced.
    pub statements_before: usize,
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
    stop: &dyn Fn() -> bool,
) -> Result<Excerpt, HuntError> {
    let cycle = transactions_of(played, anomaly);
    let own = cut(played, &cycle);
    let statements_before = own.schedule.len();
    let mut trials = 0;
    for chosen in [cycle.clone(), around(played, &cycle)] {
        if chosen.len() > MOST_TRANSACTIONS || stop() {
            continue;
        }
        let plan = cut(played, &chosen);
        trials += 1;
        if let Some(shown) = replay(executor, &plan)? {
            let statements_before = plan.schedule.len();
            let mut search = Search { executor, stop, trials, best: (plan, shown) };
            search.reduce()?;
            let Search { trials, best: (plan, shown), .. } = search;
            return Ok(Excerpt { plan, shown: Some(shown), trials, statements_before });
        }
    }
    Ok(Excerpt { plan: own, shown: None, trials, statements_before })
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

/// With all that ran at the same time.
fn around(played: &Played, cycle: &[usize]) -> Vec<usize> {
    let times = played.times();
    let begin = cycle.iter().map(|t| times[*t].0).min().unwrap_or(0);
    let end = cycle.iter().map(|t| times[*t].1).max().unwrap_or(0);
    let overlaps = |t: &usize| times[*t].0 <= end && times[*t].1 >= begin;
    (0..played.transactions.len()).filter(overlaps).collect()
}

/// These transactions as a case, in the order in which their statements were sent, from the
/// rows that had been committed when the first of them began.
fn cut(played: &Played, chosen: &[usize]) -> Plan {
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
        let starts = played.starts(*place);
        for (n, (id, _)) in sequence.iter().enumerate() {
            // What was never sent because the engine had ended it: only its end matters.
            let last = n + 1 == sequence.len();
            let start = starts.get(n).copied().flatten();
            let start = start.or_else(|| last.then(|| played.times()[*place].1));
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

struct Search<'s> {
    executor: &'s mut Executor,
    stop: &'s dyn Fn() -> bool,
    trials: u32,
    best: (Plan, Shown),
}

impl Search<'_> {
    fn class(&self) -> Class {
        self.best.1.anomaly.class
    }

    /// Takes a plan that shows an anomaly of the same class.
    fn takes(&mut self, plan: Plan) -> Result<bool, HuntError> {
        if self.trials >= TRIALS || (self.stop)() {
            return Ok(false);
        }
        self.trials += 1;
        match replay(self.executor, &plan)? {
            Some(shown) if shown.anomaly.class == self.class() => {
                self.best = (plan, shown);
                Ok(true)
            }
            _ => Ok(false),
        }
    }

    /// Fewer transactions, many at a time as long as that goes well, then fewer statements.
    fn reduce(&mut self) -> Result<(), HuntError> {
        let mut size = self.best.0.transactions.len() / 2;
        while size > 0 {
            let mut at = 0;
            while at < self.best.0.transactions.len() && self.best.0.transactions.len() > 1 {
                let end = (at + size).min(self.best.0.transactions.len());
                if !self.takes(without_transactions(&self.best.0, at..end))? {
                    at = end;
                }
            }
            size /= 2;
        }
        for at in (0..self.best.0.transactions.len()).rev() {
            for statement in (0..self.best.0.transactions[at].statements.len()).rev() {
                self.takes(without_statement(&self.best.0, at, statement))?;
            }
        }
        Ok(())
    }
}

fn without_transactions(plan: &Plan, range: std::ops::Range<usize>) -> Plan {
    let mut smaller = plan.clone();
    smaller.transactions.drain(range);
    smaller
}

fn without_statement(plan: &Plan, transaction: usize, statement: usize) -> Plan {
    let mut smaller = plan.clone();
    smaller.transactions[transaction].statements.remove(statement);
    smaller
}
