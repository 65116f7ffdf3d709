//! Rules: what an engine does by design, with the page of the manual.
//!
//! A [`Rule`] is one sentence about one thing. A [`RuleSet`] says which rule
//! justifies each step of a statement. Rules are static; those that a driver
//! brings ([`RuleText`]) are kept for the rest of the process.

use crate::citation::{Citation, Evidence};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::sync::Mutex;

/// One thing that an engine does by design.
#[derive(Debug, PartialEq, Eq)]
pub struct Rule {
    pub id: &'static str,
    /// A short name, as reports print it.
    pub name: &'static str,
    /// What the engine does, in one sentence.
    pub about: &'static str,
    /// The page of the manual that documents it, with what the page says.
    pub citation: Citation,
    /// The citations for engines with the same rule and another manual, by the
    /// name of the engine.
    pub elsewhere: &'static [(&'static str, Citation)],
    /// The versions that the rule holds for, in the notation of cases
    /// (`mariadb@10.11.8-`); empty for all versions that have rules
    /// (`Semantics::rules_hold_for` of the engine).
    pub versions: &'static str,
    pub undocumented: Option<Undocumented>,
    /// The position in which reports cite the rule among those that explain a
    /// run, the lowest first: that a row was re-checked explains more than that
    /// rows are locked.
    pub rank: u8,
}

/// Behaviour on which the manual is silent, or says something else.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Undocumented {
    pub about: &'static str,
    /// The library case that shows it.
    pub case: &'static str,
}

/// Makes a rule that every version follows and the manual documents.
pub const fn rule(
    id: &'static str,
    name: &'static str,
    citation: Citation,
    about: &'static str,
) -> Rule {
    let (elsewhere, undocumented) = (&[] as &[_], None);
    Rule { id, name, about, citation, elsewhere, versions: "", undocumented, rank: 9 }
}

impl Rule {
    pub const fn ranked(mut self, rank: u8) -> Rule {
        self.rank = rank;
        self
    }

    pub const fn holds_for(mut self, versions: &'static str) -> Rule {
        self.versions = versions;
        self
    }

    /// Adds the citations for engines with the same rule and another manual.
    pub const fn elsewhere(mut self, citations: &'static [(&'static str, Citation)]) -> Rule {
        self.elsewhere = citations;
        self
    }

    /// The citation for an engine, named without its mode.
    pub fn citation_on(&self, engine: &str) -> Citation {
        let own = self.elsewhere.iter().find(|(name, _)| *name == engine);
        own.map_or(self.citation, |(_, citation)| *citation)
    }

    /// Marks a rule that the manual does not mention or contradicts, with the
    /// case that shows it.
    pub const fn undocumented(mut self, about: &'static str, case: &'static str) -> Rule {
        self.undocumented = Some(Undocumented { about, case });
        self
    }
}

/// The rules that a prediction cites, by the step of a statement that follows
/// each.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RuleSet {
    #[serde(deserialize_with = "deserialize_rule")]
    pub read: &'static Rule,
    #[serde(deserialize_with = "deserialize_rule")]
    pub own_writes: &'static Rule,
    #[serde(deserialize_with = "deserialize_rule")]
    pub write: &'static Rule,
    #[serde(deserialize_with = "deserialize_rule")]
    pub changed_row: &'static Rule,
    #[serde(deserialize_with = "deserialize_rule")]
    pub held_row: &'static Rule,
    #[serde(deserialize_with = "deserialize_rule")]
    pub unique: &'static Rule,
    #[serde(deserialize_with = "deserialize_rule")]
    pub foreign: &'static Rule,
    #[serde(deserialize_with = "deserialize_rule")]
    pub upsert: &'static Rule,
    #[serde(deserialize_with = "deserialize_rule")]
    pub deadlock: &'static Rule,
    #[serde(deserialize_with = "deserialize_rule")]
    pub constraint: &'static Rule,
    #[serde(deserialize_with = "deserialize_rule")]
    pub savepoint: &'static Rule,
    #[serde(deserialize_with = "deserialize_rule")]
    pub rollback: &'static Rule,
    /// Why the committed transactions have a serial order.
    #[serde(deserialize_with = "deserialize_rule")]
    pub serial: &'static Rule,
}

