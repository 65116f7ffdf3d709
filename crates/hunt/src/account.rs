//! The account of a run: what each statement saw or did, by which rules.

use crate::error::HuntError;
use crate::executor::{Executor, Fixture};
use isolde_core::inquiry::Inquiry;
use isolde_core::semantics::{Account, Serially, Subject, account};
use isolde_core::{Case, History};

/// What the rules of the engine say of a run of the case; none where nobody
/// knows what the case does.
pub fn of_run(
    executor: &mut Executor,
    about: (&Fixture, &Case),
    history: &History,
) -> Result<Option<Account>, HuntError> {
    let Some(reading) = about.0.reading.as_deref() else { return Ok(None) };
    told(executor, about, &Subject { history, reading }, Serially::Unknown).map(Some)
}

/// The same of a run that violates something; none without rules.
pub fn of_violation(
    executor: &mut Executor,
    about: (&Fixture, &Case),
    history: &History,
) -> Result<Option<Account>, HuntError> {
    let Some(reading) = about.0.reading.as_deref() else { return Ok(None) };
    let subject = Subject { history, reading };
    if !subject.has_rules() || history.death.is_some() {
        return Ok(None);
    }
    told(executor, about, &subject, Serially::Differs).map(Some)
}

fn told(
    executor: &mut Executor,
    about: (&Fixture, &Case),
    subject: &Subject<'_>,
    serially: Serially,
) -> Result<Account, HuntError> {
    let inquiry = Inquiry::new(|desk| async move { account(subject, &desk, serially).await });
    executor.inquire(about, inquiry, &mut Vec::new())
}
