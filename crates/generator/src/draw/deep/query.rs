//! Draws queries: sources and joins, groups, windows, set operations and CTEs.

use super::super::Sampler;
use super::{NamedQuery, Surroundings, VisibleColumn};
use isolde_sql::{
    Binary, Class, Cte, Expr, Feature, Grouping, Order, Select, SelectItem, SetOperator, Source,
    Stmt,
};

/// The classes that a query in FROM or in a condition may return.
const CLASSES: [Class; 6] =
    [Class::Integer, Class::Text, Class::Integer, Class::Decimal, Class::Date, Class::Float];

impl<'a> Sampler<'a> {
    /// A query as a statement.
    pub fn deep_select(&mut self) -> Option<Stmt> {
        let depth = self.depth;
        let mut around = Surroundings::default();
        let (mut ctes, mut recursive) = (Vec::new(), false);
        if self.has(Feature::Cte) && self.random.chance(35) {
            for _ in 0..self.random.between(1, 2) {
                let name = self.fresh_name("q");
                let (select, columns) = self.named_columns(&around.apart(), depth - 1, &name)?;
                ctes.push(Cte { name: name.clone(), columns: Vec::new(), select });
                around.ctes.push(NamedQuery { name, columns });
            }
            if self.has(Feature::RecursiveCte) && self.random.chance(25) {
                let (cte, named) = self.recursive_cte(&around, depth - 1)?;
                ctes.push(cte);
                around.ctes.push(named);
                recursive = true;
            }
        }
        let (mut select, _) = self.query(None, &around, depth)?;
        (select.ctes, select.recursive) = (ctes, recursive);
        if self.random.chance(35) && may_be_ordered(&select) {
            select.order = Order::AllItems { descending: self.random.chance(30) };
        }
        Some(Stmt::Select(select))
    }

    /// A CTE that reads itself, for a few small numbers.
    fn recursive_cte(
        &mut self,
        around: &Surroundings<'a>,
        depth: usize,
    ) -> Option<(Cte, NamedQuery<'a>)> {
        let name = self.fresh_name("q");
        let number = || Expr::column("v1");
        let mut first = self.member(&[Class::Integer], around, depth.min(1))?;
        let step = Expr::binary(Binary::Plus, number(), Expr::int(1));
        let (low, high) = (Expr::int(0), Expr::int(self.random.between(1, 5) as i64));
        let next = Select {
            items: vec![step.into()],
            from: Some(Source::named(&name)),
            filter: Some(Expr::Between {
                of: Box::new(number()),
                low: Box::new(low),
                high: Box::new(high),
                negated: false,
            }),
            ..Select::default()
        };
        // UNION, unlike UNION ALL, ends when all numbers are there.
        first.set_operation = Some((SetOperator::Union, Box::new(next)));
        let column = VisibleColumn {
            qualifier: name.clone(),
            name: "v1".into(),
            class: Class::Integer,
            small: true,
            stored: None,
        };
        let cte = Cte { name: name.clone(), columns: vec!["v1".into()], select: first };
        Some((cte, NamedQuery { name, columns: vec![column] }))
    }

    /// Sorts a query by all of its columns, which are exact, and cuts it: the rows that remain do
    /// not depend on how ties are sorted.
    pub(super) fn limit(&mut self, select: &mut Select, most: usize) {
        if !may_be_ordered(select) {
            return;
        }
        select.order = Order::AllItems { descending: self.random.chance(40) };
        select.limit = Some(Expr::int(self.random.between(1, most) as i64));
        if self.random.chance(50) {
            select.offset = Some(Expr::int(self.random.between(1, 3) as i64));
        }
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
        select.filter = self.filter(&inside, below);
        let combined = depth > 0 && self.has(Feature::Union) && self.random.chance(24);
        let classes: Vec<Class> = match wanted {
            Some(classes) => classes.to_vec(),
            None => (0..self.random.between(1, 4)).map(|_| *self.random.pick(&CLASSES)).collect(),
        };
        let windows = depth > 0 && self.has(Feature::Window) && self.random.chance(26);
        let groups = self.has(Feature::GroupBy) && self.random.chance(14);
        let exactly = wanted.is_some();
        if windows && !combined && self.add_windows(&mut select, &classes, &inside, exactly) {
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
    pub(super) fn named_columns(
        &mut self,
        around: &Surroundings<'a>,
        depth: usize,
        name: &str,
    ) -> Option<(Select, Vec<VisibleColumn<'a>>)> {
        let count = self.random.between(2, 4);
        let wanted: Vec<Class> = (0..count).map(|_| *self.random.pick(&CLASSES)).collect();
        let (mut select, classes) = self.query(Some(&wanted), around, depth)?;
        if self.has(Feature::Limit) && self.random.chance(15) {
            self.limit(&mut select, 9);
        }
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

    /// A condition that some rows pass, or none.
    fn filter(&mut self, inside: &Surroundings<'a>, depth: usize) -> Option<Expr> {
        match self.random.weighted(&[25, 40, 35]) {
            0 => None,
            1 => {
                let likely = self.simple_test(inside);
                Some(Expr::binary(Binary::Or, likely, self.condition(inside, depth)))
            }
            _ => Some(self.condition(inside, depth)),
        }
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
        select.filter = self.filter(&inside, below);
        select.items =
            classes.iter().map(|c| self.value(*c, true, &inside, below).into()).collect();
        Some(select)
    }
}

/// Whether ORDER BY may name all columns. MariaDB does not sort the rows of ROLLUP.
fn may_be_ordered(select: &Select) -> bool {
    select.grouping == Grouping::AllKeys
        && select.items.iter().all(|item| item.expression().is_some())
}
