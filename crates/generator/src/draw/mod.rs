//! Draws the parts of a case at random.
//!
//! [`KINDS`] is the table of the statements of a transaction: a new kind of statement is a variant
//! of `Stmt` and a line here.
//!
//! Concurrent runs are compared with serial ones, so no statement may depend on the order in which
//! an engine visits rows: no LIMIT in writes, no key computed from itself except with an offset
//! that no other statement uses, no subquery over the written table or over one that depends on it
//! by a foreign key.

mod ddl;
mod deep;
mod forms;
mod predicate;
mod rows;
mod schema;
mod scope;
mod select;
mod shapes;
mod transaction;
mod write;

use isolde_sql::fixture::Rows;
pub use rows::{many_rows, rows};
pub use schema::schema;
pub use transaction::{schedule, transaction, transactions};

use super::Options;
use isolde_model::random::Random;
use isolde_sql::Feature;
use isolde_sql::dialect::Dialect;
use isolde_sql::{Schema, Stmt, Table};

/// A kind of statement: how often it is drawn, the features that it needs, and the function that
/// draws it.
struct Kind {
    weight: usize,
    reads_only: bool,
    needs: &'static [Feature],
    draw: fn(&mut Sampler) -> Option<Stmt>,
}

const fn kind(
    weight: usize,
    needs: &'static [Feature],
    draw: fn(&mut Sampler) -> Option<Stmt>,
) -> Kind {
    Kind { weight, reads_only: false, needs, draw }
}

const fn read(
    weight: usize,
    needs: &'static [Feature],
    draw: fn(&mut Sampler) -> Option<Stmt>,
) -> Kind {
    Kind { weight, reads_only: true, needs, draw }
}

/// The weights follow the statements in reported bugs (SELECT in 49% of the reports, INSERT 46%,
/// UPDATE 39%, DELETE 12%, locking reads 18%), with more writes, because the final state shows
/// them.
const KINDS: &[Kind] = &[
    read(7, &[], |m| m.plain_select()),
    read(4, &[], |m| m.join_select()),
    read(3, &[Feature::Aggregate], |m| m.aggregate_select()),
    read(3, &[Feature::GroupBy], |m| m.grouped_select()),
    read(2, &[Feature::Window], |m| m.window_select()),
    read(2, &[Feature::Cte], |m| m.cte_select()),
    read(2, &[Feature::Union], |m| m.set_operation()),
    kind(9, &[Feature::ForUpdate], |m| m.locking_select()),
    kind(17, &[], |m| m.insert()),
    kind(4, &[Feature::InsertSelect], |m| m.insert_select()),
    kind(3, &[Feature::InsertIgnore], |m| m.insert_ignore()),
    kind(3, &[Feature::Replace], |m| m.replace()),
    kind(5, &[Feature::Upsert], |m| m.upsert()),
    kind(26, &[], |m| m.update()),
    kind(3, &[Feature::UpdateJoin], |m| m.update_join()),
    kind(9, &[], |m| m.delete()),
    kind(2, &[Feature::DeleteJoin], |m| m.delete_join()),
];

/// Further kinds, which only cases with nested statements have: the flat cases of a seed stay as
/// they are.
const FURTHER_KINDS: &[Kind] = &[
    kind(7, &[Feature::Merge, Feature::ValuesTable], |m| m.merge()),
    kind(5, &[Feature::WriteLimit], |m| m.limited_write()),
];

pub struct Sampler<'a> {
    pub random: &'a mut Random,
    pub dialect: &'a Dialect,
    pub schema: &'a Schema,
    pub options: &'a Options,
    pub rows: &'a [Rows],
    /// For each table the row that transactions prefer; past the last one if the table is empty.
    hot_rows: Vec<usize>,
    /// The table that statements of a case with nested ones prefer, so that they conflict.
    hot_table: usize,
    /// Tables that subqueries of the current write must not read.
    forbidden_tables: Vec<String>,
    /// The number of statements of the case that shift keys.
    key_shifts: u32,
    /// How deeply expressions and queries may be nested; 0 for shallow statements.
    depth: usize,
    /// Counts names, so that each is unique in the case.
    serial: usize,
}

