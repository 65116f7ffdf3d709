//! Shards: the parts of a hunt that run on several machines and are merged later.

use serde::{Deserialize, Serialize};
use std::fmt;

/// The part of the case numbers that a hunt runs: the blocks whose number modulo `of` is
/// `part - 1`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Shard {
    pub part: u64,
    pub of: u64,
}

/// The largest number of parts that a hunt may be divided into.
pub const MOST_SHARDS: u64 = 100_000;

impl Shard {
    pub const WHOLE: Shard = Shard { part: 1, of: 1 };

    pub(crate) fn is_sound(self) -> bool {
        (1..=self.of).contains(&self.part) && self.of <= MOST_SHARDS
    }

    pub fn takes(self, block: u64) -> bool {
        block % self.of == self.part - 1
    }

    /// The first of its blocks that is not below `block`.
    pub(crate) fn first_from(self, block: u64) -> u64 {
        block + (self.part - 1 + self.of - block % self.of) % self.of
    }

    pub fn parse(text: &str) -> Result<Shard, InvalidShard> {
        let wrong = || InvalidShard(text.into());
        let (part, of) = text.split_once('/').ok_or_else(wrong)?;
        let shard = Shard {
            part: part.trim().parse().map_err(|_| wrong())?,
            of: of.trim().parse().map_err(|_| wrong())?,
        };
        if shard.is_sound() { Ok(shard) } else { Err(wrong()) }
    }
}

impl fmt::Display for Shard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.part, self.of)
    }
}

/// A text that does not name a shard.
#[derive(Debug, thiserror::Error)]
#[error(
    "`{0}` is not a shard; write K/N with K from 1 to N, such as 1/4, and N at most {MOST_SHARDS}"
)]
pub struct InvalidShard(String);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shards_are_disjoint_and_cover_every_block() {
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
}
