//! Transactions without end, for sessions that run them side by side at full speed.
//!
//! A round has tables and first rows of its own, which depend on the seed and its
//! number alone. Its transactions are drawn one after the other, as sessions ask for
//! them; which session gets which is the database's doing.

use super::make::{self, Maker};
use super::plan::{BeginForm, End, Plan, Start, TxPlan, number_operations};
use super::{Generator, Options};
use crate::random::Random;
use crate::sql::{Expr, InsertSource, Literal, OnDelete, Schema, Stmt, Type};

/// INSERT … SELECT takes no more than this, or tables would double and double.
const COPIED_AT_ONCE: i64 = 3;
/// First rows of a table at most.
const MOST_ROWS: usize = 200;

/// The tables of a round, and a source of transactions on them.
#[derive(Debug)]
pub struct Round {
    /// Without transactions: those are still to be drawn.
    pub plan: Plan,
    options: Options,
    random: Random,
    drawn: usize,
}

impl Generator {
    /// A round with keys from 1 to `keys`: few make hot rows.
    pub fn round(&self, number: u64, keys: usize) -> Round {
        let stream = |label, index| Random::stream(self.seed, label, index);
        let block = Generator::block_of(number);
        let mut schema = make::schema(&mut stream("schema", block), &self.dialect);
        for_many(&mut schema, keys, block);
        let mut random = stream("round", number);
        let rows = make::many_rows(&mut random, &schema, (keys / 2).clamp(2, MOST_ROWS));
        let level = random.pick_any(&self.options.levels).copied();
        let plan = Plan {
            number,
            seed: self.seed,
            level: Some(level.unwrap_or(self.options.default_level)),
            schema,
            rows,
            transactions: Vec::new(),
            schedule: Vec::new(),
            dialect: self.dialect,
        };
        let options = Options {
            own_levels: false,
            // Of optimistic transactions that meet pessimistic ones nothing is promised.
            mixed_modes: false,
            ddl: false,
            prepared: false,
            for_rounds: true,
            ..self.options.clone()
        };
        Round { plan, options, random, drawn: 0 }
    }
}

impl Round {
    /// The next transaction of a session.
    pub fn transaction(&mut self, session: &str) -> TxPlan {
        self.drawn += 1;
        let about = (&self.plan.schema, &self.plan.rows[..]);
        let mut maker = Maker::new(&mut self.random, &self.plan.dialect, about, &self.options);
        let mut transaction = make::transaction(&mut maker, self.drawn);
        transaction.session = session.into();
        if !matches!(transaction.start, Start::Explicit(_)) {
            transaction.start = Start::Explicit(BeginForm::Plain);
            transaction.end =
                if transaction.end == End::None { End::Commit } else { transaction.end };
        }
        for planned in &mut transaction.statements {
            if let Stmt::Insert(insert) = &mut planned.statement
                && let InsertSource::Select(select) = &mut insert.source
            {
                select.limit = Some(Expr::int(COPIED_AT_ONCE));
            }
        }
        number_operations(std::slice::from_mut(&mut transaction));
        transaction
    }
}

/// Tables as many transactions need them: enough keys, no foreign key that changes rows by
/// itself, which nobody could follow, and no check that numbers leave sooner or later.
fn for_many(schema: &mut Schema, keys: usize, block: u64) {
    for table in &mut schema.tables {
        table.checks.clear();
        // Most of what foreign keys do is to refuse: every other block is without.
        if block.is_multiple_of(2) {
            table.foreign_keys.clear();
        }
        for key in &mut table.foreign_keys {
            (key.on_delete, key.update_cascades) = (OnDelete::Refuse, false);
        }
        let foreign = |name: &str| table.foreign_keys.iter().any(|f| f.column == name);
        let wide: Vec<bool> =
            table.columns.iter().map(|c| table.is_in_a_key(&c.name) || foreign(&c.name)).collect();
        for (column, _) in table.columns.iter_mut().zip(wide).filter(|(_, wide)| *wide) {
            let numbers = 1..=keys as i64;
            column.pool = match column.of_type {
                Type::Int | Type::BigInt => numbers.map(Literal::Int).collect(),
                Type::Decimal => numbers.map(|n| Literal::Decimal(n * 100)).collect(),
                Type::Text(_) => numbers.map(|n| Literal::Text(format!("k{n}"))).collect(),
                _ => continue,
            };
        }
    }
}
