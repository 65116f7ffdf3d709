//! Draws values: expressions of a given class.

use super::super::Sampler;
use super::{Surroundings, VisibleColumn};
use isolde_sql::functions::{Argument, functions_of};
use isolde_sql::{
    Aggregate, Binary, Class, Column, Expr, Family, Feature, Function, Literal, Type,
};

const TEXTS: [&str; 6] = ["", "a", "b", "abc", "zz", "a longer text"];

impl<'a> Sampler<'a> {
    /// Draws a value of a class; an exact one where its identity matters.
    pub(super) fn value(
        &mut self,
        class: Class,
        exact: bool,
        around: &Surroundings<'a>,
        depth: usize,
    ) -> Expr {
        if depth == 0 || class == Class::Blob || self.random.chance(25) {
            return self.leaf(class, exact, around);
        }
        let below = depth - 1;
        let own_form = match class {
            Class::Integer => 24,
            Class::Text | Class::Float | Class::Decimal if !exact => 24,
            Class::Bool => 30,
            _ => 0,
        };
        let function = if exact || !self.has(Feature::ScalarFunction) { 0 } else { 34 };
        let scalar = if self.has(Feature::ScalarSubquery) { 15 } else { 0 };
        let cast = if exact || !self.has(Feature::Cast) { 0 } else { 5 };
        match self.random.weighted(&[own_form, function, scalar, 22, 10, 6, 6, cast]) {
            0 => self.computed(class, exact, around, below),
            1 => self.call(class, around, below),
            2 => self
                .scalar_subquery(class, around, below)
                .unwrap_or_else(|| self.leaf(class, exact, around)),
            3 => {
                let branches = (0..self.random.between(1, 2))
                    .map(|_| {
                        let when = self.condition(around, below);
                        (when, self.value(class, exact, around, below))
                    })
                    .collect();
                let otherwise = Box::new(self.value(class, exact, around, below));
                Expr::Case { operand: None, branches, otherwise: Some(otherwise) }
            }
            4 => {
                let first = self.value(class, exact, around, below);
                let second = self.value(class, exact, around, below);
                Expr::Call(Function::Coalesce, vec![first, second])
            }
            5 => {
                let first = self.value(class, exact, around, below);
                let second = self.value(class, exact, around, 0);
                Expr::Call(Function::NullIf, vec![first, second])
            }
            6 => self.extreme(class, exact, around, below),
            _ => self.cast(class, around, below),
        }
    }

    /// A conversion that cannot fail.
    fn cast(&mut self, class: Class, around: &Surroundings<'a>, below: usize) -> Expr {
        let family = self.dialect.family;
        let (from, to) = match class {
            // In MySQL's family the collation of the result may not be comparable with others.
            Class::Text if family != Family::Mysql => {
                let from = *self.random.pick(&[Class::Integer, Class::Date, Class::Decimal]);
                (from, Type::Other("varchar".into()))
            }
            Class::Integer if family == Family::Mysql => {
                (Class::Decimal, Type::Other("signed".into()))
            }
            Class::Integer => (Class::Decimal, Type::BigInt),
            _ => return self.leaf(class, false, around),
        };
        let of = Box::new(self.value(from, true, around, below.min(1)));
        Expr::Cast { of, to }
    }

    /// GREATEST or LEAST, which SQLite has only as forms of MAX and MIN.
    fn extreme(
        &mut self,
        class: Class,
        exact: bool,
        around: &Surroundings<'a>,
        below: usize,
    ) -> Expr {
        if self.dialect.family == Family::Sqlite || matches!(class, Class::Bool | Class::Blob) {
            return self.leaf(class, exact, around);
        }
        let name = *self.random.pick(&["greatest", "least"]);
        let arguments = (0..2).map(|_| self.value(class, exact, around, below)).collect();
        Expr::Call(Function::Named(name.into()), arguments)
    }

    /// A column or a literal.
    pub(super) fn leaf(&mut self, class: Class, exact: bool, around: &Surroundings<'a>) -> Expr {
        let fits = |c: &&VisibleColumn| c.class == class && (!exact || c.is_exact());
        let own: Vec<&VisibleColumn> = around.own.iter().filter(fits).collect();
        let outer: Vec<&VisibleColumn> = around.outer.iter().filter(fits).collect();
        let (near, far) = if own.is_empty() { (0, 60) } else { (60, 15) };
        let far = if outer.is_empty() { 0 } else { far };
        match self.random.weighted(&[near, far, 25]) {
            0 => self.random.pick(&own).expr(),
            1 => self.random.pick(&outer).expr(),
            _ => Expr::Literal(self.literal(class, exact)),
        }
    }

    /// A literal, most often one that a table stores.
    pub(super) fn literal(&mut self, class: Class, exact: bool) -> Literal {
        let schema = self.schema;
        let fits = |c: &&Column| {
            let small = class != Class::Integer || !exact || c.allows_arithmetic();
            c.of_type.class() == class && small
        };
        let columns: Vec<&Column> =
            schema.tables.iter().flat_map(|t| &t.columns).filter(fits).collect();
        if let Some(column) = self.random.pick_any(&columns).copied()
            && self.random.chance(70)
        {
            let value = self.likely_value(column);
            if !value.is_null() {
                return value;
            }
        }
        match class {
            Class::Integer | Class::Other => Literal::Int(self.random.between(0, 9) as i64),
            Class::Decimal => Literal::Decimal(25 * self.random.between(0, 40) as i64),
            Class::Float => Literal::Float(self.random.between(0, 40) as i64),
            Class::Text => Literal::text(self.random.pick::<&str>(&TEXTS)),
            Class::Date => Literal::Date("2024-06-15".into()),
            Class::Bool => Literal::Bool(self.random.chance(50)),
            Class::Blob => Literal::Blob(b"ab".to_vec()),
        }
    }

