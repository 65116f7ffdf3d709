//! What an engine offers for instrumentation.

use crate::availability::Availability;
use crate::dialect::Family;
use serde::{Deserialize, Serialize};

/// The features of an engine by which statements can reveal what they did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EngineCapabilities {
    pub family: Family,
    /// UPDATE and INSERT can return the written rows.
    pub returns_written: bool,
    /// DELETE can return the deleted rows.
    pub returns_deleted: bool,
    /// The aggregate function that concatenates texts.
    pub gather: Gather,
    /// An UPDATE to the values that are there writes nothing.
    pub skips_equal_updates: bool,
    /// The assignments of an UPDATE of one table take effect one after the other, so that each
    /// sees those before it.
    pub assigns_in_order: bool,
    /// Locking reads and writes see what is current, whatever the snapshot of their
    /// transaction is.
    pub reads_current: bool,
    pub current_reads: CurrentReadScope,
    /// A statement can name one of several equal rows: by a column with its
    /// physical place, or by a LIMIT on writes.
    pub addresses_rows: bool,
}

/// Which tables writes and locking reads see as they are at that moment, and not
/// as the snapshot of their transaction shows them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CurrentReadScope {
    Nothing,
    /// Their own tables. Subqueries may read either, so their tables count as
    /// both.
    Own,
    /// What the subqueries of UPDATE, DELETE and INSERT … SELECT read, too: InnoDB.
    OwnAndInner,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Gather {
    /// `string_agg(x, ';')`
    StringAgg,
    /// `group_concat(x)`
    GroupConcat,
    /// `json_arrayagg(x)`: the other one is cut after a kilobyte there.
    JsonArrayAgg,
    /// There is none that returns all texts.
    Nothing,
}

/// What an engine offers, by version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CapabilityTable {
    pub returns_written: Availability,
    pub returns_deleted: Availability,
    pub gather: Gather,
    /// Which versions have the function of `gather`.
    pub gathers: Availability,
    pub skips_equal_updates: bool,
    pub assigns_in_order: bool,
    pub reads_current: bool,
    pub current_reads: CurrentReadScope,
    pub addresses_rows: bool,
}

impl CapabilityTable {
    /// Nothing is returned by writes, and texts are gathered as the standard says.
    pub const NONE: CapabilityTable = CapabilityTable {
        returns_written: Availability::Never,
        returns_deleted: Availability::Never,
        gather: Gather::StringAgg,
        gathers: Availability::Always,
        skips_equal_updates: false,
        assigns_in_order: false,
        reads_current: false,
        current_reads: CurrentReadScope::Nothing,
        addresses_rows: true,
    };

    pub fn at(&self, family: Family, version: &str) -> EngineCapabilities {
        EngineCapabilities {
            family,
            returns_written: self.returns_written.includes(version),
            returns_deleted: self.returns_deleted.includes(version),
            gather: if self.gathers.includes(version) { self.gather } else { Gather::Nothing },
            skips_equal_updates: self.skips_equal_updates,
            assigns_in_order: self.assigns_in_order,
            reads_current: self.reads_current,
            current_reads: self.current_reads,
            addresses_rows: self.addresses_rows,
        }
    }
}

/// What a driver says of its own capabilities; the followed engine's otherwise.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CapabilityOverrides {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub returns_written: Option<bool>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub returns_deleted: Option<bool>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gather: Option<Gather>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub skips_equal_updates: Option<bool>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reads_current: Option<bool>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub current_reads: Option<CurrentReadScope>,
}

impl CapabilityOverrides {
    pub fn is_empty(&self) -> bool {
        *self == CapabilityOverrides::default()
    }

    pub fn apply(&self, to: EngineCapabilities) -> EngineCapabilities {
        EngineCapabilities {
            family: to.family,
            returns_written: self.returns_written.unwrap_or(to.returns_written),
            returns_deleted: self.returns_deleted.unwrap_or(to.returns_deleted),
            gather: self.gather.unwrap_or(to.gather),
            skips_equal_updates: self.skips_equal_updates.unwrap_or(to.skips_equal_updates),
            reads_current: self.reads_current.unwrap_or(to.reads_current),
            current_reads: self.current_reads.unwrap_or(to.current_reads),
            assigns_in_order: to.assigns_in_order,
            addresses_rows: to.addresses_rows,
        }
    }
}
