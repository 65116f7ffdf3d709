//! Directed graphs in compressed form, their strongly connected components, and topological
//! sorting. Nothing here depends on histories.

mod components;
mod rows;
mod sort;

pub(crate) use components::{Components, Digraph};
pub(crate) use rows::RowCounter;
pub use rows::Rows;
pub(crate) use sort::{Successors, topological_sort};
