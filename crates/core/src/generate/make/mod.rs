//! Makes the parts of a case from chance.
//!
//! [`KINDS`] is the table of what a transaction may do: a new kind of
//! statement is a variant of `Stmt` and a line here.
//!
//! Concurrent runs are compared with serial ones, so nothing that is made may
//! depend on the order in which an engine visits rows: no LIMIT in writes, no
//! key set from itself except by an offset that no other statement uses, no
//! subquery over the table that is being written or over one that follows it
//! by a foreign key.

mod ddl;
mod predicate;
mod rows;
mod schema;
mod scope;
mod select;
mod transaction;
mod write;

pub use rows::{Rows, many_rows, rows};
pub use schema::schema;
pub use transaction::{schedule, transaction, transactions};

use super::Options;
use crate::random::Random;
use crate::sql::dialect::Dialect;
use crate::sql::feature::Feature;
use crate::sql::{Schema, Stmt, Table};

/// What makes a statement, how often, and what the dialect must have for it.
struct Kind {
    weight: usize,
    reads_only: bool,
    needs: &'static [Feature],
    make: fn(&mut Maker) -> Option<Stmt>,
}

const fn kind(
    weight: usize,
    needs: &'static [Feature],
    make: fn(&mut Maker) -> Option<Stmt>,
) -> Kind {
    Kind { weight, reads_only: false, needs, make }
}

const fn read(
    weight: usize,
    needs: &'static [Feature],
    make: fn(&mut Maker) -> Option<Stmt>,
) -> Kind {
    Kind { weight, reads_only: true, needs, make }
}

/// The weights follow what reported bugs use (SELECT 49%, INSERT 46%, UPDATE
/// 39%, DELETE 12%, locking reads 18% of the reports), with more writes, since
/// those are what the final state shows.
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

pub struct Maker<'a> {
    pub random: &'a mut Random,
    pub dialect: &'a Dialect,
    pub schema: &'a Schema,
    pub options: &'a Options,
    pub rows: &'a [Rows],
    /// In each table the row that all transactions are drawn to; beyond the
    /// last one when the table is empty.
    hot_rows: Vec<usize>,
    /// Tables that no subquery may read while a write is being made.
    off_limits: Vec<String>,
    /// How many statements of the case shift keys already.
    key_shifts: u32,
    /// For names that occur once in a case.
    serial: usize,
}

impl<'a> Maker<'a> {
    pub fn new(
        random: &'a mut Random,
        dialect: &'a Dialect,
        (schema, rows): (&'a Schema, &'a [Rows]),
        options: &'a Options,
    ) -> Maker<'a> {
        let hot_rows = rows.iter().map(|rows| random.below(rows.len().max(1))).collect();
        let (off_limits, key_shifts, serial) = (Vec::new(), 0, 0);
        Maker { random, dialect, schema, options, rows, hot_rows, off_limits, key_shifts, serial }
    }

    fn has(&self, feature: Feature) -> bool {
        self.dialect.has(feature)
    }

    /// A statement for a transaction, one that changes nothing if asked.
    fn statement(&mut self, reads_only: bool) -> Stmt {
        let weight = |kind: &Kind| {
            let there = kind.needs.iter().all(|f| self.dialect.has(*f));
            if there && (kind.reads_only || !reads_only) { kind.weight } else { 0 }
        };
        let weights: Vec<usize> = KINDS.iter().map(weight).collect();
        loop {
            let kind = &KINDS[self.random.weighted(&weights)];
            self.off_limits.clear();
            // Some kinds need a schema that is not always there.
            if let Some(statement) = (kind.make)(self) {
                return statement;
            }
        }
    }

    fn any_table(&mut self) -> &'a Table {
        let schema = self.schema;
        self.random.pick(&schema.tables)
    }

    /// A table to write, after which subqueries leave it alone, and all that
    /// its foreign keys may change while it is written.
    fn table_to_write(&mut self) -> &'a Table {
        let table = self.any_table();
        self.off_limits = vec![table.name.clone()];
        let mut done = 0;
        while done < self.off_limits.len() {
            let parent = self.off_limits[done].clone();
            let children = self.schema.children(&parent).map(|t| t.name.clone());
            let fresh: Vec<String> =
                children.filter(|name| !self.off_limits.contains(name)).collect();
            self.off_limits.extend(fresh);
            done += 1;
        }
        table
    }

    /// A table that a subquery or a join beside a write may read.
    fn table_to_read(&mut self) -> Option<&'a Table> {
        let beside_a_write = !self.off_limits.is_empty();
        if beside_a_write && !self.has(Feature::UpdateSubquery) {
            return None;
        }
        let schema = self.schema;
        let free: Vec<&Table> =
            schema.tables.iter().filter(|t| !self.off_limits.contains(&t.name)).collect();
        self.random.pick_any(&free).copied()
    }

    /// An offset for keys that no sum of others equals, so that rows moved by
    /// it never meet rows that are still to be moved. None when they would
    /// grow too large.
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
