//! `hunt.json`: what a hunt was, what it did and how far it came.

use crate::baseline::Judged;
use crate::error::{Damage, HuntError};
use crate::tally::{Counts, Coverage, Refusal, Tally, TopologyTally};
use crate::triage::Defect;
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

impl Identity {
    /// The fault that was planted; what is found is its work.
    pub fn fault(&self) -> Option<&str> {
        self.options.get("fault").map(String::as_str)
    }
}

/// Which part of the case numbers a hunt takes: blocks whose number leaves
/// `part - 1` when divided by `of`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Shard {
    pub part: u64,
    pub of: u64,
}

/// Parts that a hunt may be cut into.
pub const MOST_SHARDS: u64 = 100_000;

impl Shard {
    pub const WHOLE: Shard = Shard { part: 1, of: 1 };

    fn is_sound(self) -> bool {
        (1..=self.of).contains(&self.part) && self.of <= MOST_SHARDS
    }

    pub fn takes(self, block: u64) -> bool {
        block % self.of == self.part - 1
    }

    /// The first of its blocks from `block` on.
    fn first_from(self, block: u64) -> u64 {
        block + (self.part - 1 + self.of - block % self.of) % self.of
    }

    pub fn parse(text: &str) -> Result<Shard, HuntError> {
        let wrong = || HuntError::NotAShard(text.into());
        let (part, of) = text.split_once('/').ok_or_else(wrong)?;
        let shard = Shard {
            part: part.trim().parse().map_err(|_| wrong())?,
            of: of.trim().parse().map_err(|_| wrong())?,
        };
        if shard.is_sound() { Ok(shard) } else { Err(wrong()) }
    }
}

impl std::fmt::Display for Shard {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}/{}", self.part, self.of)
    }
}

/// How long and with how many workers a hunt was asked to run: nothing that
/// changes what it finds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Asked {
    pub seconds: Option<f64>,
    pub jobs: u64,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Summary {
    #[serde(flatten)]
    pub identity: Identity,
    pub shards: Vec<Shard>,
    #[serde(default)]
    pub asked: Asked,
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
    /// Cases that nothing was learned from, by the reason.
    #[serde(default)]
    pub unknown: BTreeMap<String, u64>,
    /// Cases that the rules of the engine predicted whole.
    #[serde(default)]
    pub predicted: u64,
    /// Cases of which a part is not modelled, by the reason.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub not_modelled: BTreeMap<String, u64>,
    /// What the topological oracle met.
    #[serde(default, skip_serializing_if = "TopologyTally::is_empty")]
    pub topology: TopologyTally,
    pub not_run: u64,
    pub waited: u64,
    pub transactions: u64,
    pub aborted: u64,
    pub features: BTreeMap<String, Coverage>,
    pub refusals: BTreeMap<String, Refusal>,
    pub signatures: BTreeSet<String>,
    /// Findings by what went wrong: those of one defect are the same.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub defects: BTreeMap<String, Defect>,
    /// Where there was a baseline.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub baseline: Option<Judged>,
    pub progress: Progress,
}

/// How far a hunt came, so that it can be resumed.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Progress {
    /// Blocks that are done, as ranges: first and last.
    pub blocks: Vec<(u64, u64)>,
    /// What was counted in those alone, where more was: in blocks that were
    /// broken off, which a resumed hunt runs again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub done: Option<Tally>,
}

impl Progress {
    pub fn is_done(&self, block: u64) -> bool {
        self.blocks.iter().any(|(first, last)| (*first..=*last).contains(&block))
    }

    pub fn finish(&mut self, block: u64) {
        self.add(&[(block, block)]);
    }

    pub fn merge(&mut self, other: &Progress) {
        self.add(&other.blocks);
    }

