//! The graph of certain dependencies between committed transactions (Adya's direct
//! serialization graph, restricted to edges that the history shows).
//!
//! It decides a level where all version orders are known, and provides witnesses. Edges of
//! unknown version orders are not in it; `solver` and `weak` infer those.

mod arc;
mod edges;
mod paths;

pub(crate) use arc::{Arc, EdgeKinds, Graph};
pub(crate) use paths::{AntiDependencies, BeginCommitView, FilteredView, PathSearch};
