//! A query with the cells of its sources as further columns.

use super::{
    Cell, Rewritten, Scope, is_pure, members, outside_of_subqueries, subqueries_of, used_ctes,
    view_by_name, width, with_views,
};
use crate::instrument::tables::{column_of, text};
use crate::instrument::{Instrument, NotInstrumented, Predicate, is_bare};
use isolde_sql::{Expr, Function, Order, OrderKey, Select, SelectItem, SetOperator, Source};

/// How the rows of a query come from those of its sources.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Shape {
    /// Each from one of each source.
    Rows,
    /// Each from several.
    Groups,
}

/// The names of columns that inner queries hand out.
const HANDED: &str = "isolde_seen_";

impl Instrument {
    /// A query with its cells after its own columns.
    pub(in crate::instrument) fn inline(
        &self,
        select: &Select,
        outer: &Scope,
    ) -> Result<Rewritten, NotInstrumented> {
        if select.set_operation.is_some() {
            return self.inline_members(select, outer);
        }
        let mut observed = select.clone();
        let own_columns = width(select);
        if !select.values.is_empty() && self.reads_followed_tables(select) {
            return Err(NotInstrumented("a subquery of VALUES reads rows"));
        }
        let shape = shape(&observed)?;
        if shape == Shape::Groups {
            self.gathers()?;
        }
        let (mut cells, mut unobserved) = (Vec::new(), Vec::new());
        let mut scope = outer.clone();
        self.ctes_handing_out(&mut observed, select, &mut scope, &mut unobserved);
        let sources =
            observed.from.iter_mut().chain(observed.joins.iter_mut().map(|j| &mut j.source));
        for (source, original) in sources.zip(select.from_and_joined()) {
            cells.extend(self.source(source, original, select, &scope, &mut unobserved));
        }
        if shape == Shape::Groups {
            cells.iter_mut().for_each(|cell| cell.of = self.gathered(cell.of.clone()));
        }
        if observed.distinct {
            observed.distinct = false;
            observed.group_by =
                observed.items.iter().filter_map(SelectItem::expression).cloned().collect();
        }
        for subquery in subqueries_of(select) {
            if shape == Shape::Groups && self.depends_on_outer(subquery, &scope) {
                if self.reads_followed_tables(subquery) {
                    let why = "a subquery depends on the rows of a group";
                    unobserved.push(NotInstrumented(why));
                }
                continue;
            }
            let read = self.read_by_subquery(subquery, &scope, &mut unobserved);
            // The probe is returned only with a row of the outer query: its absence
            // does not mean that the subquery found nothing.
            cells.extend(read.into_iter().map(|of| Cell { of, predicate: None }));
        }
        // By all columns of its own, and no others.
        if let Order::AllItems { descending } = observed.order {
            observed.order = by_places(own_columns, descending);
        }
        let mut observed = with_views(observed);
        observed.items.extend(cells.iter().map(|cell| SelectItem::from(cell.of.clone())));
        Ok(Rewritten { select: observed, own_columns, cells, appended: false, unobserved })
    }

    /// Makes the CTEs of a query hand out what they read, and adds them to those in scope.
    fn ctes_handing_out(
        &self,
        observed: &mut Select,
        select: &Select,
        scope: &mut Scope,
        unobserved: &mut Vec<NotInstrumented>,
    ) {
        let used: Vec<&str> = used_ctes(select).into_iter().map(|cte| cte.name.as_str()).collect();
        for cte in &mut observed.ctes {
            let read = used.contains(&cte.name.as_str()) && self.reads_followed_tables(&cte.select);
            // Another column would have the width of its first text.
            let rewritten = match cte.select.sources().contains(&cte.name.as_str()) {
                true => Err(NotInstrumented("a CTE is recursive")),
                false => self.handing_out(&cte.select, scope, &mut cte.columns),
            };
            match rewritten {
                Ok(inner) => {
                    cte.select = inner.select;
                    unobserved.extend(inner.unobserved.into_iter().filter(|_| read));
                }
                // It is left unchanged, and so is one that reads it.
                Err(why) => unobserved.extend(read.then_some(why)),
            }
            if read && !is_handed_on(&cte.name, select) {
                unobserved.push(NotInstrumented("only a subquery reads a CTE"));
            }
            scope.ctes.push(cte.clone());
        }
    }

