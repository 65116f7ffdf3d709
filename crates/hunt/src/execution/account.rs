//! The account of a run: what each statement read and wrote, and by which rules.

use super::control::{check_own_error, check_without_concurrency};
use super::executor::Executor;
use crate::error::HuntError;
use crate::run::Fixture;
use isolde_model::inquiry::Inquiry;
use isolde_model::{Case, History};
use isolde_reference::{Account, Analysis, SerialSearch, Subject, analyse};

/// The account of a run of the case; none where the case cannot be parsed.
pub fn of_run(
    executor: &mut Executor,
    about: (&Fixture, &Case),
    history: &History,
) -> Result<Option<Account>, HuntError> {
    let Some(reading) = about.0.reading.as_deref() else { return Ok(None) };
    inquire(executor, about, &Subject::new(history, reading)).map(Some)
}

/// The account of a run with a violation; none where the engine has no rules, or the server
/// failed. The analysis of the run is used if there is one already.
pub fn of_violation(
    executor: &mut Executor,
    about: (&Fixture, &Case),
    history: &History,
    analysis: Option<&Analysis>,
) -> Result<Option<Account>, HuntError> {
    let Some(reading) = about.0.reading.as_deref() else { return Ok(None) };
    let subject = Subject::new(history, reading);
    if !subject.has_rules() || history.death.is_some() {
        return Ok(None);
    }
    if let Some(analysis) = analysis {
        return Ok(Some(Account::new(&subject, analysis)));
    }
    inquire(executor, about, &subject).map(Some)
}

fn inquire(
    executor: &mut Executor,
    about: (&Fixture, &Case),
    subject: &Subject<'_>,
) -> Result<Account, HuntError> {
    let inquiry =
        Inquiry::new(
            |channel| async move { analyse(subject, &channel, SerialSearch::Always).await },
        );
    let mut analysis = executor.inquire(about, inquiry, &mut Vec::new())?;
    let (history, reading) = (subject.history, &subject.reading);
    check_own_error(executor, about.1, history, reading, &mut analysis)?;
    check_without_concurrency(executor, about.1, history, reading, &mut analysis)?;
    Ok(Account::new(subject, &analysis))
}