impl RuleSet {
    /// Those that statements cite.
    pub fn of_statements(&self) -> [&'static Rule; 12] {
        let RuleSet { read, own_writes, write, changed_row, held_row, unique, .. } = self;
        let RuleSet { foreign, upsert, deadlock, constraint, savepoint, rollback, .. } = self;
        [
            read,
            own_writes,
            write,
            changed_row,
            held_row,
            unique,
            foreign,
            upsert,
            deadlock,
            constraint,
            savepoint,
            rollback,
        ]
    }

    pub fn all(&self) -> Vec<&'static Rule> {
        let mut all = self.of_statements().to_vec();
        all.push(self.serial);
        all
    }
}

/// A rule as a driver writes it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RuleText {
    pub id: String,
    pub name: String,
    pub about: String,
    #[serde(default)]
    pub page: String,
    /// What the page says, word for word, in one line.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub quotation: String,
    #[serde(default = "last_rank")]
    pub rank: u8,
}

fn last_rank() -> u8 {
    9
}

/// The rules that a description can cite: those of the built-in engines, and those
/// that drivers brought. There is one per distinct text, however often a driver is
/// started.
static INTERNED: Mutex<Vec<&'static Rule>> = Mutex::new(Vec::new());
static INTERNED_SETS: Mutex<Vec<&'static RuleSet>> = Mutex::new(Vec::new());

/// Makes built-in rules known, so that their texts stand for them.
pub(crate) fn register(rules: impl Iterator<Item = &'static Rule>) {
    let mut interned = INTERNED.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    for rule in rules {
        if !interned.iter().any(|known| std::ptr::eq(*known, rule)) {
            interned.push(rule);
        }
    }
}

impl Rule {
    pub fn text(&self) -> RuleText {
        let quotation = self.citation.quotation().unwrap_or_default();
        let [id, name, about, page, quotation] =
            [self.id, self.name, self.about, self.citation.page, quotation]
                .map(|text| text.to_string());
        RuleText { id, name, about, page, quotation, rank: self.rank }
    }
}

impl RuleText {
    /// The rule with this text, which lives as long as the process.
    pub fn intern(&self) -> &'static Rule {
        let mut interned = INTERNED.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        if let Some(rule) = interned.iter().find(|rule| rule.text() == *self) {
            return rule;
        }
        let text = |text: &str| -> &'static str { Box::leak(text.into()) };
        let [id, name, about, page] =
            [&self.id, &self.name, &self.about, &self.page].map(|t| text(t));
        let evidence = match self.quotation.as_str() {
            "" => Evidence::None,
            quotation => Evidence::Quotation(text(quotation)),
        };
        let rule = rule(id, name, Citation { page, evidence }, about).ranked(self.rank);
        let rule: &'static Rule = Box::leak(Box::new(rule));
        interned.push(rule);
        rule
    }
}

impl Serialize for Rule {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.text().serialize(serializer)
    }
}

pub(crate) fn deserialize_rule<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<&'static Rule, D::Error> {
    Ok(RuleText::deserialize(deserializer)?.intern())
}

pub(crate) fn deserialize_optional_rule<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<&'static Rule>, D::Error> {
    Ok(Option::<RuleText>::deserialize(deserializer)?.map(|text| text.intern()))
}

pub(crate) fn deserialize_rule_set<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<&'static RuleSet, D::Error> {
    let set = RuleSet::deserialize(deserializer)?;
    let mut interned = INTERNED_SETS.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    if let Some(known) = interned.iter().find(|known| **known == &set) {
        return Ok(known);
    }
    let set: &'static RuleSet = Box::leak(Box::new(set));
    interned.push(set);
    Ok(set)
}
