//! The account of a run: what each statement saw or did, by which rules.

use crate::error::HuntError;
use crate::executor::{Executor, Fixture};
use isolde_core::inquiry::Inquiry;
use isolde_core::semantics::{Account, Subject, account};
use isolde_core::{Case, History};

/// What the rules of the engine say of a run of the case; none where nobody
/// knows what the case does.
pub fn of_run(
    executor: &mut Executor,
    (fixture, case): (&Fixture, &Case),
    history: &History,
) -> Result<Option<Account>, HuntError> {
    let Some(reading) = fixture.reading.as_deref() else { return Ok(None) };
    let subject = &Subject { history, reading };
    let inquiry = Inquiry::new(|desk| async move { account(subject, &desk).await });
    executor.inquire((fixture, case), inquiry, &mut Vec::new()).map(Some)
}
