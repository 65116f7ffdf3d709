//! Draws statements that change rows.

use super::Sampler;
use super::scope::{self, Scope};
use isolde_sql::Class;
use isolde_sql::Feature;
use isolde_sql::{
    Binary, Column, Conflict, Delete, Expr, Function, Insert, InsertSource, Literal, Order, Select,
    Source, Stmt, Table, TableJoin, Type, Update, Write,
};

impl<'a> Sampler<'a> {
    fn columns_to_insert(&mut self, table: &'a Table) -> Vec<&'a Column> {
        let all: Vec<&Column> = table.writable().collect();
        if self.random.chance(78) {
            return all;
        }
        // Some columns that need no value are left out, so that defaults apply.
        let needed = |c: &&Column| c.not_null && c.default.is_none();
        let some: Vec<&Column> =
            all.iter().copied().filter(|c| needed(c) || self.random.chance(50)).collect();
        if some.is_empty() { all } else { some }
    }

    fn values(&mut self, table: &'a Table, most_rows: usize) -> (Vec<String>, Vec<Vec<Expr>>) {
        let columns = self.columns_to_insert(table);
        // In rounds most keys exist soon, and an INSERT of several rows would rarely succeed.
        let alone = if self.options.for_rounds { 90 } else { 60 };
        let count = if self.random.chance(alone) { 1 } else { self.random.between(1, most_rows) };
        let row = |sampler: &mut Sampler<'a>| -> Vec<Expr> {
            columns.iter().map(|c| sampler.value_to_insert(table, c)).collect()
        };
        let rows = (0..count).map(|_| row(self)).collect();
        (columns.iter().map(|c| c.name.clone()).collect(), rows)
    }

    fn value_to_insert(&mut self, table: &Table, column: &Column) -> Expr {
        let key = table.is_in_a_key(&column.name);
        let may_be_fresh = key && column.of_type.class() == Class::Integer;
        if may_be_fresh && !self.options.for_rounds && self.random.chance(45) {
            return Expr::int(self.random.between(10, 14) as i64);
        }
        let computed = column.of_type == Type::Int && self.has(Feature::ScalarSubquery);
        if computed
            && !key
            && !column.not_null
            && self.random.chance(4)
            && let Some(scalar) = self.integer_scalar()
        {
            return scalar;
        }
        Expr::Literal(self.draw(column))
    }

    pub fn insert(&mut self) -> Option<Stmt> {
        let table = self.table_to_write();
        let (columns, rows) = self.values(table, 4);
        // In rounds most keys exist, and an error ends the transaction.
        let gives_way = self.options.for_rounds && self.may_ignore(table) && self.random.chance(60);
        let conflict = if gives_way { Conflict::Ignore } else { Conflict::Fail };
        Some(insert_rows(table, columns, rows, conflict))
    }

    pub fn insert_ignore(&mut self) -> Option<Stmt> {
        let table = self.table_to_write();
        let (columns, rows) = self.values(table, 3);
        let conflict = if self.may_ignore(table) { Conflict::Ignore } else { Conflict::Fail };
        Some(insert_rows(table, columns, rows, conflict))
    }

    fn may_ignore(&self, table: &Table) -> bool {
        let keyless = self.dialect.quirks.ignore_needs_key && table.keys().is_empty();
        self.has(Feature::InsertIgnore) && !keyless
    }

    pub fn replace(&mut self) -> Option<Stmt> {
        let table = self.table_to_write();
        let (columns, rows) = self.values(table, 3);
        Some(insert_rows(table, columns, rows, Conflict::Replace))
    }

    pub fn upsert(&mut self) -> Option<Stmt> {
        let table = self.table_to_write();
        let (columns, mut rows) = self.values(table, 3);
        let partial = |key: &Vec<String>| {
            table.indexes.iter().any(|i| i.only_where.is_some() && i.columns() == *key)
        };
        let keys: Vec<Vec<String>> = table
            .keys()
            .into_iter()
            .filter(|key| key.iter().all(|c| columns.contains(c)) && !partial(key))
            .collect();
        let key = self.random.pick_any(&keys)?.clone();
        if self.dialect.quirks.upsert_hits_once {
            keep_first_of_each_key(&key, &columns, &mut rows);
        }
        let free: Vec<&Column> = table.writable().filter(|c| !table.is_in_a_key(&c.name)).collect();
        let changed = self.random.some_of(self.some_or_none(&free)?, 2);
        let sets = changed
            .into_iter()
            .map(|c| (c.name.clone(), self.upsert_value(table, c, &columns)))
            .collect();
        Some(insert_rows(table, columns, rows, Conflict::Update { key, sets, filter: None }))
    }

