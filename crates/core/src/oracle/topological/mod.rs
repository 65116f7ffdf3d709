//! Equivalent executions (TxCheck, OSDI 2023): what the statements of committed transactions
//! saw says who must come before whom; in any order that keeps to that, each by itself and
//! without transactions, they return the same and leave the same rows.
//!
//! ```text
//!   case ──► what cannot tell is left out ──► run on tables that tell ──► graph ─┬─► orders
//!     ▲                                                                         │     │
//!     └────── without a statement that waited, or of a cycle ◄──────────────────┘     ▼
//!                                           run of the same statements, one after the other
//! ```
//!
//! The instrumentation is that of the isolation oracle ([`crate::instrument`]); version-set
//! reads come on top. Writes of engines that read what is current (InnoDB, TiDB pessimistic)
//! are not asked with a snapshot, so that the paper's figure 1 is what it is: documented.
//! What it does not verify: READ UNCOMMITTED (assumption 3), statements that waited, and what
//! `docs/topological.md` lists.

mod graph;
mod keys;
mod matches;
mod moments;
mod refine;
mod seen;
#[cfg(test)]
mod tests;

pub use graph::{Graph, Kind, Node};
pub use refine::Topology;
pub(super) use refine::is_numbered;

use super::isolation::{self, Examined};
use super::{Concurrent, Difference, Judgement, Replay, Serial, Verdict, compare};
use crate::History;
use crate::Level;
use crate::case::Step;
use crate::cause::{Cause, Label};
use crate::inquiry::Desk;
use crate::instrument::ALONE;
use crate::random::{Random, fingerprint};
use crate::semantics::{Reading, Subject};
use refine::{Refined, Refining};

pub const ABOUT: &str = "the statements of committed transactions, run by themselves in an order \
    that follows from what each of them saw, return the same and leave the same rows";

/// How the oracle works.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// Orders of a graph that are tried.
    pub orders: usize,
    /// The engine is asked which versions satisfy a predicate, so that fewer edges stand.
    pub exact_matches: bool,
}

impl Default for Options {
    fn default() -> Options {
        Options { orders: 3, exact_matches: true }
    }
}

pub async fn judge(run: &Concurrent<'_>, desk: &Desk) -> Judgement {
    let unknown = |why: &str| Judgement::of(Verdict::Unknown(why.into()));
    let Some(reading) = run.reading else {
        return unknown("the tables of the case are not understood");
    };
    if reading.levels.contains(&Level::ReadUncommitted) {
        return unknown("at READ UNCOMMITTED a write may not meet what was read before it");
    }
    let on = &run.history.on;
    let refining =
        Refining { reading, on, options: run.topological, allows: run.allows.as_deref() };
    let mut topology = Topology::default();
    let refined = match refining.refine(run.case, desk, &mut topology).await {
        Ok(Ok(refined)) => refined,
        Ok(Err(anomalies)) => {
            let verdict = Verdict::Violated(anomalies);
            return Judgement { verdict, replays: Vec::new(), topology: Some(Box::new(topology)) };
        }
        Err(why) => {
            topology.unknown = Some(why.clone());
            let verdict = Verdict::Unknown(why);
            return Judgement { verdict, replays: Vec::new(), topology: Some(Box::new(topology)) };
        }
    };
    compared(&refining, &refined, desk, topology).await
}

/// Runs the statements in some of the orders that the graph allows.
async fn compared(
    refining: &Refining<'_>,
    refined: &Refined,
    desk: &Desk,
    mut topology: Topology,
) -> Judgement {
    let seed = fingerprint(&crate::case::format(&refined.case));
    let mut random = Random::stream(seed, "topological", 0);
    let orders = topology.graph.orders(refining.options.orders, &mut random);
    topology.orders = orders.len();
    let mut verdict = Verdict::Consistent;
    let mut replays = Vec::new();
    for order in orders {
        let found = match alone(refining, refined, &topology.graph, &order, desk).await {
            Ok((replay, history, found)) => {
                replays = vec![(replay, history)];
                found
            }
            Err(why) => {
                verdict = Verdict::Unknown(why);
                continue;
            }
        };
        if found.is_empty() {
            continue;
        }
        topology.order = order.clone();
        topology.run = Some(refined.history.clone());
        topology.cause = Some(cause(refined, replays.last(), &found, desk).await);
        // A difference that chance made is none.
        verdict = match again(refining, refined, &topology.graph, &order, desk).await {
            Ok(true) => Verdict::Violated(found),
            Ok(false) => Verdict::Unknown("a difference was not there a second time".into()),
            Err(why) => Verdict::Unknown(why),
        };
        break;
    }
    if let Verdict::Unknown(why) = &verdict {
        topology.unknown = Some(why.clone());
    }
    Judgement { verdict, replays, topology: Some(Box::new(topology)) }
}

