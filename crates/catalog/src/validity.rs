//! Whether a driver's description of its database can be used.

use crate::begin_form::BeginForm;
use crate::concurrency::ConcurrencyModel;
use crate::dialect::Family;
use crate::level::Level;
use crate::lookup::concurrency_model;
use crate::overrides::apply;
use crate::target::{Follows, TargetInfo};
use serde_json::Value as Json;

impl Follows {
    /// An error in the contents, although every field has its type.
    pub fn invalidity(&self) -> Option<String> {
        let known = Family::of(&self.engine) != Family::Other;
        if self.rules != Follows::VERSION {
            let version = Follows::VERSION;
            let given = self.rules;
            Some(format!(
                "follows.rules is {given}; the rules that Isolde knows have version {version}"
            ))
        } else if !known && self.engine != Follows::PLAIN {
            let (engine, plain) = (&self.engine, Follows::PLAIN);
            Some(format!(
                "follows.engine is {engine:?}, which has no dialect here: see `isolde list`, or \
                 write {plain:?} and describe the engine yourself"
            ))
        } else if known && self.version.trim().is_empty() {
            Some("follows.version must not be empty: a dialect depends on it".into())
        } else if let Some(invalidity) = self.features.invalidity() {
            Some(format!("follows.features {invalidity}"))
        } else {
            let error = |(level, changes): (&Level, &Json)| {
                let base = self.base_at(*level);
                let error = apply(base, changes, &self.own_rules).err()?;
                Some(format!("follows.levels, {level}: {error}"))
            };
            self.levels.iter().find_map(error)
        }
    }

    /// The model of the followed engine, which the changes of a level start from.
    fn base_at(&self, level: Level) -> Option<ConcurrencyModel> {
        let alone = Follows { levels: Default::default(), ..self.clone() };
        let on = TargetInfo { follows: Some(Box::new(alone)), ..Default::default() };
        concurrency_model(&on, level, Some(BeginForm::Plain))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::concurrency::{SnapshotAt, WriteConflictPolicy};
    use serde_json::json;

    fn described(follows: Json) -> Follows {
        serde_json::from_value(follows).unwrap()
    }

    fn model(follows: Follows, level: Level) -> ConcurrencyModel {
        assert_eq!(follows.invalidity(), None);
        let on = TargetInfo { follows: Some(Box::new(follows)), ..TargetInfo::default() };
        concurrency_model(&on, level, Some(BeginForm::Plain)).unwrap()
    }

    #[test]
    fn every_model_survives_serialization() {
        for level in Level::ALL {
            let on = TargetInfo { engine: "postgres".into(), ..TargetInfo::default() };
            let model = concurrency_model(&on, level, None).unwrap();
            let json = serde_json::to_value(&model).unwrap();
            assert_eq!(serde_json::from_value::<ConcurrencyModel>(json).unwrap(), model);
        }
    }

    #[test]
    fn driver_states_its_differences_from_an_engine() {
        let follows = described(json!({
            "rules": 1, "engine": "postgres", "version": "15",
            "features": { "without": ["partial index"] },
            "capabilities": { "returns_written": false },
            "own_rules": [{ "id": "X2", "name": "commit fails", "about": "COMMIT fails on conflicts" }],
            "levels": { "REPEATABLE READ": {
                "snapshot": { "taken": "begin" },
                "conflicts": { "changed_row": "fail_commit", "may_abort": "X2" },
                "rules": { "changed_row": "X2", "read": "T1" } } }
        }));
        let changed = model(follows.clone(), Level::RepeatableRead);
        assert_eq!(changed.snapshot.taken, SnapshotAt::Begin);
        assert_eq!(changed.conflicts.changed_row, WriteConflictPolicy::FailCommit);
        assert_eq!((changed.rules.changed_row.id, changed.rules.read.id), ("X2", "T1"));
        assert_eq!(changed.rules.unique.id, "P10", "the rest is PostgreSQL's");
        assert_eq!(changed, model(follows.clone(), Level::RepeatableRead), "rules are interned");
        assert_eq!(model(follows.clone(), Level::ReadCommitted).rules.read.id, "P1");
        let on = TargetInfo { follows: Some(Box::new(follows)), ..TargetInfo::default() };
        assert!(!on.dialect().has(crate::Feature::PartialIndex));
        assert!(on.dialect().has(crate::Feature::ForUpdate));
        assert!(!on.capabilities().returns_written && on.capabilities().returns_deleted);
    }

    #[test]
    fn driver_can_describe_an_engine_of_its_own() {
        let follows = described(json!({
            "rules": 1, "engine": "plain",
            "features": { "with": ["for update", "upsert"] },
            "levels": { "SNAPSHOT": { "locking": { "waits": "never" } } }
        }));
        let own = model(follows.clone(), Level::Snapshot);
        assert_eq!(own.locking.waits, crate::Waits::Never);
        let on = TargetInfo { follows: Some(Box::new(follows)), ..TargetInfo::default() };
        assert!(
            on.dialect().has(crate::Feature::ForUpdate) && !on.dialect().has(crate::Feature::Cte)
        );
        assert_eq!(concurrency_model(&on, Level::Serializable, None), None, "not described");
    }

    #[test]
    fn wrong_description_names_the_place() {
        let error = |levels: Json| {
            let follows = described(json!({
                "rules": 1, "engine": "postgres", "version": "15", "levels": { "SERIALIZABLE": levels }
            }));
            follows.invalidity().unwrap()
        };
        let unknown = error(json!({ "snapshot": { "when": "begin" } }));
        assert!(unknown.contains("SERIALIZABLE: there is no field snapshot.when"), "{unknown}");
        assert!(unknown.contains("taken"), "{unknown}");
        let value = error(json!({ "snapshot": { "taken": "yesterday" } }));
        assert!(value.contains("yesterday") && value.contains("first_statement"), "{value}");
        let rule = error(json!({ "rules": { "read": "Q9" } }));
        assert!(rule.contains("rules.read cites the rule \"Q9\""), "{rule}");
        let engine = described(json!({ "rules": 1, "engine": "oracle", "version": "1" }));
        assert!(engine.invalidity().unwrap().contains("follows.engine is \"oracle\""));
        let feature = described(json!({
            "rules": 1, "engine": "plain", "features": { "with": ["telepathy"] }
        }));
        assert!(feature.invalidity().unwrap().contains("telepathy"));
    }
}
