//! Makes cases: schemas, rows, transactions and schedules, all from one seed.
//!
//! ```text
//!   seed, number ──► block: schema ──► group: rows, transactions ──► schedule
//!                                                       │
//!                 Plan ── to_case ──► Case    Dialect ──┘ (feature.rs: what there is)
//! ```
//!
//! [`crate::sql`] is the typed SQL that is generated and how it is written down,
//! `make` draws it, `plan` is the finished case in its parts, `reduce` makes
//! plans smaller. A new statement kind is a variant of [`crate::sql::Stmt`] and a
//! line in the table of `make`; a new feature is a line in `feature.rs`.
//!
//! A plan depends on the seed, the dialect, the options and its number, and on
//! nothing else: any worker may make any case.

mod free;
mod make;
pub mod plan;
mod read;
mod reduce;
#[cfg(test)]
mod tests;

pub use crate::sql::{Dialect, Feature, Features};
pub use free::Round;
pub use make::Rows;
pub use plan::{BeginForm, End, Item, OpId, Plan, Planned, Start, TxPlan};
pub use reduce::{Candidates, Cut, Pass};

use crate::Level;
use crate::random::Random;

/// Cases that share a schema, so that a hunt makes tables once a block and
/// resets rows in between.
pub const CASES_PER_BLOCK: u64 = 30;

/// Cases that share rows and transactions and differ in the schedule.
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
    /// Where the engine has them, pessimistic and optimistic transactions meet.
    pub mixed_modes: bool,
    /// For many transactions on the same tables: longer ones, most of which look for
    /// keys, since what the first rows held is soon no longer there.
    pub for_rounds: bool,
}

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

    pub fn plan(&self, number: u64) -> Plan {
        let group = number / SCHEDULES_PER_GROUP;
        let stream = |label, index| Random::stream(self.seed, label, index);
        let schema =
            make::schema(&mut stream("schema", Generator::block_of(number)), &self.dialect);
        let rows = make::rows(&mut stream("rows", group), &schema);
        let mut random = stream("transactions", group);
        let level = random.pick_any(&self.options.levels).copied();
        let mut maker =
            make::Maker::new(&mut random, &self.dialect, (&schema, &rows), &self.options);
        let transactions = make::transactions(&mut maker);
        let schedule = make::schedule(&mut stream("schedule", number), &transactions);
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

    /// What may appear in the cases: what the dialect has, without what the
    /// options leave out.
    pub fn features(&self) -> Features {
        let options = &self.options;
        let mut features = self.dialect.features;
        let left_out: [(bool, &[Feature]); 4] = [
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
