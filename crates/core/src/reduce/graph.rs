//! Which operations hang on which.
//!
//! There are two reasons to hang on another operation. Some make no sense without it: a
//! statement without the beginning of its transaction, the way back to a savepoint without
//! the savepoint. Others met data that it made: they still can be sent, but it is likely
//! that they are of no use. The *unit* of an operation (Pisco, appendix B.2) is itself and
//! all that hang on it for either reason; whether a single one of them can be spared is
//! asked with the first reason alone.

use std::collections::BTreeSet;

/// Operations by their numbers, from 0. What hangs on another comes after it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Graph {
    /// For each operation those that make no sense without it.
    carries: Vec<Vec<usize>>,
    /// For each operation those that met data that it made.
    feeds: Vec<Vec<usize>>,
    places: Vec<Place>,
}

/// Where an operation belongs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Place {
    pub session: usize,
    pub transaction: usize,
}

impl Graph {
    pub fn new(places: Vec<Place>) -> Graph {
        let none = vec![Vec::new(); places.len()];
        Graph { carries: none.clone(), feeds: none, places }
    }

    /// `later` makes no sense without `earlier`.
    pub fn carry(&mut self, earlier: usize, later: usize) {
        self.carries[earlier].push(later);
    }

    /// `later` met data that `earlier` made.
    pub fn feed(&mut self, earlier: usize, later: usize) {
        self.feeds[earlier].push(later);
    }

    pub fn len(&self) -> usize {
        self.places.len()
    }

    pub fn is_empty(&self) -> bool {
        self.places.is_empty()
    }

    /// For each session its operations, in order.
    pub fn sessions(&self) -> Vec<Vec<usize>> {
        self.grouped(|place| place.session)
    }

    pub fn transactions(&self) -> Vec<Vec<usize>> {
        self.grouped(|place| place.transaction)
    }

    fn grouped(&self, by: impl Fn(&Place) -> usize) -> Vec<Vec<usize>> {
        let groups = self.places.iter().map(&by).max().map_or(0, |last| last + 1);
        let mut found = vec![Vec::new(); groups];
        self.places.iter().enumerate().for_each(|(n, place)| found[by(place)].push(n));
        found.retain(|group| !group.is_empty());
        found
    }

    /// Takes operations away, with all that make no sense without them.
    pub fn take(&self, gone: &[usize], kept: &mut [bool]) {
        self.spread(gone, kept, false);
    }

    /// Takes the units of operations away.
    pub fn take_units(&self, of: &[usize], kept: &mut [bool]) {
        self.spread(of, kept, true);
    }

    fn spread(&self, from: &[usize], kept: &mut [bool], units: bool) {
        let mut next: Vec<usize> = from.iter().copied().filter(|n| kept[*n]).collect();
        next.iter().for_each(|n| kept[*n] = false);
        while let Some(n) = next.pop() {
            let feeds = self.feeds[n].iter().filter(|_| units);
            for later in self.carries[n].iter().chain(feeds) {
                if std::mem::replace(&mut kept[*later], false) {
                    next.push(*later);
                }
            }
        }
    }

    /// Of what is kept and not settled, what hangs on nothing else of that kind.
    pub fn without_predecessors(&self, kept: &[bool], settled: &[bool]) -> Vec<usize> {
        let open = |n: &usize| kept[*n] && !settled[*n];
        let mut hanging: BTreeSet<usize> = BTreeSet::new();
        for n in (0..self.len()).filter(open) {
            hanging.extend(self.carries[n].iter().chain(&self.feeds[n]));
        }
        (0..self.len()).filter(open).filter(|n| !hanging.contains(n)).collect()
    }
}
