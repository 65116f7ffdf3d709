//! Features of SQL that a generated statement can exercise, and the engines that support them.
//!
//! Dialects list what they support, and hunts what they covered, under the same names.

use Feature::*;

/// One feature per line: variant, name, and the engines that support it. `mysql@8.0-` means from
/// version 8.0 on, `*` every engine, `!` excludes an engine.
macro_rules! features {
    ($($feature:ident $name:literal $engines:literal;)*) => {
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Feature {
            $($feature,)*
        }

        impl Feature {
            pub const ALL: &[Feature] = &[$($feature,)*];

            pub fn name(self) -> &'static str {
                match self {
                    $($feature => $name,)*
                }
            }

            /// The engines that support it, in the notation of [`super::Dialect::for_engine`].
            pub(super) fn engines(self) -> &'static str {
                match self {
                    $($feature => $engines,)*
                }
            }
        }
    };
}

features! {
    Select "select" "*";
    InnerJoin "join" "*";
    LeftJoin "left join" "*";
    SelfJoin "self join" "*";
    ScalarSubquery "scalar subquery" "* !other !turso@0-0.2";
    InSubquery "in subquery" "* !other !turso@0-0.2";
    ExistsSubquery "exists" "* !other !turso@0-0.2";
    Aggregate "aggregate" "*";
    GroupBy "group by" "*";
    Having "having" "*";
    Window "window function" "sqlite postgres mysql@8.0- mariadb@10.2- tidb dolt turso@0.8- duckdb cockroach";
    Cte "cte" "sqlite postgres mysql@8.0- mariadb@10.2- tidb dolt turso duckdb cockroach";
    Union "union" "* !other !turso@0-0.5";
    ExceptIntersect "except, intersect" "sqlite postgres mysql@8.0.31- mariadb@10.3- tidb dolt turso@0.6- duckdb cockroach";
    CaseWhen "case" "*";
    Distinct "distinct" "*";
    OrderBy "order by" "*";
    ForUpdate "for update" "postgres mysql mariadb tidb dolt cockroach";
    ForShare "for share" "postgres mysql mariadb dolt cockroach";
    NoWait "nowait" "postgres mysql@8.0- mariadb@10.3- tidb cockroach";
    SkipLocked "skip locked" "postgres mysql@8.0- mariadb@10.6- cockroach";
    Insert "insert" "*";
    MultiRowInsert "multi-row insert" "*";
    InsertSelect "insert select" "*";
    InsertIgnore "insert ignore" "* !other !turso@0-0.2";
    Replace "replace" "sqlite mysql mariadb tidb dolt turso@0.4- cockroach";
    Upsert "upsert" "* !other !turso@0-0.2";
    Update "update" "*";
    KeyUpdate "update of a key" "*";
    UpdateSubquery "update with subquery" "* !other !turso@0-0.5";
    UpdateJoin "update with join" "sqlite postgres mysql mariadb tidb dolt turso@0.6- duckdb cockroach";
    Delete "delete" "*";
    DeleteSubquery "delete with subquery" "* !other !turso@0-0.5";
    DeleteJoin "delete with join" "postgres mysql mariadb tidb dolt duckdb cockroach";
    Commit "commit" "*";
    Rollback "rollback" "*";
    Autocommit "autocommit" "*";
    AutocommitOff "autocommit=0" "mysql mariadb tidb dolt";
    Savepoint "savepoint" "* !other !duckdb !turso@0-0.5";
    RollbackTo "rollback to" "* !other !duckdb !turso@0-0.5";
    ReleaseSavepoint "release savepoint" "* !other !duckdb !turso@0-0.5";
    ReadOnly "read only" "postgres mysql mariadb dolt cockroach";
    ConsistentSnapshot "with consistent snapshot" "mysql mariadb tidb";
    Immediate "begin immediate" "sqlite turso";
    Pessimistic "begin pessimistic" "tidb";
    Optimistic "begin optimistic" "tidb";
    OwnLevel "own level" "*";
    PrimaryKey "primary key" "*";
    CompositeKey "composite key" "*";
    UniqueKey "unique key" "*";
    ForeignKey "foreign key" "* !other !turso";
    ForeignKeyAction "foreign key action" "* !other !duckdb !turso";
    Check "check" "sqlite postgres mysql@8.0.16- mariadb@10.2- dolt turso@0.8- duckdb cockroach";
    NotNull "not null" "*";
    Default "default" "*";
    GeneratedStored "stored generated column" "sqlite postgres@12- mysql mariadb@10.2- tidb dolt cockroach";
    GeneratedVirtual "virtual generated column" "sqlite postgres@18- mysql mariadb@10.2- tidb duckdb cockroach";
    Partition "partition" "postgres@12- mysql mariadb tidb";
    Index "index" "*";
    UniqueIndex "unique index" "*";
    MultiColumnIndex "multi-column index" "*";
    DescendingIndex "descending index" "* !other !turso@0-0.2 !duckdb";
    PartialIndex "partial index" "sqlite postgres turso@0.8- cockroach";
    FunctionalIndex "functional index" "sqlite postgres mysql@8.0.13- turso@0.8- duckdb cockroach";
    CreateIndex "create index" "*";
    DropIndex "drop index" "*";
    AddColumn "add column" "*";
    Truncate "truncate" "postgres mysql mariadb tidb dolt duckdb cockroach";
    Prepared "prepared statement" "postgres mysql mariadb tidb dolt duckdb cockroach";
    TypeBigInt "bigint" "*";
    TypeDecimal "decimal" "*";
    TypeFloat "double" "*";
    TypeDate "date" "* !other";
    TypeBool "boolean" "* !other";
    TypeBlob "blob" "* !other";
    TypeLongText "text" "*";
}

/// A set of features in one word.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Features(u128);

impl Features {
    pub fn has(self, feature: Feature) -> bool {
        self.0 & (1 << feature as u32) != 0
    }

    pub fn with(self, feature: Feature) -> Features {
        Features(self.0 | (1 << feature as u32))
    }

    pub fn without(self, feature: Feature) -> Features {
        Features(self.0 & !(1 << feature as u32))
    }

    pub fn iter(self) -> impl Iterator<Item = Feature> {
        Feature::ALL.iter().copied().filter(move |f| self.has(*f))
    }
}