    /// A UNION ALL, each member with cells in columns of their own.
    fn inline_members(&self, select: &Select, outer: &Scope) -> Result<Rewritten, NotInstrumented> {
        let operators = members(select).filter_map(|member| member.set_operation.as_ref());
        let is_simple = |member: &Select| {
            member.order == Order::None && member.limit.is_none() && member.locking.is_none()
        };
        if !operators.into_iter().all(|(operator, _)| *operator == SetOperator::UnionAll)
            || !members(select).skip(1).all(is_simple)
            || select.locking.is_some()
        {
            return Err(NotInstrumented("a set operation puts rows together"));
        }
        let mut whole = select.clone();
        let (mut scope, mut unobserved) = (outer.clone(), Vec::new());
        self.ctes_handing_out(&mut whole, select, &mut scope, &mut unobserved);
        let own_columns = width(select);
        let mut rewritten = Vec::new();
        for member in members(select) {
            let alone = Select {
                ctes: Vec::new(),
                set_operation: None,
                order: Order::None,
                limit: None,
                offset: None,
                recursive: false,
                ..member.clone()
            };
            rewritten.push(self.inline(&alone, &scope)?);
        }
        let count: usize = rewritten.iter().map(|member| member.cells.len()).sum();
        let mut cells: Vec<Cell> = Vec::new();
        let mut all = Vec::new();
        for member in rewritten {
            let Rewritten { select: mut alone, cells: own, unobserved: more, .. } = member;
            let mut items: Vec<SelectItem> = (0..count).map(|_| text("").into()).collect();
            if alone.values.is_empty() {
                let added = alone.items.split_off(own_columns);
                items.splice(cells.len()..cells.len() + added.len(), added);
                alone.items.extend(items);
            } else {
                alone.values.iter_mut().for_each(|row| row.extend((0..count).map(|_| text(""))));
            }
            cells.extend(own);
            unobserved.extend(more);
            all.push(alone);
        }
        let mut combined: Option<Select> = None;
        for member in all.into_iter().rev() {
            let below = combined.take().map(|below| (SetOperator::UnionAll, Box::new(below)));
            combined = Some(Select { set_operation: below, ..member });
        }
        let order = match whole.order {
            Order::AllItems { descending } => by_places(own_columns, descending),
            order => order,
        };
        let Select { recursive, ctes, limit, offset, .. } = whole;
        let combined = combined.unwrap_or_default();
        let select = Select { recursive, ctes, order, limit, offset, ..combined };
        Ok(Rewritten { select, own_columns, cells, appended: false, unobserved })
    }

    /// The cells of one source, which is made to hand them out where it is a query.
    fn source(
        &self,
        source: &mut Source,
        original: &Source,
        outer: &Select,
        scope: &Scope,
        unobserved: &mut Vec<NotInstrumented>,
    ) -> Vec<Cell> {
        let Some(visible) = source.visible_name().map(str::to_string) else {
            if source.derived().is_some_and(|select| self.reads_followed_tables(select)) {
                unobserved.push(NotInstrumented("a query in FROM has no name"));
            }
            return Vec::new();
        };
        match source {
            Source::Table { name, .. } => {
                if let Some(cte) = scope.cte(name) {
                    let within = outer.ctes.iter().find(|c| c.name == *name);
                    return self.handed(&cte.select, within.map(|c| &c.select), &visible, outer);
                }
                match self.table(name) {
                    Some((place, _)) if self.is_followed(place) => {
                        let of = self.version(place, &visible);
                        let alone = Select { ctes: Vec::new(), ..outer.clone() };
                        vec![Cell { of, predicate: self.predicate_of(&alone) }]
                    }
                    _ => Vec::new(),
                }
            }
            Source::Derived { select, columns, view, .. } => {
                let inner = self.handing_out(select, scope, columns);
                let cells = match &inner {
                    Ok(inner) => {
                        unobserved.extend(inner.unobserved.iter().copied());
                        self.handed(&inner.select, original.derived(), &visible, outer)
                    }
                    Err(why) => {
                        unobserved.extend(self.reads_followed_tables(select).then_some(*why));
                        Vec::new()
                    }
                };
                match (view, inner) {
                    // It was made to hand out the same.
                    (Some(_), _) => view_by_name(source),
                    (None, Ok(inner)) => **select = inner.select,
                    (None, Err(_)) => {}
                }
                cells
            }
        }
    }

