//! A run of the instrumented case, with all its observations.

use super::matches::Matches;
use crate::instrument::{CurrentReadScope, Entry, Instrument, InstrumentedCase, ObservedRun};
use isolde_model::history::History;
use isolde_model::parsed_case::Operation;
use isolde_model::{Case, Level};
use std::collections::BTreeMap;

/// A step without which a graph can be made, and why not with it.
pub struct Unusable(pub usize, pub &'static str);

/// A run and all its observations.
pub struct Run<'a> {
    pub case: &'a Case,
    pub operations: &'a [Operation],
    pub instrument: &'a Instrument,
    pub instrumented: &'a InstrumentedCase,
    pub history: &'a History,
    /// For each step the versions that were there when it was sent.
    pub views: &'a BTreeMap<usize, Vec<Entry>>,
    pub observed: &'a ObservedRun<'a>,
    /// For each step what it reads as it is, if it is a write or a locking read.
    pub scopes: &'a [CurrentReadScope],
    /// For each step whether it reads rows that are not committed.
    pub dirty: &'a [bool],
    pub levels: &'a [Level],
    /// Where exact matches were asked for.
    pub matches: Option<Matches>,
}
