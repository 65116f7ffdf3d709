//! A run that the server did not survive, or in which it reported an internal error.

use super::check_result::CheckResult;
use super::fixture::Fixture;
use isolde_model::Case;

/// A run in which the server crashed or hung, a session was lost, or the engine reported an
/// internal error.
#[derive(Debug)]
pub struct FailedRun {
    pub fixture: Fixture,
    pub case: Case,
    pub checked: CheckResult,
    /// When it happened, as the end of a sentence: `in a serial run`.
    pub moment: &'static str,
}
