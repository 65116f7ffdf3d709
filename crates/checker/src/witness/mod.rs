//! Finds a shortest cycle for every class of anomalies, in the graph of certain edges.
//!
//! The classes are Adya's ("Weak Consistency", MIT 1999) with Elle's refinements (VLDB 2020):
//! G-nonadjacent, and names for the common cycles of two transactions. The module decides no
//! level: its budget limits how many cycles it finds, never a verdict.

mod edges;
mod inferred;

pub(crate) use edges::dependency;
pub(crate) use inferred::{record_cycle, record_search_cycle};

use crate::anomaly::{Certainty, Class, EdgeKind};
use crate::digraph::Components;
use crate::graph::{AntiDependencies, Arc, EdgeKinds, FilteredView, Graph, PathSearch};
use crate::predicate::PredicateEdges;
use crate::resolve::{AnomalyLog, Read, ResolvedHistory, UNKNOWN_POSITION};
use crate::types::{INITIAL, RequiredOrders};

/// The number of edges visited for each of data, session order and real-time order. Verdicts
/// do not depend on it; counts are of what was found until then.
const BUDGET: usize = 30_000_000;

type Cycle = Vec<(u32, Arc)>;

/// Finds the cycles of observed edges; those through session order and real-time order only if
/// a requested level requires that order.
pub(crate) fn find_cycles(
    resolved: &ResolvedHistory<'_>,
    predicates: &PredicateEdges,
    required: RequiredOrders,
    anomalies: &mut AnomalyLog,
) {
    let data = EdgeKinds::DEPENDENCIES.union(EdgeKinds::ANTI);
    let graph = Graph::of(resolved, predicates, data);
    find_non_repeatable_reads(resolved, anomalies);
    let mut finder = CycleFinder { resolved, graph: &graph, anomalies, through: None };
    finder.report_write_cycles();
    finder.report_dependency_cycles();
    finder.report_anti_dependency_cycles();
    if required.sessions && resolved.history.has_sessions() {
        let kinds = data.union(EdgeKinds::SESSION);
        let graph = Graph::of(resolved, predicates, kinds);
        CycleFinder { resolved, graph: &graph, anomalies, through: Some(EdgeKind::Session) }
            .report_order_cycles(kinds);
    }
    if required.times && resolved.history.has_times() {
        let kinds = data.union(EdgeKinds::TIME);
        let graph = Graph::of(resolved, predicates, kinds);
        CycleFinder { resolved, graph: &graph, anomalies, through: Some(EdgeKind::RealTime) }
            .report_order_cycles(kinds);
    }
}

/// Reports transactions that read two versions of an item of unknown order: one of them came
/// first, and then the reader is both before and after the writer of the other.
fn find_non_repeatable_reads(resolved: &ResolvedHistory<'_>, anomalies: &mut AnomalyLog) {
    for node in 0..resolved.nodes() as u32 {
        let reads = resolved.reads.of(node);
        for (at, one) in
            reads.iter().enumerate().filter(|(_, read)| read.position == UNKNOWN_POSITION)
        {
            let same = |other: &&Read| other.item == one.item && other.writer != one.writer;
            let Some(other) = reads[..at].iter().find(same) else { continue };
            let item = one.item;
            let around = |writer: u32| {
                let before = dependency(resolved, (node, writer), EdgeKind::Rw, item);
                vec![before, dependency(resolved, (writer, node), EdgeKind::Wr, item)]
            };
            let mut cycle = around(one.writer);
            if other.writer != INITIAL {
                cycle[0].certainty = Certainty::Inferred(around(other.writer));
            }
            for class in [Class::NonRepeatableRead, Class::GSingle] {
                if anomalies.count_cycle(class, None, cycle.len()) {
                    anomalies.set_witness(class, None, cycle.clone());
                }
            }
        }
    }
}

struct CycleFinder<'a, 'h> {
    resolved: &'a ResolvedHistory<'h>,
    graph: &'a Graph,
    anomalies: &'a mut AnomalyLog,
    through: Option<EdgeKind>,
}

