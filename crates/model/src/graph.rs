//! A directed graph over numbered nodes: adjacency lists, topological order,
//! strongly connected components.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// A directed graph. Nodes are the numbers from 0; edges may occur twice and
/// may lead from a node to itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Graph {
    successors: Vec<Vec<usize>>,
}

impl Graph {
    /// A graph of `nodes` nodes without edges.
    pub fn new(nodes: usize) -> Graph {
        Graph { successors: vec![Vec::new(); nodes] }
    }

    /// The number of nodes.
    pub fn len(&self) -> usize {
        self.successors.len()
    }

    pub fn is_empty(&self) -> bool {
        self.successors.is_empty()
    }

    pub fn add_edge(&mut self, from: usize, to: usize) {
        self.successors[from].push(to);
    }

    /// The nodes to which an edge leads from this one, in the order in which the
    /// edges were added.
    pub fn successors(&self, node: usize) -> &[usize] {
        &self.successors[node]
    }

    /// All edges, by the node that they start from.
    pub fn edges(&self) -> impl Iterator<Item = (usize, usize)> {
        let nodes = self.successors.iter().enumerate();
        nodes.flat_map(|(from, successors)| successors.iter().map(move |to| (from, *to)))
    }

    /// For each node the number of edges that lead to it.
    pub fn in_degrees(&self) -> Vec<usize> {
        let mut degrees = vec![0; self.len()];
        self.edges().for_each(|(_, to)| degrees[to] += 1);
        degrees
    }

    /// The nodes in an order in which every edge leads forward; among nodes that
    /// are equally possible, the one with the smallest number comes first. None
    /// if the graph has a cycle.
    pub fn topological_order(&self) -> Option<Vec<usize>> {
        let mut missing = self.in_degrees();
        let ready = (0..self.len()).filter(|node| missing[*node] == 0).map(Reverse);
        let mut ready: BinaryHeap<Reverse<usize>> = ready.collect();
        let mut order = Vec::with_capacity(self.len());
        while let Some(Reverse(node)) = ready.pop() {
            order.push(node);
            for successor in self.successors(node) {
                missing[*successor] -= 1;
                if missing[*successor] == 0 {
                    ready.push(Reverse(*successor));
                }
            }
        }
        (order.len() == self.len()).then_some(order)
    }

    /// The strongly connected components: two nodes are in the same one if each
    /// can be reached from the other. Components come in topological order, so
    /// every edge stays in its component or leads to a later one; the nodes of
    /// each are sorted.
    pub fn components(&self) -> Vec<Vec<usize>> {
        let mut search = ComponentSearch::new(self);
        (0..self.len()).for_each(|node| search.visit(node));
        search.components.reverse();
        search.components
    }

    /// The nodes that lie on a cycle, in ascending order.
    pub fn nodes_on_cycles(&self) -> Vec<usize> {
        let loops = |node: usize| self.successors(node).contains(&node);
        let components = self.components().into_iter();
        let cyclic = components.filter(|nodes| nodes.len() > 1 || loops(nodes[0]));
        let mut nodes: Vec<usize> = cyclic.flatten().collect();
        nodes.sort_unstable();
        nodes
    }
}

const UNVISITED: usize = usize::MAX;

/// Tarjan's algorithm with an explicit stack, so that long chains do not exhaust
/// the thread's stack.
struct ComponentSearch<'g> {
    graph: &'g Graph,
    visited: usize,
    /// For each node when it was first visited.
    index: Vec<usize>,
    /// For each node the earliest node on `stack` known to be reachable.
    low: Vec<usize>,
    on_stack: Vec<bool>,
    /// Visited nodes that have no component yet.
    stack: Vec<usize>,
    /// From the last to the first in topological order.
    components: Vec<Vec<usize>>,
}