    fn some_or_none<'s, T>(&self, items: &'s [T]) -> Option<&'s [T]> {
        (!items.is_empty()).then_some(items)
    }

    /// A value for the SET list of an upsert, where unqualified column names are ambiguous.
    fn upsert_value(&mut self, table: &Table, column: &Column, inserted: &[String]) -> Expr {
        let own = Expr::Column { qualifier: Some(table.name.clone()), name: column.name.clone() };
        match self.random.below(3) {
            0 if inserted.contains(&column.name) => Expr::Incoming(column.name.clone()),
            1 if column.of_type.class() == Class::Integer && column.allows_arithmetic() => {
                Expr::binary(Binary::Plus, own, Expr::int(10))
            }
            _ => Expr::Literal(self.draw(column)),
        }
    }

    /// INSERT … SELECT, ordered by all columns, because it may fail on a key half-way.
    pub fn insert_select(&mut self) -> Option<Stmt> {
        let table = self.table_to_write();
        // The table itself may be the source: engines read it completely before they write. Tables
        // that depend on it by a foreign key may not, because replacing a row can delete rows
        // there.
        let schema = self.schema;
        let follows = |t: &&Table| t.name != table.name && self.forbidden_tables.contains(&t.name);
        let sources: Vec<&Table> = schema.tables.iter().filter(|t| !follows(t)).collect();
        let source = *self.random.pick(&sources);
        let scope = scope::of_table(source);
        let columns = self.columns_to_insert(table);
        let items = columns.iter().map(|c| self.item_for(table, c, source).into()).collect();
        let mut conflict = Conflict::Fail;
        if self.may_ignore(table) && self.random.chance(20) {
            conflict = Conflict::Ignore;
        } else if self.has(Feature::Replace) && self.random.chance(15) {
            conflict = Conflict::Replace;
        }
        let select = Select {
            items,
            from: Some(Source::named(&source.name)),
            filter: Some(self.predicate(&scope)),
            order: Order::AllItems { descending: false },
            ..Select::default()
        };
        Some(Stmt::Write(Write::Insert(Insert {
            table: table.name.clone(),
            alias: None,
            columns: columns.iter().map(|c| c.name.clone()).collect(),
            source: InsertSource::Select(Box::new(select)),
            conflict,
            returning: Vec::new(),
        })))
    }

    fn item_for(&mut self, table: &Table, column: &Column, source: &Table) -> Expr {
        let fit: Vec<&Column> = source.columns.iter().filter(|c| fits(c, column)).collect();
        let Some(from) = self.random.pick_any(&fit).copied() else {
            return Expr::Literal(self.draw(column));
        };
        let read = Expr::column(&from.name);
        let number = column.of_type.class() == Class::Integer && from.allows_arithmetic();
        if table.is_in_a_key(&column.name)
            && number
            && let Some(shift) = self.key_shift()
        {
            return Expr::binary(Binary::Plus, read, Expr::int(shift));
        }
        if column.not_null && !from.not_null {
            let instead = Expr::Literal(self.likely_value(column));
            return Expr::Call(Function::Coalesce, vec![read, instead]);
        }
        read
    }

    fn assignments(&mut self, table: &'a Table) -> Vec<(String, Expr)> {
        let all: Vec<&Column> = table.writable().collect();
        let free: Vec<&Column> =
            all.iter().copied().filter(|c| !table.is_in_a_key(&c.name)).collect();
        let keys_too = if self.options.for_rounds { 5 } else { 18 };
        let from = if free.is_empty() || self.random.chance(keys_too) { &all } else { &free };
        let most = if self.random.chance(30) { 2 } else { 1 };
        let chosen = self.random.some_of(from, most);
        chosen.into_iter().map(|c| (c.name.clone(), self.new_value(table, c))).collect()
    }

    fn new_value(&mut self, table: &'a Table, column: &'a Column) -> Expr {
        let own = Expr::column(&column.name);
        let number = column.of_type.class() == Class::Integer && column.allows_arithmetic();
        if table.is_in_a_key(&column.name) {
            let shift = if number && self.random.chance(50) { self.key_shift() } else { None };
            return match shift {
                Some(shift) => Expr::binary(Binary::Plus, own, Expr::int(shift)),
                None => Expr::Literal(self.likely_value(column)),
            };
        }
        let foreign = table.foreign_keys.iter().any(|f| f.column == column.name);
        if foreign {
            return Expr::Literal(self.draw(column));
        }
        match self.random.weighted(&[38, 34, 8, 8, 6, 6]) {
            1 if column.allows_arithmetic() => self.arithmetic(own, column),
            2 => {
                let others: Vec<&Column> = table
                    .columns
                    .iter()
                    .filter(|c| fits(c, column) && (c.not_null || !column.not_null))
                    .collect();
                let other = self.random.pick_any(&others);
                other.map_or(own, |c| Expr::column(&c.name))
            }
            3 => self.case_value(table, column, own),
            4 if column.of_type == Type::Int && !column.not_null => {
                let scalar = self.has(Feature::ScalarSubquery).then(|| self.integer_scalar());
                scalar.flatten().unwrap_or(own)
            }
            5 => {
                let instead = Expr::Literal(self.likely_value(column));
                Expr::Call(Function::Coalesce, vec![own, instead])
            }
            _ => Expr::Literal(self.draw(column)),
        }
    }

    fn arithmetic(&mut self, own: Expr, column: &Column) -> Expr {
        let step = 1 + self.random.below(10) as i64;
        let step = match column.of_type.class() {
            Class::Integer => Literal::Int(step),
            Class::Decimal => Literal::Decimal(step * 25),
            _ => Literal::Float(step),
        };
        let sign = if self.random.chance(75) { Binary::Plus } else { Binary::Minus };
        Expr::binary(sign, own, Expr::Literal(step))
    }

    fn case_value(&mut self, table: &'a Table, column: &Column, own: Expr) -> Expr {
        let when = self.simple_condition(&scope::of_table(table));
        let then = Expr::Literal(self.likely_value(column));
        Expr::Case { operand: None, branches: vec![(when, then)], otherwise: Some(Box::new(own)) }
    }

    /// Draws a condition for a write, often on the key.
    fn write_filter(&mut self, table: &'a Table, scope: &Scope<'a>) -> Option<Expr> {
        let key = table.primary_key.first().and_then(|name| table.column(name));
        if let Some(key) = key
            && self.random.chance(40)
        {
            let value = Expr::Literal(self.likely_value(key));
            return Some(Expr::binary(Binary::Equal, Expr::column(&key.name), value));
        }
        let filtered = if self.options.for_rounds { 98 } else { 90 };
        self.random.chance(filtered).then(|| self.predicate(scope))
    }

    pub fn update(&mut self) -> Option<Stmt> {
        let table = self.table_to_write();
        let sets = self.assignments(table);
        let filter = self.write_filter(table, &scope::of_table(table));
        Some(Stmt::Write(Write::Update(Update { sets, filter, ..Update::of(&table.name) })))
    }

    pub fn update_join(&mut self) -> Option<Stmt> {
        let table = self.table_to_write();
        let (join, scope) = self.partner(table)?;
        let sets = self.assignments(table);
        let filter = self.random.chance(70).then(|| self.predicate(&scope));
        Some(Stmt::Write(Write::Update(Update {
            join: Some(join),
            sets,
            filter,
            ..Update::of(&table.name)
        })))
    }

    pub fn delete(&mut self) -> Option<Stmt> {
        let table = self.table_to_write();
        let filter = self.write_filter(table, &scope::of_table(table));
        Some(Stmt::Write(Write::Delete(Delete { filter, ..Delete::from(&table.name) })))
    }

    pub fn delete_join(&mut self) -> Option<Stmt> {
        let table = self.table_to_write();
        let (join, scope) = self.partner(table)?;
        let filter = self.random.chance(70).then(|| self.predicate(&scope));
        Some(Stmt::Write(Write::Delete(Delete {
            join: Some(join),
            filter,
            ..Delete::from(&table.name)
        })))
    }

    fn partner(&mut self, table: &'a Table) -> Option<(TableJoin, Scope<'a>)> {
        let other = self.table_to_read()?;
        let (own, theirs) = (scope::of_table(table), scope::of_table(other));
        let (left, right) = self.comparable(&own, &theirs)?;
        let on = Expr::binary(Binary::Equal, left.expr(), right.expr());
        let mut both = own;
        both.extend(theirs);
        Some((TableJoin { table: other.name.clone(), alias: None, on: Some(on) }, both))
    }
}

