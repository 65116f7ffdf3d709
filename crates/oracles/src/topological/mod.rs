//! Equivalent executions (TxCheck, OSDI 2023): the versions that the statements of
//! committed transactions read determine which statement must come before which. In any order that
//! keeps these dependencies, each statement alone and without transactions, they return the same
//! results and leave the same rows.
//!
//! ```text
//!   case ──► without unusable statements ──► run on instrumented tables ──► graph ┬► orders
//!     ▲                                                                         │     │
//!     └────── without a statement that waited, or of a cycle ◄──────────────────┘     ▼
//!                                           run of the same statements, one after the other
//! ```
//!
//! The instrumentation is that of the isolation oracle ([`crate::instrument`]); version-set
//! reads come on top. Writes of engines that read what is current (InnoDB, TiDB pessimistic)
//! are not asked with a snapshot, so that the paper's figure 1 is what it is: documented.
//! At READ UNCOMMITTED (the paper's assumption 3) the read before a statement sees what the
//! statement sees, because no other statement is sent in between; a statement that read what was
//! rolled back is left out. What else is not verified is listed in `docs/topological.md`.

mod dependencies;
mod draw;
mod graph;
mod keys;
mod matches;
mod moments;
mod observed_run;
mod observed_statement;
mod refine;
mod report;
#[cfg(test)]
mod tests;
mod topology;

pub use graph::{Graph, Kind, Node};
pub use topology::Topology;

use crate::compare;
use crate::description::OracleDescription;
use crate::instrument::ALONE;
use crate::instrumented_run::{self, Examined};
use crate::judgement::{Judgement, OracleVerdict};
use crate::options::{OracleOption, OracleOptions};
use crate::promise::forbidden_cause;
use crate::replay::{Replay, SerialRun};
use crate::run::ConcurrentRun;
use isolde_catalog::concurrency_model;
use isolde_model::case::Step;
use isolde_model::difference::Difference;
use isolde_model::inquiry::Channel;
use isolde_model::parsed_case::ParsedCase;
use isolde_model::random::{Random, fingerprint};
use isolde_model::{History, Level, Verdict};
use isolde_reference::cause::Cause;
use isolde_reference::{SerialSearch, Subject, analyse};
use refine::{RefinedCase, Refinement};

const SERIAL: SerialRun = SerialRun {
    name: "topological",
    file: "topological.json",
    about: "the statements one by one, in an order that follows from their reads",
};

/// The number of orders of each graph that are run.
pub const ORDERS: OracleOption = OracleOption { name: "orders", default: "3" };
/// Whether every row of a table that a statement reads makes an edge, as in the paper; otherwise
/// only rows that satisfy its predicate do.
pub const ALL_EDGES: OracleOption = OracleOption { name: "all edges", default: "false" };

pub(crate) static ORACLE: OracleDescription = OracleDescription {
    name: "topological",
    about: "the statements of committed transactions, run by themselves in an order that follows \
        from what each of them saw, return the same and leave the same rows",
    reference: "with the same statements run one by one, in an order that follows from their reads",
    run_names: ["in its transaction", "alone"],
    judge: |run, channel| Box::pin(judge(run, channel)),
    judges_own_runs: true,
    serial_runs: &[SERIAL],
    // A cycle that the level rules out is a bug by itself; for a difference the oracle has asked
    // the reference model about the runs that differ.
    cause: |differences, report| {
        Some(report.and_then(|r| r.cause()).unwrap_or_else(|| forbidden_cause(differences)))
    },
    options: &[ORDERS, ALL_EDGES],
    counters: Some(&report::COUNTERS),
    summary: report::summary,
    ..OracleDescription::PLAIN
};

/// The parsed options of the oracle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Options {
    /// The most orders of a graph that are run.
    orders: usize,
    /// The engine evaluates which versions satisfy a predicate, so that there are fewer edges.
    exact_matches: bool,
}

impl Options {
    fn parse(options: &OracleOptions) -> Options {
        Options {
            orders: options.get(ORDERS).parse().unwrap_or(3),
            exact_matches: options.get(ALL_EDGES) != "true",
        }
    }
}

async fn judge(run: &ConcurrentRun<'_>, channel: &Channel) -> Judgement {
    let unknown = |why: &str| Judgement::unknown(why);
    let Some(reading) = run.reading else {
        return unknown("the tables of the case are not understood");
    };
    let on = &run.history.on;
    let is_unknown = |level: &Level| concurrency_model(on, *level, None).is_none();
    if reading.levels.contains(&Level::ReadUncommitted) && reading.levels.iter().any(is_unknown) {
        return unknown("what READ UNCOMMITTED means on this engine is not modelled");
    }
    let options = Options::parse(&run.options);
    let refinement = Refinement { reading, on, options, allows: run.allows.as_deref() };
    let mut topology = Topology::default();
    let refined = match refinement.refine(run.case, channel, &mut topology).await {
        Ok(Ok(refined)) => refined,
        Ok(Err(anomalies)) => {
            let verdict = OracleVerdict::Violated(anomalies);
            return Judgement::with_report(verdict, topology);
        }
        Err(why) => {
            topology.unknown = Some(why.clone());
            let verdict = OracleVerdict::Unknown(why);
            return Judgement::with_report(verdict, topology);
        }
    };
    compared(&refinement, &refined, channel, topology).await
}

