//! Statements that begin, end and set up transactions.

use isolde_catalog::BeginForm;
use isolde_catalog::Level;

/// A statement that controls transactions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Control {
    Begin(Begin),
    Commit,
    Rollback,
    SetAutocommit(bool),
    SetTransaction(SetTransaction),
    Savepoint(String),
    RollbackTo(String),
    Release(String),
}

/// BEGIN or START TRANSACTION with its options.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Begin {
    pub mode: Option<BeginMode>,
    pub consistent_snapshot: bool,
    pub characteristics: Characteristics,
}

/// The mode after BEGIN in SQLite and TiDB.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BeginMode {
    Deferred,
    Immediate,
    Exclusive,
    Concurrent,
    Pessimistic,
    Optimistic,
}

/// The transaction characteristics of BEGIN and SET TRANSACTION.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Characteristics {
    pub level: Option<Level>,
    pub access: Option<Access>,
    pub deferrable: Option<bool>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    ReadOnly,
    ReadWrite,
}

/// SET TRANSACTION and SET SESSION TRANSACTION.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SetTransaction {
    pub scope: SetScope,
    pub characteristics: Characteristics,
}

/// The transactions to which SET TRANSACTION applies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SetScope {
    /// SET TRANSACTION: the current transaction of PostgreSQL, the next one of
    /// MySQL.
    Transaction,
    /// All transactions of the session from the next one on.
    Session,
}

impl Control {
    /// The savepoint that it returns to or releases.
    pub(super) fn needs(&self) -> Option<&str> {
        match self {
            Control::RollbackTo(name) | Control::Release(name) => Some(name),
            _ => None,
        }
    }

    /// The savepoint that it sets.
    pub(super) fn provides(&self) -> Option<&str> {
        match self {
            Control::Savepoint(name) => Some(name),
            _ => None,
        }
    }
}

impl BeginMode {
    pub const ALL: [BeginMode; 6] = [
        BeginMode::Deferred,
        BeginMode::Immediate,
        BeginMode::Exclusive,
        BeginMode::Concurrent,
        BeginMode::Pessimistic,
        BeginMode::Optimistic,
    ];

    pub fn word(self) -> &'static str {
        match self {
            BeginMode::Deferred => "deferred",
            BeginMode::Immediate => "immediate",
            BeginMode::Exclusive => "exclusive",
            BeginMode::Concurrent => "concurrent",
            BeginMode::Pessimistic => "pessimistic",
            BeginMode::Optimistic => "optimistic",
        }
    }
}

impl From<BeginMode> for Begin {
    fn from(mode: BeginMode) -> Begin {
        Begin { mode: Some(mode), ..Begin::default() }
    }
}

impl From<BeginForm> for Begin {
    fn from(form: BeginForm) -> Begin {
        let access = Some(Access::ReadOnly);
        let characteristics = Characteristics { access, ..Characteristics::default() };
        match form {
            BeginForm::Plain => Begin::default(),
            BeginForm::ReadOnly => Begin { characteristics, ..Begin::default() },
            BeginForm::ConsistentSnapshot => {
                Begin { consistent_snapshot: true, ..Begin::default() }
            }
            BeginForm::Immediate => BeginMode::Immediate.into(),
            BeginForm::Pessimistic => BeginMode::Pessimistic.into(),
            BeginForm::Optimistic => BeginMode::Optimistic.into(),
        }
    }
}
