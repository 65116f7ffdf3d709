//! Selectors of engines and versions: `postgres`, `mysql@8.0`, `mariadb@10.2-10.6`.

use std::cmp::Ordering;
use std::fmt;
use std::str::FromStr;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Selector {
    /// The engine's name, with its mode when it has one: `sqlite+wal`.
    pub engine: String,
    pub from: Option<String>,
    /// The last selected version; equal to `from` when only one is selected.
    pub to: Option<String>,
}

impl Selector {
    /// Whether the selector includes this engine and version. A version matches by its leading
    /// parts: `8.0` includes `8.0.33`. An engine without a mode includes all its modes.
    pub fn matches(&self, engine: &str, version: &str) -> bool {
        let plain = engine.split('+').next().unwrap_or(engine);
        if self.engine != engine && self.engine != plain {
            return false;
        }
        let not_before = |from: &String| version_cmp(version, from) != Ordering::Less;
        let not_after = |to: &String| version_cmp(version, to) != Ordering::Greater;
        self.from.as_ref().is_none_or(not_before) && self.to.as_ref().is_none_or(not_after)
    }

    /// Whether an expectation with this selector applies to the target. Recordings select exactly
    /// one version, and a recording applies only to the mode in which it was made, not to the
    /// other modes of the engine.
    pub fn expects(&self, engine: &str, version: &str) -> bool {
        self.matches(engine, version) && (!self.is_one_version() || self.engine == engine)
    }

    /// Whether a list such as `mysql mariadb@10.0-10.2` includes the engine.
    pub fn lists(list: &str, engine: &str, version: &str) -> bool {
        let matches =
            |text: &str| text.parse::<Selector>().is_ok_and(|s| s.matches(engine, version));
        list.split_whitespace().any(matches)
    }

    pub fn is_one_version(&self) -> bool {
        self.from.is_some() && self.from == self.to
    }
}

/// Compares as many dotted parts as `bound` has.
fn version_cmp(version: &str, bound: &str) -> Ordering {
    let parts = |text: &str| -> Vec<u64> {
        text.split(|c: char| !c.is_ascii_digit())
            .filter(|p| !p.is_empty())
            .map(|p| p.parse().unwrap_or(u64::MAX))
            .collect()
    };
    let bound = parts(bound);
    let mut version = parts(version);
    version.resize(bound.len().max(version.len()), 0);
    version[..bound.len()].cmp(&bound)
}

impl fmt::Display for Selector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.engine)?;
        match (&self.from, &self.to) {
            (None, None) => Ok(()),
            (Some(from), Some(to)) if from == to => write!(f, "@{from}"),
            (from, to) => {
                let text = |v: &Option<String>| v.clone().unwrap_or_default();
                write!(f, "@{}-{}", text(from), text(to))
            }
        }
    }
}

impl FromStr for Selector {
    type Err = String;

    fn from_str(text: &str) -> Result<Selector, String> {
        let (engine, versions) = match text.trim().split_once('@') {
            Some((engine, versions)) => (engine, Some(versions)),
            None => (text.trim(), None),
        };
        // `at` would be parsed as the keyword before the levels.
        let name_fits = !engine.eq_ignore_ascii_case("at")
            && engine.starts_with(|c: char| c.is_ascii_alphabetic())
            && engine.chars().all(|c| c.is_ascii_alphanumeric() || "+-_".contains(c));
        if !name_fits {
            return Err(format!(
                "`{}` is not an engine such as postgres or mysql@8.0",
                text.trim()
            ));
        }
        let version = |v: &str| -> Result<Option<String>, String> {
            match v {
                "" => Ok(None),
                v if v.starts_with(|c: char| c.is_ascii_digit())
                    && v.chars().all(|c| c.is_ascii_alphanumeric() || c == '.') =>
                {
                    Ok(Some(v.to_string()))
                }
                v => Err(format!("`{v}` is not a version such as 15 or 8.0.33")),
            }
        };
        let (from, to) = match versions {
            None => (None, None),
            Some(range) => match range.split_once('-') {
                Some((from, to)) => (version(from)?, version(to)?),
                None => (version(range)?, version(range)?),
            },
        };
        if versions.is_some() && from.is_none() && to.is_none() {
            return Err(format!("`{}` lacks a version after the @", text.trim()));
        }
        Ok(Selector { engine: engine.to_ascii_lowercase(), from, to })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn matches(selector: &str, engine: &str, version: &str) -> bool {
        selector.parse::<Selector>().unwrap().matches(engine, version)
    }

    #[test]
    fn version_matches_by_its_leading_parts() {
        assert!(matches("mysql@8.0", "mysql", "8.0.33"));
        assert!(!matches("mysql@8.0", "mysql", "8.1.0"));
        assert!(matches("mysql@8", "mysql", "8.1.0"));
        assert!(!matches("mysql@8.0.3", "mysql", "8.0.33"));
    }

    #[test]
    fn version_range_includes_its_ends_and_may_be_open() {
        assert!(matches("postgres@12-15", "postgres", "15.18"));
        assert!(!matches("postgres@12-15", "postgres", "16.0"));
        assert!(matches("mariadb@11.6-", "mariadb", "11.8.3"));
        assert!(matches("mariadb@-10.2", "mariadb", "10.2.11"));
    }

    #[test]
    fn engine_without_a_mode_matches_all_its_modes() {
        assert!(matches("sqlite", "sqlite+wal", "3.50"));
        assert!(matches("sqlite+wal", "sqlite+wal", "3.50"));
        assert!(!matches("sqlite+wal", "sqlite", "3.50"));
    }

    #[test]
    fn selector_of_a_recording_applies_to_one_mode() {
        let recorded: Selector = "tidb@8.5".parse().unwrap();
        assert!(recorded.expects("tidb", "8.5.0") && !recorded.expects("tidb+optimistic", "8.5.0"));
        let general: Selector = "tidb".parse().unwrap();
        assert!(general.expects("tidb+optimistic", "8.5.0"));
    }

    #[test]
    fn malformed_selector_is_rejected() {
        for text in ["", "at", "@15", "postgres@", "postgres@x", "a b", "mysql@-"] {
            assert!(text.parse::<Selector>().is_err(), "{text:?}");
        }
    }
}