fn insert_rows(
    table: &Table,
    columns: Vec<String>,
    rows: Vec<Vec<Expr>>,
    conflict: Conflict,
) -> Stmt {
    let source = InsertSource::Values(rows);
    Stmt::Write(Write::Insert(Insert {
        table: table.name.clone(),
        alias: None,
        columns,
        source,
        conflict,
        returning: Vec::new(),
    }))
}

/// Whether every value of one column can be stored in the other.
fn fits(from: &Column, into: &Column) -> bool {
    match (&from.of_type, &into.of_type) {
        (Type::Text(Some(from)), Type::Text(Some(into))) => from <= into,
        (Type::Text(None), Type::Text(Some(_))) | (Type::BigInt, Type::Int) => false,
        (from, into) => from.class() == into.class(),
    }
}

fn keep_first_of_each_key(key: &[String], columns: &[String], rows: &mut Vec<Vec<Expr>>) {
    let places: Vec<usize> =
        key.iter().filter_map(|k| columns.iter().position(|c| c == k)).collect();
    let mut seen: Vec<Vec<Expr>> = Vec::new();
    rows.retain(|row| {
        let values: Vec<Expr> = places.iter().map(|p| row[*p].clone()).collect();
        let fresh = !seen.contains(&values);
        seen.push(values);
        fresh
    });
}
