//! The description of an engine: what its file in [`crate::engines`] provides.

use crate::availability::Availability;
use crate::begin_form::BeginForm;
use crate::capabilities::CapabilityTable;
use crate::concurrency::ConcurrencyModel;
use crate::dialect::{Dialect, Family, Quirks, Spelling};
use crate::feature::{FeatureExceptions, Features};
use crate::level::Level;
use crate::profile::Profile;
use crate::rule::Rule;
use crate::target::TargetInfo;

pub struct EngineDescription {
    /// The name that users write.
    pub name: &'static str,
    /// The name in sentences and headings.
    pub title: &'static str,
    /// The modes that are written after a `+`, with a description of each.
    pub modes: &'static [(&'static str, &'static str)],
    pub dialect: DialectTable,
    pub capabilities: CapabilityTable,
    /// The levels, promises and error codes of a mode; the empty one is the default. None where
    /// the driver states them.
    pub profile: Option<fn(mode: &str) -> Profile>,
    /// None for an engine whose behaviour is not modelled.
    pub semantics: Option<Semantics>,
}

/// How the SQL of an engine is written, and what it has.
pub struct DialectTable {
    pub family: Family,
    pub spelling: &'static Spelling,
    pub lacks: FeatureExceptions,
    /// Versions that understand FOR SHARE.
    pub for_share: Availability,
    pub quirks: Quirks,
}

impl DialectTable {
    pub fn at(&self, version: &str) -> Dialect {
        let words =
            if self.for_share.includes(version) { "for share" } else { "lock in share mode" };
        Dialect {
            family: self.family,
            features: Features::of(self.lacks, version),
            spelling: self.spelling,
            share_lock: words,
            quirks: self.quirks,
        }
    }
}

/// The behaviour of an engine, as its manual describes it.
pub struct Semantics {
    /// The versions that have rules: the oldest that was examined, or the first
    /// that behaves like this.
    pub rules_hold_for: Availability,
    pub rules: &'static [&'static Rule],
    /// The page of the manual of this engine and version for a page that a rule
    /// cites.
    pub manual: fn(page: &str, version: &str) -> String,
    /// The model of a transaction at a level; `begun` is the form of its BEGIN,
    /// None for an autocommitted statement.
    pub concurrency_model:
        fn(on: &TargetInfo, level: Level, begun: Option<BeginForm>) -> Option<ConcurrencyModel>,
    pub page: PageSection,
}

/// What the page of rules says about an engine besides its rules.
pub struct PageSection {
    pub title: &'static str,
    /// None for an engine that is described in another engine's section.
    pub about: Option<&'static str>,
    /// The levels and settings that select among the rules.
    pub levels: &'static [Level],
    pub settings: &'static [(&'static str, &'static str)],
    /// Other engines that follow the same rules.
    pub also: &'static [&'static str],
}