impl CycleFinder<'_, '_> {
    fn components(&self, kinds: EdgeKinds) -> Components {
        Components::of(&FilteredView { graph: self.graph, kinds })
    }

    /// The arcs of these kinds that lie inside of a component.
    fn arcs_inside<'c>(
        &self,
        kinds: EdgeKinds,
        components: &'c Components,
    ) -> impl Iterator<Item = (u32, Arc)> + use<'_, 'c> {
        let graph = self.graph;
        (0..graph.len()).flat_map(move |from| {
            let arcs = graph.arcs_from(from).iter();
            arcs.filter(move |arc| {
                kinds.has(arc.kind())
                    && components.of[from as usize] == components.of[arc.to as usize]
            })
            .map(move |arc| (from, *arc))
        })
    }

    fn report(&mut self, class: Class, cycle: Cycle) {
        // Nodes for points in time are not transactions.
        let length = cycle.iter().filter(|(from, _)| *from < self.graph.nodes).count();
        if self.anomalies.count_cycle(class, self.through, length) {
            let edges = edges::edges(self.resolved, self.graph, &cycle);
            self.anomalies.set_witness(class, self.through, edges);
        }
    }

    fn close(&self, first: (u32, Arc), mut rest: Cycle) -> Cycle {
        rest.insert(0, first);
        rest
    }

    fn report_write_cycles(&mut self) {
        let components = self.components(EdgeKinds::WW);
        if components.is_acyclic() {
            return;
        }
        let mut search = PathSearch::new(self.graph, BUDGET);
        let starts: Vec<_> = self.arcs_inside(EdgeKinds::WW, &components).collect();
        for (from, arc) in starts {
            if let Some(path) = search.shortest_path(
                (arc.to, from),
                EdgeKinds::WW,
                AntiDependencies::None,
                &components,
            ) {
                let cycle = self.close((from, arc), path);
                self.report(Class::G0, cycle);
            }
        }
    }

    fn report_dependency_cycles(&mut self) {
        let components = self.components(EdgeKinds::DEPENDENCIES);
        if components.is_acyclic() {
            return;
        }
        let mut search = PathSearch::new(self.graph, BUDGET);
        let reads = EdgeKinds::READ;
        let starts: Vec<_> = self.arcs_inside(reads, &components).collect();
        for (from, arc) in starts {
            let path = search.shortest_path(
                (arc.to, from),
                EdgeKinds::DEPENDENCIES,
                AntiDependencies::None,
                &components,
            );
            if let Some(path) = path {
                let cycle = self.close((from, arc), path);
                self.report(Class::G1c, cycle);
            }
        }
    }

    fn report_anti_dependency_cycles(&mut self) {
        let kinds = EdgeKinds::DEPENDENCIES.union(EdgeKinds::ANTI);
        let components = self.components(kinds);
        if components.is_acyclic() {
            return;
        }
        let items = EdgeKinds::DEPENDENCIES.union(EdgeKinds::ITEM_ANTI);
        let mut search = PathSearch::new(self.graph, BUDGET);
        let starts: Vec<_> = self.arcs_inside(EdgeKinds::ANTI, &components).collect();
        for (from, arc) in starts {
            self.report_two_cycles(from, arc);
            let ends = (arc.to, from);
            let nonadjacent = AntiDependencies::Nonadjacent { closed_by_anti: true };
            let of_items = arc.kind() == EdgeKind::Rw;
            let (class, path) = if let Some(path) =
                search.shortest_path(ends, kinds, AntiDependencies::None, &components)
            {
                (Class::GSingle, path)
            } else if let Some(path) = search.shortest_path(ends, kinds, nonadjacent, &components) {
                (Class::GNonadjacent, path)
            } else if of_items
                && let Some(path) =
                    search.shortest_path(ends, items, AntiDependencies::Any, &components)
            {
                (Class::G2Item, path)
            } else if let Some(path) =
                search.shortest_path(ends, kinds, AntiDependencies::Any, &components)
            {
                (Class::G2, path)
            } else {
                continue;
            };
            let cycle = self.close((from, arc), path);
            // Both overwrote the version that both had read: whichever came first, the other
            // update is lost.
            let class = if is_lost_update(&cycle) { Class::GSingle } else { class };
            if class == Class::GSingle && (is_cursor(&cycle) || is_lost_update(&cycle)) {
                self.report(Class::GCursor, cycle.clone());
                self.report(Class::LostUpdate, cycle.clone());
            }
            self.report(class, cycle);
        }
    }

    /// Reports the cycles of two transactions that have a name of their own.
    fn report_two_cycles(&mut self, from: u32, arc: Arc) {
        if arc.kind() != EdgeKind::Rw {
            return;
        }
        let back_arcs: Vec<Arc> =
            self.graph.arcs_from(arc.to).iter().filter(|back| back.to == from).copied().collect();
        for back in back_arcs {
            let same_item = back.subject() == arc.subject();
            let class = match (back.kind(), same_item) {
                (EdgeKind::Wr, true) => Class::NonRepeatableRead,
                (EdgeKind::Wr, false) => Class::ReadSkew,
                (EdgeKind::Ww, false) => Class::ReadWriteSkew,
                // Each pair is visited from both sides.
                (EdgeKind::Rw, false) if from < arc.to => Class::WriteSkew,
                _ => continue,
            };
            self.report(class, vec![(from, arc), (arc.to, back)]);
        }
    }

    /// Reports the cycles that need session order or real-time order.
    fn report_order_cycles(&mut self, kinds: EdgeKinds) {
        let components = self.components(kinds);
        if components.is_acyclic() {
            return;
        }
        let through = self.through.expect("orders are looked at");
        let order =
            if through == EdgeKind::RealTime { EdgeKinds::TIME } else { EdgeKinds::SESSION };
        let mut search = PathSearch::new(self.graph, BUDGET);
        let starts: Vec<_> = self.arcs_inside(order, &components).collect();
        for (from, arc) in starts {
            if from >= self.graph.nodes {
                continue;
            }
            let ends = (arc.to, from);
            let nonadjacent = AntiDependencies::Nonadjacent { closed_by_anti: false };
            let items = EdgeKinds::DEPENDENCIES.union(EdgeKinds::ITEM_ANTI).union(order);
            let (class, path) = if let Some(path) =
                search.shortest_path(ends, kinds, AntiDependencies::None, &components)
            {
                (if through == EdgeKind::RealTime { Class::GSIa } else { Class::G1c }, path)
            } else if let Some(path) =
                search.shortest_path(ends, kinds, AntiDependencies::One, &components)
            {
                (if through == EdgeKind::RealTime { Class::GSIb } else { Class::GSingle }, path)
            } else if let Some(path) = search.shortest_path(ends, kinds, nonadjacent, &components) {
                (Class::GNonadjacent, path)
            } else if let Some(path) =
                search.shortest_path(ends, items, AntiDependencies::Any, &components)
            {
                (Class::G2Item, path)
            } else if let Some(path) =
                search.shortest_path(ends, kinds, AntiDependencies::Any, &components)
            {
                (Class::G2, path)
            } else {
                continue;
            };
            // Cycles of dependencies alone have already been reported.
            if !self.anomalies.has(class) {
                let cycle = self.close((from, arc), path);
                self.report(class, cycle);
            }
        }
    }
}

/// Whether a cycle with one anti-dependency concerns one item only.
fn is_cursor(cycle: &Cycle) -> bool {
    cycle[0].1.kind() == EdgeKind::Rw
        && cycle[1..]
            .iter()
            .all(|(_, arc)| arc.kind() == EdgeKind::Ww && arc.subject() == cycle[0].1.subject())
}

/// Whether two transactions overwrote the version that both had read, in an unknown order.
fn is_lost_update(cycle: &Cycle) -> bool {
    cycle.len() == 2
        && cycle.iter().all(|(_, arc)| arc.kind() == EdgeKind::Rw)
        && cycle[0].1.subject() == cycle[1].1.subject()
}
