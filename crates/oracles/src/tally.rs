//! Named counters of one oracle over many cases.

use serde::de::{self, Deserializer, MapAccess, Visitor};
use serde::ser::{SerializeMap, Serializer};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;

/// The counters of an oracle and the key under which hunt.json has them.
#[derive(Debug, PartialEq, Eq)]
pub struct CounterSet {
    pub key: &'static str,
    pub counters: &'static [Counter],
}

/// One counter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Counter {
    /// A single number.
    Total(&'static str),
    /// One number per key, for example per reason.
    ByKey(&'static str),
}

impl Counter {
    fn name(self) -> &'static str {
        match self {
            Counter::Total(name) | Counter::ByKey(name) => name,
        }
    }
}

/// The key of one number in a counter. Numbers sort by value and come before names.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum CounterKey {
    Number(u64),
    Name(String),
}

impl fmt::Display for CounterKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CounterKey::Number(number) => number.fmt(f),
            CounterKey::Name(name) => name.fmt(f),
        }
    }
}

impl From<u64> for CounterKey {
    fn from(number: u64) -> CounterKey {
        CounterKey::Number(number)
    }
}

impl From<&str> for CounterKey {
    fn from(name: &str) -> CounterKey {
        CounterKey::Name(name.into())
    }
}

/// The values of a set of counters. Tallies of one set can be added.
#[derive(Clone, Debug, PartialEq)]
pub struct OracleTally {
    set: &'static CounterSet,
    /// One per counter of the set.
    values: Vec<CounterValue>,
}

#[derive(Clone, Debug, PartialEq)]
enum CounterValue {
    Total(u64),
    ByKey(BTreeMap<CounterKey, u64>),
}

impl OracleTally {
    /// All counters of the set at zero.
    pub fn new(set: &'static CounterSet) -> OracleTally {
        let zero = |counter: &Counter| match counter {
            Counter::Total(_) => CounterValue::Total(0),
            Counter::ByKey(_) => CounterValue::ByKey(BTreeMap::new()),
        };
        OracleTally { set, values: set.counters.iter().map(zero).collect() }
    }

    pub fn set(&self) -> &'static CounterSet {
        self.set
    }

    /// Whether nothing was counted.
    pub fn is_empty(&self) -> bool {
        *self == OracleTally::new(self.set)
    }

    /// Adds to a single number.
    ///
    /// # Panics
    /// If the set has no such counter: oracles count only what they declare.
    pub fn add(&mut self, counter: &'static str, count: u64) {
        match self.value_mut(counter) {
            Some(CounterValue::Total(total)) => *total += count,
            _ => panic!("`{counter}` is not a total of `{}`", self.set.key),
        }
    }

    /// Adds to the number of a key.
    ///
    /// # Panics
    /// If the set has no such counter: oracles count only what they declare.
    pub fn add_to(&mut self, counter: &'static str, key: impl Into<CounterKey>, count: u64) {
        match self.value_mut(counter) {
            Some(CounterValue::ByKey(by_key)) => *by_key.entry(key.into()).or_default() += count,
            _ => panic!("`{counter}` is not a counter by key of `{}`", self.set.key),
        }
    }

    /// A single number; zero if there is no such counter.
    pub fn total(&self, counter: &str) -> u64 {
        match self.value(counter) {
            Some(CounterValue::Total(total)) => *total,
            _ => 0,
        }
    }

    /// The numbers by key; none if there is no such counter.
    pub fn by_key(&self, counter: &str) -> impl Iterator<Item = (&CounterKey, u64)> {
        let by_key = match self.value(counter) {
            Some(CounterValue::ByKey(by_key)) => Some(by_key),
            _ => None,
        };
        by_key.into_iter().flatten().map(|(key, count)| (key, *count))
    }

    /// Adds all counters of another tally of the same set.
    pub fn merge(&mut self, other: &OracleTally) {
        for (mine, other) in self.values.iter_mut().zip(&other.values) {
            match (mine, other) {
                (CounterValue::Total(mine), CounterValue::Total(other)) => *mine += other,
                (CounterValue::ByKey(mine), CounterValue::ByKey(other)) => {
                    for (key, count) in other {
                        *mine.entry(key.clone()).or_default() += count;
                    }
                }
                _ => {}
            }
        }
    }

    fn position(&self, counter: &str) -> Option<usize> {
        self.set.counters.iter().position(|c| c.name() == counter)
    }

    fn value(&self, counter: &str) -> Option<&CounterValue> {
        self.values.get(self.position(counter)?)
    }

    fn value_mut(&mut self, counter: &str) -> Option<&mut CounterValue> {
        let position = self.position(counter)?;
        self.values.get_mut(position)
    }
}

