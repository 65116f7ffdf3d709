//! Going on with a hunt that was ended or killed.
//!
//! A block is done or it is not: one that was broken off is run again from its
//! first case, so a resumed hunt finds and reduces what an undisturbed one
//! does. What had been found in such a block is set aside; it takes the place
//! of a case that shows nothing this time, since not everything happens twice.

use crate::error::{HuntError, Unlike};
use crate::finding::Finding;
use crate::folder::Folder;
use crate::summary::{Identity, Shard, Summary};
use crate::tally::Tally;
use isolde_core::generate::CASES_PER_BLOCK;
use std::collections::BTreeMap;

/// What an earlier part of a hunt left behind.
pub struct Earlier {
    pub summary: Summary,
    /// Findings of blocks that are run again, by case number.
    pub aside: BTreeMap<u64, Vec<Finding>>,
}

impl Earlier {
    /// Reads the folder of an earlier hunt, which must be this one.
    pub fn read(folder: &Folder, identity: &Identity, shard: Shard) -> Result<Earlier, HuntError> {
        let summary = folder.read_summary()?;
        let different = match crate::merge::first_difference(&summary.identity, identity) {
            None if summary.shards != [shard] => {
                let shards: Vec<String> = summary.shards.iter().map(Shard::to_string).collect();
                let (there, here) = (shards.join(", "), shard.to_string());
                Some(Unlike { name: "shard".into(), there: Some(there), here: Some(here) })
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
        Ok(Earlier { summary, aside })
    }

    /// What was counted in blocks that are done.
    pub fn counted(&self) -> Tally {
        self.summary.progress.done.clone().unwrap_or_else(|| self.summary.tally())
    }

    /// What was found in the others, by block.
    pub fn counted_aside(&self) -> BTreeMap<u64, Tally> {
        let mut blocks: BTreeMap<u64, Tally> = BTreeMap::new();
        for finding in self.aside.values().flatten() {
            let block = finding.case_number / CASES_PER_BLOCK;
            blocks.entry(block).or_default().count_finding(finding);
        }
        blocks
    }
}
