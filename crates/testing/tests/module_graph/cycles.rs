//! Dependency cycles among the modules of one folder.

use crate::modules::{Edge, ModulePath};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fmt;

/// A shortest cycle among sibling modules.
#[derive(Debug)]
pub struct Cycle {
    /// The module whose children form the cycle.
    pub parent: ModulePath,
    /// One edge per step, the last one back to the start.
    pub edges: Vec<Edge>,
    /// All siblings that depend on each other.
    pub members: BTreeSet<String>,
}

/// Finds the cycles among the siblings of each folder. The module of a folder
/// itself (`mod.rs`) is no sibling of its children.
pub fn cycles(edges: &[Edge]) -> Vec<Cycle> {
    let of_folder = |(parent, graph): (&ModulePath, &Graph)| cycles_of(parent, graph);
    by_folder(edges).iter().flat_map(of_folder).collect()
}

/// The graph as text: one line per module that refers to siblings.
pub fn drawing(edges: &[Edge]) -> String {
    let mut text = String::new();
    for (parent, graph) in by_folder(edges) {
        for (from, to) in graph {
            let to: Vec<&str> = to.into_keys().collect();
            text += &format!("  {}::{from} -> {}\n", module_name(&parent), to.join(", "));
        }
    }
    text
}

/// The references between siblings, by the module that contains them.
fn by_folder(edges: &[Edge]) -> BTreeMap<ModulePath, Graph<'_>> {
    let mut folders: BTreeMap<ModulePath, Graph> = BTreeMap::new();
    for edge in edges {
        let shared = edge.from.iter().zip(&edge.to).take_while(|(a, b)| a == b).count();
        let ends = (edge.from[shared].as_str(), edge.to[shared].as_str());
        let graph = folders.entry(edge.from[..shared].to_vec()).or_default();
        graph.entry(ends.0).or_default().entry(ends.1).or_insert(edge);
    }
    folders
}

/// For each sibling the ones that it refers to, with one reference each.
type Graph<'a> = BTreeMap<&'a str, BTreeMap<&'a str, &'a Edge>>;

fn cycles_of(parent: &ModulePath, graph: &Graph) -> Vec<Cycle> {
    let reached: BTreeMap<&str, BTreeSet<&str>> =
        graph.keys().map(|name| (*name, reachable(graph, name))).collect();
    let mut found = Vec::new();
    let mut done: BTreeSet<&str> = BTreeSet::new();
    for (name, others) in &reached {
        if done.contains(name) || !others.contains(name) {
            continue;
        }
        let is_member = |other: &&str| reached.get(other).is_some_and(|back| back.contains(name));
        let members: BTreeSet<&str> = others.iter().copied().filter(is_member).collect();
        done.extend(&members);
        let shortest = members.iter().map(|start| shortest_cycle(graph, start));
        let edges = shortest.min_by_key(Vec::len).unwrap_or_default();
        found.push(Cycle {
            parent: parent.clone(),
            edges,
            members: members.into_iter().map(String::from).collect(),
        });
    }
    found
}

/// The siblings that can be reached by one edge or more.
fn reachable<'a>(graph: &Graph<'a>, from: &str) -> BTreeSet<&'a str> {
    let mut reached = BTreeSet::new();
    let mut open = vec![from];
    while let Some(name) = open.pop() {
        for next in graph.get(name).into_iter().flat_map(BTreeMap::keys) {
            if reached.insert(*next) {
                open.push(next);
            }
        }
    }
    reached
}

/// The edges of a shortest way from a sibling back to itself.
fn shortest_cycle(graph: &Graph, start: &str) -> Vec<Edge> {
    let mut ways: VecDeque<(&str, Vec<&Edge>)> = VecDeque::from([(start, Vec::new())]);
    let mut visited = BTreeSet::new();
    while let Some((name, way)) = ways.pop_front() {
        for (next, edge) in graph.get(name).into_iter().flatten() {
            let longer = [way.as_slice(), &[edge]].concat();
            if *next == start {
                return longer.into_iter().cloned().collect();
            }
            if visited.insert(*next) {
                ways.push_back((next, longer));
            }
        }
    }
    Vec::new()
}

impl fmt::Display for Cycle {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let level = self.parent.len();
        write!(f, "in {}: {}", module_name(&self.parent), self.edges[0].from[level])?;
        for edge in &self.edges {
            write!(f, " -> {}", edge.to[level])?;
        }
        if self.members.len() > self.edges.len() {
            let members: Vec<&str> = self.members.iter().map(String::as_str).collect();
            write!(f, " ({} modules depend on each other: {})", members.len(), members.join(", "))?;
        }
        for edge in &self.edges {
            let (from, to) = (&edge.from[level], &edge.to[level]);
            let Edge { file, line, path, .. } = edge;
            write!(f, "\n    {from} -> {to}: {}:{line}: {path}", file.display())?;
        }
        Ok(())
    }
}

/// `crate::a::b`.
pub fn module_name(path: &[String]) -> String {
    [&["crate".to_string()], path].concat().join("::")
}
