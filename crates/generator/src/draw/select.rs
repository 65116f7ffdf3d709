//! Draws queries.

use super::Sampler;
use super::scope::{self, Scope, ScopeColumn};
use isolde_sql::Class;
use isolde_sql::Feature;
use isolde_sql::{
    Aggregate, Binary, Column, Cte, Expr, Join, JoinKind, LockPatience, LockStrength, Locking,
    Order, OrderKey, Over, Select, SelectItem, SetOperator, Source, Stmt, Window, WindowFunction,
};

impl<'a> Sampler<'a> {
    fn order(&mut self) -> Order {
        if self.random.chance(25) {
            Order::AllItems { descending: self.random.chance(30) }
        } else {
            Order::None
        }
    }

    fn some_columns(&mut self, scope: &Scope<'a>) -> Vec<SelectItem> {
        let chosen =
            if self.random.chance(50) { scope.clone() } else { self.random.some_of(scope, 3) };
        chosen.iter().map(|c| c.expr().into()).collect()
    }

    fn over_one_table(&mut self) -> (Select, Scope<'a>) {
        let table = self.any_table();
        let scope = scope::of_table(table);
        let items = self.some_columns(&scope);
        // A query without a condition conflicts with every write, so it is rarer in rounds.
        let filtered = if self.options.for_rounds { 97 } else { 85 };
        let filter = self.random.chance(filtered).then(|| self.predicate(&scope));
        let from = Some(Source::named(&table.name));
        (Select { items, from, filter, ..Select::default() }, scope)
    }

    pub fn plain_select(&mut self) -> Option<Stmt> {
        let (mut select, scope) = self.over_one_table();
        select.distinct = self.has(Feature::Distinct) && self.random.chance(10);
        if !select.distinct && self.random.chance(12) {
            select.items.push(self.case_item(&scope).into());
        }
        select.order = self.order();
        Some(Stmt::Select(select))
    }

    fn case_item(&mut self, scope: &Scope<'a>) -> Expr {
        let when = self.simple_condition(scope);
        Expr::Case {
            operand: None,
            branches: vec![(when, Expr::int(1))],
            otherwise: Some(Box::new(Expr::int(0))),
        }
    }

    /// Joins two tables, or one table with itself under an alias.
    fn joined(&mut self, kinds: &[JoinKind]) -> Option<Select> {
        let (left, right) = (self.any_table(), self.any_table());
        let twice = left.name == right.name;
        let qualifier = twice.then_some(left.name.as_str());
        let left_scope = scope::of_columns(qualifier, left.columns.iter());
        let alias = twice.then_some("y");
        let right_scope = scope::of_columns(alias, right.columns.iter());
        let (l, r) = self.comparable(&left_scope, &right_scope)?;
        let on = Expr::binary(Binary::Equal, l.expr(), r.expr());
        let mut scope = left_scope;
        scope.extend(right_scope);
        let source = Source::Table { name: right.name.clone(), alias: alias.map(str::to_string) };
        Some(Select {
            items: self.some_columns(&scope),
            from: Some(Source::named(&left.name)),
            joins: vec![Join { on: Some(on), ..Join::plain(*self.random.pick(kinds), source) }],
            filter: self.random.chance(70).then(|| self.predicate(&scope)),
            ..Select::default()
        })
    }

    pub fn join_select(&mut self) -> Option<Stmt> {
        let mut select = self.joined(&[JoinKind::Inner, JoinKind::Left])?;
        select.order = self.order();
        Some(Stmt::Select(select))
    }

    fn aggregate(&mut self, scope: &Scope<'a>) -> Expr {
        let over = *self.random.pick(scope);
        let of = over.expr();
        let ordered = !matches!(over.class(), Class::Bool | Class::Blob);
        match self.random.below(5) {
            0 => {
                let mut count = Expr::aggregate(Aggregate::Count, of);
                if let Expr::Aggregate { distinct, .. } = &mut count {
                    *distinct = self.random.chance(30);
                }
                count
            }
            1 if ordered => Expr::aggregate(Aggregate::Min, of),
            2 if ordered => Expr::aggregate(Aggregate::Max, of),
            // Sums of floats depend on the order of the rows.
            3 if over.class() == Class::Integer && over.column.allows_arithmetic() => {
                Expr::aggregate(Aggregate::Sum, of)
            }
            _ => Expr::count_all(),
        }
    }

    pub fn aggregate_select(&mut self) -> Option<Stmt> {
        let (mut select, scope) = self.over_one_table();
        let count = self.random.between(1, 2);
        select.items = (0..count).map(|_| self.aggregate(&scope).into()).collect();
        Some(Stmt::Select(select))
    }

