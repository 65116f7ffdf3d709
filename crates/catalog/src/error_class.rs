//! What the errors of a server mean for transactions.

use serde::{Deserialize, Serialize};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ErrorClass {
    Deadlock,
    Serialization,
    WriteConflict,
    LockTimeout,
    /// The engine would have to wait and says so at once.
    Busy,
    Constraint,
    /// The statement makes no sense to this engine.
    Rejected,
    /// The transaction had failed before; only its end is accepted.
    Poisoned,
    ReadOnly,
    /// The runner's own limit ended the statement.
    Cancelled,
    /// The session or the server is gone.
    Lost,
    /// The engine says that it is broken inside.
    Internal,
    Other,
}

impl ErrorClass {
    /// Its name in JSON.
    pub fn name(self) -> &'static str {
        match self {
            ErrorClass::Deadlock => "deadlock",
            ErrorClass::Serialization => "serialization",
            ErrorClass::WriteConflict => "write_conflict",
            ErrorClass::LockTimeout => "lock_timeout",
            ErrorClass::Busy => "busy",
            ErrorClass::Constraint => "constraint",
            ErrorClass::Rejected => "rejected",
            ErrorClass::Poisoned => "poisoned",
            ErrorClass::ReadOnly => "read_only",
            ErrorClass::Cancelled => "cancelled",
            ErrorClass::Lost => "lost",
            ErrorClass::Internal => "internal",
            ErrorClass::Other => "other",
        }
    }

    /// What such an error is called in a sentence.
    pub fn noun(self) -> &'static str {
        match self {
            ErrorClass::Deadlock => "a deadlock",
            ErrorClass::Serialization => "a serialization failure",
            ErrorClass::WriteConflict => "a write conflict",
            ErrorClass::LockTimeout | ErrorClass::Busy => "a lock that it did not get",
            ErrorClass::Constraint => "a constraint violation",
            ErrorClass::ReadOnly => "a read-only error",
            _ => "an error",
        }
    }

    /// Whether concurrent transactions caused the error, so that the same
    /// transaction may succeed when it is repeated.
    pub fn is_conflict(self) -> bool {
        matches!(
            self,
            ErrorClass::Deadlock
                | ErrorClass::Serialization
                | ErrorClass::WriteConflict
                | ErrorClass::LockTimeout
                | ErrorClass::Busy
        )
    }
}

/// What an error did to the transaction around it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ErrorEffect {
    /// Only the statement is undone.
    Statement,
    /// The transaction can only be rolled back (to a savepoint, perhaps).
    Poisoned,
    /// The engine has rolled the whole transaction back.
    RolledBack,
    /// The connection is gone, and the transaction with it.
    Lost,
}
