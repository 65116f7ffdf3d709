//! Generates cases (schemas, rows, transactions and schedules, all from one seed) and reduces
//! them.
//!
//! ```text
//!   seed, number ──► block: schema ──► group: rows, transactions ──► schedule
//!                                                       │
//!                 Plan ── to_case ──► Case    Dialect ──┘ (feature.rs: what it supports)
//! ```
//!
//! [`isolde_sql`] has the typed statements and renders them, `draw` draws them at random, `plan`
//! is a generated case in its parts. `reduce` searches for a smaller case that still fails,
//! `shrink` makes single plans smaller. A new kind of statement is a variant of
//! [`isolde_sql::Stmt`] and a line in the table of `draw`; a new feature is a line in
//! `feature.rs`.
//!
//! A plan depends on the seed, the dialect, the options and its number, and on nothing else, so
//! any worker can generate any case.

#![forbid(unsafe_code)]

mod draw;
mod from_case;
pub mod plan;
pub mod reduce;
mod round;
mod shrink;
#[cfg(test)]
mod tests;

pub use isolde_sql::{Dialect, Feature, Features};
pub use plan::{End, Item, OpId, Plan, PlannedStatement, Start, TxPlan};
pub use round::Round;
pub use shrink::{Candidates, Pass, Simplification};

use isolde_model::Level;
use isolde_model::random::Random;

/// The number of cases that share a schema: a hunt creates tables once per block and resets the
/// rows in between.
pub const CASES_PER_BLOCK: u64 = 30;

/// The number of cases that share rows and transactions and differ in the schedule.
pub const SCHEDULES_PER_GROUP: u64 = 3;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// The levels to draw from; with none, every case has the default level.
    pub levels: Vec<Level>,
    pub default_level: Level,
    /// Some transactions have a level of their own.
    pub own_levels: bool,
    /// Changes of the schema inside the cases.
    pub ddl: bool,
    /// Some statements are prepared first and then executed.
    pub prepared: bool,
    /// A case may mix pessimistic and optimistic transactions, if the engine has both.
    pub mixed_modes: bool,
    /// For rounds, in which many transactions run on the same tables: transactions are longer, and
    /// most conditions are on keys, because the first rows are soon overwritten.
    pub for_rounds: bool,
    /// How deeply expressions and queries are nested; none to draw it for each block.
    pub depth: Option<usize>,
}

/// The greatest depth of nested expressions and queries.
pub const DEEPEST: usize = 4;

impl Options {
    pub fn new(levels: Vec<Level>, default_level: Level) -> Options {
        Options {
            levels,
            default_level,
            own_levels: true,
            ddl: false,
            prepared: false,
            mixed_modes: true,
            for_rounds: false,
            depth: None,
        }
    }
}

#[derive(Clone, Debug)]
pub struct Generator {
    dialect: Dialect,
    seed: u64,
    options: Options,
}

impl Generator {
    pub fn new(dialect: Dialect, seed: u64, options: Options) -> Generator {
        Generator { dialect, seed, options }
    }

    pub fn block_of(number: u64) -> u64 {
        number / CASES_PER_BLOCK
    }

    /// How deeply the statements of a block are nested. The first blocks are shallow, so that a
    /// short hunt covers the plain statements, too.
    fn depth(&self, block: u64) -> usize {
        if !self.nests() {
            return 0;
        }
        let weights = if block < 4 { [50, 20, 20, 10, 0] } else { [9, 7, 16, 30, 38] };
        let drawn = || Random::stream(self.seed, "depth", block).weighted(&weights);
        self.options.depth.unwrap_or_else(drawn).min(DEEPEST)
    }

    /// Whether statements may be nested deeply.
    fn nests(&self) -> bool {
        let needed = [Feature::DerivedTable, Feature::ScalarSubquery, Feature::InSubquery];
        !self.options.for_rounds
            && self.options.depth != Some(0)
            && needed.iter().all(|f| self.dialect.has(*f))
    }

    pub fn plan(&self, number: u64) -> Plan {
        let group = number / SCHEDULES_PER_GROUP;
        let block = Generator::block_of(number);
        let depth = self.depth(block);
        let stream = |label, index| Random::stream(self.seed, label, index);
        let schema = draw::schema(&mut stream("schema", block), &self.dialect, depth);
        let rows = draw::rows(&mut stream("rows", group), &schema, depth);
        let mut random = stream("transactions", group);
        let level = random.pick_any(&self.options.levels).copied();
        let mut sampler =
            draw::Sampler::new(&mut random, &self.dialect, (&schema, &rows), &self.options, depth);
        let transactions = draw::transactions(&mut sampler);
        let schedule = draw::schedule(&mut stream("schedule", number), &transactions);
        Plan {
            number,
            seed: self.seed,
            level: Some(level.unwrap_or(self.options.default_level)),
            schema,
            rows,
            transactions,
            schedule,
            dialect: self.dialect,
        }
    }

    /// The features that cases may have: those of the dialect, without those that the options
    /// exclude.
    pub fn features(&self) -> Features {
        let options = &self.options;
        let mut features = self.dialect.features;
        let left_out: [(bool, &[Feature]); 5] = [
            (
                self.nests(),
                &[
                    Feature::RightJoin,
                    Feature::NestedJoin,
                    Feature::DerivedTable,
                    Feature::ScalarFunction,
                    Feature::BitOperator,
                    Feature::FullJoin,
                    Feature::JoinUsing,
                    Feature::Lateral,
                    Feature::ValuesTable,
                    Feature::RecursiveCte,
                    Feature::Limit,
                    Feature::Quantified,
                    Feature::RowValue,
                    Feature::Cast,
                    Feature::Filter,
                    Feature::Concatenation,
                    Feature::Rollup,
                    Feature::GroupingSets,
                    Feature::NamedWindow,
                    Feature::WindowFrame,
                    Feature::Merge,
                    Feature::Returning,
                    Feature::WriteLimit,
                ],
            ),
            (
                options.ddl,
                &[Feature::CreateIndex, Feature::DropIndex, Feature::AddColumn, Feature::Truncate],
            ),
            (options.prepared, &[Feature::Prepared]),
            (options.mixed_modes, &[Feature::Pessimistic, Feature::Optimistic]),
            (options.own_levels && options.levels.len() > 1, &[Feature::OwnLevel]),
        ];
        for (there, names) in left_out {
            for name in names.iter().filter(|_| !there) {
                features = features.without(*name);
            }
        }
        features
    }
}
