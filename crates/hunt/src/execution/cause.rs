//! Finds the cause of a violation, on the engine on which it happened.

use super::executor::Executor;
use crate::error::HuntError;
use crate::run::{CheckResult, Fixture};
use isolde_model::Case;
pub use isolde_model::Verdict;
use isolde_model::difference::Difference;
use isolde_model::inquiry::Inquiry;
use isolde_oracles::Oracle;
pub use isolde_reference::cause::{Cause, Explained};
use isolde_reference::{Analysis, SerialSearch, Subject, analyse};

/// Finds the cause of the violations in `checked`.
pub fn find(
    executor: &mut Executor,
    (fixture, case): (&Fixture, &Case),
    checked: &CheckResult,
) -> Result<Cause, HuntError> {
    // A server failure decides, whatever else was violated.
    let decisive = if checked.crashed() { Some(Oracle::Crash) } else { only_oracle(checked) };
    let differences: Vec<&Difference> =
        checked.violations.iter().flat_map(|v| &v.differences).collect();
    let of_oracle = |oracle: Oracle| oracle.cause(&differences, checked.report(oracle));
    if let Some(cause) = decisive.and_then(of_oracle) {
        return Ok(cause);
    }
    let Some(reading) = fixture.reading.as_deref() else {
        return Ok(Cause::without_rules(&checked.concurrent.on.engine));
    };
    let subject = &Subject::new(&checked.concurrent, reading);
    let find = |analysis: &Analysis| isolde_reference::cause::find(subject, &differences, analysis);
    if let Some(analysis) = &checked.analysis {
        return Ok(find(analysis));
    }
    let inquiry =
        Inquiry::new(
            |channel| async move { analyse(subject, &channel, SerialSearch::Always).await },
        );
    executor.inquire((fixture, case), inquiry, &mut Vec::new()).map(|analysis| find(&analysis))
}

/// The oracle that reported all violations, if it is a single one.
fn only_oracle(checked: &CheckResult) -> Option<Oracle> {
    let (first, rest) = checked.violations.split_first()?;
    rest.iter().all(|v| v.oracle == first.oracle).then_some(first.oracle)
}
