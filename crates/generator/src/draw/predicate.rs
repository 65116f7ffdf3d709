//! Draws conditions with values that occur in the rows, so that rows match.

use super::Sampler;
use super::scope::{self, Scope, ScopeColumn};
use isolde_sql::Class;
use isolde_sql::Feature;
use isolde_sql::{Aggregate, Binary, Expr, Function, Literal, Select, Source, Table, Unary};

impl<'a> Sampler<'a> {
    /// Draws a condition of depth 1 to 4; most are shallow.
    pub fn predicate(&mut self, scope: &Scope<'a>) -> Expr {
        if self.options.for_rounds
            && self.random.chance(75)
            && let Some(key) = self.key_in(scope)
        {
            return self.equality(key);
        }
        let depth = 1 + self.random.weighted(&[48, 30, 15, 7]);
        self.predicate_of_depth(scope, depth)
    }

    /// Draws a column that is a primary key by itself.
    fn key_in(&mut self, scope: &Scope<'a>) -> Option<ScopeColumn<'a>> {
        let schema = self.schema;
        let is_key = |c: &&ScopeColumn| {
            schema
                .tables
                .iter()
                .any(|t| t.primary_key.len() == 1 && t.primary_key[0] == c.column.name)
        };
        let keys: Vec<ScopeColumn> = scope.iter().filter(is_key).copied().collect();
        self.random.pick_any(&keys).copied()
    }

    fn predicate_of_depth(&mut self, scope: &Scope<'a>, depth: usize) -> Expr {
        if depth <= 1 {
            return self.atom(scope);
        }
        if self.random.chance(12) {
            return Expr::unary(Unary::Not, self.predicate_of_depth(scope, depth - 1));
        }
        let sign = if self.random.chance(50) { Binary::And } else { Binary::Or };
        let shallow = self.random.between(1, depth - 1);
        let left = self.predicate_of_depth(scope, depth - 1);
        let right = self.predicate_of_depth(scope, shallow);
        Expr::binary(sign, left, right)
    }

    fn atom(&mut self, scope: &Scope<'a>) -> Expr {
        let chosen = *self.random.pick(scope);
        let subqueries =
            [(Feature::InSubquery, 4), (Feature::ExistsSubquery, 4), (Feature::ScalarSubquery, 4)];
        let mut weights = vec![30, 22, 10, 9, 7, 6, 5, 4];
        weights.extend(subqueries.map(|(f, weight)| if self.has(f) { weight } else { 0 }));
        let made = match self.random.weighted(&weights) {
            0 => None,
            1 => Some(self.comparison(chosen)),
            2 => Some(self.null_test(chosen)),
            3 => Some(self.in_list(chosen)),
            4 => Some(self.between(chosen)),
            5 => self.column_comparison(scope),
            6 => self.computed_comparison(chosen),
            7 => self.like_or_case(chosen),
            8 => self.in_subquery(chosen),
            9 => self.exists(scope),
            _ => self.scalar_comparison(chosen),
        };
        made.unwrap_or_else(|| self.equality(chosen))
    }

    fn likely_literal(&mut self, of: ScopeColumn) -> Expr {
        Expr::Literal(self.likely_value(of.column))
    }

    fn equality(&mut self, of: ScopeColumn) -> Expr {
        let value = self.likely_literal(of);
        Expr::binary(Binary::Equal, of.expr(), value)
    }

    fn comparison(&mut self, of: ScopeColumn) -> Expr {
        let sign = *self.random.pick(&Binary::COMPARISONS);
        let value = self.likely_literal(of);
        Expr::binary(sign, of.expr(), value)
    }

    fn null_test(&mut self, of: ScopeColumn) -> Expr {
        let sign = if self.random.chance(40) { Unary::IsNull } else { Unary::IsNotNull };
        Expr::unary(sign, of.expr())
    }

    fn in_list(&mut self, of: ScopeColumn) -> Expr {
        let count = self.random.between(1, 3);
        let mut items: Vec<Expr> = (0..count).map(|_| self.likely_literal(of)).collect();
        items.dedup();
        Expr::InList { of: Box::new(of.expr()), items, negated: self.random.chance(20) }
    }

    fn between(&mut self, of: ScopeColumn) -> Expr {
        let (low, high) = (self.likely_literal(of), self.likely_literal(of));
        Expr::Between {
            of: Box::new(of.expr()),
            low: Box::new(low),
            high: Box::new(high),
            negated: false,
        }
    }

    fn column_comparison(&mut self, scope: &Scope<'a>) -> Option<Expr> {
        let (left, right) = self.comparable(scope, scope)?;
        let sign = *self.random.pick(&Binary::COMPARISONS);
        Some(Expr::binary(sign, left.expr(), right.expr()))
    }

    fn computed_comparison(&mut self, of: ScopeColumn) -> Option<Expr> {
        let (computed, value) = match of.class() {
            Class::Integer if of.column.allows_arithmetic() => {
                let n = self.random.between(1, 3) as i64;
                let Literal::Int(value) = self.likely_value(of.column) else { return None };
                match self.random.below(3) {
                    0 => (Expr::binary(Binary::Plus, of.expr(), Expr::int(n)), value + n),
                    1 => (Expr::binary(Binary::Times, of.expr(), Expr::int(n)), value * n),
                    _ => (Expr::Call(Function::Abs, vec![of.expr()]), value.abs()),
                }
            }
            Class::Text => {
                let Literal::Text(value) = self.likely_value(of.column) else { return None };
                (Expr::Call(Function::Length, vec![of.expr()]), value.len() as i64)
            }
            _ => {
                let value = self.likely_literal(of);
                let other = self.likely_literal(of);
                let filled = Expr::Call(Function::Coalesce, vec![of.expr(), other]);
                return Some(Expr::binary(Binary::Equal, filled, value));
            }
        };
        let sign = *self.random.pick(&Binary::COMPARISONS);
        Some(Expr::binary(sign, computed, Expr::int(value)))
    }

    fn like_or_case(&mut self, of: ScopeColumn) -> Option<Expr> {
        if of.class() == Class::Text && self.random.chance(60) {
            let pattern = *self.random.pick(&["a%", "%b%", "_", "%"]);
            return Some(Expr::Like {
                of: Box::new(of.expr()),
                pattern: Box::new(Expr::Literal(Literal::text(pattern))),
                negated: false,
            });
        }
        let when = self.comparison(of);
        let (one, two) = (self.random.below(3) as i64, self.random.below(3) as i64);
        let case = Expr::Case {
            operand: None,
            branches: vec![(when, Expr::int(one))],
            otherwise: Some(Box::new(Expr::int(two))),
        };
        Some(Expr::binary(Binary::Equal, case, Expr::int(one)))
    }

    fn in_subquery(&mut self, of: ScopeColumn) -> Option<Expr> {
        let table = self.table_to_read()?;
        let inner = scope::of_table(table);
        let candidates = scope::of_class(&inner, of.class());
        let item = self.random.pick_any(&candidates)?.expr();
        let filter = Some(self.simple_condition(&inner));
        let select = Select {
            items: vec![item.into()],
            from: Some(Source::named(&table.name)),
            filter,
            ..Select::default()
        };
        let negated = self.random.chance(20);
        Some(Expr::InSelect { of: Box::new(of.expr()), select: Box::new(select), negated })
    }

    /// EXISTS, correlated if the tables have comparable columns. The inner table has an alias if
    /// the outer one is the same.
    fn exists(&mut self, outer: &Scope<'a>) -> Option<Expr> {
        let table = self.table_to_read()?;
        let is_outer =
            outer.iter().any(|c| table.columns.iter().any(|own| own.name == c.column.name));
        let alias = is_outer.then_some("x");
        let inner = scope::of_columns(alias, table.columns.iter());
        let mut filter = self.simple_condition(&inner);
        // An unqualified outer column would be resolved to the inner table.
        if !is_outer
            && self.random.chance(70)
            && let Some((left, right)) = self.comparable(&inner, outer)
        {
            filter = Expr::binary(Binary::Equal, left.expr(), right.expr()).and(filter);
        }
        let select = Select {
            items: vec![Expr::int(1).into()],
            from: Some(Source::Table {
                name: table.name.clone(),
                alias: alias.map(str::to_string),
            }),
            filter: Some(filter),
            ..Select::default()
        };
        Some(Expr::Exists { select: Box::new(select), negated: self.random.chance(30) })
    }

    fn scalar_comparison(&mut self, of: ScopeColumn) -> Option<Expr> {
        if of.class() != Class::Integer {
            return None;
        }
        let scalar = self.integer_scalar()?;
        let sign = *self.random.pick(&Binary::COMPARISONS);
        Some(Expr::binary(sign, of.expr(), scalar))
    }

    /// A scalar subquery: an aggregate over integers, which returns one row whatever the table
    /// contains.
    pub fn integer_scalar(&mut self) -> Option<Expr> {
        let table = self.table_to_read()?;
        let inner = scope::of_table(table);
        let item = self.integer_aggregate(table);
        let filter = self.random.chance(70).then(|| self.simple_condition(&inner));
        Some(Expr::Scalar(Box::new(Select {
            items: vec![item.into()],
            from: Some(Source::named(&table.name)),
            filter,
            ..Select::default()
        })))
    }

    fn integer_aggregate(&mut self, table: &Table) -> Expr {
        let small =
            |c: &&isolde_sql::Column| c.of_type == isolde_sql::Type::Int && c.allows_arithmetic();
        let columns: Vec<Expr> =
            table.columns.iter().filter(small).map(|c| Expr::column(&c.name)).collect();
        match self.random.pick_any(&columns) {
            Some(column) if self.random.chance(60) => {
                let function = *self.random.pick(&[Aggregate::Min, Aggregate::Max]);
                Expr::aggregate(function, column.clone())
            }
            _ => Expr::count_all(),
        }
    }

    /// A condition without further subqueries.
    pub fn simple_condition(&mut self, scope: &Scope<'a>) -> Expr {
        let chosen = *self.random.pick(scope);
        match self.random.below(4) {
            0 => self.null_test(chosen),
            1 => self.in_list(chosen),
            _ => self.comparison(chosen),
        }
    }
}
