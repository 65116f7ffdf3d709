//! Topological sorting, by Kahn's algorithm (1962).

/// A directed graph whose successors can be visited.
pub(crate) trait Successors {
    /// The number of nodes.
    fn len(&self) -> u32;
    /// Visits the successors of a node, once per edge and always the same.
    fn for_each_successor(&self, node: u32, visit: impl FnMut(u32));
}

/// The nodes in a topological order: first those without predecessors. If the graph has a cycle,
/// the nodes on cycles and those that cycles lead to.
pub(crate) fn topological_sort(graph: &impl Successors) -> Result<Vec<u32>, Vec<u32>> {
    let nodes = graph.len();
    let mut missing = vec![0u32; nodes as usize];
    for node in 0..nodes {
        graph.for_each_successor(node, |next| missing[next as usize] += 1);
    }
    let mut order: Vec<u32> = Vec::with_capacity(nodes as usize);
    order.extend((0..nodes).filter(|node| missing[*node as usize] == 0));
    let mut at = 0;
    while at < order.len() {
        let node = order[at];
        at += 1;
        graph.for_each_successor(node, |next| {
            missing[next as usize] -= 1;
            if missing[next as usize] == 0 {
                order.push(next);
            }
        });
    }
    if order.len() == nodes as usize {
        return Ok(order);
    }
    Err((0..nodes).filter(|node| missing[*node as usize] > 0).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Edges(u32, &'static [(u32, u32)]);

    impl Successors for Edges {
        fn len(&self) -> u32 {
            self.0
        }

        fn for_each_successor(&self, node: u32, mut visit: impl FnMut(u32)) {
            self.1.iter().filter(|(from, _)| *from == node).for_each(|(_, to)| visit(*to));
        }
    }

    #[test]
    fn acyclic_graphs_are_sorted_and_cycles_are_left_over() {
        assert_eq!(topological_sort(&Edges(4, &[(3, 1), (1, 0), (3, 0)])), Ok(vec![2, 3, 1, 0]));
        let cyclic = Edges(5, &[(0, 1), (1, 2), (2, 1), (2, 3), (4, 1)]);
        assert_eq!(topological_sort(&cyclic), Err(vec![1, 2, 3]));
    }
}
