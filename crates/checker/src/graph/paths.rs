//! Shortest paths in the graph, and views of it whose acyclicity decides levels.

use super::arc::{Arc, EdgeKinds, Graph};
use crate::digraph::{Components, Digraph};

/// The graph restricted to some kinds of edges, with one node per transaction.
pub(crate) struct FilteredView<'g> {
    pub graph: &'g Graph,
    pub kinds: EdgeKinds,
}

impl Digraph for FilteredView<'_> {
    fn len(&self) -> u32 {
        self.graph.len()
    }

    fn next(&self, node: u32, cursor: u32) -> Option<(u32, u32)> {
        let arcs = self.graph.arcs_from(node);
        let skipped = arcs[cursor as usize..].iter().position(|arc| self.kinds.has(arc.kind()))?;
        let at = cursor as usize + skipped;
        Some((arcs[at].to, at as u32 + 1))
    }
}

/// The graph whose acyclicity is snapshot isolation, with two nodes per transaction: its begin
/// (twice its number) and its commit. Dependencies and orders lead from a commit to a begin,
/// anti-dependencies from a begin to a commit. Acyclicity of this graph is equivalent to the
/// absence of cycles without adjacent anti-dependencies (Cerone and Gotsman, PODC 2016); Viper
/// (EuroSys 2023) calls it a BC graph.
pub(crate) struct BeginCommitView<'g> {
    pub graph: &'g Graph,
    pub kinds: EdgeKinds,
}

impl Digraph for BeginCommitView<'_> {
    fn len(&self) -> u32 {
        2 * self.graph.len()
    }

    fn next(&self, node: u32, cursor: u32) -> Option<(u32, u32)> {
        let (txn, is_commit) = (node / 2, node % 2 == 1);
        let mut at = cursor as usize;
        if !is_commit {
            if cursor == 0 {
                return Some((node + 1, 1));
            }
            at -= 1;
        }
        let arcs = self.graph.arcs_from(txn);
        let wanted =
            |arc: &Arc| self.kinds.has(arc.kind()) && arc.kind().is_anti_dependency() != is_commit;
        let at = at + arcs[at..].iter().position(wanted)?;
        let to = 2 * arcs[at].to + u32::from(!is_commit);
        Some((to, at as u32 + if is_commit { 1 } else { 2 }))
    }
}

/// Which anti-dependencies a path may contain.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum AntiDependencies {
    /// None at all.
    None,
    /// Exactly one.
    One,
    /// No two adjacent ones; if the path is closed by an anti-dependency, also not at its ends.
    Nonadjacent { closed_by_anti: bool },
    /// Any number.
    Any,
}

/// Finds shortest paths between nodes of one component.
pub(crate) struct PathSearch<'g> {
    graph: &'g Graph,
    /// For each node and state: the search that reached it, and by which edge.
    reached: Vec<u32>,
    from: Vec<(u32, Arc)>,
    round: u32,
    queue: Vec<u32>,
    /// The number of edges that may still be visited.
    pub budget: usize,
}

impl<'g> PathSearch<'g> {
    pub(crate) fn new(graph: &'g Graph, budget: usize) -> PathSearch<'g> {
        let states = 2 * graph.len() as usize;
        let nowhere = (0, Arc::default());
        PathSearch {
            graph,
            reached: vec![0; states],
            from: vec![nowhere; states],
            round: 0,
            queue: Vec::new(),
            budget,
        }
    }

    /// The shortest path from `begin` to `end`: its edges with their start nodes.
    pub(crate) fn shortest_path(
        &mut self,
        (begin, end): (u32, u32),
        kinds: EdgeKinds,
        anti: AntiDependencies,
        components: &Components,
    ) -> Option<Vec<(u32, Arc)>> {
        let component = components.of[begin as usize];
        if components.of[end as usize] != component {
            return None;
        }
        self.round += 1;
        self.queue.clear();
        // The second state of a node: an anti-dependency is on the path (`One`), or was the
        // last edge (`Nonadjacent`).
        let start = 2 * begin
            + u32::from(matches!(anti, AntiDependencies::Nonadjacent { closed_by_anti: true }));
        self.reached[start as usize] = self.round;
        self.queue.push(start);
        let mut next = 0;
        while let Some(state) = self.queue.get(next).copied() {
            next += 1;
            let (node, marked) = (state / 2, state % 2 == 1);
            for arc in self.graph.arcs_from(node) {
                self.budget = self.budget.saturating_sub(1);
                if !kinds.has(arc.kind()) || components.of[arc.to as usize] != component {
                    continue;
                }
                let is_anti = arc.kind().is_anti_dependency();
                let mark = match anti {
                    AntiDependencies::None if is_anti => continue,
                    AntiDependencies::One | AntiDependencies::Nonadjacent { .. }
                        if is_anti && marked =>
                    {
                        continue;
                    }
                    AntiDependencies::One => marked || is_anti,
                    AntiDependencies::Nonadjacent { .. } => is_anti,
                    AntiDependencies::None | AntiDependencies::Any => false,
                };
                let to = 2 * arc.to + u32::from(mark);
                if self.reached[to as usize] == self.round {
                    continue;
                }
                self.reached[to as usize] = self.round;
                self.from[to as usize] = (state, *arc);
                let arrived = arc.to == end
                    && match anti {
                        AntiDependencies::One => mark,
                        AntiDependencies::Nonadjacent { closed_by_anti: true } => !mark,
                        _ => true,
                    };
                if arrived {
                    return Some(self.reconstruct(start, to));
                }
                self.queue.push(to);
            }
            if self.budget == 0 {
                return None;
            }
        }
        None
    }

    fn reconstruct(&self, start: u32, mut state: u32) -> Vec<(u32, Arc)> {
        let mut path = Vec::new();
        loop {
            let (before, arc) = self.from[state as usize];
            path.push((before / 2, arc));
            if before == start {
                path.reverse();
                return path;
            }
            state = before;
        }
    }
}
