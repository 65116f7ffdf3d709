//! What an engine offers for instrumentation.

use isolde_sql::dialect::{Family, is_among};

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
    /// Locking reads and writes see what is current, whatever the snapshot of their
    /// transaction is.
    pub reads_current: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Gather {
    /// `string_agg(x, ';')`
    StringAgg,
    /// `group_concat(x)`
    GroupConcat,
    /// `json_arrayagg(x)`: the other one is cut after a kilobyte there.
    JsonArrayAgg,
}

impl EngineCapabilities {
    pub fn of(engine: &str, version: &str) -> EngineCapabilities {
        let among = |list: &str| is_among(list, engine, version);
        let family = Family::of(engine);
        EngineCapabilities {
            family,
            returns_written: among("sqlite postgres cockroach duckdb turso@0.3-"),
            returns_deleted: among("sqlite postgres cockroach duckdb turso@0.3- mariadb"),
            gather: match family {
                Family::Postgres | Family::Duckdb | Family::Other => Gather::StringAgg,
                Family::Sqlite => Gather::GroupConcat,
                Family::Mysql if among("mariadb") => Gather::GroupConcat,
                Family::Mysql => Gather::JsonArrayAgg,
            },
            skips_equal_updates: family == Family::Mysql,
            reads_current: family == Family::Mysql,
        }
    }
}
