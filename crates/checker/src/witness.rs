//! A shortest cycle for every class of anomalies.

mod edges;
mod inferred;

pub(crate) use edges::dependency;
pub(crate) use inferred::{keep, of_search};

use crate::anomaly::{Certainty, Class, Kind};
use crate::graph::{Anti, Arc, Components, Graph, Kinds, Plain, Search};
use crate::joined::{Found, Joined, Read, UNPLACED};
use crate::predicate::PredicateEdges;
use crate::registers::{INITIAL, Keep};

/// So many edges are looked at for each of data, sessions and time. Verdicts do not
/// depend on it; counts are of what was found until then.
const BUDGET: usize = 30_000_000;

type Cycle = Vec<(u32, Arc)>;

/// Finds the cycles that the history shows; those through sessions and times where some level
/// that was asked for keeps them.
pub(crate) fn find(
    joined: &Joined<'_>,
    predicates: &PredicateEdges,
    keep: Keep,
    found: &mut Found,
) {
    let data = Kinds::DEPENDENCIES.and(Kinds::ANTI);
    let graph = Graph::of(joined, predicates, data);
    changed_between_reads(joined, found);
    let mut finder = Finder { joined, graph: &graph, found, through: None };
    finder.write_cycles();
    finder.dependency_cycles();
    finder.anti_dependency_cycles();
    if keep.sessions && joined.history.has_sessions() {
        let kinds = data.and(Kinds::SESSION);
        let graph = Graph::of(joined, predicates, kinds);
        Finder { joined, graph: &graph, found, through: Some(Kind::Session) }.order_cycles(kinds);
    }
    if keep.times && joined.history.has_times() {
        let kinds = data.and(Kinds::TIME);
        let graph = Graph::of(joined, predicates, kinds);
        Finder { joined, graph: &graph, found, through: Some(Kind::Time) }.order_cycles(kinds);
    }
}

/// Who read two versions of an item of which nobody knows the order: one of them came
/// first, and then its reader is before and after the other's writer.
fn changed_between_reads(joined: &Joined<'_>, found: &mut Found) {
    for node in 0..joined.nodes() as u32 {
        let reads = joined.reads.of(node);
        for (at, one) in reads.iter().enumerate().filter(|(_, read)| read.place == UNPLACED) {
            let same = |other: &&Read| other.item == one.item && other.writer != one.writer;
            let Some(other) = reads[..at].iter().find(same) else { continue };
            let item = one.item;
            let around = |writer: u32| {
                let before = dependency(joined, (node, writer), Kind::Rw, item);
                vec![before, dependency(joined, (writer, node), Kind::Wr, item)]
            };
            let mut cycle = around(one.writer);
            if other.writer != INITIAL {
                cycle[0].certainty = Certainty::Otherwise(around(other.writer));
            }
            for class in [Class::NonRepeatableRead, Class::GSingle] {
                if found.counts(class, None, cycle.len()) {
                    found.keep(class, None, cycle.clone());
                }
            }
        }
    }
}

struct Finder<'a, 'h> {
    joined: &'a Joined<'h>,
    graph: &'a Graph,
    found: &'a mut Found,
    through: Option<Kind>,
}

impl Finder<'_, '_> {
    fn components(&self, kinds: Kinds) -> Components {
        Components::of(&Plain { graph: self.graph, kinds })
    }

