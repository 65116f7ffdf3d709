//! Strongly connected components, by Tarjan's algorithm without recursion: a
//! cycle of a million transactions must not need a million frames.

/// Whom a node points to, one by one.
pub(crate) trait Neighbours {
    fn len(&self) -> u32;
    /// The neighbour at a place, and the place after it; none when there are no more.
    fn next(&self, node: u32, place: u32) -> Option<(u32, u32)>;
}

/// The component of each node. Components are numbered so that edges go from
/// higher numbers to lower ones or stay inside.
pub(crate) struct Components {
    pub of: Vec<u32>,
    pub count: u32,
}

const NONE: u32 = u32::MAX;

impl Components {
    pub(crate) fn of(graph: &impl Neighbours) -> Components {
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
            while let Some((node, place)) = path.last_mut() {
                let at = *node as usize;
                if *place == 0 && reached[at] == NONE {
                    reached[at] = clock;
                    low[at] = clock;
                    clock += 1;
                    stack.push(*node);
                }
                match graph.next(*node, *place) {
                    Some((to, after)) => {
                        *place = after;
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

    /// Whether no two nodes are in one component. Nobody points to itself.
    pub(crate) fn is_acyclic(&self) -> bool {
        self.count as usize == self.of.len()
    }
}
