//! A defect: what findings with the same features have in common.

use serde::{Deserialize, Serialize};

/// The number of findings of a defect, and its name if it is known; part of `hunt.json`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Defect {
    pub findings: u64,
    /// The known bug that it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub known: Option<String>,
}

impl Defect {
    /// Adds a name. Of several the first in alphabetical order counts, so that the order of the
    /// findings does not matter.
    pub fn add_name(&mut self, name: Option<&String>) {
        if let Some(name) = name
            && self.known.as_ref().is_none_or(|known| name < known)
        {
            self.known = Some(name.clone());
        }
    }
}
