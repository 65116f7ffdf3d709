//! The counters of all oracles, as a part of hunt.json.

use crate::report::OracleReport;
use crate::table::{ORACLES, Oracle};
use crate::tally::OracleTally;
use serde::de::{self, Deserializer, MapAccess, Visitor};
use serde::ser::{SerializeMap, Serializer};
use serde::{Deserialize, Serialize};
use std::fmt;

/// One tally per oracle that has counted something. It is made to be a flattened field: each tally
/// is written under the key that its oracle declares, and keys of no oracle are ignored.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct OracleTallies(Vec<OracleTally>);

impl OracleTallies {
    /// Counts the report of an oracle about one case.
    pub fn count(&mut self, oracle: Oracle, report: &dyn OracleReport) {
        let Some(set) = oracle.description().counters else { return };
        let mut tally = OracleTally::new(set);
        report.count(&mut tally);
        self.add(&tally);
    }

    pub fn merge(&mut self, other: &OracleTallies) {
        other.0.iter().for_each(|tally| self.add(tally));
    }

    /// Lines for the terminal about what was counted.
    pub fn lines(&self) -> Vec<String> {
        let of_oracle = |oracle: &Oracle| {
            let description = oracle.description();
            let tally = self.0.iter().find(|t| Some(t.set()) == description.counters);
            tally.filter(|t| !t.is_empty()).map_or_else(Vec::new, description.summary)
        };
        ORACLES.iter().flat_map(of_oracle).collect()
    }

    fn add(&mut self, tally: &OracleTally) {
        match self.0.iter_mut().find(|mine| mine.set() == tally.set()) {
            Some(mine) => mine.merge(tally),
            None => self.0.push(tally.clone()),
        }
    }
}

impl Serialize for OracleTallies {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        for tally in self.0.iter().filter(|tally| !tally.is_empty()) {
            map.serialize_entry(tally.set().key, tally)?;
        }
        map.end()
    }
}

impl<'de> Deserialize<'de> for OracleTallies {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<OracleTallies, D::Error> {
        struct Tallies;
        impl<'de> Visitor<'de> for Tallies {
            type Value = OracleTallies;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("the counters of oracles")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<OracleTallies, A::Error> {
                let mut tallies = OracleTallies::default();
                while let Some(key) = map.next_key::<String>()? {
                    let sets = ORACLES.iter().filter_map(|oracle| oracle.description().counters);
                    match sets.into_iter().find(|set| set.key == key) {
                        Some(set) => tallies.add(&map.next_value_seed(set)?),
                        None => {
                            map.next_value::<de::IgnoredAny>()?;
                        }
                    }
                }
                Ok(tallies)
            }
        }
        deserializer.deserialize_map(Tallies)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::topological::Topology;

    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    struct Whole {
        cases: u64,
        #[serde(flatten)]
        oracles: OracleTallies,
        seconds: f64,
    }

    #[test]
    fn tallies_are_written_between_the_other_keys_and_read_back() {
        let mut whole = Whole { cases: 3, oracles: OracleTallies::default(), seconds: 1.5 };
        let text = serde_json::to_string(&whole).unwrap();
        assert_eq!(text, r#"{"cases":3,"seconds":1.5}"#);
        whole.oracles.count(Oracle::Topological, &Topology { orders: 2, ..Topology::default() });
        let text = serde_json::to_string(&whole).unwrap();
        assert_eq!(
            text,
            "{\"cases\":3,\"topology\":{\"graphs\":0,\"orders\":2,\"edges\":{},\"spared\":0,\
             \"blocked\":{\"0\":1},\"cyclic\":{\"0\":1},\"left_out\":{},\"unknown\":{}},\
             \"seconds\":1.5}"
        );
        let longer = text.replace("{\"cases\"", "{\"of_a_later_version\":[{\"a\":1}],\"cases\"");
        assert_eq!(serde_json::from_str::<Whole>(&longer).unwrap(), whole);
        assert_eq!(whole.oracles.lines()[0], "0 graphs, 2 orders");
    }
}
