//! Decides all requested levels, using the implications between them.
//!
//! A violation of a weak level is a violation of all stronger ones, and a strong level that
//! holds implies all weaker ones, so the order of the checks saves work. Levels follow Adya's
//! definitions (ICDE 2000), in the form of "Weak Consistency" (1999); the decision procedures
//! are those of `graph`, `weak` and `solver`. This module runs no search itself and verifies
//! nothing about the history beyond what `resolve` did.

use crate::anomaly::Class;
use crate::digraph::Components;
use crate::graph::{AntiDependencies, BeginCommitView, EdgeKinds, FilteredView, Graph, PathSearch};
use crate::history::History;
use crate::level::Level;
use crate::predicate::PredicateEdges;
use crate::report::{InconclusiveSearch, Report, Verdict};
use crate::resolve::ResolvedHistory;
use crate::solver::{self, Budget, Decision, Goal, Problem};
use crate::total_order;
use crate::types::RequiredOrders;
use crate::weak::{self, LinearOrder, Outcome, Visibility};
use crate::witness;

/// What to decide, and whether to look for witnesses.
#[derive(Clone, Debug)]
pub struct Options {
    /// The levels that need a verdict; others get one only if it follows from these.
    pub levels: Vec<Level>,
    /// Whether to look for a witness of every class of anomalies when one of these levels is
    /// violated.
    pub anomalies: bool,
}

impl Default for Options {
    fn default() -> Options {
        Options { levels: Level::ALL.to_vec(), anomalies: true }
    }
}

/// Decides every level, with witnesses for all anomalies.
pub fn check(history: &History) -> Report {
    check_with(history, &Options::default())
}

/// Decides the requested levels.
pub fn check_with(history: &History, options: &Options) -> Report {
    let mut checker = Checker::of(ResolvedHistory::of(history));
    checker.decide_all(options);
    checker.report(options)
}

/// The verdicts so far, and what they are derived from.
struct Checker<'h> {
    resolved: ResolvedHistory<'h>,
    predicates: PredicateEdges,
    /// The certain edges, and the kinds of edges that the graph contains so far.
    graph: Option<(EdgeKinds, Graph)>,
    problem: Option<Problem>,
    verdicts: [Option<Verdict>; Level::ALL.len()],
    inconclusive: Vec<InconclusiveSearch>,
}

/// Classes that violate every level, and classes that violate read committed and above.
const MALFORMED: [Class; 2] = [Class::DuplicateVersions, Class::IncompatibleOrders];
const NOT_COMMITTED: [Class; 6] = [
    Class::ThinAirRead,
    Class::FutureRead,
    Class::Internal,
    Class::G1a,
    Class::G1b,
    Class::DirtyUpdate,
];

