//! Vector clocks of causal consistency, computed along a linear order. The clock of a transaction
//! is kept only until the last transaction that reads from it or follows it in its session has
//! merged it, which is soon for most.

use super::linear_order::LinearOrder;
use super::stale_reads::{IntermediateWriters, Interruption, StaleRead, session_of};
use super::types::InferredEdge;
use crate::resolve::ResolvedHistory;
use crate::types::INITIAL;

/// The number of clock entries that are kept at a time: 256 MB.
pub(super) const KEPT: usize = 1 << 26;
/// The most entries of all clocks together.
const MOST: usize = 2_000_000_000;

/// Infers edges from the writers that causally precede stale readers. If the clocks of all
/// sessions do not fit into `kept` entries, works on some sessions at a time.
pub(super) fn infer_by_clocks(
    intermediate: &mut IntermediateWriters<'_, '_>,
    stale: &[StaleRead],
    kept: usize,
    inferred: &mut Vec<InferredEdge>,
) -> Result<(), Interruption> {
    let (resolved, order) = (intermediate.resolved, intermediate.order);
    let nodes = resolved.nodes();
    let sessions = resolved.history.session_count();
    if nodes.saturating_mul(sessions) > MOST {
        return Err(Interruption::OutOfBudget);
    }
    let sources = Sources { resolved, before: resolved.session_predecessors() };
    let mut in_session = vec![1_u32; nodes];
    for (node, before) in sources.before.iter().enumerate() {
        // The transactions of a session are numbered in session order.
        if *before != INITIAL {
            in_session[node] = in_session[*before as usize] + 1;
        }
    }
    let (uses, most) = sources.uses(order);
    let width = (kept / most.max(1)).clamp(8, sessions.max(8)).min(sessions);
    for first in (0..sessions).step_by(width.max(1)) {
        intermediate.begin();
        let width = width.min(sessions - first);
        let mut clocks = Clocks::new(width, uses.clone());
        let mut stale = stale.iter().peekable();
        let column = |node: u32| {
            (session_of(resolved, node) as usize).checked_sub(first).filter(|at| *at < width)
        };
        for node in &order.nodes {
            clocks.allocate(*node);
            sources.each(*node, |known| clocks.merge(*node, known));
            let clock = clocks.of(*node);
            if let Some(column) = column(*node) {
                clock[column] = in_session[*node as usize];
            }
            while let Some(stale) = stale.next_if(|stale| stale.reader == *node) {
                intermediate.each(stale, 0, inferred, |writer| {
                    column(writer).is_some_and(|at| clock[at] >= in_session[writer as usize])
                })?;
            }
            clocks.release(*node);
        }
    }
    Ok(())
}

/// The direct causal predecessors of transactions.
struct Sources<'a, 'h> {
    resolved: &'a ResolvedHistory<'h>,
    before: Vec<u32>,
}

impl Sources<'_, '_> {
    /// Visits the causal predecessors of a node, once per read and session edge.
    fn each(&self, node: u32, visit: impl FnMut(u32)) {
        let read = self.resolved.reads.of(node).iter().map(|read| read.writer);
        let known = read.chain([self.before[node as usize]]);
        known.filter(|known| *known != INITIAL && *known != node).for_each(visit);
    }

    /// How often the clock of each node is merged, and how many clocks are needed at a time.
    fn uses(&self, order: &LinearOrder) -> (Vec<u32>, usize) {
        let mut uses = vec![0_u32; order.nodes.len()];
        for node in &order.nodes {
            self.each(*node, |known| uses[known as usize] += 1);
        }
        let mut left = uses.clone();
        let (mut needed, mut most) = (0_usize, 0);
        for node in &order.nodes {
            needed += 1;
            most = most.max(needed);
            self.each(*node, |known| {
                left[known as usize] -= 1;
                needed -= usize::from(left[known as usize] == 0);
            });
            needed -= usize::from(uses[*node as usize] == 0);
        }
        (uses, most)
    }
}

/// One row for each node whose clock will still be merged.
struct Clocks {
    width: usize,
    rows: Vec<u32>,
    row_of: Vec<u32>,
    free: Vec<u32>,
    uses: Vec<u32>,
}

impl Clocks {
    fn new(width: usize, uses: Vec<u32>) -> Clocks {
        Clocks { width, rows: Vec::new(), row_of: vec![0; uses.len()], free: Vec::new(), uses }
    }

    fn allocate(&mut self, node: u32) {
        self.row_of[node as usize] = match self.free.pop() {
            Some(row) => {
                self.rows[row as usize * self.width..][..self.width].fill(0);
                row
            }
            None => {
                self.rows.resize(self.rows.len() + self.width, 0);
                (self.rows.len() / self.width) as u32 - 1
            }
        };
    }

    fn of(&mut self, node: u32) -> &mut [u32] {
        &mut self.rows[self.row_of[node as usize] as usize * self.width..][..self.width]
    }

    fn merge(&mut self, node: u32, known: u32) {
        let (to, from) = (self.row_of[node as usize], self.row_of[known as usize]);
        let (to, from) = (to as usize * self.width, from as usize * self.width);
        let (low, high) = self.rows.split_at_mut(to.max(from));
        let (own, other) = match to < from {
            true => (&mut low[to..to + self.width], &high[..self.width]),
            false => (&mut high[..self.width], &low[from..from + self.width]),
        };
        for (own, other) in own.iter_mut().zip(other) {
            *own = (*own).max(*other);
        }
        self.uses[known as usize] -= 1;
        self.release(known);
    }

    /// Frees the row of a node that no other node will merge any more.
    fn release(&mut self, node: u32) {
        if self.uses[node as usize] == 0 {
            self.free.push(self.row_of[node as usize]);
        }
    }
}
