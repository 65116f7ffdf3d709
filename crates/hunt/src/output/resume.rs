//! Resumes a hunt that was ended or killed.
//!
//! An interrupted block runs again from its first case, so that a resumed hunt finds and reduces
//! what an undisturbed one does. The findings of such a block are set aside; if a case shows
//! nothing this time, its earlier finding is kept, since not every violation happens twice.

use super::folder::Folder;
use super::summary::{Identity, Summary};
use super::tally::Tally;
use crate::error::{HuntError, IdentityDifference};
use crate::finding::Finding;
use crate::shard::Shard;
use isolde_generator::CASES_PER_BLOCK;
use std::collections::BTreeMap;

/// The earlier part of a resumed hunt.
pub struct PreviousRun {
    pub summary: Summary,
    /// The findings of blocks that run again, by case number.
    pub aside: BTreeMap<u64, Vec<Finding>>,
}

impl PreviousRun {
    /// Reads the folder of the earlier part, which must belong to the same hunt.
    pub fn read(
        folder: &Folder,
        identity: &Identity,
        shard: Shard,
    ) -> Result<PreviousRun, HuntError> {
        let summary = folder.read_summary()?;
        let different = match summary.identity.first_difference(identity) {
            None if summary.shards != [shard] => {
                let shards: Vec<String> = summary.shards.iter().map(Shard::to_string).collect();
                let (there, here) = (shards.join(", "), shard.to_string());
                Some(IdentityDifference {
                    name: "shard".into(),
                    there: Some(there),
                    here: Some(here),
                })
            }
            different => different,
        };
        if let Some(what) = different {
            let (path, what) = (folder.path().into(), Box::new(what));
            return Err(HuntError::AnotherHunt { path, what });
        }
        let done = |number: u64| summary.progress.is_done(number / CASES_PER_BLOCK);
        let mut aside: BTreeMap<u64, Vec<Finding>> = BTreeMap::new();
        for finding in folder.keep_only(&done)? {
            aside.entry(finding.case_number).or_default().push(finding);
        }
        Ok(PreviousRun { summary, aside })
    }

    /// The counts of the finished blocks.
    pub fn counted(&self) -> Tally {
        self.summary.progress.done.clone().unwrap_or_else(|| self.summary.tally())
    }

    /// The counts of the findings that were set aside, by block.
    pub fn counted_aside(&self) -> BTreeMap<u64, Tally> {
        let mut blocks: BTreeMap<u64, Tally> = BTreeMap::new();
        for finding in self.aside.values().flatten() {
            let block = finding.case_number / CASES_PER_BLOCK;
            blocks.entry(block).or_default().count_finding(finding);
        }
        blocks
    }
}