    fn add(&mut self, ranges: &[(u64, u64)]) {
        self.blocks.extend(ranges);
        self.blocks.sort_unstable();
        let mut joined: Vec<(u64, u64)> = Vec::new();
        for (first, last) in self.blocks.drain(..) {
            match joined.last_mut() {
                Some(previous) if previous.1.saturating_add(1) >= first => {
                    previous.1 = previous.1.max(last);
                }
                _ => joined.push((first, last)),
            }
        }
        self.blocks = joined;
    }

    /// The first block of a shard from `block` on that is not done.
    pub fn open_from(&self, block: u64, shard: Shard) -> u64 {
        let mut open = shard.first_from(block);
        // The ranges are in order.
        for (first, last) in &self.blocks {
            if (*first..=*last).contains(&open) {
                open = shard.first_from(last + 1);
            }
        }
        open
    }
}

/// The largest number that a count may be; more is no hunt's, and would make
/// sums overflow.
const LARGEST_COUNT: u64 = 1_000_000_000_000_000;

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
            asked: Asked::default(),
            cases: tally.cases,
            statements: tally.statements,
            statements_in_all: tally.statements_in_all,
            valid_share: tally.valid_share(),
            seconds,
            violations: tally.violations,
            by_level: tally.by_level.clone(),
            by_oracle: tally.by_oracle.clone(),
            by_behaviour: tally.by_behaviour.clone(),
            distinct: tally.distinct(),
            not_confirmed: tally.not_confirmed,
            unknown: tally.unknown.clone(),
            predicted: tally.predicted,
            not_modelled: tally.not_modelled.clone(),
            topology: tally.topology.clone(),
            not_run: tally.not_run,
            waited: tally.waited,
            transactions: tally.transactions,
            aborted: tally.aborted,
            features: tally.features.clone(),
            refusals: tally.refusals.clone(),
            signatures: tally.signatures.clone(),
            defects: tally.defects.clone(),
            baseline: None,
            progress,
        }
    }

    /// Reads `hunt.json`, which may come from elsewhere: no number in it is
    /// taken on trust.
    pub fn parse(bytes: &[u8]) -> Result<Summary, Damage> {
        let value: serde_json::Value = serde_json::from_slice(bytes)?;
        for (name, inner) in value.as_object().into_iter().flatten() {
            // A seed may be any number.
            if let Some(number) = Some(inner).filter(|_| name != "seed").and_then(too_large) {
                let (name, number) = (name.clone(), number.clone());
                return Err(Damage::TooLarge { name, number });
            }
        }
        let summary: Summary = serde_json::from_value(value)?;
        summary.check()?;
        Ok(summary)
    }

    fn check(&self) -> Result<(), Damage> {
        if self.shards.is_empty() {
            return Err(Damage::NoShards);
        }
        if let Some(odd) = self.shards.iter().find(|s| !s.is_sound()) {
            return Err(Damage::NoSuchShard(*odd));
        }
        if self.seconds < 0.0 || !(0.0..=1.0).contains(&self.valid_share) {
            let (seconds, share) = (self.seconds, self.valid_share);
            return Err(Damage::NoSuchShare { seconds, share });
        }
        let blocks = &self.progress.blocks;
        let apart = |pair: &[(u64, u64)]| pair[0].1 < pair[1].0;
        if blocks.iter().any(|(first, last)| first > last) || !blocks.windows(2).all(apart) {
            return Err(Damage::BlocksNotInOrder);
        }
        Ok(())
    }

    /// Violations of cause bug that are in no baseline.
    pub fn new_bugs(&self) -> u64 {
        self.baseline.as_ref().map_or(self.violations.bug, |judged| judged.new)
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
            unknown: self.unknown.clone(),
            predicted: self.predicted,
            not_modelled: self.not_modelled.clone(),
            topology: self.topology.clone(),
            violations: self.violations,
            by_level: self.by_level.clone(),
            by_oracle: self.by_oracle.clone(),
            by_behaviour: self.by_behaviour.clone(),
            features: self.features.clone(),
            refusals: self.refusals.clone(),
            signatures: self.signatures.clone(),
            defects: self.defects.clone(),
        }
    }
}

