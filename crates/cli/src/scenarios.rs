//! The Hermitage scenarios, compiled in, so that `isolde matrix` needs no files.

use isolde_model::case;
use isolde_model::case::Case;

macro_rules! scenario {
    ($name:literal) => {
        ($name, include_str!(concat!("../cases/hermitage/", $name, ".case")))
    };
}

const HERMITAGE: [(&str, &str); 15] = [
    scenario!("g0"),
    scenario!("g1a"),
    scenario!("g1b"),
    scenario!("g1c"),
    scenario!("otv"),
    scenario!("pmp"),
    scenario!("pmp-write"),
    scenario!("p4"),
    scenario!("g-single"),
    scenario!("g-single-predicate"),
    scenario!("g-single-write"),
    scenario!("g-single-write-race"),
    scenario!("g2-item"),
    scenario!("g2"),
    scenario!("g2-two-edges"),
];

pub fn hermitage() -> Vec<Case> {
    HERMITAGE
        .iter()
        .map(|(name, text)| case::parse(text).unwrap_or_else(|e| panic!("{name}: {e}")))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use isolde_model::Anomaly;

    #[test]
    fn every_anomaly_has_a_scenario_that_decides_it() {
        let cases = hermitage();
        for anomaly in Anomaly::ALL {
            assert!(cases.iter().any(|c| c.anomaly == Some(anomaly)), "{anomaly}");
        }
        for case in &cases {
            assert!(!case.possible_when.is_empty(), "{} decides nothing", case.id);
        }
    }

    #[test]
    fn every_scenario_file_is_in_canonical_form() {
        for (name, text) in HERMITAGE {
            assert_eq!(case::format(&case::parse(text).unwrap()), text, "{name}");
        }
    }
}
