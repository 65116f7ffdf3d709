//! Draws queries: sources and joins, groups, windows, set operations and CTEs.

use super::super::Sampler;
use super::{NamedQuery, Surroundings, VisibleColumn};
use isolde_sql::{
    Aggregate, Binary, Class, Cte, Expr, Feature, Join, JoinKind, Order, OrderKey, Select,
    SelectItem, SetOperator, Source, Stmt, WindowFunction,
};

/// The classes that a query in FROM or in a condition may return.
const CLASSES: [Class; 6] =
    [Class::Integer, Class::Text, Class::Integer, Class::Decimal, Class::Date, Class::Float];

impl<'a> Sampler<'a> {
    /// A query as a statement.
    pub fn deep_select(&mut self) -> Option<Stmt> {
        let depth = self.depth;
        let mut around = Surroundings::default();
        let mut ctes = Vec::new();
        if self.has(Feature::Cte) && self.random.chance(22) {
            for _ in 0..self.random.between(1, 2) {
                let name = self.fresh_name("q");
                let (select, columns) = self.named_columns(&around, depth - 1, &name)?;
                ctes.push(Cte { name: name.clone(), columns: Vec::new(), select });
                around.ctes.push(NamedQuery { name, columns });
            }
        }
        let (mut select, _) = self.query(None, &around, depth)?;
        select.ctes = ctes;
        if self.random.chance(35) && select.items.iter().all(|i| i.expression().is_some()) {
            select.order = Order::AllItems { descending: self.random.chance(30) };
        }
        Some(Stmt::Select(select))
    }

    /// A query, and the classes of its columns: the wanted ones, exact as they are compared or
    /// combined, or any.
    pub(super) fn query(
        &mut self,
        wanted: Option<&[Class]>,
        around: &Surroundings<'a>,
        depth: usize,
    ) -> Option<(Select, Vec<Class>)> {
        let (mut select, inside) = self.sources(around, depth)?;
        let below = depth.saturating_sub(1);
        if self.random.chance(85) {
            select.filter = Some(self.condition(&inside, below));
        }
        let combined = depth > 0 && self.has(Feature::Union) && self.random.chance(16);
        let classes: Vec<Class> = match wanted {
            Some(classes) => classes.to_vec(),
            None => (0..self.random.between(1, 3)).map(|_| *self.random.pick(&CLASSES)).collect(),
        };
        let windows = depth > 0 && self.has(Feature::Window) && self.random.chance(14);
        let groups = self.has(Feature::GroupBy) && self.random.chance(14);
        if windows && !combined && self.add_windows(&mut select, &classes, &inside, wanted) {
            return Some((select, classes));
        }
        if groups && self.add_groups(&mut select, &classes, &inside, below) {
            return Some((select, classes));
        }
        let exact = combined || wanted.is_some() || self.random.chance(25);
        select.items =
            classes.iter().map(|c| self.value(*c, exact, &inside, below).into()).collect();
        if exact && !combined && self.has(Feature::Distinct) && self.random.chance(15) {
            select.distinct = true;
        }
        if combined {
            self.add_set_operation(&mut select, &classes, around, below)?;
        }
        Some((select, classes))
    }

    /// A query for FROM: named exact columns.
    fn named_columns(
        &mut self,
        around: &Surroundings<'a>,
        depth: usize,
        name: &str,
    ) -> Option<(Select, Vec<VisibleColumn<'a>>)> {
        let count = self.random.between(2, 4);
        let wanted: Vec<Class> = (0..count).map(|_| *self.random.pick(&CLASSES)).collect();
        let (mut select, classes) = self.query(Some(&wanted), &around.apart(), depth)?;
        let mut columns = Vec::new();
        for (place, (item, class)) in select.items.iter_mut().zip(classes).enumerate() {
            let column = format!("v{}", place + 1);
            if let SelectItem::Expression { alias, .. } = item {
                *alias = Some(column.clone());
            }
            columns.push(VisibleColumn {
                qualifier: name.into(),
                name: column,
                class,
                small: class == Class::Integer,
                stored: None,
            });
        }
        Some((select, columns))
    }

    /// A query that has only its sources yet, and what its expressions may use.
    pub(super) fn sources(
        &mut self,
        around: &Surroundings<'a>,
        depth: usize,
    ) -> Option<(Select, Surroundings<'a>)> {
        let count = match depth {
            0 => 1,
            1 => 1 + self.random.weighted(&[70, 26, 4]),
            _ => 1 + self.random.weighted(&[45, 33, 22]),
        };
        let mut inside = around.clone();
        let mut select = Select::default();
        for place in 0..count {
            let (source, columns) = self.source(around, depth)?;
            if place == 0 {
                select.from = Some(source);
            } else {
                let join = self.join(source, &columns, &inside.own, place);
                select.joins.push(join);
            }
            inside.own.extend(columns);
        }
        // `a join (b join c on …) on …`: the condition of the first then may not use `c`.
        if count == 3
            && self.has(Feature::NestedJoin)
            && select.joins.iter().all(|j| j.on.is_some())
            && self.random.chance(40)
        {
            self.nest_joins(&mut select, &inside.own);
        }
        Some((select, inside))
    }

