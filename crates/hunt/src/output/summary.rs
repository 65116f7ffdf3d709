//! `hunt.json`: the settings of a hunt, its counts and its progress.

use super::baseline::BaselineResult;
use super::tally::{Counts, Coverage, Effect, Refusal, Tally};
use crate::error::{Damage, IdentityDifference};
use crate::finding::Defect;
pub use crate::shard::Shard;
use isolde_oracles::OracleTallies;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// The settings that decide what a hunt finds: equal for all parts of one hunt.
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
    /// The options of the generator other than the seed.
    pub options: BTreeMap<String, String>,
}

impl Identity {
    /// The planted fault, which causes the findings.
    pub fn fault(&self) -> Option<&str> {
        self.options.get("fault").map(String::as_str)
    }

    /// The first setting in which two hunts differ, with both values; none when they are parts
    /// of one hunt.
    pub fn first_difference(&self, other: &Identity) -> Option<IdentityDifference> {
        let (a, b) = (self, other);
        let plain = |i: &Identity| {
            vec![
                ("version".to_string(), i.version.clone()),
                ("seed".into(), i.seed.to_string()),
                ("target".into(), i.target.clone()),
                ("server_version".into(), i.server_version.clone()),
                ("levels".into(), i.levels.join(", ")),
                ("oracles".into(), i.oracles.join(", ")),
            ]
        };
        let differs = |name: &str, a: Option<&String>, b: Option<&String>| {
            (a != b).then(|| IdentityDifference {
                name: name.into(),
                there: a.cloned(),
                here: b.cloned(),
            })
        };
        let in_maps = |a: &BTreeMap<String, String>, b: &BTreeMap<String, String>| {
            a.keys().chain(b.keys()).find_map(|name| differs(name, a.get(name), b.get(name)))
        };
        let (first, second) = (plain(a), plain(b));
        let mut pairs = first.iter().zip(&second);
        pairs
            .find_map(|((name, a), (_, b))| differs(name, Some(a), Some(b)))
            .or_else(|| in_maps(&a.options, &b.options))
            .or_else(|| in_maps(&a.settings, &b.settings))
    }
}

/// How long and with how many workers a hunt is to run, which does not change what it finds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RunSettings {
    pub seconds: Option<f64>,
    pub jobs: u64,
}

/// The contents of `hunt.json`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Summary {
    #[serde(flatten)]
    pub identity: Identity,
    pub shards: Vec<Shard>,
    #[serde(default, rename = "asked")]
    pub run_settings: RunSettings,
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
    /// Runs that a serial order other than the commit order explains.
    #[serde(default)]
    pub reordered: u64,
    /// Inconclusive cases, by reason.
    #[serde(default)]
    pub unknown: BTreeMap<String, u64>,
    /// Cases that the reference model predicted completely.
    #[serde(default)]
    pub predicted: u64,
    /// Cases with a part that is not modelled, by reason.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub not_modelled: BTreeMap<String, u64>,
    /// The counters of the oracles.
    #[serde(flatten)]
    pub oracle_tallies: OracleTallies,
    pub not_run: u64,
    pub waited: u64,
    pub transactions: u64,
    pub aborted: u64,
    pub features: BTreeMap<String, Coverage>,
    /// The effect of statements, by their kind.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub effects: BTreeMap<String, Effect>,
    pub refusals: BTreeMap<String, Refusal>,
    pub signatures: BTreeSet<String>,
    /// The number of findings per defect.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub defects: BTreeMap<String, Defect>,
    /// The comparison with a baseline, if there was one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub baseline: Option<BaselineResult>,
    pub progress: Progress,
}

/// The progress of a hunt, from which it can be resumed.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Progress {
    /// Finished blocks, as ranges of the first and the last.
    pub blocks: Vec<(u64, u64)>,
    /// The counts of the finished blocks, where they differ from those of the hunt: a resumed hunt
    /// runs the interrupted blocks again.
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

    /// The first unfinished block of a shard that is not below `block`.
    pub fn open_from(&self, block: u64, shard: Shard) -> u64 {
        let mut open = shard.first_from(block);
        // The ranges are sorted.
        for (first, last) in &self.blocks {
            if (*first..=*last).contains(&open) {
                open = shard.first_from(last + 1);
            }
        }
        open
    }
}

