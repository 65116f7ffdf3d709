//! SQL dialects as data: the supported features (the table in `feature.rs`) and the few spellings
//! in which the families of engines differ.

use crate::ast::Type;
use crate::feature::{Feature, Features};
use crate::selector::Selector;

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

impl Family {
    /// The family of an engine with its mode, such as `sqlite+wal`.
    pub fn of(engine: &str) -> Family {
        match engine.split('+').next().unwrap_or(engine) {
            "sqlite" | "turso" => Family::Sqlite,
            "postgres" | "cockroach" => Family::Postgres,
            "mysql" | "mariadb" | "tidb" | "dolt" => Family::Mysql,
            "duckdb" => Family::Duckdb,
            _ => Family::Other,
        }
    }
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
}

static SQLITE: Spelling = Spelling {
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

static POSTGRES: Spelling = Spelling {
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

static MYSQL: Spelling = Spelling {
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

static DUCKDB: Spelling = Spelling {
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
    /// The dialect of an engine with its mode, such as `sqlite+wal`. Unknown engines get a small
    /// dialect that most engines accept.
    pub fn for_engine(engine: &str, version: &str) -> Dialect {
        let family = Family::of(engine);
        let spelling = match family {
            Family::Sqlite => &SQLITE,
            Family::Postgres | Family::Other => &POSTGRES,
            Family::Mysql => &MYSQL,
            Family::Duckdb => &DUCKDB,
        };
        let engine = if family == Family::Other { "other" } else { engine };
        let understood = |f: &&Feature| is_among(f.engines(), engine, version);
        let features =
            Feature::ALL.iter().filter(understood).fold(Features::default(), |all, f| all.with(*f));
        let new_share_lock = is_among("postgres cockroach mysql@8.0-", engine, version);
        let quirks = Quirks {
            upsert_hits_once: is_among("postgres cockroach duckdb", engine, version),
            ignore_needs_key: is_among("duckdb", engine, version),
        };
        Dialect {
            family,
            features,
            spelling,
            share_lock: if new_share_lock { "for share" } else { "lock in share mode" },
            quirks,
        }
    }

    pub fn has(&self, feature: Feature) -> bool {
        self.features.has(feature)
    }

    pub fn type_name(&self, of_type: &Type) -> String {
        match of_type {
            Type::Int => "int".into(),
            Type::BigInt => "bigint".into(),
            Type::Decimal => "decimal(10, 2)".into(),
            Type::Float => self.spelling.float.into(),
            Type::Text(Some(length)) => format!("varchar({length})"),
            Type::Text(None) => "text".into(),
            Type::Date => "date".into(),
            Type::Bool => "boolean".into(),
            Type::Blob => self.spelling.blob.into(),
            Type::Other(name) => name.clone(),
        }
    }
}

/// Whether a list such as `* !turso@0-0.2` includes the engine.
pub fn is_among(list: &str, engine: &str, version: &str) -> bool {
    let matches = |text: &str| {
        text == "*" || text.parse::<Selector>().is_ok_and(|s| s.matches(engine, version))
    };
    let mut among = false;
    for entry in list.split_whitespace() {
        match entry.strip_prefix('!') {
            Some(excluded) => among &= !matches(excluded),
            None => among |= matches(entry),
        }
    }
    among
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn features_follow_the_engine_its_mode_and_its_version() {
        let has = |engine, version, f| Dialect::for_engine(engine, version).has(f);
        assert!(!has("mysql", "5.7.19", Feature::Cte));
        assert!(has("mysql", "8.0.15", Feature::Cte));
        assert!(!has("mysql", "8.0.15", Feature::ExceptIntersect));
        assert!(has("mysql", "9.7.4", Feature::ExceptIntersect));
        assert!(!has("mariadb", "10.1.8-MariaDB", Feature::Check));
        assert!(has("mariadb+snapshot", "11.8.6-MariaDB", Feature::SkipLocked));
        assert!(!has("sqlite+wal", "3.54.1", Feature::ForUpdate));
        assert!(!has("some engine of yours", "1", Feature::Upsert));
        assert!(has("some engine of yours", "1", Feature::Update));
    }

    #[test]
    fn engine_list_of_every_feature_can_be_parsed() {
        for feature in Feature::ALL {
            for entry in feature.engines().split_whitespace() {
                let name = entry.trim_start_matches('!');
                assert!(name == "*" || name.parse::<Selector>().is_ok(), "{feature:?}: {entry}");
            }
        }
    }
}
