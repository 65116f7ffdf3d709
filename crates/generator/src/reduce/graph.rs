//! Dependencies between the operations of a case.
//!
//! An operation depends on an earlier one for one of two reasons. *Requirement*: it makes
//! no sense without the other, as a statement without the BEGIN of its transaction, or
//! ROLLBACK TO without its savepoint. *Data*: it found data that the other wrote; it can
//! still be sent without the other, but is then probably of no use. The *unit* of an
//! operation (Pisco, appendix B.2) is the operation and all that depend on it for either
//! reason. Whether a single operation is needed is tried with requirements alone.

use isolde_model::graph::Graph;
use std::collections::BTreeSet;

/// The operations of a case, numbered from 0, and their dependencies. An operation comes
/// after those that it depends on.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OperationGraph {
    /// From each operation to those that make no sense without it.
    requirements: Graph,
    /// From each operation to those that found data that it wrote.
    data: Graph,
    owners: Vec<Owner>,
}

/// The session and transaction of an operation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Owner {
    pub session: usize,
    pub transaction: usize,
}

impl OperationGraph {
    /// One operation per owner, without dependencies.
    pub fn new(owners: Vec<Owner>) -> OperationGraph {
        let none = Graph::new(owners.len());
        OperationGraph { requirements: none.clone(), data: none, owners }
    }

    /// Records that `later` makes no sense without `earlier`.
    pub fn add_requirement(&mut self, earlier: usize, later: usize) {
        self.requirements.add_edge(earlier, later);
    }

    /// Records that `later` found data that `earlier` wrote.
    pub fn add_data_dependency(&mut self, earlier: usize, later: usize) {
        self.data.add_edge(earlier, later);
    }

    pub fn len(&self) -> usize {
        self.owners.len()
    }

    pub fn is_empty(&self) -> bool {
        self.owners.is_empty()
    }

    /// The operations of each session, in order.
    pub fn sessions(&self) -> Vec<Vec<usize>> {
        self.grouped(|owner| owner.session)
    }

    /// The operations of each transaction, in order.
    pub fn transactions(&self) -> Vec<Vec<usize>> {
        self.grouped(|owner| owner.transaction)
    }

    fn grouped(&self, by: impl Fn(&Owner) -> usize) -> Vec<Vec<usize>> {
        let groups = self.owners.iter().map(&by).max().map_or(0, |last| last + 1);
        let mut found = vec![Vec::new(); groups];
        self.owners.iter().enumerate().for_each(|(n, owner)| found[by(owner)].push(n));
        found.retain(|group| !group.is_empty());
        found
    }

    /// Removes operations from `kept`, and all that make no sense without them.
    pub fn remove(&self, operations: &[usize], kept: &mut [bool]) {
        remove_with_dependents(operations, kept, &[&self.requirements]);
    }

    /// Removes the units of operations from `kept`.
    pub fn remove_units(&self, operations: &[usize], kept: &mut [bool]) {
        remove_with_dependents(operations, kept, &[&self.requirements, &self.data]);
    }

    /// The operations that are kept, are not settled, and depend on no other such operation.
    pub fn roots(&self, kept: &[bool], settled: &[bool]) -> Vec<usize> {
        let open = |n: &usize| kept[*n] && !settled[*n];
        let mut dependents: BTreeSet<usize> = BTreeSet::new();
        for n in (0..self.len()).filter(open) {
            dependents.extend(self.requirements.successors(n));
            dependents.extend(self.data.successors(n));
        }
        (0..self.len()).filter(open).filter(|n| !dependents.contains(n)).collect()
    }
}

/// Removes operations from `kept`, and all that depend on them in one of the graphs.
fn remove_with_dependents(operations: &[usize], kept: &mut [bool], dependencies: &[&Graph]) {
    let mut next: Vec<usize> = operations.iter().copied().filter(|n| kept[*n]).collect();
    next.iter().for_each(|n| kept[*n] = false);
    while let Some(n) = next.pop() {
        for dependent in dependencies.iter().flat_map(|graph| graph.successors(n)) {
            if std::mem::replace(&mut kept[*dependent], false) {
                next.push(*dependent);
            }
        }
    }
}
