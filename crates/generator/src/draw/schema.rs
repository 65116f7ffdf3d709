//! Draws schemas: few tables, most of them with a key, small pools of values.

use isolde_model::random::Random;
use isolde_sql::Class;
use isolde_sql::Feature;
use isolde_sql::dialect::Dialect;
use isolde_sql::type_feature;
use isolde_sql::{
    Binary, Column, Expr, ForeignKey, Function, Generated, Index, IndexPart, Literal, OnDelete,
    Schema, Table, Type, Unary,
};

/// The weight of each type; types that a dialect lacks are not drawn.
const TYPES: &[(Type, usize)] = &[
    (Type::Int, 40),
    (Type::Text(Some(20)), 14),
    (Type::Text(Some(4)), 8),
    (Type::Text(Some(255)), 4),
    (Type::Text(None), 4),
    (Type::BigInt, 6),
    (Type::Decimal, 8),
    (Type::Float, 5),
    (Type::Date, 5),
    (Type::Bool, 5),
    (Type::Blob, 3),
];

/// Draws a schema; for nested statements (a depth above 0) with two to four tables.
pub fn schema(random: &mut Random, dialect: &Dialect, depth: usize) -> Schema {
    let weights: &[usize] = if depth == 0 { &[62, 28, 10] } else { &[0, 35, 38, 27] };
    let count = 1 + random.weighted(weights);
    let mut schema = Schema::default();
    for number in 1..=count {
        let mut sampler = TableSampler { random, dialect, number, table: Table::default() };
        sampler.draw(&schema);
        schema.tables.push(sampler.table);
    }
    schema
}

struct TableSampler<'a> {
    random: &'a mut Random,
    dialect: &'a Dialect,
    number: usize,
    table: Table,
}

