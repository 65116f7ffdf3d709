//! Features of SQL that a generated statement can exercise.
//!
//! Each engine lists the ones that it lacks or that only some versions have. Hunts list what they
//! covered under the same names.

use crate::availability::Availability;
use Feature::*;
use serde::{Deserialize, Serialize};

/// One feature per line: variant and name.
macro_rules! features {
    ($($feature:ident $name:literal;)*) => {
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
        }
    };
}

features! {
    Select "select";
    InnerJoin "join";
    LeftJoin "left join";
    SelfJoin "self join";
    ScalarSubquery "scalar subquery";
    InSubquery "in subquery";
    ExistsSubquery "exists";
    Aggregate "aggregate";
    GroupBy "group by";
    Having "having";
    Window "window function";
    Cte "cte";
    Union "union";
    ExceptIntersect "except, intersect";
    CaseWhen "case";
    Distinct "distinct";
    OrderBy "order by";
    RightJoin "right join";
    NestedJoin "nested join";
    DerivedTable "derived table";
    ScalarFunction "scalar function";
    BitOperator "bit operator";
    FullJoin "full join";
    JoinUsing "join using";
    Lateral "lateral";
    ValuesTable "values";
    RecursiveCte "recursive cte";
    Limit "limit";
    Quantified "any, all";
    RowValue "row value";
    Cast "cast";
    Filter "filter";
    Concatenation "string aggregate";
    Rollup "rollup";
    GroupingSets "grouping sets";
    NamedWindow "named window";
    WindowFrame "window frame";
    ForUpdate "for update";
    ForShare "for share";
    NoWait "nowait";
    SkipLocked "skip locked";
    Insert "insert";
    MultiRowInsert "multi-row insert";
    InsertSelect "insert select";
    InsertIgnore "insert ignore";
    Replace "replace";
    Upsert "upsert";
    Update "update";
    KeyUpdate "update of a key";
    UpdateSubquery "update with subquery";
    UpdateJoin "update with join";
    Delete "delete";
    DeleteSubquery "delete with subquery";
    DeleteJoin "delete with join";
    Merge "merge";
    Returning "returning";
    WriteLimit "write with limit";
    Commit "commit";
    Rollback "rollback";
    Autocommit "autocommit";
    AutocommitOff "autocommit=0";
    Savepoint "savepoint";
    RollbackTo "rollback to";
    ReleaseSavepoint "release savepoint";
    ReadOnly "read only";
    ConsistentSnapshot "with consistent snapshot";
    Immediate "begin immediate";
    Pessimistic "begin pessimistic";
    Optimistic "begin optimistic";
    OwnLevel "own level";
    PrimaryKey "primary key";
    CompositeKey "composite key";
    UniqueKey "unique key";
    ForeignKey "foreign key";
    ForeignKeyAction "foreign key action";
    Check "check";
    NotNull "not null";
    Default "default";
    GeneratedStored "stored generated column";
    GeneratedVirtual "virtual generated column";
    Partition "partition";
    Index "index";
    UniqueIndex "unique index";
    MultiColumnIndex "multi-column index";
    DescendingIndex "descending index";
    PartialIndex "partial index";
    FunctionalIndex "functional index";
    CreateIndex "create index";
    DropIndex "drop index";
    AddColumn "add column";
    Truncate "truncate";
    Prepared "prepared statement";
    TypeBigInt "bigint";
    TypeDecimal "decimal";
    TypeFloat "double";
    TypeDate "date";
    TypeBool "boolean";
    TypeBlob "blob";
    TypeLongText "text";
}

/// A set of features.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Features([u128; 2]);

impl Features {
    /// The word and the bit in it that stand for a feature.
    fn place(feature: Feature) -> (usize, u128) {
        let place = feature as usize;
        (place / 128, 1 << (place % 128))
    }

    pub fn has(self, feature: Feature) -> bool {
        let (word, bit) = Features::place(feature);
        self.0[word] & bit != 0
    }

    pub fn with(self, feature: Feature) -> Features {
        let (word, bit) = Features::place(feature);
        let mut words = self.0;
        words[word] |= bit;
        Features(words)
    }

    pub fn without(self, feature: Feature) -> Features {
        let (word, bit) = Features::place(feature);
        let mut words = self.0;
        words[word] &= !bit;
        Features(words)
    }

    pub fn iter(self) -> impl Iterator<Item = Feature> {
        Feature::ALL.iter().copied().filter(move |f| self.has(*f))
    }
}

/// The features that an engine lacks or that only some of its versions have; it has all others.
pub type FeatureExceptions = &'static [(Availability, &'static [Feature])];

impl Features {
    /// The features of one version of an engine.
    pub fn of(exceptions: FeatureExceptions, version: &str) -> Features {
        let all = Feature::ALL.iter().fold(Features::default(), |all, f| all.with(*f));
        let lacked = exceptions.iter().filter(|(has, _)| !has.includes(version));
        lacked.flat_map(|(_, features)| *features).fold(all, |rest, f| rest.without(*f))
    }

    /// The same features, with what a driver adds and takes away.
    pub fn overridden(self, overrides: &FeatureOverrides) -> Features {
        let named = |names: &[String]| -> Vec<Feature> {
            names.iter().filter_map(|name| Feature::named(name)).collect()
        };
        let more = named(&overrides.with).into_iter().fold(self, Features::with);
        named(&overrides.without).into_iter().fold(more, Features::without)
    }
}

impl Feature {
    /// The feature with this name, as `isolde list --engine` prints it.
    pub fn named(name: &str) -> Option<Feature> {
        Feature::ALL.iter().copied().find(|f| f.name() == name)
    }
}

/// Features that generated cases always use.
const ASSUMED: &[Feature] = &[
    Select,
    InnerJoin,
    LeftJoin,
    SelfJoin,
    CaseWhen,
    OrderBy,
    Insert,
    MultiRowInsert,
    Update,
    KeyUpdate,
    Delete,
    Commit,
    Rollback,
    PrimaryKey,
    CompositeKey,
    UniqueKey,
    NotNull,
    UniqueIndex,
    MultiColumnIndex,
];

/// How a driver's dialect differs from the one that it follows, by the names of features.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FeatureOverrides {
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub with: Vec<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub without: Vec<String>,
}

impl FeatureOverrides {
    pub fn is_empty(&self) -> bool {
        self.with.is_empty() && self.without.is_empty()
    }

    /// A name that is no feature, or a feature that no engine can do without.
    pub fn invalidity(&self) -> Option<String> {
        let names = self.with.iter().chain(&self.without);
        let unknown = names.filter(|name| Feature::named(name).is_none());
        let assumed = |name: &&String| Feature::named(name).is_some_and(|f| ASSUMED.contains(&f));
        let needed = self.without.iter().filter(assumed);
        unknown
            .map(|name| format!("names {name:?}: see `isolde list --engine`"))
            .chain(
                needed.map(|name| format!("is without {name:?}, which generated cases always use")),
            )
            .next()
    }
}