impl<'a> Sampler<'a> {
    pub fn new(
        random: &'a mut Random,
        dialect: &'a Dialect,
        (schema, rows): (&'a Schema, &'a [Rows]),
        options: &'a Options,
        depth: usize,
    ) -> Sampler<'a> {
        let hot_rows = rows.iter().map(|rows| random.below(rows.len().max(1))).collect();
        let (forbidden_tables, key_shifts, serial) = (Vec::new(), 0, 0);
        let hot_table = if depth > 0 { random.below(schema.tables.len()) } else { 0 };
        Sampler {
            random,
            dialect,
            schema,
            options,
            rows,
            hot_rows,
            hot_table,
            forbidden_tables,
            key_shifts,
            depth,
            serial,
        }
    }

    fn has(&self, feature: Feature) -> bool {
        self.dialect.has(feature)
    }

    /// Draws a statement for a transaction; with `reads_only` one that changes nothing.
    fn statement(&mut self, reads_only: bool) -> Stmt {
        let weight = |kind: &Kind| {
            let there = kind.needs.iter().all(|f| self.dialect.has(*f));
            if there && (kind.reads_only || !reads_only) { kind.weight } else { 0 }
        };
        let further = if self.depth > 0 { FURTHER_KINDS } else { &[] };
        let kinds: Vec<&Kind> = KINDS.iter().chain(further).collect();
        let weights: Vec<usize> = kinds.iter().map(|kind| weight(kind)).collect();
        let deep = self.depth > 0 && self.random.chance(90);
        loop {
            let kind = kinds[self.random.weighted(&weights)];
            self.forbidden_tables.clear();
            if deep && kind.reads_only {
                if let Some(statement) = self.deep_select() {
                    return statement;
                }
                continue;
            }
            // Some kinds do not fit every schema.
            let Some(mut statement) = (kind.draw)(self) else { continue };
            if deep {
                statement = self.deepened(statement);
            }
            self.perhaps_returning(&mut statement);
            return statement;
        }
    }

    fn any_table(&mut self) -> &'a Table {
        let schema = self.schema;
        if self.depth > 0 && self.random.chance(45) {
            return &schema.tables[self.hot_table];
        }
        self.random.pick(&schema.tables)
    }

    /// Draws a table to write. Subqueries must then not read it, nor any table that its foreign
    /// keys may change during the write.
    fn table_to_write(&mut self) -> &'a Table {
        let table = self.any_table();
        self.forbidden_tables = vec![table.name.clone()];
        let mut done = 0;
        while done < self.forbidden_tables.len() {
            let parent = self.forbidden_tables[done].clone();
            let children = self.schema.children(&parent).map(|t| t.name.clone());
            let fresh: Vec<String> =
                children.filter(|name| !self.forbidden_tables.contains(name)).collect();
            self.forbidden_tables.extend(fresh);
            done += 1;
        }
        table
    }

    /// Draws a table for a subquery or for the join of a write.
    fn table_to_read(&mut self) -> Option<&'a Table> {
        let beside_a_write = !self.forbidden_tables.is_empty();
        if beside_a_write && !self.has(Feature::UpdateSubquery) {
            return None;
        }
        let schema = self.schema;
        let free: Vec<&Table> =
            schema.tables.iter().filter(|t| !self.forbidden_tables.contains(&t.name)).collect();
        self.random.pick_any(&free).copied()
    }

    /// An offset for keys that is no sum of other offsets, so that shifted keys never collide with
    /// keys that are still to be shifted. None if keys would grow too large.
    fn key_shift(&mut self) -> Option<i64> {
        const MOST: u32 = 10;
        (self.key_shifts < MOST).then(|| {
            self.key_shifts += 1;
            1000 << (self.key_shifts - 1)
        })
    }

    fn fresh_name(&mut self, prefix: &str) -> String {
        self.serial += 1;
        format!("{prefix}{}", self.serial)
    }
}
