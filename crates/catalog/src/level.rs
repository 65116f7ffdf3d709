//! Isolation levels by name. The profile of an engine defines what a name promises there.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// An isolation level. Levels are ordered from weak to strong as their names suggest; what an
/// engine does at a level is for Isolde to find out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Level {
    #[serde(rename = "READ UNCOMMITTED")]
    ReadUncommitted,
    #[serde(rename = "READ COMMITTED")]
    ReadCommitted,
    #[serde(rename = "REPEATABLE READ")]
    RepeatableRead,
    #[serde(rename = "SNAPSHOT")]
    Snapshot,
    #[serde(rename = "SERIALIZABLE")]
    Serializable,
}

impl Level {
    pub const ALL: [Level; 5] = [
        Level::ReadUncommitted,
        Level::ReadCommitted,
        Level::RepeatableRead,
        Level::Snapshot,
        Level::Serializable,
    ];

    pub fn name(self) -> &'static str {
        match self {
            Level::ReadUncommitted => "READ UNCOMMITTED",
            Level::ReadCommitted => "READ COMMITTED",
            Level::RepeatableRead => "REPEATABLE READ",
            Level::Snapshot => "SNAPSHOT",
            Level::Serializable => "SERIALIZABLE",
        }
    }

    pub fn short(self) -> &'static str {
        match self {
            Level::ReadUncommitted => "RU",
            Level::ReadCommitted => "RC",
            Level::RepeatableRead => "RR",
            Level::Snapshot => "SI",
            Level::Serializable => "SER",
        }
    }
}

impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{0}` is not an isolation level; write read uncommitted, read committed, repeatable read, \
     snapshot or serializable (or RU, RC, RR, SI, SER)"
)]
pub struct UnknownLevel(pub String);

impl FromStr for Level {
    type Err = UnknownLevel;

    fn from_str(text: &str) -> Result<Level, UnknownLevel> {
        let plain = text.trim().replace(['-', '_'], " ").to_ascii_uppercase();
        let plain = plain.split_whitespace().collect::<Vec<_>>().join(" ");
        Level::ALL
            .into_iter()
            .find(|l| l.name() == plain || l.short() == plain)
            .or(match plain.as_str() {
                "SNAPSHOT ISOLATION" => Some(Level::Snapshot),
                "SR" | "S" => Some(Level::Serializable),
                _ => None,
            })
            .ok_or_else(|| UnknownLevel(text.trim().into()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_are_read_in_any_common_spelling() {
        for text in ["repeatable read", "Repeatable-Read", "REPEATABLE_READ", "rr"] {
            assert_eq!(text.parse(), Ok(Level::RepeatableRead));
        }
        assert!("chaos".parse::<Level>().unwrap_err().to_string().contains("`chaos`"));
    }
}
