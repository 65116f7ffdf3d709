//! A case is made fit for the oracle: what cannot tell is left out, then what waited, then
//! statements of cycles, with a run after each change, until its graph has an order.

use super::graph::{Graph, Kind};
use super::matches::Matches;
use super::seen::{Run, Unfit};
use super::{Difference, Options};
use crate::cause::Cause;
use crate::history::{History, TargetInfo};
use crate::inquiry::Desk;
use crate::instrument::{Instrument, Means, Present, Probe, RowsOf, Told, ToldCase};
use crate::oracle::isolation::{evaluate, of_report, unfinished};
use crate::semantics::{Operation, Reading};
use crate::sql::{Conflict, InsertSource, LockPatience, Schema, Stmt};
use crate::{Anomaly, Case};
use isolde_checker::check;
use std::collections::BTreeMap;

/// What the oracle made of a case, for who counts and draws.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Topology {
    pub graph: Graph,
    /// The order that showed a difference, by places in the graph.
    pub order: Vec<usize>,
    pub orders: usize,
    /// Edges that stood on no more than a common table.
    pub spared: u64,
    pub edges: BTreeMap<Kind, u64>,
    /// Runs that were made because a statement waited, and because of a cycle.
    pub rounds: Rounds,
    /// Statements that could not take part, and why.
    pub left_out: Vec<(String, String)>,
    /// Why nothing is said of the case.
    pub unknown: Option<String>,
    /// What the rules of the engine say of a difference.
    pub cause: Option<Cause>,
    /// The run that differs, as if nothing had been added to it.
    pub run: Option<History>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Rounds {
    pub blocked: u64,
    pub cyclic: u64,
}

pub struct Refining<'a> {
    pub reading: &'a Reading,
    pub on: &'a TargetInfo,
    pub options: Options,
    pub allows: Option<&'a [Anomaly]>,
}

/// A case whose graph has an order, and its run.
#[derive(Clone)]
pub struct Refined {
    pub case: Case,
    pub reading: Reading,
    pub instrument: Instrument,
    pub told_case: ToldCase,
    /// As if nothing had been added.
    pub history: History,
}

/// What came of one run.
enum Step {
    Done(Box<Refined>),
    LeaveOut(usize, String),
    Anomalies(Vec<Difference>),
}