fn too_large(value: &serde_json::Value) -> Option<&serde_json::Number> {
    match value {
        serde_json::Value::Number(n) => {
            n.as_f64().is_some_and(|n| n.abs() > LARGEST_COUNT as f64).then_some(n)
        }
        serde_json::Value::Array(all) => all.iter().find_map(too_large),
        serde_json::Value::Object(all) => all.values().find_map(too_large),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shard_is_a_part_of_the_whole_and_nothing_else() {
        assert_eq!(Shard::parse("2/4").unwrap(), Shard { part: 2, of: 4 });
        for wrong in ["0/4", "5/4", "2", "a/b", "1/0", "", "1/100001"] {
            let said = Shard::parse(wrong).unwrap_err().to_string();
            assert!(said.contains("1/4"), "{wrong}: {said}");
        }
        for block in 0..50 {
            let takers = (1..=4).filter(|part| Shard { part: *part, of: 4 }.takes(block)).count();
            assert_eq!(takers, 1);
        }
    }

    #[test]
    fn blocks_that_are_done_are_kept_as_ranges() {
        let mut progress = Progress::default();
        for block in [3, 0, 1, 7, 2] {
            progress.finish(block);
        }
        assert_eq!(progress.blocks, [(0, 3), (7, 7)]);
        assert!(progress.is_done(3) && !progress.is_done(4));
    }

    #[test]
    fn the_next_block_is_the_first_of_the_shard_that_is_not_done() {
        let mut progress = Progress::default();
        for block in [0, 1, 2, 5, 6, 9] {
            progress.finish(block);
        }
        for shard in [Shard::WHOLE, Shard { part: 1, of: 3 }, Shard { part: 3, of: 4 }] {
            for from in 0..20 {
                let plain = (from..).find(|b| shard.takes(*b) && !progress.is_done(*b));
                assert_eq!(Some(progress.open_from(from, shard)), plain, "{shard} from {from}");
            }
        }
    }

    #[test]
    fn ranges_are_united_at_once_however_long_they_are() {
        let mut progress = Progress { blocks: vec![(5, LARGEST_COUNT)], ..Progress::default() };
        progress.merge(&Progress { blocks: vec![(0, 4), (9, 12)], ..Progress::default() });
        assert_eq!(progress.blocks, [(0, LARGEST_COUNT)]);
        assert_eq!(progress.open_from(2, Shard::WHOLE), LARGEST_COUNT + 1);
    }

    #[test]
    fn numbers_that_no_hunt_writes_are_refused_by_name() {
        let mut summary = crate::samples::summary(7, Shard { part: 1, of: 2 }, 1);
        summary.identity.seed = u64::MAX;
        summary.progress.blocks = vec![(0, 2), (4, 9)];
        let good = serde_json::to_value(&summary).unwrap();
        let parse = |value: &serde_json::Value| Summary::parse(value.to_string().as_bytes());
        assert_eq!(parse(&good).unwrap(), summary);
        for (path, value, said) in [
            ("/cases", "18446744073709551615", "cases: 18446744073709551615 is more"),
            ("/violations/bug", "1e30", "violations: 1"),
            ("/cases", "-1", "invalid value"),
            ("/seconds", "-3", "-3 seconds"),
            ("/valid_share", "7", "share of 7"),
            ("/progress/blocks/1/1", "99999999999999999", "progress: 99999999999999999 is more"),
            ("/progress/blocks/1/0", "1", "not in order"),
            ("/progress/blocks/0/1", "3000", "not in order"),
            ("/shards", "[]", "there is none"),
            ("/shards/0/of", "0", "no shard 1/0"),
            ("/shards/0/of", "100001", "no shard 1/100001"),
            ("/shards/0/part", "0", "no shard 0/2"),
        ] {
            let mut bad = good.clone();
            *bad.pointer_mut(path).unwrap() = serde_json::from_str(value).unwrap();
            let error = parse(&bad).unwrap_err().to_string();
            assert!(error.contains(said), "{path} = {value}: {error}");
        }
    }
}