    /// An inner query that hands its cells out by name.
    pub(super) fn handing_out(
        &self,
        select: &Select,
        scope: &Scope,
        columns: &mut Vec<String>,
    ) -> Result<Rewritten, NotInstrumented> {
        let mut rewritten = self.inline(select, scope)?;
        let handed = rewritten.select.items.iter_mut().skip(rewritten.own_columns);
        for (number, item) in handed.enumerate() {
            if let SelectItem::Expression { alias, .. } = item {
                *alias = Some(format!("{HANDED}{number}"));
            }
        }
        if !columns.is_empty() {
            let names = (0..rewritten.cells.len()).map(|number| format!("{HANDED}{number}"));
            columns.extend(names);
        }
        Ok(rewritten)
    }

    /// What an inner query hands out. Where both it and what is outside look for a
    /// condition on one table, they look for both.
    fn handed(
        &self,
        observed: &Select,
        original: Option<&Select>,
        visible: &str,
        outer: &Select,
    ) -> Vec<Cell> {
        let names = observed.items.iter().filter_map(|item| match item {
            SelectItem::Expression { alias: Some(alias), .. } if alias.starts_with(HANDED) => {
                Some(alias)
            }
            _ => None,
        });
        let alone = outer.joins.is_empty()
            && outer.having.is_none()
            && outer.limit.is_none()
            && outer.offset.is_none();
        let predicate = original
            .filter(|inner| alone && is_bare(inner) && passes_columns_on(inner))
            .and_then(|inner| self.predicate_of(inner))
            .and_then(|inner: Predicate| inner.and(outer.filter.as_ref()));
        names
            .map(|name| Cell { of: column_of(visible, name), predicate: predicate.clone() })
            .collect()
    }
}

/// Whether the rows of a CTE reach the query through FROM, directly or through another CTE.
fn is_handed_on(name: &str, select: &Select) -> bool {
    let reads = |s: &Select| {
        members(s).any(|m| m.from_and_joined().any(|source| source.table() == Some(name)))
    };
    reads(select)
        || select
            .ctes
            .iter()
            .any(|cte| cte.name != name && reads(&cte.select) && is_handed_on(&cte.name, select))
}

/// Whether each item is a column under its own name, so that a condition outside means
/// the same inside.
fn passes_columns_on(inner: &Select) -> bool {
    inner
        .items
        .iter()
        .all(|item| matches!(item, SelectItem::Expression { of: Expr::Column { .. }, alias: None }))
}

fn shape(select: &Select) -> Result<Shape, NotInstrumented> {
    let mut aggregates = !select.group_by.is_empty() || select.having.is_some();
    let mut windows = false;
    let mut unknown = false;
    for expression in select.items.iter().filter_map(SelectItem::expression) {
        outside_of_subqueries(expression, &mut |e| match e {
            Expr::Aggregate { .. } => aggregates = true,
            Expr::Window { .. } => windows = true,
            Expr::Call(Function::Named(name), _) => unknown |= !is_pure(name),
            _ => {}
        });
    }
    let columns_alone = || {
        let plain = |item: &SelectItem| matches!(item.expression(), Some(Expr::Column { .. }));
        select.items.iter().all(plain)
    };
    if unknown {
        return Err(NotInstrumented("it calls a function that may be an aggregate"));
    }
    match (aggregates, windows, select.distinct) {
        (false, _, false) => Ok(Shape::Rows),
        (true, false, false) => Ok(Shape::Groups),
        (false, false, true) if columns_alone() => Ok(Shape::Groups),
        _ => Err(NotInstrumented("it puts rows together in more than one way")),
    }
}

fn by_places(count: usize, descending: bool) -> Order {
    let key =
        |place: usize| OrderKey { of: Expr::int(place as i64), descending, nulls_first: None };
    Order::By((1..=count).map(key).collect())
}
