//! Where the order of versions is unknown: an order that stands a chance, to show that
//! a level holds which no exact procedure decides. If the level holds with it, it holds.

use crate::graph::{Components, Graph, Kinds, Plain};
use crate::joined::{Joined, UNPLACED};
use crate::predicate::PredicateEdges;
use crate::registers::{INITIAL, Rows};

/// The history with its versions in the order of `places`, where it is not known. Who
/// overwrote what it had read follows that at once.
pub(crate) fn ordered<'h>(joined: &Joined<'h>, places: &[u32]) -> Joined<'h> {
    let mut order = Rows::default();
    let mut next: Vec<(u32, u32)> = Vec::new();
    let mut heads = Vec::new();
    for item in 0..joined.order.len() as u32 {
        order.all.extend_from_slice(joined.order.of(item));
        let tail = joined.tail.of(item);
        if !tail.is_empty() {
            next.clear();
            heads.clear();
            for writer in tail {
                let read = joined.reads.of(*writer).iter().find(|read| read.item == item);
                match read {
                    Some(read)
                        if read.writer != INITIAL && tail.binary_search(&read.writer).is_ok() =>
                    {
                        next.push((read.writer, *writer));
                    }
                    // Who read the last version of the known order comes right after it.
                    Some(_) => heads.push((0, *writer)),
                    None => heads.push((places[*writer as usize] + 1, *writer)),
                }
            }
            next.sort_unstable();
            heads.sort_unstable();
            let mut put = Vec::new();
            for (_, head) in &heads {
                put.push(*head);
                // Depth first, so that each chain stays together.
                let mut at = put.len() - 1;
                while at < put.len() {
                    let from = next.partition_point(|(before, _)| *before < put[at]);
                    let after = next[from..].iter().take_while(|(before, _)| *before == put[at]);
                    let followers: Vec<u32> = after.map(|(_, writer)| *writer).collect();
                    put.extend(followers);
                    at += 1;
                }
            }
            order.all.extend(put);
        }
        order.end_row();
    }
    joined.with_order(order)
}

/// For each node its place in an order that keeps all dependencies that are certain,
/// and anti-dependencies as well if that is possible.
pub(crate) fn places(joined: &Joined<'_>, predicates: &PredicateEdges) -> Option<Vec<u32>> {
    let kinds = Kinds::DEPENDENCIES.and(Kinds::ANTI);
    let graph = Graph::of(joined, predicates, kinds);
    let all = Components::of(&Plain { graph: &graph, kinds });
    let dependencies = Components::of(&Plain { graph: &graph, kinds: Kinds::DEPENDENCIES });
    if !dependencies.is_acyclic() {
        return None;
    }
    // Components are numbered from the end of the order.
    let mut nodes: Vec<u32> = (0..graph.nodes).collect();
    nodes.sort_by_key(|node| {
        let node = *node as usize;
        (std::cmp::Reverse(all.of[node]), std::cmp::Reverse(dependencies.of[node]))
    });
    let mut places = vec![0; nodes.len()];
    for (place, node) in nodes.into_iter().enumerate() {
        places[node as usize] = place as u32;
    }
    Some(places)
}

impl<'h> Joined<'h> {
    /// The same with all orders known.
    fn with_order(&self, order: Rows<u32>) -> Joined<'h> {
        let mut reads = self.reads.clone();
        let mut places = Rows::default();
        for item in 0..order.len() as u32 {
            let begin = places.all.len();
            places.all.extend(order.of(item).iter().copied().zip(1..));
            places.all[begin..].sort_unstable();
            places.end_row();
        }
        for read in reads.all.iter_mut().filter(|read| read.place == UNPLACED) {
            let of_item = places.of(read.item);
            let at = of_item.binary_search_by_key(&read.writer, |(node, _)| *node);
            read.place = at.map_or(UNPLACED, |at| of_item[at].1);
        }
        let mut tail = Rows::default();
        for _ in 0..order.len() {
            tail.end_row();
        }
        Joined {
            history: self.history,
            txns: self.txns.clone(),
            reads,
            writes: self.writes.clone(),
            searched: vec![false; order.len()],
            order,
            tail,
            predicate_reads: self.predicate_reads.clone(),
            found: Default::default(),
            ambiguous: self.ambiguous,
        }
    }
}
