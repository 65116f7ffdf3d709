//! A violation is reported only if it happens again on fresh tables.

use crate::check::{Checked, Violation, check_any, check_unbroken};
use crate::error::HuntError;
use crate::executor::{Executor, Fixture};
use isolde_core::Case;
use isolde_core::oracle::{Difference, Oracle};
use serde::{Deserialize, Serialize};

/// Runs in all that a violation must show in before it is said to show every
/// time.
const EVERY_TIME: u32 = 5;

/// Runs in all for a violation that did not show in one of them.
const MOST_RUNS: u32 = 11;

/// How often a violation was seen in how many runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rate {
    pub seen: u32,
    pub runs: u32,
}

impl Rate {
    /// Seen in every run, and in enough of them.
    pub fn deterministic(self) -> bool {
        self.seen == self.runs && self.runs >= EVERY_TIME
    }

    /// How often a changed run must be clean before the violation counts as
    /// gone: chance alone must explain it in less than one case of a hundred.
    /// That it was never missed does not mean that it cannot be: the chance of
    /// a miss is taken by the rule of succession.
    pub fn trials_to_be_sure(self) -> u32 {
        let missed = self.runs.saturating_sub(self.seen);
        let miss = f64::from(missed + 1) / f64::from(self.runs + 2);
        (1..20).find(|trials| miss.powi(*trials) < 0.01).map_or(20, i32::unsigned_abs)
    }

    pub fn confirmed(self) -> bool {
        self.seen > 1
    }

    /// Runs to be made in all, by what was seen so far.
    fn enough(self, care: Care) -> u32 {
        match care {
            _ if self.seen < self.runs => MOST_RUNS,
            Care::Again => 2,
            Care::EveryTime => EVERY_TIME,
        }
    }
}

/// Whether two runs violate in the same way: where the first breaks a rule of
/// the engine, so does the other; else one oracle in common, with the same
/// kinds of differences, and of anomalies the same classes.
pub fn same_violation(a: &[Violation], b: &[Violation]) -> bool {
    fn kind(difference: &Difference) -> &str {
        match difference {
            Difference::Anomaly { class, .. } => class,
            other => other.kind(),
        }
    }
    let kinds = |v: &Violation| {
        let mut kinds: Vec<String> = v.differences.iter().map(|d| kind(d).to_string()).collect();
        kinds.sort_unstable();
        kinds.dedup();
        kinds
    };
    let like = |x: &Violation| b.iter().any(|y| x.oracle == y.oracle && kinds(x) == kinds(y));
    match a.iter().find(|v| v.oracle == Oracle::Semantics) {
        Some(broken_rule) => like(broken_rule),
        None => a.iter().any(like),
    }
}

/// How sure one wants to be that a violation shows every time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Care {
    /// It was seen again: that is enough for what is no news.
    Again,
    /// Until chance is ruled out.
    EveryTime,
}

/// Runs the case again, on tables that were made for it; several times where
/// it does not violate again. With the last run that did.
pub fn confirm(
    executor: &mut Executor,
    (fixture, case): (&Fixture, &Case),
    first: &Checked,
    oracles: &[Oracle],
    care: Care,
) -> Result<(Rate, Option<Checked>), HuntError> {
    let mut rate = Rate { seen: 1, runs: 1 };
    let mut last = None;
    executor.forget_tables();
    while rate.runs < rate.enough(care) {
        let again = if first.crashed() {
            check_any(executor, fixture, case, oracles)?
        } else {
            let moment = "when a violation was looked for once more";
            check_unbroken(executor, fixture, case, oracles, moment)?
        };
        rate.runs += 1;
        if same_violation(&first.violations, &again.violations) {
            rate.seen += 1;
            last = Some(again);
        }
    }
    Ok((rate, last))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rarer_it_is_the_more_clean_runs_it_takes_to_be_gone() {
        let trials = |seen, runs| Rate { seen, runs }.trials_to_be_sure();
        assert_eq!([trials(1, 1), trials(2, 2), trials(5, 5)], [5, 4, 3]);
        assert_eq!([trials(8, 11), trials(1, 11)], [4, 20]);
    }

    #[test]
    fn two_of_two_is_not_every_time() {
        assert!(Rate { seen: 2, runs: 2 }.confirmed());
        assert!(!Rate { seen: 2, runs: 2 }.deterministic());
        assert!(Rate { seen: 5, runs: 5 }.deterministic());
        assert!(!Rate { seen: 10, runs: 11 }.deterministic());
    }

    #[test]
    fn runs_go_on_until_chance_is_ruled_out_and_longer_after_a_miss() {
        let enough = |seen, runs, care| Rate { seen, runs }.enough(care);
        assert_eq!(enough(1, 1, Care::Again), 2);
        assert_eq!(enough(2, 2, Care::EveryTime), 5);
        assert_eq!(enough(1, 2, Care::Again), 11);
        assert_eq!(enough(4, 5, Care::EveryTime), 11);
    }

    #[test]
    fn a_broken_rule_is_the_same_only_as_a_broken_rule() {
        let of = |oracle, kind: &str| {
            let (label, sql) = ("s1.1".to_string(), String::new());
            let difference = match kind {
                "count" => Difference::Affected { label, sql, concurrent: 1, serial: 0 },
                _ => Difference::Read { label, sql, concurrent: Vec::new(), serial: Vec::new() },
            };
            Violation { oracle, differences: vec![difference] }
        };
        let (rule, count, read) =
            (of(Oracle::Semantics, "count"), of(Oracle::TxWss, "count"), of(Oracle::TxWss, "read"));
        let both = [rule.clone(), count.clone()];
        assert!(same_violation(&both, std::slice::from_ref(&rule)));
        assert!(!same_violation(&both, std::slice::from_ref(&count)));
        assert!(same_violation(std::slice::from_ref(&count), &both));
        assert!(!same_violation(&[count], &[read]));
    }
}
