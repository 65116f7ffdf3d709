//! SQL dialects as data: the supported features and the few spellings in which the families of
//! engines differ.

use crate::feature::{Feature, Features};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dialect {
    pub family: Family,
    pub features: Features,
    pub spelling: &'static Spelling,
    /// `for share`, or the older words of MySQL's family.
    pub share_lock: &'static str,
    pub quirks: Quirks,
}

/// Engines that accept the same SQL.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Family {
    Sqlite,
    Postgres,
    Mysql,
    Duckdb,
    /// An engine that is reached through a driver and is not known to the project.
    Other,
}

/// The spellings in which one family differs from the others.
#[derive(Debug, PartialEq, Eq)]
pub struct Spelling {
    pub float: &'static str,
    pub blob: &'static str,
    /// The texts before and after the hexadecimal digits.
    pub blob_literal: (&'static str, &'static str),
    pub date_literal: &'static str,
    pub booleans: (&'static str, &'static str),
    /// The statement that inserts a row and replaces the rows with the same key.
    pub replace: &'static str,
    pub ignore: IgnoreForm,
    pub upsert: UpsertForm,
    pub write_join: WriteJoin,
    pub partitions: PartitionForm,
    /// DROP INDEX names the table.
    pub drop_index_on_table: bool,
    /// CREATE TABLE can define indexes, which is cheaper than CREATE INDEX: in TiDB every change
    /// of the schema costs a round through the whole cluster.
    pub indexes_in_table: bool,
    pub prepare: PrepareForm,
    /// The quote for names that could be misread.
    pub quote: char,
    /// In strings, a backslash escapes the next character.
    pub backslash_escapes: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IgnoreForm {
    /// `insert ignore into`
    InsertIgnore,
    /// `insert or ignore into`
    OrIgnore,
    /// `on conflict do nothing`
    DoNothing,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UpsertForm {
    /// `on conflict (key) do update set v = excluded.v`
    OnConflict,
    /// `on duplicate key update v = values(v)`
    OnDuplicateKey,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WriteJoin {
    /// `update t set … from u where …`, `delete from t using u where …`
    From,
    /// `update t join u on … set …`, `delete t from t join u on …`
    Join,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PartitionForm {
    /// One clause after the table definition.
    Clause,
    /// One table per partition.
    Tables,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PrepareForm {
    /// `prepare p as …`
    As,
    /// `prepare p from '…'`
    From,
}

/// Restrictions of a dialect that are not features of their own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Quirks {
    /// One INSERT must not conflict with the same row twice.
    pub upsert_hits_once: bool,
    /// ON CONFLICT is rejected for a table without a key.
    pub ignore_needs_key: bool,
    /// Functions of its family that it does not have, or that fail there.
    pub lacks_functions: &'static [&'static str],
    /// The rows of VALUES as a query begin with ROW.
    pub values_row: bool,
}

pub static SQLITE: Spelling = Spelling {
    float: "double",
    blob: "blob",
    blob_literal: ("x'", "'"),
    date_literal: "",
    booleans: ("1", "0"),
    replace: "replace into",
    ignore: IgnoreForm::OrIgnore,
    upsert: UpsertForm::OnConflict,
    write_join: WriteJoin::From,
    partitions: PartitionForm::Clause,
    drop_index_on_table: false,
    indexes_in_table: false,
    prepare: PrepareForm::As,
    // In double quotes it would be a string if there is no such column.
    quote: '`',
    backslash_escapes: false,
};

pub static POSTGRES: Spelling = Spelling {
    float: "double precision",
    blob: "bytea",
    blob_literal: ("'\\x", "'::bytea"),
    date_literal: "date ",
    booleans: ("true", "false"),
    replace: "upsert into",
    ignore: IgnoreForm::DoNothing,
    upsert: UpsertForm::OnConflict,
    write_join: WriteJoin::From,
    partitions: PartitionForm::Tables,
    drop_index_on_table: false,
    indexes_in_table: false,
    prepare: PrepareForm::As,
    quote: '"',
    backslash_escapes: false,
};

pub static MYSQL: Spelling = Spelling {
    float: "double",
    blob: "varbinary(20)",
    blob_literal: ("x'", "'"),
    date_literal: "date ",
    booleans: ("true", "false"),
    replace: "replace into",
    ignore: IgnoreForm::InsertIgnore,
    upsert: UpsertForm::OnDuplicateKey,
    write_join: WriteJoin::Join,
    partitions: PartitionForm::Clause,
    drop_index_on_table: true,
    indexes_in_table: true,
    prepare: PrepareForm::From,
    quote: '`',
    backslash_escapes: true,
};

pub static DUCKDB: Spelling = Spelling {
    float: "double",
    blob: "blob",
    blob_literal: ("unhex('", "')"),
    date_literal: "date ",
    booleans: ("true", "false"),
    replace: "replace into",
    ignore: IgnoreForm::DoNothing,
    upsert: UpsertForm::OnConflict,
    write_join: WriteJoin::From,
    partitions: PartitionForm::Clause,
    drop_index_on_table: false,
    indexes_in_table: false,
    prepare: PrepareForm::As,
    quote: '"',
    backslash_escapes: false,
};

impl Dialect {
    pub fn has(&self, feature: Feature) -> bool {
        self.features.has(feature)
    }
}
