//! The anomalies of the matrix, by the names of Adya and of Hermitage.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Anomaly {
    G0,
    G1a,
    G1b,
    G1c,
    #[serde(rename = "OTV")]
    Otv,
    #[serde(rename = "PMP")]
    Pmp,
    P4,
    #[serde(rename = "G-single")]
    GSingle,
    #[serde(rename = "G2-item")]
    G2Item,
    G2,
}

impl Anomaly {
    pub const ALL: [Anomaly; 10] = [
        Anomaly::G0,
        Anomaly::G1a,
        Anomaly::G1b,
        Anomaly::G1c,
        Anomaly::Otv,
        Anomaly::Pmp,
        Anomaly::P4,
        Anomaly::GSingle,
        Anomaly::G2Item,
        Anomaly::G2,
    ];

    pub fn name(self) -> &'static str {
        match self {
            Anomaly::G0 => "G0",
            Anomaly::G1a => "G1a",
            Anomaly::G1b => "G1b",
            Anomaly::G1c => "G1c",
            Anomaly::Otv => "OTV",
            Anomaly::Pmp => "PMP",
            Anomaly::P4 => "P4",
            Anomaly::GSingle => "G-single",
            Anomaly::G2Item => "G2-item",
            Anomaly::G2 => "G2",
        }
    }

    /// One line for the legend.
    pub fn meaning(self) -> &'static str {
        match self {
            Anomaly::G0 => "dirty write: two transactions' writes interleave",
            Anomaly::G1a => "aborted read: a value that was rolled back is seen",
            Anomaly::G1b => "intermediate read: a value that was overwritten before commit is seen",
            Anomaly::G1c => "circular information flow: each of two transactions sees the other",
            Anomaly::Otv => {
                "observed transaction vanishes: part of a transaction is seen, part not"
            }
            Anomaly::Pmp => "predicate-many-preceders: a predicate's matches change under a reader",
            Anomaly::P4 => "lost update: both write back what both have read",
            Anomaly::GSingle => "read skew: one read before, another after a concurrent commit",
            Anomaly::G2Item => "write skew on rows that both have read",
            Anomaly::G2 => "write skew through a predicate (phantoms)",
        }
    }
}

impl fmt::Display for Anomaly {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{0}` is not an anomaly; write one of G0, G1a, G1b, G1c, OTV, PMP, P4, G-single, G2-item, G2"
)]
pub struct UnknownAnomaly(pub String);

impl FromStr for Anomaly {
    type Err = UnknownAnomaly;

    fn from_str(text: &str) -> Result<Anomaly, UnknownAnomaly> {
        Anomaly::ALL
            .into_iter()
            .find(|a| a.name().eq_ignore_ascii_case(text.trim()))
            .ok_or_else(|| UnknownAnomaly(text.trim().into()))
    }
}