/// Runs the statements in some of the orders that the graph allows.
async fn compared(
    refinement: &Refinement<'_>,
    refined: &RefinedCase,
    channel: &Channel,
    mut topology: Topology,
) -> Judgement {
    let seed = fingerprint(&isolde_model::case::format(&refined.case));
    let mut random = Random::stream(seed, "topological", 0);
    let orders = topology.graph.orders(refinement.options.orders, &mut random);
    topology.orders = orders.len();
    let mut verdict = OracleVerdict::Consistent;
    let mut replays = Vec::new();
    for order in orders {
        let found = match alone(refinement, refined, &topology.graph, &order, channel).await {
            Ok((replay, history, found)) => {
                replays = vec![(replay, history)];
                found
            }
            Err(why) => {
                verdict = OracleVerdict::Unknown(why);
                continue;
            }
        };
        if found.is_empty() {
            continue;
        }
        topology.order = order.clone();
        topology.run = Some(refined.history.clone());
        topology.cause = Some(cause(refined, replays.last(), &found, channel).await);
        // A difference that chance made is none.
        verdict = match again(refinement, refined, &topology.graph, &order, channel).await {
            Ok(true) => OracleVerdict::Violated(found),
            Ok(false) => OracleVerdict::Unknown("a difference was not there a second time".into()),
            Err(why) => OracleVerdict::Unknown(why),
        };
        break;
    }
    if let OracleVerdict::Unknown(why) = &verdict {
        topology.unknown = Some(why.clone());
    }
    Judgement { replays, ..Judgement::with_report(verdict, topology) }
}

/// One order: the statements by themselves, and what differs from the transactions.
async fn alone(
    refinement: &Refinement<'_>,
    refined: &RefinedCase,
    graph: &Graph,
    order: &[usize],
    channel: &Channel,
) -> Result<(Replay, History, Vec<Difference>), String> {
    let origin: Vec<usize> = order.iter().map(|node| graph.nodes[*node].step).collect();
    let observed = refined.instrumented.alone(&origin);
    let setup = refinement.setup(&refined.case, &refined.instrument)?;
    let history = channel.run_on(setup, observed.case.clone()).await;
    if let Some(why) = instrumented_run::why_incomplete(&history) {
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
    let history = observed.plain(&case, &refined.instrument, &history);
    let replay = Replay { kind: SERIAL, case, origin };
    let found = differences(refined, &replay, &history);
    Ok((replay, history, found))
}

fn differences(refined: &RefinedCase, replay: &Replay, history: &History) -> Vec<Difference> {
    let run = ConcurrentRun::new(&refined.case, &refined.history, false);
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
    refined: &RefinedCase,
    alone: Option<&(Replay, History)>,
    found: &[Difference],
    channel: &Channel,
) -> Cause {
    let subject = Subject::new(&refined.history, &refined.reading);
    let found: Vec<&Difference> = found.iter().collect();
    let analysis = analyse(&subject, channel, SerialSearch::Always).await;
    let of_transactions = isolde_reference::cause::find(&subject, &found, &analysis);
    let Some((replay, history)) = alone.filter(|_| of_transactions.label != Verdict::Bug) else {
        return of_transactions;
    };
    let of = |step: &usize| refined.reading.operations[*step].clone();
    let reading = ParsedCase {
        operations: replay.origin.iter().map(of).collect(),
        levels: replay.origin.iter().map(|step| refined.reading.levels[*step]).collect(),
        ..refined.reading.clone()
    };
    let subject = Subject::new(history, &reading);
    let analysis = analyse(&subject, channel, SerialSearch::WherePromised).await;
    let of_statements = isolde_reference::cause::find(&subject, &found, &analysis);
    match of_statements.label {
        Verdict::Bug => of_statements,
        _ => of_transactions,
    }
}

/// Whether both runs, made once more, differ again.
async fn again(
    refinement: &Refinement<'_>,
    refined: &RefinedCase,
    graph: &Graph,
    order: &[usize],
    channel: &Channel,
) -> Result<bool, String> {
    let setup = refinement.setup(&refined.case, &refined.instrument)?;
    let run = channel.run_on(setup, refined.instrumented.case.clone()).await;
    if let Some(why) = instrumented_run::why_incomplete(&run) {
        return Err(why.into());
    }
    let history = refined.instrumented.plain(&refined.case, &refined.instrument, &run);
    let second = RefinedCase { history, ..refined.clone() };
    let (_, _, found) = alone(refinement, &second, graph, order, channel).await?;
    Ok(!found.is_empty())
}

impl Refinement<'_> {
    fn setup(
        &self,
        case: &isolde_model::Case,
        instrument: &crate::instrument::Instrument,
    ) -> Result<isolde_model::inquiry::TableSetup, String> {
        let about = Examined { case, reading: self.reading, on: self.on, allows: self.allows };
        instrumented_run::table_setup(&about, instrument)
    }
}