impl Serialize for CounterKey {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for CounterKey {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<CounterKey, D::Error> {
        let text = String::deserialize(deserializer)?;
        Ok(text.parse().map_or(CounterKey::Name(text), CounterKey::Number))
    }
}

impl Serialize for OracleTally {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.values.len()))?;
        for (counter, value) in self.set.counters.iter().zip(&self.values) {
            match value {
                CounterValue::Total(total) => map.serialize_entry(counter.name(), total)?,
                CounterValue::ByKey(by_key) => map.serialize_entry(counter.name(), by_key)?,
            }
        }
        map.end()
    }
}

/// Reads the counters of a set; counters that the set does not have are ignored.
impl<'de> de::DeserializeSeed<'de> for &'static CounterSet {
    type Value = OracleTally;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<OracleTally, D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for &'static CounterSet {
    type Value = OracleTally;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the counters of `{}`", self.key)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<OracleTally, A::Error> {
        let mut tally = OracleTally::new(self);
        while let Some(name) = map.next_key::<String>()? {
            match tally.value_mut(&name) {
                Some(CounterValue::Total(total)) => *total = map.next_value()?,
                Some(CounterValue::ByKey(by_key)) => *by_key = map.next_value()?,
                None => {
                    map.next_value::<de::IgnoredAny>()?;
                }
            }
        }
        Ok(tally)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde::de::DeserializeSeed;

    static SET: CounterSet = CounterSet {
        key: "fruit",
        counters: &[Counter::Total("runs"), Counter::ByKey("kinds"), Counter::ByKey("rounds")],
    };

    fn counted() -> OracleTally {
        let mut tally = OracleTally::new(&SET);
        tally.add("runs", 2);
        tally.add_to("rounds", 10, 1);
        tally.add_to("rounds", 2, 1);
        tally
    }

    #[test]
    fn tally_is_written_in_the_declared_order_and_read_back() {
        let text = serde_json::to_string(&counted()).unwrap();
        assert_eq!(text, r#"{"runs":2,"kinds":{},"rounds":{"2":1,"10":1}}"#);
        let longer = text.replace("{\"runs\"", "{\"later\":[1],\"runs\"");
        let read = SET.deserialize(&mut serde_json::Deserializer::from_str(&longer)).unwrap();
        assert_eq!(read, counted());
        assert!(SET.deserialize(&mut serde_json::Deserializer::from_str("{\"runs\":{}}")).is_err());
    }

    #[test]
    fn merged_tallies_add_up() {
        let (mut tally, mut other) = (counted(), OracleTally::new(&SET));
        assert!(other.is_empty() && !tally.is_empty());
        other.add_to("kinds", "apple", 3);
        other.add_to("rounds", 2, 4);
        tally.merge(&other);
        assert_eq!(tally.total("runs"), 2);
        let rounds: Vec<u64> = tally.by_key("rounds").map(|(_, count)| count).collect();
        assert_eq!(rounds, [5, 1]);
        assert_eq!(tally.by_key("kinds").next().unwrap(), (&"apple".into(), 3));
    }
}
