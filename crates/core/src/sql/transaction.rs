//! Statements that begin, end and set up transactions.

use super::dialect::{Dialect, Family};
use super::feature::Feature;
use crate::Level;

/// BEGIN or START TRANSACTION, with all that may be said there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Begin {
    pub mode: Option<BeginMode>,
    pub consistent_snapshot: bool,
    pub characteristics: Characteristics,
}

/// The word behind BEGIN in SQLite and TiDB.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BeginMode {
    Deferred,
    Immediate,
    Exclusive,
    Concurrent,
    Pessimistic,
    Optimistic,
}

/// What BEGIN and SET TRANSACTION say of a transaction.
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

/// SET TRANSACTION and its relatives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SetTransaction {
    pub scope: SetScope,
    pub characteristics: Characteristics,
}

/// To what SET TRANSACTION applies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SetScope {
    /// SET TRANSACTION: the current transaction of PostgreSQL, the next one of
    /// MySQL.
    Transaction,
    /// All transactions of the session from the next one on.
    Session,
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

impl Begin {
    pub fn features(&self) -> Vec<Feature> {
        let mode = match self.mode {
            Some(BeginMode::Immediate) => Some(Feature::Immediate),
            Some(BeginMode::Pessimistic) => Some(Feature::Pessimistic),
            Some(BeginMode::Optimistic) => Some(Feature::Optimistic),
            Some(BeginMode::Deferred | BeginMode::Exclusive | BeginMode::Concurrent) | None => None,
        };
        let read_only = self.characteristics.access == Some(Access::ReadOnly);
        mode.into_iter()
            .chain(read_only.then_some(Feature::ReadOnly))
            .chain(self.consistent_snapshot.then_some(Feature::ConsistentSnapshot))
            .collect()
    }

    pub fn render(&self) -> String {
        let mut said = Vec::new();
        if self.consistent_snapshot {
            said.push("with consistent snapshot".to_string());
        }
        said.extend(self.characteristics.clauses());
        match (self.mode, said.is_empty()) {
            (None, true) => "begin".into(),
            (None, false) => format!("start transaction {}", said.join(", ")),
            (Some(mode), true) => format!("begin {}", mode.word()),
            (Some(mode), false) => format!("begin {} {}", mode.word(), said.join(", ")),
        }
    }
}

impl Characteristics {
    fn clauses(&self) -> Vec<String> {
        let level =
            self.level.map(|level| format!("isolation level {}", level.name().to_lowercase()));
        let access = self.access.map(|access| match access {
            Access::ReadOnly => "read only".to_string(),
            Access::ReadWrite => "read write".to_string(),
        });
        let deferrable = self.deferrable.map(|deferrable| match deferrable {
            true => "deferrable".to_string(),
            false => "not deferrable".to_string(),
        });
        level.into_iter().chain(access).chain(deferrable).collect()
    }
}

impl SetTransaction {
    pub fn render(&self, dialect: &Dialect) -> String {
        let whom = match (self.scope, dialect.family) {
            (SetScope::Transaction, _) => "set transaction",
            (SetScope::Session, Family::Mysql) => "set session transaction",
            (SetScope::Session, _) => "set session characteristics as transaction",
        };
        format!("{whom} {}", self.characteristics.clauses().join(", "))
    }
}
