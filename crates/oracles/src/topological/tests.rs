//! Graphs and their orders.

use super::*;
use std::collections::BTreeSet;

fn graph(nodes: usize, edges: &[(usize, usize)]) -> Graph {
    let node = |step| Node { step, label: format!("s1.{step}"), sql: String::new() };
    let mut graph = Graph { nodes: (0..nodes).map(node).collect(), ..Graph::default() };
    edges.iter().for_each(|(from, to)| graph.add(*from, *to, Kind::ItemRead, "0r0"));
    graph
}

#[test]
fn orders_returns_all_of_a_graph_with_few() {
    let mut random = Random::stream(1, "test", 0);
    let orders = graph(3, &[(0, 2)]).orders(3, &mut random);
    assert_eq!(orders, [vec![0, 1, 2], vec![0, 2, 1], vec![1, 0, 2]]);
}

#[test]
fn random_orders_keep_every_edge() {
    let edges = [(0, 5), (1, 4), (4, 5), (2, 3)];
    let mut random = Random::stream(7, "test", 0);
    for _ in 0..200 {
        let orders = graph(7, &edges).orders(3, &mut random);
        assert_eq!(orders.len(), 3);
        for order in orders {
            assert_eq!(order.iter().collect::<BTreeSet<_>>().len(), 7);
            let at = |node: usize| order.iter().position(|n| *n == node);
            assert!(edges.iter().all(|(from, to)| at(*from) < at(*to)), "{order:?}");
        }
    }
}

#[test]
fn nodes_on_cycles_are_exactly_those_of_the_cycle() {
    let cyclic = graph(5, &[(0, 1), (1, 2), (2, 1), (2, 3), (3, 1), (3, 4)]);
    let names: Vec<usize> = cyclic.nodes_on_cycles().into_iter().map(|(node, _)| node).collect();
    assert_eq!(names, [1, 2, 3], "nodes that only lead to a cycle or away from it are not on it");
    assert!(graph(3, &[(0, 1), (1, 2)]).nodes_on_cycles().is_empty());
    let mut random = Random::stream(1, "test", 0);
    assert!(cyclic.orders(3, &mut random).is_empty());
}
