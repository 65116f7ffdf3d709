//! Facts about an engine by its name and version.

use crate::begin_form::BeginForm;
use crate::capabilities::EngineCapabilities;
use crate::citation::Citation;
use crate::concurrency::ConcurrencyModel;
use crate::dialect::{Dialect, Family};
use crate::engines;
use crate::level::Level;
use crate::overrides;
use crate::rule::Rule;
use crate::target::TargetInfo;

impl Family {
    /// The family of an engine with its mode, such as `sqlite+wal`.
    pub fn of(engine: &str) -> Family {
        engines::description(engine).map_or(Family::Other, |d| d.dialect.family)
    }
}

impl Dialect {
    /// The dialect of an engine with its mode, such as `sqlite+wal`. Unknown engines get a small
    /// dialect that most engines accept.
    pub fn for_engine(engine: &str, version: &str) -> Dialect {
        let table = engines::description(engine).map_or(&engines::plain::DIALECT, |d| &d.dialect);
        table.at(version)
    }
}

impl TargetInfo {
    pub fn dialect(&self) -> Dialect {
        let (engine, version) = self.understood_as();
        let dialect = Dialect::for_engine(engine, version);
        match &self.follows {
            Some(follows) => {
                Dialect { features: dialect.features.overridden(&follows.features), ..dialect }
            }
            None => dialect,
        }
    }

    pub fn family(&self) -> Family {
        Family::of(self.understood_as().0)
    }

    pub fn capabilities(&self) -> EngineCapabilities {
        let (engine, version) = self.understood_as();
        let table =
            engines::description(engine).map_or(engines::plain::CAPABILITIES, |d| d.capabilities);
        let capabilities = table.at(Family::of(engine), version);
        match &self.follows {
            Some(follows) => follows.capabilities.apply(capabilities),
            None => capabilities,
        }
    }
}

impl TargetInfo {
    /// The page of the manual that documents a rule, for this engine and version.
    pub fn manual_page(&self, rule: &Rule) -> String {
        let (engine, version) = self.understood_as();
        let page = self.citation(rule).page;
        let semantics = engines::description(engine).and_then(|d| d.semantics.as_ref());
        semantics.map_or_else(|| page.into(), |s| (s.manual)(page, version))
    }

    /// What the manual of this engine says on the subject of a rule.
    pub fn citation(&self, rule: &Rule) -> Citation {
        let (engine, _) = self.understood_as();
        rule.citation_on(engine.split('+').next().unwrap_or(engine))
    }
}

/// The concurrency model of a transaction on this engine at this level. `begun`
/// is the form of its BEGIN, None for an autocommitted statement. None when the
/// engine or its version has no rules.
pub fn concurrency_model(
    on: &TargetInfo,
    level: Level,
    begun: Option<BeginForm>,
) -> Option<ConcurrencyModel> {
    let Some(follows) = &on.follows else { return built_in_model(on, level, begun) };
    let followed = TargetInfo {
        engine: follows.engine.clone(),
        version: follows.version.clone(),
        follows: None,
        ..on.clone()
    };
    let base = built_in_model(&followed, level, begun);
    match follows.levels.get(&level) {
        // What a driver says was checked when it was started.
        Some(changes) => overrides::apply(base, changes, &follows.own_rules).ok(),
        None => base,
    }
}

fn built_in_model(
    on: &TargetInfo,
    level: Level,
    begun: Option<BeginForm>,
) -> Option<ConcurrencyModel> {
    let semantics = engines::description(&on.engine)?.semantics.as_ref()?;
    if !on.version.is_empty() && !semantics.rules_hold_for.includes(&on.version) {
        return None;
    }
    (semantics.concurrency_model)(on, level, begun)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::capabilities::Gather;
    use crate::concurrency::AssignmentOrder;
    use crate::feature::Feature;

    #[test]
    fn features_follow_the_engine_its_mode_and_its_version() {
        let has = |engine, version, f| Dialect::for_engine(engine, version).has(f);
        assert!(!has("mysql", "5.7.19", Feature::Cte));
        assert!(has("mysql", "8.0.15", Feature::Cte));
        assert!(!has("mysql", "8.0.15", Feature::ExceptIntersect));
        assert!(has("mysql", "9.7.4", Feature::ExceptIntersect));
        assert!(!has("mariadb", "10.1.8-MariaDB", Feature::Check));
        assert!(has("mariadb+snapshot", "11.8.6-MariaDB", Feature::SkipLocked));
        assert!(!has("sqlite+wal", "3.54.1", Feature::ForUpdate));
        assert!(!has("turso", "0.2.1", Feature::Upsert) && has("turso", "0.3.0", Feature::Upsert));
        assert!(!has("some engine of yours", "1", Feature::Upsert));
        assert!(has("some engine of yours", "1", Feature::Update));
    }

    #[test]
    fn versions_older_than_the_rules_have_no_model() {
        let has = |engine: &str, version: &str| {
            let (engine, version) = (engine.into(), version.into());
            let on = TargetInfo { engine, version, ..TargetInfo::default() };
            concurrency_model(&on, Level::Serializable, Some(BeginForm::Plain)).is_some()
        };
        assert!(has("postgres", "15.18") && has("sqlite+wal", "3.45.1") && has("mysql", "9.7.4"));
        assert!(!has("postgres", "9.0.1") && !has("cockroach", "24.1"));
    }

    #[test]
    fn version_of_the_followed_engine_selects_its_rules() {
        let follows = crate::Follows {
            rules: 1,
            engine: "postgres".into(),
            version: "15".into(),
            ..crate::Follows::default()
        };
        let on = TargetInfo {
            engine: "mine".into(),
            version: "0.3".into(),
            follows: Some(Box::new(follows)),
            ..TargetInfo::default()
        };
        assert!(concurrency_model(&on, Level::ReadCommitted, None).is_some());
    }

    #[test]
    fn assignments_are_in_order_where_the_concurrency_model_evaluates_them_so() {
        let mut compared = 0;
        for engine in engines::ENGINES {
            let on = TargetInfo { engine: engine.name.into(), ..TargetInfo::default() };
            for level in Level::ALL {
                let Some(model) = concurrency_model(&on, level, Some(BeginForm::Plain)) else {
                    continue;
                };
                let in_order = model.assignments == AssignmentOrder::LeftToRight;
                assert_eq!(on.capabilities().assigns_in_order, in_order, "{}", engine.name);
                compared += 1;
            }
        }
        assert!(compared > 10);
    }

    #[test]
    fn old_versions_of_mysql_cannot_put_texts_together() {
        let gather = |engine: &str, version: &str| {
            let (engine, version) = (engine.into(), version.into());
            TargetInfo { engine, version, ..TargetInfo::default() }.capabilities().gather
        };
        assert_eq!(gather("mysql", "5.7.19"), Gather::Nothing);
        assert_eq!(gather("mysql", "8.0.33"), Gather::JsonArrayAgg);
        assert_eq!(gather("dolt", "2.2.0"), Gather::JsonArrayAgg);
        assert_eq!(gather("mariadb", "10.2.11"), Gather::GroupConcat);
    }
}