    pub fn grouped_select(&mut self) -> Option<Stmt> {
        let (mut select, scope) = self.over_one_table();
        let fit = |c: &&ScopeColumn| !matches!(c.class(), Class::Float | Class::Blob);
        let candidates: Scope = scope.iter().filter(fit).copied().collect();
        let group = self.random.pick_any(&candidates)?.expr();
        let aggregate = self.aggregate(&scope);
        if self.has(Feature::Having) && self.random.chance(45) {
            let sign = *self.random.pick(&Binary::COMPARISONS);
            select.having = Some(Expr::binary(sign, Expr::count_all(), Expr::int(1)));
        }
        select.items = vec![group.clone().into(), aggregate.into()];
        select.group_by = vec![group];
        select.order = self.order();
        Some(Stmt::Select(select))
    }

    /// The window is ordered by all columns, so that only equal rows are ties.
    pub fn window_select(&mut self) -> Option<Stmt> {
        let (mut select, scope) = self.over_one_table();
        let order: Vec<Expr> = scope.iter().map(ScopeColumn::expr).collect();
        let over = *self.random.pick(&scope);
        let ordered = !matches!(over.class(), Class::Bool | Class::Blob);
        let (function, arguments) = match self.random.below(5) {
            0 => (WindowFunction::RowNumber, Vec::new()),
            1 => (WindowFunction::Rank, Vec::new()),
            2 if ordered => (WindowFunction::Max, vec![over.expr()]),
            3 => (WindowFunction::Lag, vec![over.expr()]),
            _ => (WindowFunction::Count, Vec::new()),
        };
        let partition = if self.random.chance(40) {
            vec![self.random.pick(&order).clone()]
        } else {
            Vec::new()
        };
        select.items = order.iter().cloned().map(SelectItem::from).collect();
        let order = order.into_iter().map(OrderKey::ascending).collect();
        let over = Over::Window(Window { partition, order, frame: None });
        select.items.push(Expr::Window { function, arguments, over }.into());
        Some(Stmt::Select(select))
    }

    pub fn cte_select(&mut self) -> Option<Stmt> {
        let table = self.any_table();
        let chosen: Vec<&Column> = table.columns.iter().collect();
        let chosen = self.random.some_of(&chosen, 3);
        let whole = scope::of_table(table);
        let inner = Select {
            items: chosen.iter().map(|c| Expr::column(&c.name).into()).collect(),
            from: Some(Source::named(&table.name)),
            filter: Some(self.predicate(&whole)),
            ..Select::default()
        };
        let visible = scope::of_columns(None, chosen.into_iter());
        let count = self.random.chance(30);
        let items =
            if count { vec![Expr::count_all().into()] } else { self.some_columns(&visible) };
        let filter = self.random.chance(60).then(|| self.predicate(&visible));
        let order = if count { Order::None } else { self.order() };
        Some(Stmt::Select(Select {
            ctes: vec![Cte { name: "q".into(), columns: Vec::new(), select: inner }],
            items,
            from: Some(Source::named("q")),
            filter,
            order,
            ..Select::default()
        }))
    }

    pub fn set_operation(&mut self) -> Option<Stmt> {
        let (left, right) = (self.any_table(), self.any_table());
        let (left_scope, right_scope) = (scope::of_table(left), scope::of_table(right));
        let count = self.random.between(1, 2);
        let pairs: Vec<(ScopeColumn, ScopeColumn)> =
            (0..count).filter_map(|_| self.comparable(&left_scope, &right_scope)).collect();
        if pairs.is_empty() {
            return None;
        }
        let mut operators = vec![SetOperator::Union, SetOperator::UnionAll];
        if self.has(Feature::ExceptIntersect) {
            operators.extend([SetOperator::Except, SetOperator::Intersect]);
        }
        let other = Select {
            items: pairs.iter().map(|(_, r)| r.expr().into()).collect(),
            from: Some(Source::named(&right.name)),
            filter: Some(self.predicate(&right_scope)),
            ..Select::default()
        };
        Some(Stmt::Select(Select {
            items: pairs.iter().map(|(l, _)| l.expr().into()).collect(),
            from: Some(Source::named(&left.name)),
            filter: Some(self.predicate(&left_scope)),
            set_operation: Some((*self.random.pick(&operators), Box::new(other))),
            order: self.order(),
            ..Select::default()
        }))
    }

    /// Only plain queries and inner joins: engines differ too much in what else may be locked.
    pub fn locking_select(&mut self) -> Option<Stmt> {
        let mut select = if self.random.chance(15) {
            self.joined(&[JoinKind::Inner])?
        } else {
            self.over_one_table().0
        };
        let share = self.has(Feature::ForShare) && self.random.chance(25);
        let patience = match self.random.weighted(&[70, 15, 15]) {
            1 if self.has(Feature::NoWait) => LockPatience::NoWait,
            2 if self.has(Feature::SkipLocked) => LockPatience::SkipLocked,
            _ => LockPatience::Wait,
        };
        let strength = if share { LockStrength::Share } else { LockStrength::Update };
        select.locking = Some(Locking { strength, of: Vec::new(), patience });
        Some(Stmt::Select(select))
    }
}
