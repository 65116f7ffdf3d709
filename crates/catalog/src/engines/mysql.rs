//! MySQL. Its rules are those of InnoDB.

use super::STANDARD_LEVELS;
use super::innodb::{self, RULES};
use crate::availability::Availability::{Never, Since};
use crate::begin_form::BeginForm;
use crate::capabilities::{CapabilityTable, CurrentReadScope, Gather};
use crate::concurrency::ConcurrencyModel;
use crate::description::{DialectTable, EngineDescription, PageSection, Semantics};
use crate::dialect::{self, Family, Quirks};
use crate::feature::Feature::*;
use crate::feature::FeatureExceptions;
use crate::level::Level;
use crate::profile::Profile;
use crate::target::TargetInfo;

pub static DESCRIPTION: EngineDescription = EngineDescription {
    name: "mysql",
    title: "MySQL",
    modes: &[],
    dialect: DIALECT,
    capabilities: CAPABILITIES,
    profile: Some(profile),
    semantics: Some(Semantics {
        rules_hold_for: Since("5.6"),
        rules: RULES,
        manual: innodb::mysql_page,
        concurrency_model,
        page: PageSection {
            title: "InnoDB",
            about: Some("`mysql` and `mariadb`; rules `M…` apply to MariaDB only."),
            levels: STANDARD_LEVELS,
            settings: &[("innodb_snapshot_isolation", "ON")],
            also: &["mariadb"],
        },
    }),
};

const DIALECT: DialectTable = DialectTable {
    family: Family::Mysql,
    spelling: &dialect::MYSQL,
    lacks: LACKS,
    for_share: Since("8.0"),
    quirks: Quirks {
        upsert_hits_once: false,
        ignore_needs_key: false,
        lacks_functions: &[],
        values_row: true,
    },
};

const LACKS: FeatureExceptions = &[
    (Never, &[Returning, Merge, FullJoin, Filter, GroupingSets]),
    (Since("8.0.14"), &[Lateral]),
    (Since("8.0.19"), &[ValuesTable]),
    (Since("8.0"), &[RecursiveCte, NamedWindow, WindowFrame]),
    (Never, &[Immediate, Pessimistic, Optimistic, PartialIndex]),
    (Since("8.0"), &[Window, Cte, NoWait, SkipLocked]),
    (Since("8.0.13"), &[FunctionalIndex]),
    (Since("8.0.16"), &[Check]),
    (Since("8.0.31"), &[ExceptIntersect]),
];

pub(super) const CAPABILITIES: CapabilityTable = CapabilityTable {
    gather: Gather::JsonArrayAgg,
    gathers: Since("5.7.22"),
    skips_equal_updates: true,
    assigns_in_order: true,
    reads_current: true,
    current_reads: CurrentReadScope::OwnAndInner,
    ..CapabilityTable::NONE
};

fn profile(_: &str) -> Profile {
    let page = "https://dev.mysql.com/doc/refman/en/innodb-transaction-isolation-levels.html";
    innodb::profile(page, false)
}

pub(super) fn concurrency_model(
    on: &TargetInfo,
    level: Level,
    begun: Option<BeginForm>,
) -> Option<ConcurrencyModel> {
    Some(innodb::concurrency_model(on, level, begun.unwrap_or(BeginForm::Plain)))
}
