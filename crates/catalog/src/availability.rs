//! Which versions of an engine have something.

use crate::selector::Selector;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Availability {
    Never,
    /// From this version on.
    Since(&'static str),
    Always,
}

impl Availability {
    pub fn includes(self, version: &str) -> bool {
        match self {
            Availability::Never => false,
            Availability::Always => true,
            Availability::Since(first) => {
                let selector =
                    Selector { engine: String::new(), from: Some(first.into()), to: None };
                selector.matches("", version)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Availability::*;

    #[test]
    fn since_compares_versions_part_by_part() {
        assert!(Since("8.0.13").includes("8.0.33") && !Since("8.0.13").includes("8.0.2"));
        assert!(Since("10.2").includes("10.11.8-MariaDB") && !Since("10.2").includes("10.1"));
        assert!(Always.includes("") && !Never.includes("9"));
    }
}