impl TableSampler<'_> {
    fn draw(&mut self, earlier: &Schema) {
        self.table.name = format!("t{}", self.number);
        self.add_columns();
        self.add_primary_key();
        self.add_foreign_key(earlier);
        self.add_constraints();
        self.add_generated_column();
        for _ in 0..self.random.weighted(&[50, 35, 15]) {
            self.add_index();
        }
        self.add_partitions();
    }

    fn has(&self, feature: Feature) -> bool {
        self.dialect.has(feature)
    }

    fn next_name(&self) -> String {
        let letter = (b'a' + self.table.columns.len() as u8) as char;
        format!("{letter}{}", self.number)
    }

    fn draw_type(&mut self) -> Type {
        let weight = |(of_type, weight): &(Type, usize)| {
            let there = type_feature(of_type).is_none_or(|f| self.dialect.has(f));
            if there { *weight } else { 0 }
        };
        let weights: Vec<usize> = TYPES.iter().map(weight).collect();
        TYPES[self.random.weighted(&weights)].0.clone()
    }

    fn add_columns(&mut self) {
        let count = self.random.between(2, 5);
        for place in 0..count {
            let of_type =
                if place == 0 && self.random.chance(80) { Type::Int } else { self.draw_type() };
            let pool = pool(self.random, &of_type);
            let name = self.next_name();
            let not_null = self.random.chance(20);
            let default = self.random.chance(18).then(|| self.random.pick(&pool).clone());
            // The MySQL family accepts no default for unlimited text.
            let default = default.filter(|_| of_type != Type::Text(None));
            self.table.columns.push(Column {
                name,
                of_type,
                not_null,
                default,
                pool,
                ..Column::default()
            });
        }
    }

    fn key_columns(&self) -> Vec<String> {
        let fit = self.table.writable().filter(|c| c.of_type.fits_a_key());
        fit.map(|c| c.name.clone()).collect()
    }

    fn add_primary_key(&mut self) {
        let candidates = self.key_columns();
        if candidates.is_empty() || !self.random.chance(72) {
            return;
        }
        let wide = candidates.len() > 1 && self.random.chance(15);
        self.table.primary_key = candidates[..if wide { 2 } else { 1 }].to_vec();
        for column in &mut self.table.columns {
            if self.table.primary_key.contains(&column.name) {
                column.not_null = true;
                column.default = None;
                column.pool = key_pool(&column.of_type);
            }
        }
    }

    /// Adds a foreign key on a column of its own, so that it conflicts with no other constraint.
    fn add_foreign_key(&mut self, earlier: &Schema) {
        if !self.has(Feature::ForeignKey) || !self.random.chance(45) {
            return;
        }
        let is_parent = |t: &&Table| {
            t.primary_key.len() == 1
                && t.partitioned_by.is_none()
                && t.column(&t.primary_key[0]).is_some_and(|c| c.of_type == Type::Int)
        };
        let parents: Vec<&Table> = earlier.tables.iter().filter(is_parent).collect();
        let Some(parent) = self.random.pick_any(&parents) else { return };
        let parent_column = parent.column(&parent.primary_key[0]).expect("it is the key");
        let actions = self.has(Feature::ForeignKeyAction);
        let on_delete = match self.random.weighted(&[35, 40, 25]) {
            1 if actions => OnDelete::Cascade,
            2 if actions => OnDelete::SetNull,
            _ => OnDelete::Refuse,
        };
        let column = Column {
            name: self.next_name(),
            of_type: Type::Int,
            pool: parent_column.pool.clone(),
            ..Column::default()
        };
        self.table.foreign_keys.push(ForeignKey {
            column: column.name.clone(),
            parent: parent.name.clone(),
            parent_column: parent_column.name.clone(),
            on_delete,
            update_cascades: actions && self.random.chance(40),
        });
        self.table.columns.push(column);
    }

    fn is_foreign(&self, column: &str) -> bool {
        self.table.foreign_keys.iter().any(|f| f.column == column)
    }

    fn add_constraints(&mut self) {
        let free: Vec<String> = self
            .key_columns()
            .into_iter()
            .filter(|c| !self.table.is_in_a_key(c) && !self.is_foreign(c))
            .collect();
        if !free.is_empty() && self.random.chance(18) {
            let key = self.random.some_of(&free, 2);
            self.table.unique.push(key);
        }
        if self.has(Feature::Check) && self.random.chance(18) {
            let check = self.check();
            self.table.checks.extend(check);
        }
    }

    /// A check that holds for every value of the pool, and so for the first rows.
    fn check(&mut self) -> Option<Expr> {
        let fit = |c: &&Column| {
            c.of_type == Type::Int && c.allows_arithmetic() && !self.is_foreign(&c.name)
        };
        let columns: Vec<Column> = self.table.writable().filter(fit).cloned().collect();
        let column = self.random.pick_any(&columns)?;
        let numbers = || {
            column.pool.iter().filter_map(|l| if let Literal::Int(n) = l { Some(*n) } else { None })
        };
        let (sign, bound) = if self.random.chance(50) {
            (Binary::AtLeast, numbers().min()?)
        } else {
            (Binary::Unequal, numbers().max()? + 1)
        };
        Some(Expr::binary(sign, Expr::column(&column.name), Expr::int(bound)))
    }

    fn add_generated_column(&mut self) {
        let kinds = [(Feature::GeneratedStored, true), (Feature::GeneratedVirtual, false)];
        let kinds: Vec<bool> =
            kinds.into_iter().filter(|(f, _)| self.has(*f)).map(|(_, stored)| stored).collect();
        let fit = |c: &&Column| {
            let numeric = c.of_type == Type::Int && c.allows_arithmetic();
            (numeric || c.of_type.class() == Class::Text) && !self.is_foreign(&c.name)
        };
        let bases: Vec<Column> = self.table.writable().filter(fit).cloned().collect();
        if kinds.is_empty() || bases.is_empty() || !self.random.chance(12) {
            return;
        }
        let base = self.random.pick(&bases).clone();
        let column = Expr::column(&base.name);
        let from = match base.of_type.class() {
            Class::Text => Expr::Call(Function::Length, vec![column]),
            _ => Expr::binary(Binary::Plus, column, Expr::int(1)),
        };
        let stored = *self.random.pick(&kinds);
        self.table.columns.push(Column {
            name: self.next_name(),
            of_type: Type::Int,
            generated: Some(Generated { from, stored }),
            pool: (1..4).map(Literal::Int).collect(),
            ..Column::default()
        });
    }

    fn add_index(&mut self) {
        let columns = self.key_columns();
        if columns.is_empty() {
            return;
        }
        let letter = (b'a' + self.table.indexes.len() as u8) as char;
        let name = format!("i{}{letter}", self.number);
        let functional = self.has(Feature::FunctionalIndex) && self.random.chance(15);
        let parts = match self.functional_part().filter(|_| functional) {
            Some(part) => vec![part],
            None => {
                let most = if self.random.chance(35) { 3 } else { 1 };
                let descending = self.has(Feature::DescendingIndex);
                let chosen = self.random.some_of(&columns, most);
                let part = |name: &String| IndexPart {
                    of: Expr::column(name),
                    descending: descending && self.random.chance(20),
                };
                chosen.iter().map(part).collect()
            }
        };
        let only_where = (self.has(Feature::PartialIndex) && self.random.chance(20)).then(|| {
            let column = Expr::column(&self.random.pick(&columns).clone());
            Expr::unary(Unary::IsNotNull, column)
        });
        let foreign = parts
            .iter()
            .any(|p| matches!(&p.of, Expr::Column { name, .. } if self.is_foreign(name)));
        let unique = !functional && !foreign && self.random.chance(22);
        self.table.indexes.push(Index { name, unique, parts, only_where });
    }

    fn functional_part(&mut self) -> Option<IndexPart> {
        let fit = |c: &&Column| c.of_type == Type::Int && c.allows_arithmetic();
        let columns: Vec<String> =
            self.table.writable().filter(fit).map(|c| c.name.clone()).collect();
        let column = Expr::column(self.random.pick_any(&columns)?);
        let of = if self.random.chance(50) {
            Expr::Call(Function::Abs, vec![column])
        } else {
            Expr::binary(Binary::Plus, column, Expr::int(1))
        };
        Some(IndexPart { of, descending: false })
    }

    /// Partitions the table, if all keys contain the column. The MySQL family does not allow
    /// foreign keys with partitions.
    fn add_partitions(&mut self) {
        let table = &self.table;
        let first = &table.columns[0];
        let keys_fit = table.keys().iter().all(|k| k.contains(&first.name));
        let fits = first.of_type == Type::Int && keys_fit && table.foreign_keys.is_empty();
        if fits && self.dialect.has(Feature::Partition) && self.random.chance(9) {
            self.table.partitioned_by = Some(self.table.columns[0].name.clone());
        }
    }
}

