//! Confirms a violation: it is reported only if it happens again on new tables.

use super::check::{check_any, check_unbroken};
use super::executor::Executor;
use crate::error::HuntError;
pub use crate::run::Rate;
use crate::run::rate::DETERMINISTIC_RUNS;
use crate::run::{CheckResult, Fixture, Violation};
use isolde_model::Case;
use isolde_model::difference::Difference;
use isolde_oracles::Oracle;

/// Runs in total for a violation that one of them did not show.
const MOST_RUNS: u32 = 11;

/// Whether two runs violate in the same way. If the first breaks a rule of the engine, the other
/// must, too; otherwise one oracle must report the same kinds of differences in both, and the same
/// classes of anomalies.
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

/// How often a violation is repeated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Repetition {
    /// Until it is observed once more: enough for a documented anomaly.
    Once,
    /// Until chance is ruled out as the reason that every run shows it.
    UntilCertain,
}

/// Runs to be made in total, by what was observed so far.
fn runs_needed(rate: Rate, repetition: Repetition) -> u32 {
    match repetition {
        _ if rate.seen < rate.runs => MOST_RUNS,
        Repetition::Once => 2,
        Repetition::UntilCertain => DETERMINISTIC_RUNS,
    }
}

/// Runs the case again on new tables, more often if a run does not show the violation. Returns
/// how often it was observed, and the last run that showed it again.
pub fn confirm(
    executor: &mut Executor,
    (fixture, case): (&Fixture, &Case),
    first: &CheckResult,
    oracles: &[Oracle],
    repetition: Repetition,
) -> Result<(Rate, Option<CheckResult>), HuntError> {
    let mut rate = Rate { seen: 1, runs: 1 };
    let mut last = None;
    executor.forget_tables();
    while rate.runs < runs_needed(rate, repetition) {
        let again = if first.crashed() {
            check_any(executor, fixture, case, oracles)?
        } else {
            let moment = "when a violation was repeated";
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
    fn confirmation_needs_five_runs_and_eleven_after_a_miss() {
        let needed = |seen, runs, care| runs_needed(Rate { seen, runs }, care);
        assert_eq!(needed(1, 1, Repetition::Once), 2);
        assert_eq!(needed(2, 2, Repetition::UntilCertain), 5);
        assert_eq!(needed(1, 2, Repetition::Once), 11);
        assert_eq!(needed(4, 5, Repetition::UntilCertain), 11);
    }

    #[test]
    fn a_broken_rule_matches_only_a_broken_rule() {
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
