//! Errors of a target itself, as opposed to errors that its database reports
//! for a statement (those are [`super::Outcome::Error`]).

use isolde_model::history::FailureKind;

#[derive(Debug, thiserror::Error)]
pub enum EngineError {
    /// The target cannot be reached or did not start.
    #[error("{0}")]
    Unreachable(String),
    /// The server went away while it was in use.
    #[error("the server is gone: {0}")]
    Lost(String),
    /// The server still runs and does not answer.
    #[error("the server hangs: {0}")]
    Hangs(String),
    /// The target refuses something that Isolde needs.
    #[error("{0}")]
    Refused(String),
}

impl EngineError {
    /// The kind of server failure that this error reports, if it is one.
    pub fn server_failure(&self) -> Option<FailureKind> {
        match self {
            EngineError::Lost(_) => Some(FailureKind::Died),
            EngineError::Hangs(_) => Some(FailureKind::Hangs),
            EngineError::Unreachable(_) | EngineError::Refused(_) => None,
        }
    }

    /// The reason, without the words that name the kind of error.
    pub fn reason(&self) -> &str {
        match self {
            EngineError::Unreachable(reason)
            | EngineError::Lost(reason)
            | EngineError::Hangs(reason)
            | EngineError::Refused(reason) => reason,
        }
    }
}

pub type EngineResult<T> = Result<T, EngineError>;