/// One order: the statements by themselves, and what differs from the transactions.
async fn alone(
    refining: &Refining<'_>,
    refined: &Refined,
    graph: &Graph,
    order: &[usize],
    desk: &Desk,
) -> Result<(Replay, History, Vec<Difference>), String> {
    let origin: Vec<usize> = order.iter().map(|node| graph.nodes[*node].step).collect();
    let told = refined.told_case.alone(&origin);
    let laid = refining.laid(&refined.case, &refined.instrument)?;
    let history = desk.run_on(laid, told.case.clone()).await;
    if let Some(why) = isolation::unfinished(&history) {
        return Err(why.into());
    }
    let by_itself = |step: &usize| Step {
        session: ALONE.into(),
        level: None,
        anyway: false,
        ..refined.case.steps[*step].clone()
    };
    let mut case = refined.case.clone();
    case.steps = origin.iter().map(by_itself).collect();
    (case.session_levels, case.expectations) = (Vec::new(), Vec::new());
    let history = told.plain(&case, &refined.instrument, &history);
    let replay = Replay { name: Serial::Topological, case, origin };
    let found = differences(refined, &replay, &history);
    Ok((replay, history, found))
}

fn differences(refined: &Refined, replay: &Replay, history: &History) -> Vec<Difference> {
    let run = Concurrent::new(&refined.case, &refined.history, false);
    let mut found = compare::writes(&run, replay, history);
    found.extend(compare::reads(&run, replay, history));
    // The first that differs, in the order in which they ran alone, comes first.
    let place = |d: &Difference| {
        d.label().and_then(|label| {
            replay.origin.iter().position(|step| refined.case.label(*step) == *label)
        })
    };
    found.sort_by_key(place);
    found.extend(compare::final_rows(&refined.history, history));
    found
}

/// What the rules say of the transactions, and if those are as they should be, of the
/// statements by themselves.
async fn cause(
    refined: &Refined,
    alone: Option<&(Replay, History)>,
    found: &[Difference],
    desk: &Desk,
) -> Cause {
    let subject = Subject { history: &refined.history, reading: &refined.reading };
    let found: Vec<&Difference> = found.iter().collect();
    let of_transactions = crate::cause::find(&subject, &found, desk).await;
    let Some((replay, history)) = alone.filter(|_| of_transactions.label != Label::Bug) else {
        return of_transactions;
    };
    let of = |step: &usize| refined.reading.operations[*step].clone();
    let reading = Reading {
        operations: replay.origin.iter().map(of).collect(),
        levels: replay.origin.iter().map(|step| refined.reading.levels[*step]).collect(),
        ..refined.reading.clone()
    };
    let subject = Subject { history, reading: &reading };
    let of_statements = crate::cause::find(&subject, &found, desk).await;
    match of_statements.label {
        Label::Bug => of_statements,
        _ => of_transactions,
    }
}

/// Whether both runs, made once more, differ again.
async fn again(
    refining: &Refining<'_>,
    refined: &Refined,
    graph: &Graph,
    order: &[usize],
    desk: &Desk,
) -> Result<bool, String> {
    let laid = refining.laid(&refined.case, &refined.instrument)?;
    let run = desk.run_on(laid, refined.told_case.case.clone()).await;
    if let Some(why) = isolation::unfinished(&run) {
        return Err(why.into());
    }
    let history = refined.told_case.plain(&refined.case, &refined.instrument, &run);
    let second = Refined { history, ..refined.clone() };
    let (_, _, found) = alone(refining, &second, graph, order, desk).await?;
    Ok(!found.is_empty())
}

impl Refining<'_> {
    fn laid(
        &self,
        case: &crate::Case,
        instrument: &crate::instrument::Instrument,
    ) -> Result<crate::inquiry::Laid, String> {
        let about = Examined { case, reading: self.reading, on: self.on, allows: self.allows };
        isolation::laid(&about, instrument)
    }
}
