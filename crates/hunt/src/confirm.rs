//! A violation is reported only if it happens again on fresh tables.

use crate::check::{Checked, Violation, check_any, check_unbroken};
use crate::error::HuntError;
use crate::executor::{Executor, Fixture};
use isolde_core::Case;
use isolde_core::oracle::Oracle;
use serde::{Deserialize, Serialize};

/// Runs to look for a violation that did not happen again at once.
const MORE_RUNS: u32 = 9;

/// How often a violation was seen in how many runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rate {
    pub seen: u32,
    pub runs: u32,
}

impl Rate {
    /// Seen again, every time.
    pub fn deterministic(self) -> bool {
        self.seen == self.runs && self.runs > 1
    }

    /// How often a changed run must be clean before the violation counts as
    /// gone: chance alone must explain it in less than one case of a hundred.
    pub fn trials_to_be_sure(self) -> u32 {
        let mut missed = 1.0;
        let miss = 1.0 - f64::from(self.seen) / f64::from(self.runs.max(1));
        (1..20)
            .find(|_| {
                missed *= miss;
                missed < 0.01
            })
            .unwrap_or(20)
    }

    pub fn confirmed(self) -> bool {
        self.seen > 1
    }
}

/// Whether two runs violate in the same way: one oracle in common, with the
/// same kinds of differences.
pub fn same_violation(a: &[Violation], b: &[Violation]) -> bool {
    let kinds = |v: &Violation| {
        let mut kinds: Vec<&str> = v.differences.iter().map(|d| d.kind()).collect();
        kinds.sort_unstable();
        kinds.dedup();
        kinds
    };
    a.iter().any(|x| b.iter().any(|y| x.oracle == y.oracle && kinds(x) == kinds(y)))
}

/// Runs the case again, on tables that were made for it; several times where
/// it does not violate again.
pub fn confirm(
    executor: &mut Executor,
    fixture: &Fixture,
    case: &Case,
    first: &Checked,
    oracles: &[Oracle],
) -> Result<(Rate, Option<Checked>), HuntError> {
    let mut rate = Rate { seen: 1, runs: 1 };
    let mut last = None;
    executor.forget_tables();
    let mut run = || {
        if !first.crashed() {
            let moment = "when a violation was looked for once more";
            return check_unbroken(executor, fixture, case, oracles, moment);
        }
        check_any(executor, fixture, case, oracles)
    };
    let again = run()?;
    rate.runs += 1;
    if same_violation(&first.violations, &again.violations) {
        rate.seen += 1;
        return Ok((rate, Some(again)));
    }
    for _ in 0..MORE_RUNS {
        let again = run()?;
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
    fn what_happens_every_time_is_tried_once_and_what_does_not_more_often() {
        assert_eq!(Rate { seen: 2, runs: 2 }.trials_to_be_sure(), 1);
        assert_eq!(Rate { seen: 8, runs: 11 }.trials_to_be_sure(), 4);
        assert_eq!(Rate { seen: 1, runs: 11 }.trials_to_be_sure(), 20);
    }
}
