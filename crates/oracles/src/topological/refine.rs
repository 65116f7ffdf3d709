//! Refines a case for the oracle: leaves out statements that cannot be instrumented, then
//! statements that were blocked, then statements on cycles, with a run after each change, until
//! its graph has a topological order.

use super::Options;
use super::matches::Matches;
use super::observed_run::{Run, Unusable};
use super::topology::Topology;
use crate::instrument::{
    CurrentReadScope, Instrument, InstrumentedCase, ObservedRun, Probe, RowsOf,
};
use crate::instrumented_run::{evaluate, forbidden_differences, why_incomplete};
use crate::replay::is_numbered;
use isolde_catalog::{SnapshotAt, concurrency_model};
use isolde_checker::check;
use isolde_model::difference::Difference;
use isolde_model::history::{History, TargetInfo};
use isolde_model::inquiry::Channel;
use isolde_model::parsed_case::{Operation, ParsedCase};
use isolde_model::{Anomaly, Case, Level};
use isolde_sql::{Conflict, LockPatience, Stmt, Write};

pub struct Refinement<'a> {
    pub reading: &'a ParsedCase,
    pub on: &'a TargetInfo,
    pub options: Options,
    pub allows: Option<&'a [Anomaly]>,
}

/// A case whose graph has an order, and its run.
#[derive(Clone)]
pub struct RefinedCase {
    pub case: Case,
    pub reading: ParsedCase,
    pub instrument: Instrument,
    pub instrumented: InstrumentedCase,
    /// As if nothing had been added.
    pub history: History,
}

/// What came of one run.
enum Step {
    Done(Box<RefinedCase>),
    LeaveOut(usize, String),
    Anomalies(Vec<Difference>),
}