impl Refining<'_> {
    /// Runs the case until its graph has an order. Anomalies that the level rules out end it.
    pub async fn refine(
        &self,
        case: &Case,
        desk: &Desk,
        topology: &mut Topology,
    ) -> Result<Result<Refined, Vec<Difference>>, String> {
        let mut case = case.clone();
        let mut reading = self.reading.clone();
        // Each round takes a statement away.
        loop {
            match self.round(&case, &reading, desk, topology).await? {
                Step::Done(refined) => return Ok(Ok(*refined)),
                Step::Anomalies(found) => return Ok(Err(found)),
                Step::LeaveOut(step, why) => {
                    let sql = case.steps[step].sql.clone();
                    topology.left_out.push((sql, why));
                    case.steps.remove(step);
                    reading.operations.remove(step);
                    reading.levels.remove(step);
                }
            }
        }
    }

    async fn round(
        &self,
        case: &Case,
        reading: &Reading,
        desk: &Desk,
        topology: &mut Topology,
    ) -> Result<Step, String> {
        let operations = &reading.operations;
        let (engine, version) = self.on.understood_as();
        let means = Means::of(engine, version);
        let present = match engine {
            "mysql" | "mariadb" => Present::OwnAndInner,
            "tidb" => Present::Own,
            _ => Present::Nothing,
        };
        let schema = self.reading.schema.clone();
        let mut instrument = Instrument::new(schema, self.reading.dialect, means);
        let told_case = instrument.case_with_views(case, operations, present);
        if let Some((step, why)) = told_case.left_alone.first() {
            return Ok(Step::LeaveOut(*step, why.to_string()));
        }
        if let Some((step, why)) = unfit(operations, &instrument, &told_case) {
            return Ok(Step::LeaveOut(step, why.into()));
        }
        let history = desk.run_on(self.laid(case, &instrument)?, told_case.case.clone()).await;
        if let Some(why) = unfinished(&history) {
            return Err(why.into());
        }
        let told = told_case.tell(&instrument, &history);
        let told = Told {
            instrument: &instrument,
            transactions: told.transactions,
            first: told.first,
            last: told.last,
            writes_read: self.options.exact_matches,
        };
        let mut evaluated = Vec::new();
        let mut matches = self.options.exact_matches.then(Matches::default);
        if let Some(matches) = &mut matches {
            for evaluation in told.evaluations() {
                let satisfied = evaluate(&instrument, &evaluation, desk).await;
                matches.add(&evaluation, &satisfied);
                evaluated.push((evaluation, satisfied));
            }
        }
        let run = Run {
            case,
            operations,
            instrument: &instrument,
            told_case: &told_case,
            history: &history,
            told: &told,
            present,
            levels: &reading.levels,
            matches,
        };
        if let Some(step) = run.torn() {
            topology.rounds.blocked += 1;
            return Ok(Step::LeaveOut(step, "it waited".into()));
        }
        let anomalies = self.anomalies(&told, &evaluated);
        if !anomalies.is_empty() {
            return Ok(Step::Anomalies(anomalies));
        }
        let (graph, spared) = match run.graph() {
            Ok(graph) => graph,
            Err(Unfit(step, why)) => {
                topology.rounds.blocked += 1;
                return Ok(Step::LeaveOut(step, why.into()));
            }
        };
        // The one that most of the cycles go through.
        if let Some((node, _)) = graph.in_cycles().into_iter().max_by_key(|(_, edges)| *edges) {
            topology.rounds.cyclic += 1;
            return Ok(Step::LeaveOut(graph.nodes[node].step, "it is in a cycle".into()));
        }
        topology.edges = graph.count();
        topology.spared = spared;
        topology.graph = graph;
        let history = told_case.plain(case, &instrument, &history);
        let (case, reading) = (case.clone(), reading.clone());
        Ok(Step::Done(Box::new(Refined { case, reading, instrument, told_case, history })))
    }

    /// Cycles between transactions that the level rules out: the isolation checker comes first.
    fn anomalies(
        &self,
        told: &Told<'_>,
        evaluated: &[(crate::instrument::Evaluation, Vec<Option<Vec<bool>>>)],
    ) -> Vec<Difference> {
        let Some(allows) = self.allows else { return Vec::new() };
        let careful = Told {
            instrument: told.instrument,
            transactions: told.transactions.clone(),
            first: told.first.clone(),
            last: told.last.clone(),
            writes_read: allows.is_empty(),
        };
        let history = careful.account(evaluated).history;
        of_report(&check(&history), &history, allows)
    }
}

/// A statement that no instrumentation makes comparable, and why.
fn unfit(
    operations: &[Operation],
    instrument: &Instrument,
    told_case: &ToldCase,
) -> Option<(usize, &'static str)> {
    operations.iter().enumerate().find_map(|(step, operation)| {
        let Operation::Statement(statement) = operation else { return None };
        let tells =
            |p: &Probe| matches!(p, Probe::Rows { what: RowsOf::Deleted | RowsOf::Replaced, .. });
        let tells_rows = || told_case.probes(step).any(tells);
        let why = if statement.is_ddl() {
            "it changes the schema"
        } else if !statement.is_data() {
            return None;
        } else if instrument.referenced(statement, Present::Nothing).unfollowed {
            "a table of it cannot be followed"
        } else if is_impatient(statement) {
            "what it returns hangs on locks"
        } else if is_numbered(statement, &instrument.schema) {
            "the engine numbers what it inserts"
        } else if takes_rows_away(statement) && !tells_rows() {
            "the rows that it takes away are not known"
        } else {
            return None;
        };
        Some((step, why))
    })
}

fn takes_rows_away(statement: &Stmt) -> bool {
    match statement {
        Stmt::Delete(_) => true,
        Stmt::Insert(insert) => insert.conflict == Conflict::Replace,
        _ => false,
    }
}

/// Whether it gives up on locks, or passes by rows that others hold.
fn is_impatient(statement: &Stmt) -> bool {
    match statement {
        Stmt::Select(select) => {
            select.locking.as_ref().is_some_and(|l| l.patience != LockPatience::Wait)
        }
        _ => false,
    }
}

/// Whether a column gets its value from a counter, which goes on whatever is rolled back.
pub fn is_numbered(statement: &Stmt, schema: &Schema) -> bool {
    let Stmt::Insert(insert) = statement else { return false };
    let Some(table) = schema.table(&insert.table) else { return false };
    table.columns.iter().any(|column| {
        column.numbered.is_some()
            && (insert.source == InsertSource::Defaults
                || !insert.columns.is_empty() && !insert.columns.contains(&column.name))
    })
}
