//! The engine that a run was made on.

use crate::capabilities::CapabilityOverrides;
use crate::feature::FeatureOverrides;
use crate::level::Level;
use crate::rule::RuleText;
use serde::{Deserialize, Serialize};
use serde_json::Value as Json;
use std::collections::BTreeMap;

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct TargetInfo {
    /// As the user named it, with any password removed.
    pub target: String,
    /// The engine's name with its mode, such as `sqlite+wal`.
    pub engine: String,
    pub version: String,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub settings: BTreeMap<String, String>,
    /// Set where a driver says so; an engine that is built in follows itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub follows: Option<Box<Follows>>,
}

/// How a driver describes its database: the engine whose dialect and rules it
/// follows, and how it differs from that engine.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Follows {
    /// The version of this vocabulary: [`Follows::VERSION`].
    pub rules: u32,
    /// With its mode: `sqlite+wal`. [`Follows::PLAIN`] is no engine: a small
    /// dialect, and no rules but the driver's own.
    pub engine: String,
    /// The version of that engine, on which its dialect depends.
    #[serde(default)]
    pub version: String,
    #[serde(default, skip_serializing_if = "FeatureOverrides::is_empty")]
    pub features: FeatureOverrides,
    #[serde(default, skip_serializing_if = "CapabilityOverrides::is_empty")]
    pub capabilities: CapabilityOverrides,
    /// Rules of the driver's own, which `levels` cite.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub own_rules: Vec<RuleText>,
    /// For each level what differs from the followed engine's concurrency model,
    /// in the shape of [`crate::ConcurrencyModel`].
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub levels: BTreeMap<Level, Json>,
}

impl Follows {
    pub const VERSION: u32 = 1;
    /// The engine name that stands for no engine.
    pub const PLAIN: &str = "plain";
}

impl TargetInfo {
    /// The engine and the version by whose dialect and rules it is understood.
    pub fn understood_as(&self) -> (&str, &str) {
        match &self.follows {
            Some(follows) => (&follows.engine, &follows.version),
            None => (&self.engine, &self.version),
        }
    }
}
