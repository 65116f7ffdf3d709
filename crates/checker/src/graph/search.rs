//! Shortest ways through the graph, and views of it that decide levels.

use super::{Components, Graph, Kinds, Neighbours};
use crate::graph::Arc;

/// The edges of some kinds, a node a transaction.
pub(crate) struct Plain<'g> {
    pub graph: &'g Graph,
    pub kinds: Kinds,
}

impl Neighbours for Plain<'_> {
    fn len(&self) -> u32 {
        self.graph.len()
    }

    fn next(&self, node: u32, place: u32) -> Option<(u32, u32)> {
        let arcs = self.graph.from(node);
        let skipped = arcs[place as usize..].iter().position(|arc| self.kinds.has(arc.kind()))?;
        let at = place as usize + skipped;
        Some((arcs[at].to, at as u32 + 1))
    }
}

/// Snapshot isolation as plain acyclicity: each transaction has a begin (twice its
/// number) and a commit. Dependencies and orders go from a commit to a begin,
/// anti-dependencies from a begin to a commit.
pub(crate) struct Split<'g> {
    pub graph: &'g Graph,
    pub kinds: Kinds,
}

impl Neighbours for Split<'_> {
    fn len(&self) -> u32 {
        2 * self.graph.len()
    }

    fn next(&self, node: u32, place: u32) -> Option<(u32, u32)> {
        let (txn, is_commit) = (node / 2, node % 2 == 1);
        let mut at = place as usize;
        if !is_commit {
            if place == 0 {
                return Some((node + 1, 1));
            }
            at -= 1;
        }
        let arcs = self.graph.from(txn);
        let wanted =
            |arc: &Arc| self.kinds.has(arc.kind()) && arc.kind().is_anti_dependency() != is_commit;
        let at = at + arcs[at..].iter().position(wanted)?;
        let to = 2 * arcs[at].to + u32::from(!is_commit);
        Some((to, at as u32 + if is_commit { 1 } else { 2 }))
    }
}

/// Which anti-dependencies a way may have.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Anti {
    None,
    /// Exactly one.
    One,
    /// No two in a row, also not with edges before its begin and after its end, if
    /// that is how it is closed.
    Apart {
        closed_by_anti: bool,
    },
    Any,
}

/// Looks for shortest ways between nodes of one component.
pub(crate) struct Search<'g> {
    graph: &'g Graph,
    /// By node and what has been on the way: when it was reached, and whence.
    reached: Vec<u32>,
    from: Vec<(u32, Arc)>,
    round: u32,
    queue: Vec<u32>,
    /// How many edges may still be looked at.
    pub budget: usize,
}

impl<'g> Search<'g> {
    pub(crate) fn new(graph: &'g Graph, budget: usize) -> Search<'g> {
        let states = 2 * graph.len() as usize;
        let nowhere = (0, Arc::new(0, crate::anomaly::Kind::Wr, 0));
        Search {
            graph,
            reached: vec![0; states],
            from: vec![nowhere; states],
            round: 0,
            queue: Vec::new(),
            budget,
        }
    }

    /// The shortest way, as its edges with their beginnings.
    pub(crate) fn way(
        &mut self,
        (begin, end): (u32, u32),
        kinds: Kinds,
        anti: Anti,
        components: &Components,
    ) -> Option<Vec<(u32, Arc)>> {
        let component = components.of[begin as usize];
        if components.of[end as usize] != component {
            return None;
        }
        self.round += 1;
        self.queue.clear();
        // The second state of a node: an anti-dependency is on the way (one), or was the
        // last step (apart).
        let start = 2 * begin + u32::from(matches!(anti, Anti::Apart { closed_by_anti: true }));
        self.reached[start as usize] = self.round;
        self.queue.push(start);
        let mut next = 0;
        while let Some(state) = self.queue.get(next).copied() {
            next += 1;
            let (node, marked) = (state / 2, state % 2 == 1);
            for arc in self.graph.from(node) {
                self.budget = self.budget.saturating_sub(1);
                if !kinds.has(arc.kind()) || components.of[arc.to as usize] != component {
                    continue;
                }
                let is_anti = arc.kind().is_anti_dependency();
                let mark = match anti {
                    Anti::None if is_anti => continue,
                    Anti::One | Anti::Apart { .. } if is_anti && marked => continue,
                    Anti::One => marked || is_anti,
                    Anti::Apart { .. } => is_anti,
                    Anti::None | Anti::Any => false,
                };
                let to = 2 * arc.to + u32::from(mark);
                if self.reached[to as usize] == self.round {
                    continue;
                }
                self.reached[to as usize] = self.round;
                self.from[to as usize] = (state, *arc);
                let arrived = arc.to == end
                    && match anti {
                        Anti::One => mark,
                        Anti::Apart { closed_by_anti: true } => !mark,
                        _ => true,
                    };
                if arrived {
                    return Some(self.back(start, to));
                }
                self.queue.push(to);
            }
            if self.budget == 0 {
                return None;
            }
        }
        None
    }

    fn back(&self, start: u32, mut state: u32) -> Vec<(u32, Arc)> {
        let mut way = Vec::new();
        loop {
            let (before, arc) = self.from[state as usize];
            way.push((before / 2, arc));
            if before == start {
                way.reverse();
                return way;
            }
            state = before;
        }
    }
}
