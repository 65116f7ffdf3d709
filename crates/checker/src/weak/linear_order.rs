//! A linear order of all transactions that respects the known edges and is as close to the order
//! of the history as they allow. Databases answer about in the order in which they commit, so
//! nearly all inferred edges agree with it, and only those that do not need attention.

use super::known_edges::known_version_orders;
use super::types::InferredEdge;
use crate::digraph::Rows;
use crate::resolve::ResolvedHistory;
use crate::types::INITIAL;

/// If more than one in this many reads observed a transaction that comes later in the history, the
/// order of the history is meaningless: it may be session by session.
const FEW_BACKWARD_READS: usize = 16;

/// All nodes in one order.
pub(crate) struct LinearOrder {
    pub nodes: Vec<u32>,
    /// The position of each node in `nodes`.
    pub position: Vec<u32>,
}

impl LinearOrder {
    /// A linear order that respects wr, known version orders, and session order if `sessions`. None
    /// if these have a cycle.
    pub(crate) fn of(resolved: &ResolvedHistory<'_>, sessions: bool) -> Option<LinearOrder> {
        let history_order = LinearOrder::from_nodes((0..resolved.nodes() as u32).collect());
        let backward_reads = count_backward_reads(resolved);
        if backward_reads == 0 && orders_lead_forward(resolved) {
            return Some(history_order);
        }
        let before = Predecessors::of(resolved, sessions, &[]);
        let order = LinearOrder::from_nodes(before.sorted(&history_order).ok()?);
        match backward_reads > resolved.reads.all.len() / FEW_BACKWARD_READS {
            true => Some(LinearOrder::from_nodes(before.by_depth(&order))),
            false => Some(order),
        }
    }

    /// A linear order that also respects the inferred edges. If they close a cycle, its nodes, each
    /// followed by a direct predecessor.
    pub(super) fn repair(
        &self,
        resolved: &ResolvedHistory<'_>,
        sessions: bool,
        inferred: &[InferredEdge],
    ) -> Result<LinearOrder, Vec<u32>> {
        Predecessors::of(resolved, sessions, inferred).sorted(self).map(LinearOrder::from_nodes)
    }

    fn from_nodes(nodes: Vec<u32>) -> LinearOrder {
        let mut position = vec![0; nodes.len()];
        for (at, node) in nodes.iter().enumerate() {
            position[*node as usize] = at as u32;
        }
        LinearOrder { nodes, position }
    }
}

/// The number of reads that observed a transaction later in the history.
fn count_backward_reads(resolved: &ResolvedHistory<'_>) -> usize {
    let backward_reads = |node: u32| {
        let later = |writer: u32| writer != INITIAL && writer > node;
        resolved.reads.of(node).iter().filter(|read| later(read.writer)).count()
    };
    (0..resolved.nodes() as u32).map(backward_reads).sum()
}

/// Whether all known version orders agree with the order of the history.
fn orders_lead_forward(resolved: &ResolvedHistory<'_>) -> bool {
    let mut forward = true;
    known_version_orders(resolved, |from, to, _| forward &= from < to);
    forward
}

/// The direct predecessors of each node.
struct Predecessors<'a, 'h> {
    resolved: &'a ResolvedHistory<'h>,
    /// The predecessor in the session, or [`INITIAL`]; empty if session order is not required.
    in_session: Vec<u32>,
    others: Rows<u32>,
}

impl<'a, 'h> Predecessors<'a, 'h> {
    fn of(
        resolved: &'a ResolvedHistory<'h>,
        sessions: bool,
        inferred: &[InferredEdge],
    ) -> Predecessors<'a, 'h> {
        let in_session = if sessions { resolved.session_predecessors() } else { Vec::new() };
        let mut others: Vec<(u32, u32)> =
            inferred.iter().map(|edge| (edge.later, edge.earlier)).collect();
        known_version_orders(resolved, |from, to, _| others.push((to, from)));
        Predecessors { resolved, in_session, others: Rows::of_edges(resolved.nodes(), others) }
    }

    /// The predecessor number `number`; [`INITIAL`] for no transaction, none after the last one.
    fn nth(&self, node: u32, number: usize) -> Option<u32> {
        let reads = self.resolved.reads.of(node);
        if let Some(read) = reads.get(number) {
            return Some(if read.writer == node { INITIAL } else { read.writer });
        }
        match number - reads.len() {
            0 => Some(self.in_session.get(node as usize).copied().unwrap_or(INITIAL)),
            number => self.others.of(node).get(number - 1).copied(),
        }
    }

    fn each(&self, node: u32, mut visit: impl FnMut(u32)) {
        let all = (0..).map_while(|number| self.nth(node, number));
        all.filter(|before| *before != INITIAL).for_each(&mut visit);
    }

    /// The nodes in the given order, but each after its predecessors; or those of a cycle, each
    /// followed by a direct predecessor.
    fn sorted(&self, order: &LinearOrder) -> Result<Vec<u32>, Vec<u32>> {
        #[derive(Clone, Copy, PartialEq)]
        enum State {
            New,
            Waiting,
            Placed,
        }
        let mut state = vec![State::New; order.nodes.len()];
        let mut sorted = Vec::with_capacity(order.nodes.len());
        let mut path: Vec<(u32, usize)> = Vec::new();
        for root in &order.nodes {
            if state[*root as usize] == State::New {
                state[*root as usize] = State::Waiting;
                path.push((*root, 0));
            }
            while let Some((node, number)) = path.last_mut() {
                match self.nth(*node, *number) {
                    Some(before) => {
                        *number += 1;
                        if before == INITIAL {
                            continue;
                        }
                        match state[before as usize] {
                            State::Placed => {}
                            State::Waiting => {
                                let begins = path.iter().position(|(on, _)| *on == before);
                                let cycle = path[begins.unwrap_or(0)..].iter();
                                return Err(cycle.map(|(node, _)| *node).collect());
                            }
                            State::New => {
                                state[before as usize] = State::Waiting;
                                path.push((before, 0));
                            }
                        }
                    }
                    None => {
                        state[*node as usize] = State::Placed;
                        sorted.push(*node);
                        path.pop();
                    }
                }
            }
        }
        Ok(sorted)
    }

    /// The nodes ordered by the length of the longest path to them and from them. The result
    /// respects the same edges, and is close to the order of the commits.
    fn by_depth(&self, order: &LinearOrder) -> Vec<u32> {
        let mut depth = vec![0_u32; order.nodes.len()];
        for node in &order.nodes {
            let mut deepest = 0;
            self.each(*node, |before| deepest = deepest.max(depth[before as usize] + 1));
            depth[*node as usize] = deepest;
        }
        let mut after = vec![0_u32; order.nodes.len()];
        for node in order.nodes.iter().rev() {
            let length = after[*node as usize] + 1;
            self.each(*node, |before| {
                after[before as usize] = after[before as usize].max(length);
            });
        }
        let longest = after.iter().copied().max().unwrap_or(0);
        let mut nodes = order.nodes.clone();
        nodes.sort_by_key(|node| depth[*node as usize] + longest - after[*node as usize]);
        nodes
    }
}
