//! How often a violation is observed when the same case runs again.

use serde::{Deserialize, Serialize};

/// Runs that must all show a violation before it counts as deterministic.
pub const DETERMINISTIC_RUNS: u32 = 5;

/// In how many runs of a case its violation was observed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rate {
    pub seen: u32,
    pub runs: u32,
}

impl Rate {
    /// Whether every run showed it, and there were enough of them.
    pub fn deterministic(self) -> bool {
        self.seen == self.runs && self.runs >= DETERMINISTIC_RUNS
    }

    /// Whether it was observed more than once.
    pub fn confirmed(self) -> bool {
        self.seen > 1
    }

    /// How many clean runs of a changed case it takes before the violation counts as gone: the
    /// probability that all of them missed it by chance must be below one percent.
    ///
    /// A violation that every run has shown may still be missed by the next one, so the
    /// probability of a miss is estimated by the rule of succession.
    pub fn trials_to_be_sure(self) -> u32 {
        let missed = self.runs.saturating_sub(self.seen);
        let miss = f64::from(missed + 1) / f64::from(self.runs + 2);
        (1..20).find(|trials| miss.powi(*trials) < 0.01).map_or(20, i32::unsigned_abs)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rare_violations_need_more_clean_runs_before_they_count_as_gone() {
        let trials = |seen, runs| Rate { seen, runs }.trials_to_be_sure();
        assert_eq!([trials(1, 1), trials(2, 2), trials(5, 5)], [5, 4, 3]);
        assert_eq!([trials(8, 11), trials(1, 11)], [4, 20]);
    }

    #[test]
    fn two_of_two_runs_are_confirmed_but_not_deterministic() {
        assert!(Rate { seen: 2, runs: 2 }.confirmed());
        assert!(!Rate { seen: 2, runs: 2 }.deterministic());
        assert!(Rate { seen: 5, runs: 5 }.deterministic());
        assert!(!Rate { seen: 10, runs: 11 }.deterministic());
    }
}