    /// An operator of the class.
    fn computed(
        &mut self,
        class: Class,
        exact: bool,
        around: &Surroundings<'a>,
        below: usize,
    ) -> Expr {
        match class {
            Class::Bool => self.condition(around, below),
            Class::Text if self.dialect.family != Family::Mysql => {
                let left = self.value(class, false, around, below);
                Expr::binary(Binary::Concat, left, self.value(class, false, around, 0))
            }
            Class::Integer => self.arithmetic_of_integers(exact, around, below),
            Class::Float | Class::Decimal => {
                let left = self.leaf(class, true, around);
                let step = match class {
                    Class::Float => Literal::Float(4 * self.random.between(1, 9) as i64),
                    _ => Literal::Decimal(50 * self.random.between(1, 9) as i64),
                };
                let sign = *self.random.pick(&[Binary::Plus, Binary::Minus]);
                match self.is_small(&left, around) {
                    true => Expr::binary(sign, left, Expr::Literal(step)),
                    false => left,
                }
            }
            _ => self.leaf(class, exact, around),
        }
    }

    fn is_small(&self, leaf: &Expr, around: &Surroundings<'a>) -> bool {
        match leaf {
            Expr::Literal(literal) => literal.is_small_number(),
            leaf => around.own.iter().chain(&around.outer).any(|c| c.small && c.expr() == *leaf),
        }
    }

    /// Sums and products of small numbers stay small enough: at most four levels, and a factor of
    /// at most three at each.
    fn arithmetic_of_integers(
        &mut self,
        exact: bool,
        around: &Surroundings<'a>,
        below: usize,
    ) -> Expr {
        let below = below.min(2);
        let bits = if exact || !self.has(Feature::BitOperator) { 0 } else { 16 };
        let left = self.value(Class::Integer, true, around, below);
        match self.random.weighted(&[20, 16, 12, 16, bits]) {
            0 => Expr::binary(Binary::Plus, left, self.value(Class::Integer, true, around, 0)),
            1 => Expr::binary(Binary::Minus, left, self.value(Class::Integer, true, around, 0)),
            2 => Expr::binary(Binary::Times, left, Expr::int(self.random.between(2, 3) as i64)),
            3 => Expr::binary(Binary::Modulo, left, Expr::int(self.random.between(2, 9) as i64)),
            // Of negative numbers, MySQL's family makes large unsigned ones.
            _ => {
                let signs = [Binary::BitAnd, Binary::BitOr, Binary::ShiftLeft, Binary::ShiftRight];
                let sign = *self.random.pick(&signs);
                let right = Expr::int(self.random.between(1, 4) as i64);
                Expr::binary(sign, Expr::Call(Function::Abs, vec![left]), right)
            }
        }
    }

    /// A call of a function from the table of the dialect.
    fn call(&mut self, class: Class, around: &Surroundings<'a>, below: usize) -> Expr {
        let lacks = self.dialect.quirks.lacks_functions;
        let forms: Vec<_> = functions_of(self.dialect.family, class)
            .filter(|form| !lacks.contains(&form.name))
            .collect();
        let Some(form) = self.random.pick_any(&forms) else {
            return self.leaf(class, false, around);
        };
        let mut arguments = Vec::new();
        for argument in form.arguments {
            arguments.push(match *argument {
                Argument::Integer => self.value(Class::Integer, false, around, below),
                Argument::Small => self.value(Class::Integer, true, around, below.min(1)),
                Argument::Count => Expr::int(self.random.between(1, 4) as i64),
                Argument::Text => self.value(Class::Text, false, around, below),
                Argument::Word(word) => Expr::Literal(Literal::text(word)),
                Argument::Decimal => self.value(Class::Decimal, false, around, below),
                Argument::Float => self.leaf(Class::Float, true, around),
                Argument::Date => self.value(Class::Date, true, around, below),
                Argument::Blob => self.leaf(Class::Blob, true, around),
            });
        }
        let function = match form.name {
            "length" => Function::Length,
            "abs" => Function::Abs,
            name => Function::Named(name.into()),
        };
        Expr::Call(function, arguments)
    }

    /// A subquery that returns at most one row, whatever the tables contain.
    fn scalar_subquery(
        &mut self,
        class: Class,
        around: &Surroundings<'a>,
        below: usize,
    ) -> Option<Expr> {
        if matches!(class, Class::Bool | Class::Blob | Class::Other) {
            return None;
        }
        let (mut select, inside) = self.sources(&around.inside(), below)?;
        select.filter = Some(self.condition(&inside, below));
        if self.has(Feature::Limit) && self.random.chance(22) {
            select.items = vec![self.value(class, true, &inside, below.min(1)).into()];
            self.limit(&mut select, 1);
            return Some(Expr::Scalar(Box::new(select)));
        }
        let of = self.value(class, true, &inside.without_outer(), below.min(1));
        let item = if class == Class::Integer && self.random.chance(35) {
            Expr::count_all()
        } else {
            let function = *self.random.pick(&[Aggregate::Min, Aggregate::Max]);
            Expr::aggregate(function, of)
        };
        select.items = vec![item.into()];
        Some(Expr::Scalar(Box::new(select)))
    }
}
