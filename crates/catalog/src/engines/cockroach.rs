//! CockroachDB. Written from its documentation and never run; it has no rules.

use crate::anomaly::Anomaly;
use crate::availability::Availability::{Always, Never};
use crate::capabilities::CapabilityTable;
use crate::description::{DialectTable, EngineDescription};
use crate::dialect::{self, Family, Quirks};
use crate::feature::Feature::*;
use crate::feature::FeatureExceptions;
use crate::level::Level;
use crate::profile::{Profile, promise};

pub static DESCRIPTION: EngineDescription = EngineDescription {
    name: "cockroach",
    title: "CockroachDB",
    modes: &[],
    dialect: DIALECT,
    capabilities: CAPABILITIES,
    profile: Some(profile),
    semantics: None,
};

const DIALECT: DialectTable = DialectTable {
    family: Family::Postgres,
    spelling: &dialect::POSTGRES,
    lacks: LACKS,
    for_share: Always,
    quirks: Quirks {
        upsert_hits_once: true,
        ignore_needs_key: false,
        lacks_functions: &[],
        values_row: false,
    },
};

const LACKS: FeatureExceptions = &[
    (Never, &[Returning, WriteLimit, Merge, Lateral, Rollup, GroupingSets]),
    (Never, &[AutocommitOff, ConsistentSnapshot, Immediate, Pessimistic, Optimistic, Partition]),
];

pub(super) const CAPABILITIES: CapabilityTable =
    CapabilityTable { addresses_rows: false, ..super::postgres::CAPABILITIES };

fn profile(_: &str) -> Profile {
    use Anomaly::*;
    let weak = [Pmp, P4, GSingle, G2Item, G2];
    Profile {
        levels: vec![
            promise(Level::ReadCommitted, "needs a cluster setting", &weak),
            promise(Level::Serializable, "the default", &[]),
        ],
        default_level: Level::Serializable,
        documentation: "https://www.cockroachlabs.com/docs/stable/transactions".into(),
        untested: true,
        ..super::postgres::profile("")
    }
}
