//! What a driver says about its database, as JSON: the differences from the
//! engine that it follows.
//!
//! Each level has an object in the shape of [`ConcurrencyModel`], of which it
//! needs to give only what differs:
//!
//! ```json
//! { "snapshot": { "taken": "begin" },
//!   "conflicts": { "changed_row": "fail_commit" },
//!   "rules": { "read": "X1", "changed_row": "X2" } }
//! ```
//!
//! A text where a rule belongs is the id of a rule of the driver's own or of the
//! built-in engines. Without a followed engine the differences are from
//! [`crate::engines::plain::concurrency_model`].

use crate::concurrency::ConcurrencyModel;
use crate::engines;
use crate::rule::{Rule, RuleSet, RuleText, register};
use serde_json::{Map, Value as Json};
use std::sync::Once;

/// The fields that hold a rule, apart from those below `rules`.
const RULE_FIELDS: [&str; 8] = [
    "not_taken_by_empty_read",
    "noop_update_may_write",
    "may_abort",
    "table_locks",
    "gap_locks",
    "skip_locked",
    "no_wait",
    "waits_for_readers",
];

/// The model of the followed engine with the changes of one level.
pub fn apply(
    base: Option<ConcurrencyModel>,
    changes: &Json,
    own_rules: &[RuleText],
) -> Result<ConcurrencyModel, String> {
    let base = base.unwrap_or_else(engines::plain::concurrency_model);
    let mut model = serde_json::to_value(&base).map_err(|e| e.to_string())?;
    let known = Known { own_rules, rules: base.rules };
    known.merge(&mut model, changes, "")?;
    static BUILT_IN: Once = Once::new();
    BUILT_IN.call_once(|| register(engines::rules()));
    register(base.rules.all().into_iter());
    serde_json::from_value(model).map_err(|e| e.to_string())
}

/// The rules that changes can cite besides those of the built-in engines.
struct Known<'a> {
    own_rules: &'a [RuleText],
    /// Those of the followed engine at this level.
    rules: &'static RuleSet,
}

impl Known<'_> {
    /// Replaces the fields of `target` that `changes` names.
    fn merge(&self, target: &mut Json, changes: &Json, path: &str) -> Result<(), String> {
        let Json::Object(changes) = changes else {
            let place = if path.is_empty() { "a level" } else { path };
            return Err(format!("{place} must be an object"));
        };
        let Json::Object(fields) = target else { return Err(format!("{path} has no fields")) };
        for (key, change) in changes {
            let place = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
            let Some(field) = fields.get_mut(key) else {
                return Err(format!("there is no field {place}; there are {}", names(fields)));
            };
            let holds_rule = path == "rules" || RULE_FIELDS.contains(&key.as_str());
            *field = match change {
                Json::String(id) if holds_rule => self.rule(id, &place)?,
                Json::Object(_) if field.is_object() && !holds_rule => {
                    self.merge(field, change, &place)?;
                    continue;
                }
                Json::Null if holds_rule && path != "rules" => Json::Null,
                _ if holds_rule => return Err(format!("{place} must be the id of a rule")),
                other => other.clone(),
            };
        }
        Ok(())
    }

    /// The rule with this id, among the driver's own first.
    fn rule(&self, id: &str, place: &str) -> Result<Json, String> {
        let own = self.own_rules.iter().find(|rule| rule.id == id).cloned();
        let of_level = self.rules.all().into_iter();
        let built_in = || of_level.chain(engines::rules()).find(|rule| rule.id == id);
        let found = own.or_else(|| built_in().map(Rule::text));
        let Some(rule) = found else {
            return Err(format!(
                "{place} cites the rule {id:?}, which is neither in own_rules nor built in"
            ));
        };
        serde_json::to_value(rule).map_err(|e| e.to_string())
    }
}

fn names(fields: &Map<String, Json>) -> String {
    fields.keys().map(String::as_str).collect::<Vec<_>>().join(", ")
}
