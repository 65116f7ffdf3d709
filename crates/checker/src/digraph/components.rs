//! Strongly connected components, by Tarjan's algorithm (1972) without recursion: a cycle of a
//! million transactions must not need a million stack frames.

use crate::types::NONE;

/// A directed graph whose out-neighbours can be enumerated one at a time.
pub(crate) trait Digraph {
    /// The number of nodes.
    fn len(&self) -> u32;
    /// The neighbour at a cursor, and the cursor of the next one; none after the last. Cursors
    /// start at 0.
    fn next(&self, node: u32, cursor: u32) -> Option<(u32, u32)>;
}

/// The strongly connected component of each node. Components are numbered in reverse
/// topological order: edges lead to a lower number or stay inside.
pub(crate) struct Components {
    pub of: Vec<u32>,
    pub count: u32,
}

impl Components {
    pub(crate) fn of(graph: &impl Digraph) -> Components {
        let nodes = graph.len();
        let mut of = vec![NONE; nodes as usize];
        let mut reached = vec![NONE; nodes as usize];
        let mut low = vec![0_u32; nodes as usize];
        let (mut stack, mut path) = (Vec::new(), Vec::<(u32, u32)>::new());
        let (mut clock, mut count) = (0, 0);
        for root in 0..nodes {
            if reached[root as usize] != NONE {
                continue;
            }
            path.push((root, 0));
            while let Some((node, cursor)) = path.last_mut() {
                let at = *node as usize;
                if *cursor == 0 && reached[at] == NONE {
                    reached[at] = clock;
                    low[at] = clock;
                    clock += 1;
                    stack.push(*node);
                }
                match graph.next(*node, *cursor) {
                    Some((to, after)) => {
                        *cursor = after;
                        if reached[to as usize] == NONE {
                            path.push((to, 0));
                        } else if of[to as usize] == NONE {
                            low[at] = low[at].min(reached[to as usize]);
                        }
                    }
                    None => {
                        let node = *node;
                        path.pop();
                        if low[at] == reached[at] {
                            while let Some(member) = stack.pop() {
                                of[member as usize] = count;
                                if member == node {
                                    break;
                                }
                            }
                            count += 1;
                        }
                        if let Some((parent, _)) = path.last() {
                            let parent = *parent as usize;
                            low[parent] = low[parent].min(low[at]);
                        }
                    }
                }
            }
        }
        Components { of, count }
    }

    /// Whether every component is a single node. Graphs have no self-loops.
    pub(crate) fn is_acyclic(&self) -> bool {
        self.count as usize == self.of.len()
    }
}