/// The largest count that is accepted: no hunt reaches it, and larger ones would make sums
/// overflow.
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
            run_settings: RunSettings::default(),
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
            reordered: tally.reordered,
            unknown: tally.unknown.clone(),
            predicted: tally.predicted,
            not_modelled: tally.not_modelled.clone(),
            oracle_tallies: tally.oracles.clone(),
            not_run: tally.not_run,
            waited: tally.waited,
            transactions: tally.transactions,
            aborted: tally.aborted,
            features: tally.features.clone(),
            effects: tally.effects.clone(),
            refusals: tally.refusals.clone(),
            signatures: tally.signatures.clone(),
            defects: tally.defects.clone(),
            baseline: None,
            progress,
        }
    }

    /// The share of statements that returned or changed a row, of those that succeeded.
    pub fn effective_share(&self) -> Option<f64> {
        let sum = |count: fn(&Effect) -> u64| self.effects.values().map(count).sum::<u64>();
        let (succeeded, effective) = (sum(|e| e.succeeded), sum(|e| e.effective));
        (succeeded > 0).then(|| effective as f64 / succeeded as f64)
    }

    /// Parses `hunt.json`. It may come from elsewhere, so every number in it is checked.
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

    /// Why the absence of violations means nothing: nothing, or nearly nothing, was
    /// tested.
    pub fn nothing_tested(&self) -> Option<String> {
        if self.cases == 0 && self.not_run > 0 {
            let refusal = self.refusals.values().next();
            let why = refusal.map_or(String::new(), |r| format!(": {} ({})", r.message, r.sql));
            return Some(format!(
                "the engine rejected the schema of all {} cases{why}",
                self.not_run
            ));
        }
        if self.cases == 0 {
            return Some("no case was run".into());
        }
        let writes = |f: &&str| self.features.get(*f).is_some_and(|c| c.succeeded > 0);
        let wrote = ["insert", "update", "delete", "replace", "upsert"].iter().any(writes);
        if !self.features.is_empty() && !wrote {
            let refusal = self.refusals.values().max_by_key(|r| r.count);
            let why =
                refusal.map_or(String::new(), |r| format!(", such as {} ({})", r.sql, r.message));
            return Some(format!("the engine rejected every write{why}"));
        }
        None
    }

    /// The number of findings with cause bug that no baseline contains.
    pub fn new_bugs(&self) -> u64 {
        self.baseline.as_ref().map_or(self.violations.bug, |result| result.new)
    }

    /// The counts, to continue counting.
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
            reordered: self.reordered,
            unknown: self.unknown.clone(),
            predicted: self.predicted,
            not_modelled: self.not_modelled.clone(),
            oracles: self.oracle_tallies.clone(),
            violations: self.violations,
            by_level: self.by_level.clone(),
            by_oracle: self.by_oracle.clone(),
            by_behaviour: self.by_behaviour.clone(),
            features: self.features.clone(),
            effects: self.effects.clone(),
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
    fn finished_blocks_are_kept_as_ranges() {
        let mut progress = Progress::default();
        for block in [3, 0, 1, 7, 2] {
            progress.finish(block);
        }
        assert_eq!(progress.blocks, [(0, 3), (7, 7)]);
        assert!(progress.is_done(3) && !progress.is_done(4));
    }

    #[test]
    fn open_from_returns_the_first_unfinished_block_of_the_shard() {
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
    fn long_ranges_are_merged_without_enumerating_their_blocks() {
        let mut progress = Progress { blocks: vec![(5, LARGEST_COUNT)], ..Progress::default() };
        progress.merge(&Progress { blocks: vec![(0, 4), (9, 12)], ..Progress::default() });
        assert_eq!(progress.blocks, [(0, LARGEST_COUNT)]);
        assert_eq!(progress.open_from(2, Shard::WHOLE), LARGEST_COUNT + 1);
    }

    #[test]
    fn impossible_numbers_in_hunt_json_are_refused_by_name() {
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
            ("/shards", "[]", "the list is empty"),
            ("/shards/0/of", "0", "1/0 is not a shard"),
            ("/shards/0/of", "100001", "1/100001 is not a shard"),
            ("/shards/0/part", "0", "0/2 is not a shard"),
        ] {
            let mut bad = good.clone();
            *bad.pointer_mut(path).unwrap() = serde_json::from_str(value).unwrap();
            let error = parse(&bad).unwrap_err().to_string();
            assert!(error.contains(said), "{path} = {value}: {error}");
        }
    }
}
