//! The version chain of each item.

use super::facts::{Facts, place};
use isolde_model::trace::Access;

/// A version that was made.
#[derive(Clone, Copy, Debug)]
pub(super) struct Made {
    pub write: u32,
    pub transaction: u32,
    version: u64,
}

/// For each item its versions, in the order that a protocol gives them.
pub(super) struct Chains {
    /// Where the versions of each item begin, and the end.
    starts: Vec<u32>,
    made: Vec<Made>,
    /// For each version the next one of another transaction, in the same item.
    next: Vec<Option<u32>>,
    /// The places in `made`, for each item by version.
    by_version: Vec<u32>,
}

impl Chains {
    /// Of the writes that `counts` says count; those of an item in the order of `key`.
    pub fn new(
        facts: &Facts<'_>,
        counts: impl Fn(u32) -> bool,
        key: impl Fn(u32) -> u64,
    ) -> Chains {
        let written = |at: &u32| {
            let writes = if counts(*at) { facts.writes(*at) } else { &[] };
            writes.iter()
        };
        let mut starts = vec![0u32; facts.trace.items.len() + 1];
        for access in facts.by_end.iter().flat_map(written) {
            starts[access.item as usize + 1] += 1;
        }
        for at in 1..starts.len() {
            starts[at] += starts[at - 1];
        }
        let count = starts.last().copied().unwrap_or(0) as usize;
        let mut made = vec![Made { write: 0, transaction: 0, version: 0 }; count];
        let mut fill = starts.clone();
        for write in &facts.by_end {
            for access in written(write) {
                let next = &mut fill[access.item as usize];
                let transaction = facts.operation(*write).transaction;
                made[*next as usize] = Made { write: *write, transaction, version: access.version };
                *next += 1;
            }
        }
        let mut chains = Chains { starts, made, next: vec![None; count], by_version: Vec::new() };
        chains.by_version = (0..place(count)).collect();
        for item in 0..facts.trace.items.len() {
            let (from, to) = (chains.starts[item] as usize, chains.starts[item + 1] as usize);
            chains.made[from..to].sort_by_key(|made| key(made.write));
            for at in (from..to.saturating_sub(1)).rev() {
                let same = chains.made[at].transaction == chains.made[at + 1].transaction;
                chains.next[at] = if same { chains.next[at + 1] } else { Some(place(at + 1)) };
            }
            let made = &chains.made;
            chains.by_version[from..to].sort_unstable_by_key(|at| made[*at as usize].version);
        }
        chains
    }

    pub fn items(&self) -> usize {
        self.starts.len() - 1
    }

    /// All versions of an item.
    pub fn of(&self, item: usize) -> &[Made] {
        &self.made[self.starts[item] as usize..self.starts[item + 1] as usize]
    }

    pub fn at(&self, place: u32) -> &Made {
        &self.made[place as usize]
    }

    /// The index of a version; none if it is not in the chain, or is the initial version.
    pub fn find(&self, access: Access) -> Option<u32> {
        let (from, to) = (self.starts[access.item as usize], self.starts[access.item as usize + 1]);
        let versions = &self.by_version[from as usize..to as usize];
        let at = versions.partition_point(|at| self.at(*at).version < access.version);
        versions.get(at).copied().filter(|at| self.at(*at).version == access.version)
    }

    /// The first later version of another transaction; for the setup's version, the first
    /// of the chain.
    pub fn after(&self, item: u32, place: Option<u32>) -> Option<u32> {
        match place {
            Some(place) => self.next[place as usize],
            None => {
                let (from, to) = (self.starts[item as usize], self.starts[item as usize + 1]);
                (from < to).then_some(from)
            }
        }
    }

    /// The index of the next version, of any transaction.
    pub fn behind(&self, item: u32, place: Option<u32>) -> Option<u32> {
        let next = place.map_or(self.starts[item as usize], |place| place + 1);
        (next < self.starts[item as usize + 1]).then_some(next)
    }
}
