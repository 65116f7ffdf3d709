//! MariaDB. Its rules are those of InnoDB.

use super::innodb;
use crate::availability::Availability::{Always, Never, Since};
use crate::capabilities::{CapabilityTable, Gather};
use crate::description::{DialectTable, EngineDescription, PageSection, Semantics};
use crate::dialect::{self, Family, Quirks};
use crate::feature::Feature::*;
use crate::feature::FeatureExceptions;
use crate::profile::Profile;

pub static DESCRIPTION: EngineDescription = EngineDescription {
    name: "mariadb",
    title: "MariaDB",
    modes: &[("snapshot", "innodb_snapshot_isolation=ON"), ("nosnapshot", "the same OFF")],
    dialect: DIALECT,
    capabilities: CAPABILITIES,
    profile: Some(profile),
    semantics: Some(Semantics {
        rules_hold_for: Since("10.0"),
        rules: innodb::RULES,
        manual: |page, _| page.into(),
        concurrency_model: super::mysql::concurrency_model,
        page: PageSection { title: "InnoDB", about: None, levels: &[], settings: &[], also: &[] },
    }),
};

const DIALECT: DialectTable = DialectTable {
    family: Family::Mysql,
    spelling: &dialect::MYSQL,
    lacks: LACKS,
    for_share: Never,
    quirks: Quirks {
        upsert_hits_once: false,
        ignore_needs_key: false,
        lacks_functions: &[],
        values_row: false,
    },
};

const LACKS: FeatureExceptions = &[
    (Since("10.5"), &[Returning]),
    (Never, &[Merge, FullJoin, Lateral, ValuesTable, Filter, GroupingSets]),
    (Never, &[Immediate, Pessimistic, Optimistic, PartialIndex, FunctionalIndex]),
    (Since("10.2"), &[Window, Cte, Check, GeneratedStored, GeneratedVirtual]),
    (Since("10.3"), &[ExceptIntersect, NoWait]),
    (Since("10.6"), &[SkipLocked]),
];

pub(super) const CAPABILITIES: CapabilityTable = CapabilityTable {
    returns_deleted: Always,
    gather: Gather::GroupConcat,
    gathers: Always,
    ..super::mysql::CAPABILITIES
};

fn profile(mode: &str) -> Profile {
    innodb::profile("https://mariadb.com/kb/en/set-transaction/", mode == "snapshot")
}
