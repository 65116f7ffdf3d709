//! The definition itself: tries every version order.

use super::super::problem::{Goal, Problem};
use crate::types::{INITIAL, RequiredOrders};

/// Edges as bits: `edges[a]` has bit `b` if a precedes b.
#[derive(Clone)]
struct Bits(Vec<u32>);

impl Bits {
    fn acyclic(&self) -> bool {
        let mut left: u32 = if self.0.len() == 32 { !0 } else { (1 << self.0.len()) - 1 };
        loop {
            let mut followed = 0;
            let mut rest = left;
            while rest != 0 {
                followed |= self.0[rest.trailing_zeros() as usize];
                rest &= rest - 1;
            }
            let free = left & !followed;
            if free == 0 {
                return left == 0;
            }
            left &= !free;
        }
    }

    /// `from` and `to` are transactions; twice as many nodes under snapshot isolation.
    fn add(&mut self, goal: Goal, from: u32, to: u32, before: bool) {
        match goal {
            Goal::Serializable => self.0[from as usize] |= 1 << to,
            Goal::SnapshotIsolation if before => self.0[2 * from as usize] |= 1 << (2 * to + 1),
            Goal::SnapshotIsolation => self.0[2 * from as usize + 1] |= 1 << (2 * to),
        }
    }
}

fn without_versions(problem: &Problem, goal: Goal, required: RequiredOrders) -> Bits {
    let txns = problem.session_of.len();
    let mut bits = Bits(match goal {
        Goal::Serializable => vec![0; txns],
        Goal::SnapshotIsolation => {
            (0..2 * txns).map(|node| if node % 2 == 0 { 2 << node } else { 0 }).collect()
        }
    });
    for a in 0..txns {
        for b in 0..txns {
            let session =
                required.sessions && a < b && problem.session_of[a] == problem.session_of[b];
            let time = required.times && problem.times[a][1] < problem.times[b][0];
            let read = problem.reads.of(b as u32).iter().any(|(_, writer)| *writer == a as u32);
            if session || time || read {
                bits.add(goal, a as u32, b as u32, false);
            }
        }
    }
    bits
}

fn add_versions(problem: &Problem, goal: Goal, item: u32, order: &[u32], bits: &mut Bits) {
    for (position, &txn) in order.iter().enumerate() {
        let previous = if position == 0 { INITIAL } else { order[position - 1] };
        if previous != INITIAL {
            bits.add(goal, previous, txn, false);
        }
        for reader in 0..problem.session_of.len() as u32 {
            if reader != txn && problem.reads.of(reader).contains(&(item, previous)) {
                bits.add(goal, reader, txn, true);
            }
        }
    }
}

pub fn holds(problem: &Problem, goal: Goal, required: RequiredOrders) -> bool {
    let bits = without_versions(problem, goal, required);
    bits.acyclic() && some_order(problem, goal, 0, &bits)
}

fn some_order(problem: &Problem, goal: Goal, item: u32, bits: &Bits) -> bool {
    if item == problem.items {
        return true;
    }
    let mut order = problem.known_order.of(item).to_vec();
    let writes = |txn: &u32| problem.writes.of(*txn).contains(&item);
    let mut others: Vec<u32> = (0..problem.session_of.len() as u32).filter(writes).collect();
    others.retain(|txn| !order.contains(txn));
    permute(&mut order, &mut others, &mut |order| {
        let mut bits = bits.clone();
        add_versions(problem, goal, item, order, &mut bits);
        bits.acyclic() && some_order(problem, goal, item + 1, &bits)
    })
}

fn permute(
    order: &mut Vec<u32>,
    others: &mut Vec<u32>,
    works: &mut impl FnMut(&[u32]) -> bool,
) -> bool {
    if others.is_empty() {
        return works(order);
    }
    for position in 0..others.len() {
        let txn = others.remove(position);
        order.push(txn);
        let worked = permute(order, others, works);
        order.pop();
        others.insert(position, txn);
        if worked {
            return true;
        }
    }
    false
}

/// Whether the version orders given by this commit order, together with it, close no cycle.
pub fn order_works(
    problem: &Problem,
    goal: Goal,
    required: RequiredOrders,
    commit_order: &[u32],
) -> bool {
    let mut bits = without_versions(problem, goal, required);
    for item in 0..problem.items {
        let writes = |txn: &u32| problem.writes.of(*txn).contains(&item);
        let mut order: Vec<u32> = (0..problem.session_of.len() as u32).filter(writes).collect();
        order.sort_unstable_by_key(|txn| commit_order[*txn as usize]);
        if !order.starts_with(problem.known_order.of(item)) {
            return false;
        }
        add_versions(problem, goal, item, &order, &mut bits);
    }
    let commit = |txn: usize| if goal == Goal::Serializable { txn } else { 2 * txn + 1 };
    let txns = commit_order.len();
    for a in 0..txns {
        for b in 0..txns {
            if commit_order[a] < commit_order[b] {
                bits.0[commit(a)] |= 1 << commit(b);
            }
        }
    }
    bits.acyclic()
}