impl<'g> ComponentSearch<'g> {
    fn new(graph: &'g Graph) -> ComponentSearch<'g> {
        ComponentSearch {
            graph,
            visited: 0,
            index: vec![UNVISITED; graph.len()],
            low: vec![UNVISITED; graph.len()],
            on_stack: vec![false; graph.len()],
            stack: Vec::new(),
            components: Vec::new(),
        }
    }

    fn visit(&mut self, start: usize) {
        if self.index[start] != UNVISITED {
            return;
        }
        self.open(start);
        // Nodes under way, each with the number of successors already followed.
        let mut path = vec![(start, 0)];
        while let Some((node, followed)) = path.last_mut() {
            let node = *node;
            if let Some(next) = self.graph.successors(node).get(*followed) {
                *followed += 1;
                if self.index[*next] == UNVISITED {
                    self.open(*next);
                    path.push((*next, 0));
                } else if self.on_stack[*next] {
                    self.low[node] = self.low[node].min(self.index[*next]);
                }
                continue;
            }
            path.pop();
            if let Some((parent, _)) = path.last() {
                self.low[*parent] = self.low[*parent].min(self.low[node]);
            }
            if self.low[node] == self.index[node] {
                self.close(node);
            }
        }
    }

    fn open(&mut self, node: usize) {
        self.index[node] = self.visited;
        self.low[node] = self.visited;
        self.visited += 1;
        self.on_stack[node] = true;
        self.stack.push(node);
    }

    /// Takes the component whose first visited node this is off the stack.
    fn close(&mut self, first: usize) {
        let start = self.stack.iter().rposition(|node| *node == first).unwrap_or(0);
        let mut component = self.stack.split_off(start);
        component.iter().for_each(|node| self.on_stack[*node] = false);
        component.sort_unstable();
        self.components.push(component);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn graph(nodes: usize, edges: &[(usize, usize)]) -> Graph {
        let mut graph = Graph::new(nodes);
        edges.iter().for_each(|(from, to)| graph.add_edge(*from, *to));
        graph
    }

    /// Up to seven nodes with up to 14 edges.
    fn any_graph() -> impl Strategy<Value = Graph> {
        (1..8usize).prop_flat_map(|nodes| {
            let edges = prop::collection::vec((0..nodes, 0..nodes), 0..14);
            edges.prop_map(move |edges| graph(nodes, &edges))
        })
    }

    /// For each pair of nodes whether a path of at least one edge connects them, by
    /// Warshall's algorithm.
    fn paths(graph: &Graph) -> Vec<Vec<bool>> {
        let n = graph.len();
        let mut paths = vec![vec![false; n]; n];
        graph.edges().for_each(|(from, to)| paths[from][to] = true);
        for via in 0..n {
            for from in 0..n {
                for to in 0..n {
                    paths[from][to] |= paths[from][via] && paths[via][to];
                }
            }
        }
        paths
    }

    fn permutations(n: usize) -> Vec<Vec<usize>> {
        let mut all = vec![Vec::new()];
        for _ in 0..n {
            let longer = |order: &Vec<usize>| -> Vec<Vec<usize>> {
                let free = (0..n).filter(|node| !order.contains(node));
                free.map(|node| [order.as_slice(), &[node]].concat()).collect()
            };
            all = all.iter().flat_map(longer).collect();
        }
        all
    }

    proptest! {
        #[test]
        fn topological_order_is_the_first_of_all_orders_that_keep_the_edges(graph in any_graph()) {
            let keeps = |order: &Vec<usize>| {
                let place = |node| order.iter().position(|n| *n == node);
                graph.edges().all(|(from, to)| place(from) < place(to))
            };
            // Permutations come in lexicographical order.
            let expected = permutations(graph.len()).into_iter().find(keeps);
            prop_assert_eq!(graph.topological_order(), expected);
        }

        #[test]
        fn components_are_the_classes_of_mutual_reachability(graph in any_graph()) {
            let paths = paths(&graph);
            let components = graph.components();
            let mut seen: Vec<usize> = components.concat();
            seen.sort_unstable();
            prop_assert_eq!(seen, (0..graph.len()).collect::<Vec<_>>());
            let of = |node| components.iter().position(|c| c.contains(&node));
            let nodes = 0..graph.len();
            for (a, b) in nodes.clone().flat_map(|a| nodes.clone().map(move |b| (a, b))) {
                let mutual = a == b || paths[a][b] && paths[b][a];
                prop_assert_eq!(of(a) == of(b), mutual);
            }
            for (from, to) in graph.edges() {
                prop_assert!(of(from) <= of(to));
            }
            let cyclic: Vec<usize> = (0..graph.len()).filter(|n| paths[*n][*n]).collect();
            prop_assert_eq!(graph.nodes_on_cycles(), cyclic);
        }
    }

    #[test]
    fn components_of_a_long_chain_need_no_recursion() {
        let edges: Vec<(usize, usize)> = (1..200_000).map(|n| (n - 1, n)).collect();
        let chain = graph(200_000, &edges);
        assert_eq!(chain.components().len(), 200_000);
        assert_eq!(chain.topological_order().unwrap()[199_999], 199_999);
    }

    #[test]
    fn graph_without_nodes_has_an_empty_order_and_no_components() {
        assert_eq!(Graph::new(0).topological_order(), Some(Vec::new()));
        assert!(Graph::new(0).components().is_empty() && Graph::new(0).is_empty());
    }
}