fn ints(values: &[i64]) -> Vec<Literal> {
    values.iter().copied().map(Literal::Int).collect()
}

fn texts(values: &[&str]) -> Vec<Literal> {
    values.iter().copied().map(Literal::text).collect()
}

/// A pool with enough different values for eight rows.
fn key_pool(of_type: &Type) -> Vec<Literal> {
    match of_type.class() {
        Class::Text => texts(&["a", "b", "c", "ab", "bc", "abc", "d", "x1", "zz"]),
        Class::Decimal => {
            [100, 150, 225, 300, 475, 1000, 0, -250, 9999].map(Literal::Decimal).into()
        }
        Class::Date => DATES.map(|d| Literal::Date(d.into())).into(),
        _ => (1..=9).map(Literal::Int).collect(),
    }
}

const DATES: [&str; 9] = [
    "2020-02-29",
    "2021-01-01",
    "1999-12-31",
    "1970-01-01",
    "2038-01-19",
    "2000-01-01",
    "2024-06-15",
    "2024-06-16",
    "1900-01-01",
];

/// Draws a few values, sometimes with the limits of the type. No two texts differ only in case or
/// spaces, which some collations ignore.
fn pool(random: &mut Random, of_type: &Type) -> Vec<Literal> {
    let wanted = random.between(2, 5);
    let limits = random.chance(12);
    let mut all = match of_type {
        Type::Int if limits => ints(&[i64::from(i32::MAX), i64::from(i32::MIN), 0, 1, -1]),
        Type::BigInt if limits => ints(&[i64::MAX, -i64::MAX, 0, 1, 5_000_000_000]),
        Type::Int | Type::BigInt => ints(&[0, 1, 2, 3, 5, 7, 10, 20, 100, -1, -5]),
        Type::Decimal if limits => {
            vec![Literal::Decimal(9_999_999_999), Literal::Decimal(0), Literal::Decimal(1)]
        }
        Type::Decimal => [0, 100, 150, 225, 1000, -375, 9999].map(Literal::Decimal).into(),
        Type::Float => [0, 2, 5, -10, 400, 1, 3].map(Literal::Float).into(),
        Type::Text(Some(4)) => texts(&["", "a", "b", "ab", "abcd", "q", "x y"]),
        Type::Text(_) => {
            let mut all = texts(&["", "a", "b", "abc", "it's", "a longer text", "100%", "zz"]);
            if limits && *of_type != Type::Text(Some(20)) {
                all.push(Literal::text(&"long ".repeat(40).replace(' ', "-")));
            }
            all
        }
        Type::Date => DATES.map(|d| Literal::Date(d.into())).into(),
        Type::Bool => vec![Literal::Bool(true), Literal::Bool(false)],
        Type::Blob => [&[][..], &[0], &[0xff, 0], b"ab"].map(|b| Literal::Blob(b.to_vec())).into(),
        Type::Other(_) => unreachable!("it is not among those that are drawn"),
    };
    random.shuffle(&mut all);
    all.truncate(wanted);
    all
}
