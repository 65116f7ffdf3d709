//! Endless sequences of transactions, for sessions that run them concurrently at full speed.
//!
//! A round has tables and first rows of its own, which depend only on the seed and its number. Its
//! transactions are drawn one by one when sessions request them; which session gets which
//! transaction depends on the timing of the database.

use super::draw::{self, Sampler};
use super::plan::{End, Plan, Start, TxPlan, number_operations};
use super::{Generator, Options};
use isolde_model::random::Random;
use isolde_sql::BeginForm;
use isolde_sql::{Expr, InsertSource, Literal, OnDelete, Schema, Stmt, Type, Write};

/// The LIMIT of INSERT … SELECT, without which tables would double again and again.
const COPIED_AT_ONCE: i64 = 3;
/// The maximum number of first rows of a table.
const MOST_ROWS: usize = 200;

/// The tables of a round, and a source of transactions on them.
#[derive(Debug)]
pub struct Round {
    /// The plan without transactions, which are drawn later.
    pub plan: Plan,
    options: Options,
    random: Random,
    drawn: usize,
}

impl Generator {
    /// A round with keys from 1 to `keys`; few keys make hot rows.
    pub fn round(&self, number: u64, keys: usize) -> Round {
        let stream = |label, index| Random::stream(self.seed, label, index);
        let block = Generator::block_of(number);
        let mut schema = draw::schema(&mut stream("schema", block), &self.dialect, 0);
        adapt_to_rounds(&mut schema, keys, block);
        let mut random = stream("round", number);
        let rows = draw::many_rows(&mut random, &schema, (keys / 2).clamp(2, MOST_ROWS));
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
            // Nothing is promised for optimistic transactions that conflict with pessimistic ones.
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
    /// Draws the next transaction of a session.
    pub fn transaction(&mut self, session: &str) -> TxPlan {
        self.drawn += 1;
        let about = (&self.plan.schema, &self.plan.rows[..]);
        let mut sampler =
            Sampler::new(&mut self.random, &self.plan.dialect, about, &self.options, 0);
        let mut transaction = draw::transaction(&mut sampler, self.drawn);
        transaction.session = session.into();
        if !matches!(transaction.start, Start::Explicit(_)) {
            transaction.start = Start::Explicit(BeginForm::Plain);
            transaction.end =
                if transaction.end == End::None { End::Commit } else { transaction.end };
        }
        for planned in &mut transaction.statements {
            if let Stmt::Write(Write::Insert(insert)) = &mut planned.statement
                && let InsertSource::Select(select) = &mut insert.source
            {
                select.limit = Some(Expr::int(COPIED_AT_ONCE));
            }
        }
        number_operations(std::slice::from_mut(&mut transaction));
        transaction
    }
}

/// Adapts tables to many transactions: enough keys, no foreign key actions, whose changes could
/// not be tracked, and no checks, which growing numbers would violate sooner or later.
fn adapt_to_rounds(schema: &mut Schema, keys: usize, block: u64) {
    for table in &mut schema.tables {
        table.checks.clear();
        // Foreign keys mostly reject statements, so every other block has none.
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