impl Refinement<'_> {
    /// Runs the case until its graph has an order. Anomalies that the level rules out end it.
    pub async fn refine(
        &self,
        case: &Case,
        channel: &Channel,
        topology: &mut Topology,
    ) -> Result<Result<RefinedCase, Vec<Difference>>, String> {
        let mut case = case.clone();
        let mut reading = self.reading.clone();
        // Each round takes a statement away.
        loop {
            match self.round(&case, &reading, channel, topology).await? {
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
        reading: &ParsedCase,
        channel: &Channel,
        topology: &mut Topology,
    ) -> Result<Step, String> {
        let operations = &reading.operations;
        let capabilities = self.on.capabilities();
        let schema = self.reading.schema.clone();
        let mut instrument = Instrument::new(schema, self.reading.dialect, capabilities);
        let (scopes, dirty) = self.reads(&reading.levels, capabilities.current_reads);
        let instrumented = instrument.case_with_views(case, operations, &scopes);
        if let Some((step, why)) = instrumented.not_instrumented.first() {
            return Ok(Step::LeaveOut(*step, why.to_string()));
        }
        if let Some((step, why)) = find_unusable(operations, &instrument, &instrumented) {
            return Ok(Step::LeaveOut(step, why.into()));
        }
        let history =
            channel.run_on(self.setup(case, &instrument)?, instrumented.case.clone()).await;
        if let Some(why) = why_incomplete(&history) {
            return Err(why.into());
        }
        let observations = instrumented.observe(&instrument, &history);
        if !observations.is_complete {
            return Err("what an action of a foreign key changed is not known".into());
        }
        let views = instrumented.views(&instrument, &history, &observations);
        let observed = ObservedRun {
            instrument: &instrument,
            transactions: observations.transactions,
            first: observations.first,
            last: observations.last,
            writes_read: self.options.exact_matches,
        };
        let mut evaluated = Vec::new();
        let mut matches = self.options.exact_matches.then(Matches::default);
        if let Some(matches) = &mut matches {
            for evaluation in observed.evaluations() {
                let satisfied = evaluate(&instrument, &evaluation, channel).await;
                matches.add(&evaluation, &satisfied);
                evaluated.push((evaluation, satisfied));
            }
        }
        let run = Run {
            case,
            operations,
            instrument: &instrument,
            instrumented: &instrumented,
            history: &history,
            views: &views,
            observed: &observed,
            scopes: &scopes,
            dirty: &dirty,
            levels: &reading.levels,
            matches,
        };
        if let Some(step) = run.find_blocked() {
            topology.rounds.blocked += 1;
            return Ok(Step::LeaveOut(step, "it waited".into()));
        }
        let anomalies = self.anomalies(&observed, &evaluated);
        if !anomalies.is_empty() {
            return Ok(Step::Anomalies(anomalies));
        }
        let (graph, spared) = match run.graph() {
            Ok(graph) => graph,
            Err(Unusable(step, why)) => {
                topology.rounds.blocked += 1;
                return Ok(Step::LeaveOut(step, why.into()));
            }
        };
        // The one that most of the cycles go through.
        if let Some((node, _)) = graph.nodes_on_cycles().into_iter().max_by_key(|(_, edges)| *edges)
        {
            topology.rounds.cyclic += 1;
            return Ok(Step::LeaveOut(graph.nodes[node].step, "it is in a cycle".into()));
        }
        topology.edges = graph.count();
        topology.spared = spared;
        topology.graph = graph;
        let history = instrumented.plain(case, &instrument, &history);
        let (case, reading) = (case.clone(), reading.clone());
        Ok(Step::Done(Box::new(RefinedCase { case, reading, instrument, instrumented, history })))
    }

    /// For each step what it reads as it is, and whether it reads what is not committed. In a dirty
    /// read, so do the subqueries of a write.
    fn reads(
        &self,
        levels: &[Level],
        scope: CurrentReadScope,
    ) -> (Vec<CurrentReadScope>, Vec<bool>) {
        let is_dirty = |level: &Level| {
            let model = concurrency_model(self.on, *level, None);
            model.is_some_and(|model| model.snapshot.taken == SnapshotAt::Dirty)
        };
        let dirty: Vec<bool> = levels.iter().map(is_dirty).collect();
        let scopes = dirty.iter().map(|dirty| match (scope, dirty) {
            (CurrentReadScope::OwnAndInner, true) => CurrentReadScope::Own,
            (scope, _) => scope,
        });
        (scopes.collect(), dirty)
    }

    /// Cycles between transactions that the level rules out: the isolation checker comes first.
    fn anomalies(
        &self,
        observed: &ObservedRun<'_>,
        evaluated: &[(crate::instrument::Evaluation, Vec<Option<Vec<bool>>>)],
    ) -> Vec<Difference> {
        let Some(allows) = self.allows else { return Vec::new() };
        let careful = ObservedRun {
            instrument: observed.instrument,
            transactions: observed.transactions.clone(),
            first: observed.first.clone(),
            last: observed.last.clone(),
            writes_read: allows.is_empty(),
        };
        let history = careful.extract_history(evaluated).history;
        forbidden_differences(&check(&history), &history, allows)
    }
}

/// A statement that no instrumentation makes comparable, and why.
fn find_unusable(
    operations: &[Operation],
    instrument: &Instrument,
    instrumented: &InstrumentedCase,
) -> Option<(usize, &'static str)> {
    operations.iter().enumerate().find_map(|(step, operation)| {
        let Operation::Statement(statement) = operation else { return None };
        let reveals =
            |p: &Probe| matches!(p, Probe::Rows { what: RowsOf::Deleted | RowsOf::Replaced, .. });
        let reveals_rows = || instrumented.probes(step).any(reveals);
        let why = if statement.is_ddl() {
            "it changes the schema"
        } else if !statement.is_data() {
            return None;
        } else if instrument.referenced(statement, CurrentReadScope::Nothing).unfollowed {
            "a table of it cannot be followed"
        } else if is_impatient(statement) {
            "what it returns depends on locks"
        } else if is_numbered(statement, &instrument.schema) {
            "the engine numbers what it inserts"
        } else if takes_rows_away(statement) && !reveals_rows() {
            "the rows that it takes away are not known"
        } else {
            return None;
        };
        Some((step, why))
    })
}

fn takes_rows_away(statement: &Stmt) -> bool {
    match statement {
        Stmt::Write(Write::Delete(_) | Write::Merge(_)) => true,
        Stmt::Write(Write::Insert(insert)) => insert.conflict == Conflict::Replace,
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