impl<'h> Checker<'h> {
    fn of(resolved: ResolvedHistory<'h>) -> Checker<'h> {
        Checker {
            predicates: PredicateEdges::of(&resolved),
            resolved,
            graph: None,
            problem: None,
            verdicts: [None; Level::ALL.len()],
            inconclusive: Vec::new(),
        }
    }

    /// Decides the requested levels, the cheapest ones first.
    fn decide_all(&mut self, options: &Options) {
        for level in Level::ALL {
            if level.requires_real_time() && !self.resolved.history.has_times() {
                self.verdicts[level as usize] = Some(Verdict::NotApplicable);
            }
        }
        if MALFORMED.iter().any(|class| self.resolved.anomalies.has(*class)) {
            self.conclude(Level::ReadUncommitted, Verdict::Violated);
        }
        if NOT_COMMITTED.iter().any(|class| self.resolved.anomalies.has(*class)) {
            self.conclude(Level::ReadCommitted, Verdict::Violated);
        }
        // The two cheapest levels first, then from the strongest down, since a level that holds
        // implies all weaker ones.
        let weakest = [Level::ReadUncommitted, Level::ReadCommitted];
        for level in weakest.into_iter().chain(Level::ALL.into_iter().rev()) {
            let wanted = options.levels.contains(&level);
            if wanted && self.verdicts[level as usize].is_none() {
                let verdict = self.decide(level);
                self.conclude(level, verdict);
            }
        }
    }

    /// Records a verdict, and the verdicts that follow from it.
    fn conclude(&mut self, level: Level, verdict: Verdict) {
        let verdict = match verdict {
            // Reads of a value with several writers were ignored.
            Verdict::Holds if self.resolved.ambiguous > 0 && level != Level::ReadUncommitted => {
                Verdict::Unknown
            }
            verdict => verdict,
        };
        match self.verdicts[level as usize] {
            None | Some(Verdict::Unknown) => self.verdicts[level as usize] = Some(verdict),
            Some(_) => return,
        }
        match verdict {
            Verdict::Holds => {
                for weaker in level.implies() {
                    self.conclude(*weaker, verdict);
                }
            }
            Verdict::Violated => {
                for stronger in Level::ALL {
                    if stronger.implies().contains(&level) {
                        self.conclude(stronger, verdict);
                    }
                }
            }
            Verdict::Unknown | Verdict::NotApplicable | Verdict::NotAsked => {}
        }
    }

    /// Decides one level.
    fn decide(&mut self, level: Level) -> Verdict {
        let sessions = level.requires_session_order();
        let order = match (sessions, level.requires_real_time()) {
            (_, true) => EdgeKinds::SESSION.union(EdgeKinds::TIME),
            (true, false) => EdgeKinds::SESSION,
            _ => EdgeKinds::NONE,
        };
        let required = RequiredOrders { sessions, times: level.requires_real_time() };
        match level {
            Level::ReadUncommitted => self.decide_by_acyclicity(EdgeKinds::WW),
            Level::ReadCommitted => self.decide_by_acyclicity(EdgeKinds::DEPENDENCIES),
            Level::MonotonicAtomicView | Level::StrongSessionMonotonicAtomicView => {
                self.decide_weak(Visibility::Monotonic, sessions)
            }
            Level::ReadAtomic | Level::StrongSessionReadAtomic => {
                self.decide_weak(Visibility::Atomic, sessions)
            }
            Level::Causal => self.decide_weak(Visibility::Causal, sessions),
            Level::CursorStability => self.decide_by_total_order(level, Self::has_cursor_cycle),
            Level::ConsistentView => {
                self.decide_weak(Visibility::Atomic, false);
                self.decide_weak(Visibility::Causal, true);
                match self.verdicts[level as usize] {
                    Some(verdict) => verdict,
                    None => self.decide_by_total_order(level, Self::has_single_rw_cycle),
                }
            }
            // The two levels differ in predicates only.
            Level::RepeatableRead if self.predicates.is_empty() => {
                if self.verdicts[Level::Serializable as usize].is_none() {
                    let verdict = self.decide(Level::Serializable);
                    self.conclude(Level::Serializable, verdict);
                }
                self.verdicts[Level::Serializable as usize].unwrap_or(Verdict::Unknown)
            }
            Level::RepeatableRead => {
                let kinds = EdgeKinds::DEPENDENCIES.union(EdgeKinds::ITEM_ANTI);
                self.decide_serializable(level, kinds, required)
            }
            Level::SnapshotIsolation
            | Level::StrongSessionSnapshotIsolation
            | Level::StrongSnapshotIsolation => self.decide_snapshot(level, order, required),
            Level::Serializable | Level::StrongSessionSerializable | Level::StrictSerializable => {
                let kinds = EdgeKinds::DEPENDENCIES.union(EdgeKinds::ANTI).union(order);
                self.decide_serializable(level, kinds, required)
            }
        }
    }

    /// A graph with at least these kinds of edges. Weak levels get small graphs, since
    /// anti-dependencies are most of the edges.
    fn graph(&mut self, kinds: EdgeKinds) -> &Graph {
        let wanted = match &self.graph {
            Some((made, _)) if made.includes(kinds) => None,
            Some((made, _)) => Some(made.union(kinds)),
            None => Some(kinds),
        };
        if let Some(wanted) = wanted {
            self.graph = None;
            self.graph = Some((wanted, Graph::of(&self.resolved, &self.predicates, wanted)));
        }
        &self.graph.as_ref().expect("it was just made").1
    }

    /// Decides a level that holds if the edges of these kinds are acyclic.
    fn decide_by_acyclicity(&mut self, kinds: EdgeKinds) -> Verdict {
        // A topological order of wr and ww edges needs no explicit graph.
        if kinds == EdgeKinds::DEPENDENCIES && self.predicates.is_empty() {
            return match LinearOrder::of(&self.resolved, false) {
                Some(_) => Verdict::Holds,
                None => Verdict::Violated,
            };
        }
        let graph = self.graph(kinds);
        match Components::of(&FilteredView { graph, kinds }).is_acyclic() {
            true => Verdict::Holds,
            false => Verdict::Violated,
        }
    }

    /// Decides a weak level, and records the cycle of a violation.
    fn decide_weak(&mut self, visibility: Visibility, sessions: bool) -> Verdict {
        match weak::decide(&self.resolved, visibility, sessions) {
            Outcome::Holds => Verdict::Holds,
            Outcome::Violated(inferred) => {
                let cycle = weak::cycle(&self.resolved, &inferred, sessions);
                // In every version order some read misses a version that it depends on.
                if witness::record_cycle(&mut self.resolved, cycle, Class::GSingle).is_none() {
                    self.conclude(Level::ConsistentView, Verdict::Violated);
                }
                Verdict::Violated
            }
            Outcome::TooManySessions => Verdict::Unknown,
        }
    }

    /// Decides serializability (of items, or of predicates too, depending on `kinds`).
    ///
    /// Versions of unknown order that no transaction read can be put into any order that the rest
    /// allows; so the graph decides, unless some of them were read.
    fn decide_serializable(
        &mut self,
        level: Level,
        kinds: EdgeKinds,
        required: RequiredOrders,
    ) -> Verdict {
        if !self.resolved.needs_search() {
            return self.decide_by_acyclicity(kinds);
        }
        // The solver considers all edges except those of predicates.
        if !self.predicates.is_empty() && self.decide_by_acyclicity(kinds) == Verdict::Violated {
            return Verdict::Violated;
        }
        self.solve(level, Goal::Serializable, required)
    }

    /// Decides snapshot isolation: by the graph if all version orders are known, otherwise by the
    /// solver.
    fn decide_snapshot(
        &mut self,
        level: Level,
        order: EdgeKinds,
        required: RequiredOrders,
    ) -> Verdict {
        let searches = self.resolved.has_open_orders();
        if !searches || !self.predicates.is_empty() {
            let kinds = EdgeKinds::DEPENDENCIES.union(EdgeKinds::ANTI).union(order);
            let graph = self.graph(kinds);
            if !Components::of(&BeginCommitView { graph, kinds }).is_acyclic() {
                return Verdict::Violated;
            }
        }
        if searches { self.solve(level, Goal::SnapshotIsolation, required) } else { Verdict::Holds }
    }

    /// Asks the solver, and records the cycle of a violation.
    fn solve(&mut self, level: Level, goal: Goal, required: RequiredOrders) -> Verdict {
        // The solver requires that known version orders contradict no read.
        if self.verdicts[Level::ReadCommitted as usize].is_none() {
            let verdict = self.decide_by_acyclicity(EdgeKinds::DEPENDENCIES);
            self.conclude(Level::ReadCommitted, verdict);
        }
        if self.verdicts[Level::ReadCommitted as usize] == Some(Verdict::Violated) {
            return Verdict::Violated;
        }
        let problem = self.problem.get_or_insert_with(|| self.resolved.problem());
        match solver::decide(problem, goal, required, &Budget::default()) {
            Decision::Holds { .. }
                if self.predicates.is_empty() || level == Level::RepeatableRead =>
            {
                Verdict::Holds
            }
            // The solver ignores predicates: check the order that it found against them.
            Decision::Holds { commit_order } => {
                let ordered = total_order::apply(&self.resolved, &commit_order);
                let whole = Checker::of(ordered).decide(level);
                if whole == Verdict::Holds { Verdict::Holds } else { Verdict::Unknown }
            }
            Decision::Violated { cycle } => {
                let RequiredOrders { sessions, times } = solver::orders_used(&cycle);
                self.conclude(level.with_orders(sessions, times), Verdict::Violated);
                if witness::record_search_cycle(&mut self.resolved, &cycle, goal) {
                    self.conclude(Level::ConsistentView, Verdict::Violated);
                }
                Verdict::Violated
            }
            Decision::Unknown { open_pairs, transactions } => {
                self.inconclusive.push(InconclusiveSearch {
                    level,
                    pairs: open_pairs,
                    transactions,
                });
                Verdict::Unknown
            }
        }
    }

    /// Decides a level for which there is an exact procedure only if all version orders are known.
    /// Otherwise a cycle of certain edges refutes it, a total order without a cycle proves it,
    /// and in the remaining cases it stays unknown.
    fn decide_by_total_order(&mut self, level: Level, has_cycle: fn(&mut Self) -> bool) -> Verdict {
        if self.decide_by_acyclicity(EdgeKinds::DEPENDENCIES) == Verdict::Violated
            || has_cycle(self)
        {
            return Verdict::Violated;
        }
        if !self.resolved.has_open_orders() {
            return Verdict::Holds;
        }
        let Some(positions) = total_order::topological_positions(&self.resolved, &self.predicates)
        else {
            return Verdict::Unknown;
        };
        let mut ordered = Checker::of(total_order::apply(&self.resolved, &positions));
        let kinds = EdgeKinds::DEPENDENCIES;
        if ordered.decide_by_acyclicity(kinds) == Verdict::Holds && !has_cycle(&mut ordered) {
            return Verdict::Holds;
        }
        // The weakest stronger level that is decided exactly.
        if self.verdicts[Level::SnapshotIsolation as usize].is_none() {
            let verdict = self.decide_snapshot(
                Level::SnapshotIsolation,
                EdgeKinds::NONE,
                RequiredOrders::default(),
            );
            self.conclude(Level::SnapshotIsolation, verdict);
        }
        let by_search = [Level::SnapshotIsolation, level].map(|l| self.verdicts[l as usize]);
        match by_search {
            [Some(Verdict::Holds), _] => Verdict::Holds,
            [_, Some(verdict)] => verdict,
            _ => Verdict::Unknown,
        }
    }

    /// Whether a transaction read an item, another one overwrote it, and then the first did.
    fn has_cursor_cycle(&mut self) -> bool {
        let resolved = &self.resolved;
        let mut updates = Vec::new();
        for node in 0..resolved.nodes() as u32 {
            for read in resolved.reads.of(node) {
                if resolved.last_write(node, read.item).is_none() {
                    continue;
                }
                let order = resolved.order.of(read.item);
                let next = order.get(read.position as usize);
                if next.is_some_and(|next| *next != node) {
                    return true;
                }
                if next.is_none() {
                    // Its own version comes somewhere after the known ones.
                    updates.push((read.item, read.writer, node));
                }
            }
        }
        updates.sort_unstable();
        updates.dedup();
        let from_one_version =
            updates.windows(2).any(|pair| (pair[0].0, pair[0].1) == (pair[1].0, pair[1].1));
        // Or it read two versions before overwriting the item: one of them came first.
        updates.sort_unstable_by_key(|(item, writer, node)| (*item, *node, *writer));
        from_one_version
            || updates.windows(2).any(|pair| (pair[0].0, pair[0].2) == (pair[1].0, pair[1].2))
    }

    /// Whether there is a cycle with exactly one anti-dependency.
    fn has_single_rw_cycle(&mut self) -> bool {
        if self.has_cursor_cycle() {
            return true;
        }
        let kinds = EdgeKinds::DEPENDENCIES.union(EdgeKinds::ANTI);
        let graph = self.graph(kinds);
        let components = Components::of(&FilteredView { graph, kinds });
        if components.is_acyclic() {
            return false;
        }
        let mut search = PathSearch::new(graph, usize::MAX);
        (0..graph.nodes).any(|from| {
            graph.arcs_from(from).iter().any(|arc| {
                arc.kind().is_anti_dependency()
                    && search
                        .shortest_path(
                            (arc.to, from),
                            EdgeKinds::DEPENDENCIES,
                            AntiDependencies::None,
                            &components,
                        )
                        .is_some()
            })
        })
    }

    /// The report, with a witness for every class of anomalies if wanted.
    fn report(self, options: &Options) -> Report {
        let Checker { mut resolved, predicates, verdicts, inconclusive, .. } = self;
        let violated =
            options.levels.iter().any(|level| verdicts[*level as usize] == Some(Verdict::Violated));
        if violated && options.anomalies {
            let mut anomalies = std::mem::take(&mut resolved.anomalies);
            let required = RequiredOrders {
                sessions: options.levels.iter().any(|level| level.requires_session_order()),
                times: options.levels.iter().any(|level| level.requires_real_time()),
            };
            witness::find_cycles(&resolved, &predicates, required, &mut anomalies);
            resolved.anomalies = anomalies;
        }
        Report {
            verdicts: verdicts.map(|verdict| verdict.unwrap_or(Verdict::NotAsked)),
            transactions: resolved.history.len(),
            committed: resolved.nodes(),
            anomalies: resolved.anomalies.into_anomalies(),
            inconclusive,
            ambiguous_reads: resolved.ambiguous,
            unplaced_predicate_reads: predicates.unplaced,
        }
    }
}