    fn source(
        &mut self,
        around: &Surroundings<'a>,
        depth: usize,
    ) -> Option<(Source, Vec<VisibleColumn<'a>>)> {
        let alias = self.fresh_name("r");
        if !around.ctes.is_empty() && self.random.chance(45) {
            let cte = self.random.pick(&around.ctes).clone();
            let columns = cte.columns.into_iter();
            let columns =
                columns.map(|c| VisibleColumn { qualifier: alias.clone(), ..c }).collect();
            return Some((Source::Table { name: cte.name, alias: Some(alias) }, columns));
        }
        if depth > 1 && self.has(Feature::DerivedTable) && self.random.chance(16) {
            let (select, columns) = self.named_columns(around, depth - 2, &alias)?;
            let select = Box::new(select);
            return Some((Source::Derived { select, alias: Some(alias), view: None }, columns));
        }
        let table =
            if self.forbidden_tables.is_empty() { self.any_table() } else { self.table_to_read()? };
        let columns = table.columns.iter().map(|c| VisibleColumn::of_table(&alias, c)).collect();
        Some((Source::Table { name: table.name.clone(), alias: Some(alias) }, columns))
    }

    fn join(
        &mut self,
        source: Source,
        columns: &[VisibleColumn<'a>],
        before: &[VisibleColumn<'a>],
        place: usize,
    ) -> Join {
        let pairs: Vec<(&VisibleColumn, &VisibleColumn)> = before
            .iter()
            .flat_map(|l| columns.iter().map(move |r| (l, r)))
            .filter(|(l, r)| l.class == r.class && l.class != Class::Blob)
            .collect();
        let Some((left, right)) = self.random.pick_any(&pairs) else {
            return Join { kind: JoinKind::Cross, source, on: None, nested: 0 };
        };
        let sign = if self.random.chance(80) { Binary::Equal } else { Binary::AtMost };
        let on = Expr::binary(sign, left.expr(), right.expr());
        let right = if self.has(Feature::RightJoin) { 8 } else { 0 };
        let cross = if place == 1 { 8 } else { 0 };
        let kind = match self.random.weighted(&[50, 34, right, cross]) {
            0 => JoinKind::Inner,
            1 => JoinKind::Left,
            2 => JoinKind::Right,
            _ => return Join { kind: JoinKind::Cross, source, on: None, nested: 0 },
        };
        Join { kind, source, on: Some(on), nested: 0 }
    }

    /// Moves the third source into parentheses with the second, if the conditions allow it.
    fn nest_joins(&mut self, select: &mut Select, columns: &[VisibleColumn<'a>]) {
        let name = |n: usize| select.joins[n].source.visible_name().map(str::to_string);
        let (second, third) = (name(0), name(1));
        let of = |name: &Option<String>| -> Vec<&VisibleColumn> {
            let fits = |c: &&VisibleColumn| Some(&c.qualifier) == name.as_ref();
            columns.iter().filter(fits).filter(|c| c.class != Class::Blob).collect()
        };
        let pairs: Vec<Expr> = of(&second)
            .iter()
            .flat_map(|l| of(&third).into_iter().map(move |r| (*l, r)))
            .filter(|(l, r)| l.class == r.class)
            .map(|(l, r)| Expr::binary(Binary::Equal, l.expr(), r.expr()))
            .collect();
        if let Some(on) = self.random.pick_any(&pairs) {
            select.joins[0].nested = 1;
            select.joins[1].on = Some(on.clone());
        }
    }

    fn add_groups(
        &mut self,
        select: &mut Select,
        classes: &[Class],
        inside: &Surroundings<'a>,
        below: usize,
    ) -> bool {
        let mut groups: Vec<Expr> = Vec::new();
        let mut items: Vec<SelectItem> = Vec::new();
        for class in classes {
            let columns: Vec<Expr> = inside
                .own
                .iter()
                .filter(|c| c.class == *class && c.is_exact() && *class != Class::Float)
                .map(VisibleColumn::expr)
                .collect();
            let column = self.random.pick_any(&columns).cloned();
            match column {
                Some(column) if self.random.chance(45) => {
                    groups.push(column.clone());
                    items.push(column.into());
                }
                _ => items.push(self.aggregate_of(*class, inside, below).into()),
            }
        }
        if groups.is_empty() {
            return false;
        }
        select.items = items;
        select.group_by = groups;
        if self.has(Feature::Having) && self.random.chance(40) {
            let sign = *self.random.pick(&Binary::COMPARISONS);
            let left = self.aggregate_of(Class::Integer, inside, below.min(1));
            select.having =
                Some(Expr::binary(sign, left, Expr::int(self.random.between(0, 3) as i64)));
        }
        true
    }

    /// An exact value over a group. Sums of floats depend on the order of the rows.
    fn aggregate_of(&mut self, class: Class, inside: &Surroundings<'a>, below: usize) -> Expr {
        let of = self.value(class, true, &inside.without_outer(), below.min(1));
        let of = Some(Box::new(of));
        match self.random.below(4) {
            0 if class == Class::Integer => Expr::count_all(),
            1 if class == Class::Integer => {
                Expr::Aggregate { function: Aggregate::Count, of, distinct: self.random.chance(40) }
            }
            2 => Expr::Aggregate { function: Aggregate::Min, of, distinct: false },
            _ => Expr::Aggregate { function: Aggregate::Max, of, distinct: false },
        }
    }

    /// Items with window functions over all rows in the order of all columns, so that only equal
    /// rows are ties. False if there is no column of a class.
    fn add_windows(
        &mut self,
        select: &mut Select,
        classes: &[Class],
        inside: &Surroundings<'a>,
        wanted: Option<&[Class]>,
    ) -> bool {
        let order: Vec<OrderKey> =
            inside.own.iter().map(|c| OrderKey::ascending(c.expr())).collect();
        let fit = |c: &&VisibleColumn| !matches!(c.class, Class::Float | Class::Blob);
        let groups: Vec<Expr> = inside.own.iter().filter(fit).map(VisibleColumn::expr).collect();
        let mut items: Vec<SelectItem> = Vec::new();
        for class in classes {
            // No literal, whose type PostgreSQL does not know, and no column of an outer query,
            // for which MariaDB returns wrong rows.
            let exact = |c: &&VisibleColumn| c.class == *class && c.is_exact();
            let columns: Vec<Expr> =
                inside.own.iter().filter(exact).map(VisibleColumn::expr).collect();
            let Some(of) = self.random.pick_any(&columns).cloned() else { return false };
            let number = *class == Class::Integer;
            use WindowFunction::*;
            let (function, arguments) = match self.random.below(14) {
                0 if number => (RowNumber, Vec::new()),
                1 if number => (Rank, Vec::new()),
                2 if number => (DenseRank, Vec::new()),
                3 if number => (Ntile, vec![Expr::int(self.random.between(2, 4) as i64)]),
                4 if number => (Count, Vec::new()),
                5 if number => (Count, vec![of]),
                6 if *class == Class::Float && wanted.is_none() => (PercentRank, Vec::new()),
                7 if *class == Class::Float && wanted.is_none() => (CumeDist, Vec::new()),
                8 => (Lead, vec![of]),
                9 => (FirstValue, vec![of]),
                10 => (LastValue, vec![of]),
                11 => (Min, vec![of]),
                12 => (Max, vec![of]),
                _ => (Lag, vec![of]),
            };
            let partition =
                if self.random.chance(45) { self.random.some_of(&groups, 2) } else { Vec::new() };
            items
                .push(Expr::Window { function, arguments, partition, order: order.clone() }.into());
        }
        select.items = items;
        true
    }

    fn add_set_operation(
        &mut self,
        select: &mut Select,
        classes: &[Class],
        around: &Surroundings<'a>,
        below: usize,
    ) -> Option<()> {
        let mut operators = vec![SetOperator::Union, SetOperator::UnionAll];
        if self.has(Feature::ExceptIntersect) {
            operators.extend([SetOperator::Except, SetOperator::Intersect]);
        }
        let operator = *self.random.pick(&operators);
        let mut other = self.member(classes, around, below)?;
        // Chains of other operators depend on associativity.
        if matches!(operator, SetOperator::Union | SetOperator::UnionAll) && self.random.chance(25)
        {
            let third = self.member(classes, around, below)?;
            other.set_operation = Some((operator, Box::new(third)));
        }
        select.set_operation = Some((operator, Box::new(other)));
        Some(())
    }

    /// One side of a set operation.
    fn member(
        &mut self,
        classes: &[Class],
        around: &Surroundings<'a>,
        depth: usize,
    ) -> Option<Select> {
        let (mut select, inside) = self.sources(around, depth)?;
        let below = depth.saturating_sub(1);
        select.filter = Some(self.condition(&inside, below));
        select.items =
            classes.iter().map(|c| self.value(*c, true, &inside, below).into()).collect();
        Some(select)
    }
}
