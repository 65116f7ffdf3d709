//! The options of all oracles as one value, so that they travel from the command line to an oracle
//! without any code in between that has to know them.

use std::collections::BTreeMap;

/// An option that an oracle understands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OracleOption {
    /// Its name in hunt.json. No two options share one.
    pub name: &'static str,
    /// Its value unless the user chose another.
    pub default: &'static str,
}

/// The options that the user chose, by name. Oracles parse the values; one that does not parse
/// counts as not chosen.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OracleOptions(BTreeMap<&'static str, String>);

impl OracleOptions {
    pub fn set(&mut self, option: OracleOption, value: impl ToString) {
        self.0.insert(option.name, value.to_string());
    }

    /// The value of an option, or its default.
    pub fn get(&self, option: OracleOption) -> &str {
        self.0.get(option.name).map_or(option.default, String::as_str)
    }
}
