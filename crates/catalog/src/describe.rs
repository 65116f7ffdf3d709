//! The description of a built-in engine in the words in which a driver describes
//! its own.

use crate::begin_form::BeginForm;
use crate::capabilities::CapabilityOverrides;
use crate::concurrency::ConcurrencyModel;
use crate::feature::{Feature, FeatureOverrides};
use crate::level::Level;
use crate::lookup::concurrency_model;
use crate::target::{Follows, TargetInfo};
use serde_json::Value as Json;

/// The whole description of an engine, named with its mode. A driver can follow
/// it with changes, or start from it.
pub fn describe(engine: &str, version: &str) -> Follows {
    let (name, number) = (engine.to_string(), version.to_string());
    let on = TargetInfo { engine: name, version: number, ..TargetInfo::default() };
    let dialect = on.dialect();
    let (with, without) = Feature::ALL.iter().partition(|f| dialect.has(**f));
    let names = |features: Vec<&Feature>| features.iter().map(|f| f.name().to_string()).collect();
    let capabilities = on.capabilities();
    let at = |level: Level| {
        let model = concurrency_model(&on, level, Some(BeginForm::Plain))?;
        Some((level, with_rule_ids(&model)?))
    };
    Follows {
        rules: Follows::VERSION,
        engine: engine.into(),
        version: version.into(),
        features: FeatureOverrides { with: names(with), without: names(without) },
        capabilities: CapabilityOverrides {
            returns_written: Some(capabilities.returns_written),
            returns_deleted: Some(capabilities.returns_deleted),
            gather: Some(capabilities.gather),
            skips_equal_updates: Some(capabilities.skips_equal_updates),
            reads_current: Some(capabilities.reads_current),
            current_reads: Some(capabilities.current_reads),
        },
        own_rules: Vec::new(),
        levels: Level::ALL.into_iter().filter_map(at).collect(),
    }
}

/// The model as JSON, with the ids of rules in place of their texts.
fn with_rule_ids(model: &ConcurrencyModel) -> Option<Json> {
    let mut json = serde_json::to_value(model).ok()?;
    replace_rules(&mut json);
    Some(json)
}

fn replace_rules(json: &mut Json) {
    let Json::Object(fields) = json else { return };
    for field in fields.values_mut() {
        match field.get("id") {
            Some(id) => *field = id.clone(),
            None => replace_rules(field),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engines::ENGINES;

    #[test]
    fn description_of_every_engine_can_be_used_by_a_driver() {
        for engine in ENGINES {
            let description = describe(engine.name, "99");
            assert_eq!(description.invalidity(), None, "{}", engine.name);
            let json = serde_json::to_string(&description).unwrap();
            let follows: Follows = serde_json::from_str(&json).unwrap();
            let own = TargetInfo { engine: engine.name.into(), ..TargetInfo::default() };
            let driver = TargetInfo { follows: Some(Box::new(follows)), ..TargetInfo::default() };
            for level in Level::ALL {
                let model = |on: &TargetInfo| concurrency_model(on, level, Some(BeginForm::Plain));
                let built_in = TargetInfo { version: "99".into(), ..own.clone() };
                assert_eq!(model(&driver), model(&built_in), "{} at {level}", engine.name);
                assert_eq!(driver.dialect(), built_in.dialect());
                assert_eq!(driver.capabilities(), built_in.capabilities());
            }
        }
    }
}
