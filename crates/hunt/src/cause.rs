//! The cause of a violation, asked of the engine on which it happened.

use crate::check::Checked;
use crate::check::Violation;
use crate::error::HuntError;
use crate::executor::{Executor, Fixture};
use isolde_core::Case;
pub use isolde_core::cause::{Cause, Explained, Label};
use isolde_core::inquiry::Inquiry;
use isolde_core::oracle::{Difference, Oracle};
use isolde_core::semantics::Subject;

/// Finds the cause of what `checked` violates.
pub fn find(
    executor: &mut Executor,
    (fixture, case): (&Fixture, &Case),
    checked: &Checked,
) -> Result<Cause, HuntError> {
    if checked.crashed() {
        let text = "the engine died, hangs, or reported that it is broken inside";
        return Ok(Cause::new(Label::Bug, vec![text.into()]));
    }
    if checked.violated() && checked.violations.iter().all(|v| v.oracle == Oracle::Isolation) {
        return Ok(ruled_out(&checked.violations));
    }
    if checked.violated() && checked.violations.iter().all(|v| v.oracle == Oracle::Merged) {
        let text = "SERIALIZABLE is broken: neither order of the two transactions explains what \
                    they returned and left";
        return Ok(Cause::new(Label::Bug, vec![text.into()]));
    }
    let topological = |v: &Violation| v.oracle == Oracle::Topological;
    if checked.violated() && checked.violations.iter().all(topological) {
        // A cycle that the level rules out needs no further rule; for a difference the rules
        // were asked about the runs that differ.
        let asked = checked.topology.as_ref().and_then(|topology| topology.cause.clone());
        return Ok(asked.unwrap_or_else(|| ruled_out(&checked.violations)));
    }
    let Some(reading) = fixture.reading.as_deref() else {
        return Ok(Cause::without_rules(&checked.concurrent.on.engine));
    };
    let subject = &Subject { history: &checked.concurrent, reading };
    let differences: Vec<&Difference> =
        checked.violations.iter().flat_map(|v| &v.differences).collect();
    let inquiry =
        Inquiry::new(
            |desk| async move { isolde_core::cause::find(subject, &differences, &desk).await },
        );
    executor.inquire((fixture, case), inquiry, &mut Vec::new())
}

/// What the documentation of the level rules out needs no further rule.
pub fn ruled_out(violations: &[Violation]) -> Cause {
    let classes = violations.iter().flat_map(|v| &v.differences).filter_map(|d| match d {
        Difference::Anomaly { class, meaning, .. } => Some(format!("{class} ({meaning})")),
        _ => None,
    });
    let classes: Vec<String> = classes.collect();
    let said = format!("the documentation of the level rules out {}", classes.join(", "));
    Cause::new(Label::Bug, vec![said])
}
