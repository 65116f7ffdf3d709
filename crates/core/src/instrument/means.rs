//! What an engine offers to make it tell.

use crate::sql::dialect::{Family, is_among};

/// How an engine can be asked what a statement did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Means {
    pub family: Family,
    /// UPDATE and INSERT say how they left the rows.
    pub returns_written: bool,
    /// DELETE says which rows it took away.
    pub returns_deleted: bool,
    /// What makes one text of many.
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

impl Means {
    pub fn of(engine: &str, version: &str) -> Means {
        let among = |list: &str| is_among(list, engine, version);
        let family = Family::of(engine);
        Means {
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
