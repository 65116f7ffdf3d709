//! A shortest cycle for every class of anomalies.

use crate::anomaly::{Certainty, Class, Edge, Kind};
use crate::graph::{Anti, Arc, Components, Graph, Kinds, Plain, Search};
use crate::history::Value;
use crate::joined::{Found, Joined, Read, UNPLACED, is_observed};
use crate::predicate::PredicateEdges;
use crate::registers::{Because, Goal, INITIAL, Order, Step};

/// So many edges are looked at for each of data, sessions and time. Verdicts do not
/// depend on it; counts are of what was found until then.
const BUDGET: usize = 30_000_000;

type Cycle = Vec<(u32, Arc)>;

/// Finds the cycles that the history shows.
pub(crate) fn find(joined: &Joined<'_>, predicates: &PredicateEdges, found: &mut Found) {
    let data = Kinds::DEPENDENCIES.and(Kinds::ANTI);
    let graph = Graph::of(joined, predicates, data);
    changed_between_reads(joined, found);
    let mut finder = Finder { joined, graph: &graph, found, through: None };
    finder.write_cycles();
    finder.dependency_cycles();
    finder.anti_dependency_cycles();
    if joined.history.has_sessions() {
        let kinds = data.and(Kinds::SESSION);
        let graph = Graph::of(joined, predicates, kinds);
        Finder { joined, graph: &graph, found, through: Some(Kind::Session) }.order_cycles(kinds);
    }
    if joined.history.has_times() {
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

/// Reports the cycle by which a search over orders of versions has found that none works. True
/// if it breaks consistent view as well: who overwrites what it has read follows it at once
/// there, too, so what that shows of orders of versions is certain.
pub(crate) fn of_search(joined: &mut Joined<'_>, cycle: &[Step], goal: Goal) -> bool {
    let edges: Vec<Edge> = cycle.iter().map(|step| of_step(joined, step)).collect();
    let (class, through) = class_of(&edges);
    if is_observed(&edges) && through.is_none() && class <= Class::GSingle {
        // Cycles without anti-dependencies are found without a search.
        joined.found.searched(Class::GSingle, None, edges);
        return true;
    }
    // Where the order of versions is inferred, it is the reads behind it that clash, in every
    // order: the class is what breaks the level that was asked for.
    let class = match goal {
        Goal::SnapshotIsolation => Class::GNonadjacent,
        Goal::Serializable => Class::G2Item,
    };
    keep(joined, edges, class);
    false
}

/// Reports a cycle under its class, or under one that is given where parts of it are inferred.
/// Tells which order it needs besides the data.
pub(crate) fn keep(joined: &mut Joined<'_>, edges: Vec<Edge>, inferred: Class) -> Option<Kind> {
    let (class, through) = match is_observed(&edges) {
        true => class_of(&edges),
        false => (inferred, orders_used(&edges)),
    };
    joined.found.searched(class, through, edges);
    through
}

/// The order of time or of sessions, if a cycle or what is behind it needs one.
fn orders_used(edges: &[Edge]) -> Option<Kind> {
    let of_edge = |edge: &Edge| match (&edge.certainty, edge.kind) {
        (_, Kind::Time) => Some(Kind::Time),
        (_, Kind::Session) => Some(Kind::Session),
        (Certainty::Otherwise(steps), _) => orders_used(steps),
        _ => None,
    };
    let used: Vec<Kind> = edges.iter().filter_map(of_edge).collect();
    [Kind::Time, Kind::Session].into_iter().find(|kind| used.contains(kind))
}

fn of_step(joined: &Joined<'_>, step: &Step) -> Edge {
    let (kind, item) = match step.order {
        Order::Session => (Kind::Session, 0),
        Order::Time => (Kind::Time, 0),
        Order::Read { item } => (Kind::Wr, item),
        Order::Overwrite { item } => (Kind::Ww, item),
        Order::Before { item, .. } => (Kind::Rw, item),
    };
    let certainty = match &step.because {
        Because::Observed => Certainty::Observed,
        Because::Opposite(steps) => {
            Certainty::Otherwise(steps.iter().map(|step| of_step(joined, step)).collect())
        }
        Because::Assumed => Certainty::Assumed,
        Because::Search => Certainty::Searched,
    };
    Edge { certainty, ..dependency(joined, (step.from, step.to), kind, item) }
}

/// The class of a cycle, by its anti-dependencies and the orders that it needs.
fn class_of(cycle: &[Edge]) -> (Class, Option<Kind>) {
    let has = |kind: Kind| cycle.iter().any(|edge| edge.kind == kind);
    let through = [Kind::Time, Kind::Session].into_iter().find(|kind| has(*kind));
    let anti = cycle.iter().filter(|edge| edge.kind.is_anti_dependency()).count();
    let next_to_each_other = (0..cycle.len()).any(|at| {
        let next = &cycle[(at + 1) % cycle.len()];
        cycle[at].kind.is_anti_dependency() && next.kind.is_anti_dependency()
    });
    let in_time = through == Some(Kind::Time);
    let class = match anti {
        0 if in_time => Class::GSIa,
        0 if !has(Kind::Wr) && through.is_none() => Class::G0,
        0 => Class::G1c,
        1 if in_time => Class::GSIb,
        1 => Class::GSingle,
        _ if !next_to_each_other => Class::GNonadjacent,
        _ if has(Kind::PredicateRw) => Class::G2,
        _ => Class::G2Item,
    };
    (class, through)
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
            let edges = edges(self.joined, self.graph, &cycle);
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

/// The edges of a cycle, with all that is known about each.
pub(crate) fn edges(joined: &Joined<'_>, graph: &Graph, cycle: &Cycle) -> Vec<Edge> {
    let mut edges = Vec::new();
    let mut since = None;
    let first = cycle.iter().position(|(from, _)| *from < graph.nodes).unwrap_or(0);
    for (from, arc) in cycle[first..].iter().chain(&cycle[..first]) {
        if *from < graph.nodes {
            since = Some(*from);
        }
        if arc.to < graph.nodes
            && let Some(from) = since.take()
        {
            edges.push(edge(joined, from, *arc));
        }
    }
    edges
}

fn edge(joined: &Joined<'_>, from: u32, arc: Arc) -> Edge {
    let kind = arc.kind();
    if matches!(kind, Kind::PredicateWr | Kind::PredicateRw) {
        let read = &joined.predicate_reads[arc.about() as usize];
        let predicate = joined.history.ops[read.op as usize].item;
        let statement = joined.history.statement(read.op as usize).map(str::to_owned);
        let name = Some(joined.history.predicates.name(predicate, ""));
        let reads_first = kind == Kind::PredicateRw;
        return Edge {
            predicate: name,
            from_statement: if reads_first { statement.clone() } else { None },
            to_statement: if reads_first { None } else { statement },
            ..plain(joined, from, arc.to, kind)
        };
    }
    let item = arc.about();
    dependency(joined, (from, arc.to), kind, item)
}

fn plain(joined: &Joined<'_>, from: u32, to: u32, kind: Kind) -> Edge {
    Edge {
        from: joined.txns[from as usize],
        to: joined.txns[to as usize],
        kind,
        item: None,
        predicate: None,
        from_value: None,
        to_value: None,
        from_statement: None,
        to_statement: None,
        certainty: Certainty::Observed,
    }
}

/// An edge of a read, a write or an anti-dependency about an item, or of an order.
pub(crate) fn dependency(
    joined: &Joined<'_>,
    (from, to): (u32, u32),
    kind: Kind,
    item: u32,
) -> Edge {
    let edge = plain(joined, from, to, kind);
    if matches!(kind, Kind::Session | Kind::Time) {
        return edge;
    }
    let read_by = |node: u32, of_writer: Option<u32>| {
        let reads = || joined.reads.of(node).iter().filter(|read| read.item == item);
        reads()
            .find(|read| match of_writer {
                Some(writer) => read.writer == writer,
                None => {
                    read.place == UNPLACED
                        || joined
                            .order
                            .of(item)
                            .get(read.place as usize)
                            .is_none_or(|next| *next == to)
                }
            })
            .or_else(|| reads().next())
    };
    let value_read = |op: u32| {
        let op = joined.history.ops[op as usize];
        match joined.history.list(op) {
            Some(list) => list.last().map_or(Value::INITIAL, |element| Value(*element)),
            None => Value(op.value),
        }
    };
    let text = |op: u32| joined.history.statement(op as usize).map(str::to_owned);
    let wrote = |node: u32| joined.wrote(node, item);
    let read = match kind {
        Kind::Wr => read_by(to, Some(from)),
        Kind::Rw => read_by(from, None),
        _ => None,
    };
    let (from_op, to_op) = match kind {
        Kind::Wr => (wrote(from).map(|write| write.op), read.map(|read| read.op)),
        Kind::Rw => (read.map(|read| read.op), wrote(to).map(|write| write.op)),
        _ => (wrote(from).map(|write| write.op), wrote(to).map(|write| write.op)),
    };
    let seen = read.map(|read| value_read(read.op));
    let written = |node: u32| if node == INITIAL { None } else { joined.value_of(node, item) };
    Edge {
        item: Some(crate::history::Item(item)),
        from_value: if kind == Kind::Wr || kind == Kind::Rw { seen } else { written(from) },
        to_value: if kind == Kind::Wr { seen } else { written(to) },
        from_statement: from_op.and_then(text),
        to_statement: to_op.and_then(text),
        ..edge
    }
}
