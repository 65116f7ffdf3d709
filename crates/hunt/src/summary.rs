//! `hunt.json`: what a hunt was, what it did and how far it came.

use crate::tally::{Counts, Coverage, Refusal, Tally};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// What makes two hunts parts of the same one.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Identity {
    /// Isolde's version.
    pub version: String,
    pub seed: u64,
    pub target: String,
    pub server_version: String,
    pub settings: BTreeMap<String, String>,
    pub levels: Vec<String>,
    pub oracles: Vec<String>,
    /// What the generator was told beside the seed.
    pub options: BTreeMap<String, String>,
}

/// Which part of the case numbers a hunt takes: blocks whose number leaves
/// `part - 1` when divided by `of`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Shard {
    pub part: u64,
    pub of: u64,
}

impl Shard {
    pub const WHOLE: Shard = Shard { part: 1, of: 1 };

    pub fn takes(self, block: u64) -> bool {
        block % self.of == self.part - 1
    }

    pub fn parse(text: &str) -> Result<Shard, String> {
        let wrong =
            || format!("`{text}` is not a shard; write K/N with K from 1 to N, such as 1/4");
        let (part, of) = text.split_once('/').ok_or_else(wrong)?;
        let shard = Shard {
            part: part.trim().parse().map_err(|_| wrong())?,
            of: of.trim().parse().map_err(|_| wrong())?,
        };
        if shard.part == 0 || shard.part > shard.of { Err(wrong()) } else { Ok(shard) }
    }
}

impl std::fmt::Display for Shard {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}/{}", self.part, self.of)
    }
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Summary {
    #[serde(flatten)]
    pub identity: Identity,
    pub shards: Vec<Shard>,
    pub cases: u64,
    pub statements: u64,
    pub statements_in_all: u64,
    pub valid_share: f64,
    pub seconds: f64,
    pub violations: Counts,
    pub by_level: BTreeMap<String, Counts>,
    pub by_oracle: BTreeMap<String, Counts>,
    pub by_behaviour: BTreeMap<String, u64>,
    pub distinct: u64,
    pub not_confirmed: u64,
    pub not_run: u64,
    pub waited: u64,
    pub transactions: u64,
    pub aborted: u64,
    pub features: BTreeMap<String, Coverage>,
    pub refusals: BTreeMap<String, Refusal>,
    pub signatures: BTreeSet<String>,
    pub progress: Progress,
}

/// How far a hunt came, so that it can be resumed.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Progress {
    /// Blocks that are done, as ranges: first and last.
    pub blocks: Vec<(u64, u64)>,
    /// Cases done of blocks that were broken off.
    pub partial: BTreeMap<u64, u64>,
}

impl Progress {
    pub fn is_done(&self, block: u64) -> bool {
        self.blocks.iter().any(|(first, last)| (*first..=*last).contains(&block))
    }

    pub fn finish(&mut self, block: u64) {
        self.partial.remove(&block);
        if self.is_done(block) {
            return;
        }
        self.blocks.push((block, block));
        self.blocks.sort_unstable();
        let mut joined: Vec<(u64, u64)> = Vec::new();
        for (first, last) in self.blocks.drain(..) {
            match joined.last_mut() {
                Some(previous) if previous.1 + 1 >= first => previous.1 = previous.1.max(last),
                _ => joined.push((first, last)),
            }
        }
        self.blocks = joined;
    }

    pub fn merge(&mut self, other: &Progress) {
        for (first, last) in &other.blocks {
            (*first..=*last).for_each(|block| self.finish(block));
        }
        self.partial.extend(other.partial.iter().map(|(b, c)| (*b, *c)));
    }
}

impl Summary {
    pub fn new(
        identity: Identity,
        shards: Vec<Shard>,
        tally: &Tally,
        seconds: f64,
        progress: Progress,
    ) -> Summary {
        Summary {
            identity,
            shards,
            cases: tally.cases,
            statements: tally.statements,
            statements_in_all: tally.statements_in_all,
            valid_share: tally.valid_share(),
            seconds,
            violations: tally.violations,
            by_level: tally.by_level.clone(),
            by_oracle: tally.by_oracle.clone(),
            by_behaviour: tally.by_behaviour.clone(),
            distinct: tally.signatures.len() as u64,
            not_confirmed: tally.not_confirmed,
            not_run: tally.not_run,
            waited: tally.waited,
            transactions: tally.transactions,
            aborted: tally.aborted,
            features: tally.features.clone(),
            refusals: tally.refusals.clone(),
            signatures: tally.signatures.clone(),
            progress,
        }
    }

    /// The counts again, to go on counting.
    pub fn tally(&self) -> Tally {
        let invalid = (1.0 - self.valid_share) * self.statements as f64;
        Tally {
            cases: self.cases,
            statements: self.statements,
            statements_in_all: self.statements_in_all,
            invalid: invalid.round() as u64,
            waited: self.waited,
            transactions: self.transactions,
            aborted: self.aborted,
            not_run: self.not_run,
            not_confirmed: self.not_confirmed,
            violations: self.violations,
            by_level: self.by_level.clone(),
            by_oracle: self.by_oracle.clone(),
            by_behaviour: self.by_behaviour.clone(),
            features: self.features.clone(),
            refusals: self.refusals.clone(),
            signatures: self.signatures.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shard_is_a_part_of_the_whole_and_nothing_else() {
        assert_eq!(Shard::parse("2/4"), Ok(Shard { part: 2, of: 4 }));
        for wrong in ["0/4", "5/4", "2", "a/b", "1/0", ""] {
            assert!(Shard::parse(wrong).unwrap_err().contains("1/4"), "{wrong}");
        }
        for block in 0..50 {
            let takers = (1..=4).filter(|part| Shard { part: *part, of: 4 }.takes(block)).count();
            assert_eq!(takers, 1);
        }
    }

    #[test]
    fn blocks_that_are_done_are_kept_as_ranges() {
        let mut progress = Progress::default();
        progress.partial.insert(2, 7);
        for block in [3, 0, 1, 7, 2] {
            progress.finish(block);
        }
        assert_eq!(progress.blocks, [(0, 3), (7, 7)]);
        assert!(progress.partial.is_empty());
        assert!(progress.is_done(3) && !progress.is_done(4));
    }
}