    /// The edges of these kinds that lie inside of a component.
    fn inside<'c>(
        &self,
        kinds: Kinds,
        components: &'c Components,
    ) -> impl Iterator<Item = (u32, Arc)> + use<'_, 'c> {
        let graph = self.graph;
        (0..graph.len()).flat_map(move |from| {
            let arcs = graph.from(from).iter();
            arcs.filter(move |arc| {
                kinds.has(arc.kind())
                    && components.of[from as usize] == components.of[arc.to as usize]
            })
            .map(move |arc| (from, *arc))
        })
    }

    fn report(&mut self, class: Class, cycle: Cycle) {
        // Moments of time are no transactions.
        let length = cycle.iter().filter(|(from, _)| *from < self.graph.nodes).count();
        if self.found.counts(class, self.through, length) {
            let edges = edges::edges(self.joined, self.graph, &cycle);
            self.found.keep(class, self.through, edges);
        }
    }

    fn closed(&self, first: (u32, Arc), mut rest: Cycle) -> Cycle {
        rest.insert(0, first);
        rest
    }

    fn write_cycles(&mut self) {
        let components = self.components(Kinds::WW);
        if components.is_acyclic() {
            return;
        }
        let mut search = Search::new(self.graph, BUDGET);
        let starts: Vec<_> = self.inside(Kinds::WW, &components).collect();
        for (from, arc) in starts {
            if let Some(way) = search.way((arc.to, from), Kinds::WW, Anti::None, &components) {
                let cycle = self.closed((from, arc), way);
                self.report(Class::G0, cycle);
            }
        }
    }

    fn dependency_cycles(&mut self) {
        let components = self.components(Kinds::DEPENDENCIES);
        if components.is_acyclic() {
            return;
        }
        let mut search = Search::new(self.graph, BUDGET);
        let reads = Kinds::READ;
        let starts: Vec<_> = self.inside(reads, &components).collect();
        for (from, arc) in starts {
            let way = search.way((arc.to, from), Kinds::DEPENDENCIES, Anti::None, &components);
            if let Some(way) = way {
                let cycle = self.closed((from, arc), way);
                self.report(Class::G1c, cycle);
            }
        }
    }

    fn anti_dependency_cycles(&mut self) {
        let kinds = Kinds::DEPENDENCIES.and(Kinds::ANTI);
        let components = self.components(kinds);
        if components.is_acyclic() {
            return;
        }
        let items = Kinds::DEPENDENCIES.and(Kinds::ITEM_ANTI);
        let mut search = Search::new(self.graph, BUDGET);
        let starts: Vec<_> = self.inside(Kinds::ANTI, &components).collect();
        for (from, arc) in starts {
            self.pairs(from, arc);
            let ends = (arc.to, from);
            let apart = Anti::Apart { closed_by_anti: true };
            let of_items = arc.kind() == Kind::Rw;
            let (class, way) = if let Some(way) = search.way(ends, kinds, Anti::None, &components) {
                (Class::GSingle, way)
            } else if let Some(way) = search.way(ends, kinds, apart, &components) {
                (Class::GNonadjacent, way)
            } else if of_items && let Some(way) = search.way(ends, items, Anti::Any, &components) {
                (Class::G2Item, way)
            } else if let Some(way) = search.way(ends, kinds, Anti::Any, &components) {
                (Class::G2, way)
            } else {
                continue;
            };
            let cycle = self.closed((from, arc), way);
            // Both overwrote the version that both had read: whoever was first, the other
            // has lost its update.
            let class = if is_lost_update(&cycle) { Class::GSingle } else { class };
            if class == Class::GSingle && (is_cursor(&cycle) || is_lost_update(&cycle)) {
                self.report(Class::GCursor, cycle.clone());
                self.report(Class::LostUpdate, cycle.clone());
            }
            self.report(class, cycle);
        }
    }

    /// Cycles of two that have a name of their own.
    fn pairs(&mut self, from: u32, arc: Arc) {
        if arc.kind() != Kind::Rw {
            return;
        }
        let back: Vec<Arc> =
            self.graph.from(arc.to).iter().filter(|back| back.to == from).copied().collect();
        for back in back {
            let same_item = back.about() == arc.about();
            let class = match (back.kind(), same_item) {
                (Kind::Wr, true) => Class::NonRepeatableRead,
                (Kind::Wr, false) => Class::ReadSkew,
                (Kind::Ww, false) => Class::ReadWriteSkew,
                // Each pair is met from both sides.
                (Kind::Rw, false) if from < arc.to => Class::WriteSkew,
                _ => continue,
            };
            self.report(class, vec![(from, arc), (arc.to, back)]);
        }
    }

    /// Cycles that need the order of sessions or of time.
    fn order_cycles(&mut self, kinds: Kinds) {
        let components = self.components(kinds);
        if components.is_acyclic() {
            return;
        }
        let through = self.through.expect("orders are looked at");
        let order = if through == Kind::Time { Kinds::TIME } else { Kinds::SESSION };
        let mut search = Search::new(self.graph, BUDGET);
        let starts: Vec<_> = self.inside(order, &components).collect();
        for (from, arc) in starts {
            if from >= self.graph.nodes {
                continue;
            }
            let ends = (arc.to, from);
            let apart = Anti::Apart { closed_by_anti: false };
            let items = Kinds::DEPENDENCIES.and(Kinds::ITEM_ANTI).and(order);
            let (class, way) = if let Some(way) = search.way(ends, kinds, Anti::None, &components) {
                (if through == Kind::Time { Class::GSIa } else { Class::G1c }, way)
            } else if let Some(way) = search.way(ends, kinds, Anti::One, &components) {
                (if through == Kind::Time { Class::GSIb } else { Class::GSingle }, way)
            } else if let Some(way) = search.way(ends, kinds, apart, &components) {
                (Class::GNonadjacent, way)
            } else if let Some(way) = search.way(ends, items, Anti::Any, &components) {
                (Class::G2Item, way)
            } else if let Some(way) = search.way(ends, kinds, Anti::Any, &components) {
                (Class::G2, way)
            } else {
                continue;
            };
            // What the data shows by itself has been reported.
            if !self.found.has(class) {
                let cycle = self.closed((from, arc), way);
                self.report(class, cycle);
            }
        }
    }
}

/// Whether a cycle with one anti-dependency is all about one item.
fn is_cursor(cycle: &Cycle) -> bool {
    cycle[0].1.kind() == Kind::Rw
        && cycle[1..]
            .iter()
            .all(|(_, arc)| arc.kind() == Kind::Ww && arc.about() == cycle[0].1.about())
}

/// Whether two overwrote what both had read, and nothing shows who was first.
fn is_lost_update(cycle: &Cycle) -> bool {
    cycle.len() == 2
        && cycle.iter().all(|(_, arc)| arc.kind() == Kind::Rw)
        && cycle[0].1.about() == cycle[1].1.about()
}
