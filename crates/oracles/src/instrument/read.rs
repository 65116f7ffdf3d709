//! Rewrites queries so that they return which versions they read.
//!
//! A plain query gets a column more for each table; where rows are put together
//! (aggregates, groups, DISTINCT) the column gathers all that went in. A set operation
//! keeps its rows, and what its sides read stands below them. What subqueries read is
//! gathered by a subquery of the same tables and condition.

use super::predicate::Predicate;
use super::tables::column_of;
use super::{Instrument, NotInstrumented, Probe, Sent, count_items, is_bare};
use isolde_catalog::Gather;
use isolde_sql::{
    Cte, Expr, Function, Literal, Order, Select, SelectItem, SetOperator, Source, Stmt, View,
};

/// A column that names versions, and the predicate of which it has all.
struct Cell {
    of: Expr,
    predicate: Option<Predicate>,
}

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
    pub(super) fn select(&self, select: &Select) -> Result<Sent, NotInstrumented> {
        let locking = select.locking.is_some();
        let (select, own_columns, cells) = if select.set_operation.is_some() {
            self.set_operation(select)?
        } else {
            self.query(select, &[])?
        };
        let cells = cells.into_iter().map(|cell| cell.predicate).collect();
        let probe = Probe::Read { own_columns, cells, locking };
        Ok(Sent { statement: Stmt::Select(select), probe })
    }

    /// A query with its cells after its own columns.
    fn query(
        &self,
        select: &Select,
        outer_ctes: &[Cte],
    ) -> Result<(Select, usize, Vec<Cell>), NotInstrumented> {
        let mut observed = self.without_stars(select)?;
        let own_columns = count_items(&observed.items)?;
        let shape = shape(&observed)?;
        let mut cells = Vec::new();
        let mut ctes: Vec<Cte> = outer_ctes.to_vec();
        for cte in &mut observed.ctes {
            // A query that cannot be instrumented is left unchanged, and so is one that reads it.
            if let Ok(inner) = self.inner(&cte.select, &ctes, &mut cte.columns) {
                cte.select = inner;
            }
            ctes.push(cte.clone());
        }
        let original: Vec<&Source> = select.from_and_joined().collect();
        let sources =
            observed.from.iter_mut().chain(observed.joins.iter_mut().map(|j| &mut j.source));
        for (source, original) in sources.zip(original) {
            cells.extend(self.source(source, original, select, &ctes));
        }
        if shape == Shape::Groups {
            cells.iter_mut().for_each(|cell| cell.of = self.gathered(cell.of.clone()));
        }
        if observed.distinct {
            observed.distinct = false;
            observed.group_by =
                observed.items.iter().filter_map(SelectItem::expression).cloned().collect();
        }
        cells.extend(self.subqueries(&observed, shape));
        // By all columns of its own, and no others.
        if let Order::AllItems { descending } = observed.order {
            observed.order = by_places(own_columns, descending);
        }
        observed.items.extend(cells.iter().map(|cell| SelectItem::from(cell.of.clone())));
        Ok((observed, own_columns, cells))
    }

    /// The cells of one source, which is made to hand them out where it is a query.
    fn source(
        &self,
        source: &mut Source,
        original: &Source,
        outer: &Select,
        ctes: &[Cte],
    ) -> Vec<Cell> {
        let Some(visible) = source.visible_name().map(str::to_string) else { return Vec::new() };
        match source {
            Source::Table { name, .. } => {
                if let Some(cte) = ctes.iter().rev().find(|cte| cte.name == *name) {
                    let within = outer.ctes.iter().find(|c| c.name == *name);
                    return self.handed(&cte.select, within.map(|c| &c.select), &visible, outer);
                }
                match self.table(name) {
                    Some((place, _)) if self.is_followed(place) => {
                        let of = self.version(place, &visible);
                        vec![Cell {
                            of,
                            predicate: self
                                .predicate_of(outer)
                                .or_else(|| self.predicate_with_ctes(outer)),
                        }]
                    }
                    _ => Vec::new(),
                }
            }
            Source::Derived { select, view, .. } => {
                let inner = self.inner(select, ctes, &mut Vec::new());
                let cells = inner.as_ref().map_or_else(
                    |_| Vec::new(),
                    |inner| self.handed(inner, original.derived(), &visible, outer),
                );
                match (view.take(), inner) {
                    // It was made to hand out the same.
                    (Some(name), _) => {
                        let alias = (visible != name).then_some(visible);
                        *source = Source::Table { name, alias };
                    }
                    (None, Ok(inner)) => **select = inner,
                    (None, Err(_)) => {}
                }
                cells
            }
        }
    }

    /// The predicate of a query over one table that only has CTEs besides.
    fn predicate_with_ctes(&self, outer: &Select) -> Option<Predicate> {
        let alone = Select { ctes: Vec::new(), ..outer.clone() };
        self.predicate_of(&alone)
    }

    /// An inner query that hands its cells out by name.
    fn inner(
        &self,
        select: &Select,
        ctes: &[Cte],
        columns: &mut Vec<String>,
    ) -> Result<Select, NotInstrumented> {
        if select.set_operation.is_some() || select.limit.is_some() {
            return Err(NotInstrumented("a query inside of it is a set operation or has a LIMIT"));
        }
        let (mut observed, own, cells) = self.query(select, ctes)?;
        for (number, item) in observed.items[own..].iter_mut().enumerate() {
            if let SelectItem::Expression { alias, .. } = item {
                *alias = Some(format!("{HANDED}{number}"));
            }
        }
        if !columns.is_empty() {
            columns.extend((0..cells.len()).map(|number| format!("{HANDED}{number}")));
        }
        Ok(observed)
    }

    /// The views of the schema as they are made to hand out what they read, those that
    /// others stand on first. One that cannot be instrumented stays unchanged.
    pub(super) fn views(&self) -> Vec<View> {
        let observed = |view: &View| {
            let select = self.inner(&view.select, &[], &mut Vec::new());
            View { name: view.name.clone(), select: select.unwrap_or_else(|_| view.select.clone()) }
        };
        self.schema.views.iter().map(observed).collect()
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
            .and_then(|inner| inner.and(outer.filter.as_ref()));
        names
            .map(|name| Cell { of: column_of(visible, name), predicate: predicate.clone() })
            .collect()
    }

    /// What the subqueries of a query's conditions and items read: each once more, for its
    /// versions. Where rows are put together, only those that hang on nothing outside.
    fn subqueries(&self, select: &Select, shape: Shape) -> Vec<Cell> {
        let mut found = Vec::new();
        for expression in select.items.iter().filter_map(SelectItem::expression) {
            subqueries_of(expression, &mut found);
        }
        for expression in select.filter.iter().chain(&select.having) {
            subqueries_of(expression, &mut found);
        }
        let mut cells = Vec::new();
        for subquery in found {
            if !is_bare(subquery) || shape == Shape::Groups && !self.stands_alone(subquery) {
                continue;
            }
            for source in subquery.from_and_joined() {
                let (Some(name), Some(visible)) = (source.table(), source.visible_name()) else {
                    continue;
                };
                let Some((place, _)) = self.table(name).filter(|(t, _)| self.is_followed(*t))
                else {
                    continue;
                };
                let all = Select {
                    items: vec![self.gathered(self.version(place, visible)).into()],
                    order: Order::None,
                    ..subquery.clone()
                };
                // The probe is returned only with a row of the outer query: its absence
                // does not mean that the subquery found nothing.
                cells.push(Cell { of: Expr::Scalar(Box::new(all)), predicate: None });
            }
        }
        cells
    }

    /// Whether a subquery uses no column of the query around it.
    fn stands_alone(&self, select: &Select) -> bool {
        let sources: Vec<(&str, &str)> = select
            .from_and_joined()
            .filter_map(|source| Some((source.visible_name()?, source.table()?)))
            .collect();
        let own = |qualifier: Option<&str>, column: &str| {
            sources.iter().any(|(visible, table)| {
                qualifier.is_none_or(|q| q == *visible)
                    && self.table(table).is_some_and(|(_, t)| t.column(column).is_some())
            })
        };
        let mut alone = true;
        select.visit(&mut |e| {
            if let Expr::Column { qualifier, name } = e {
                alone &= own(qualifier.as_deref(), name);
            }
        });
        alone
    }

    /// The rows of the operation, and below them what each side read, in a column for each.
    fn set_operation(
        &self,
        select: &Select,
    ) -> Result<(Select, usize, Vec<Cell>), NotInstrumented> {
        let whole = self.without_stars(select)?;
        let own_columns = count_items(&whole.items)?;
        let mut branches = Vec::new();
        let mut cells = Vec::new();
        let mut side = Some(&whole);
        while let Some(current) = side {
            let alone = Select {
                set_operation: None,
                order: Order::None,
                limit: None,
                offset: None,
                ctes: Vec::new(),
                ..current.clone()
            };
            let bare = is_bare(&alone) && shape(&alone) == Ok(Shape::Rows);
            if !bare || !current.ctes.is_empty() || alone.locking.is_some() {
                return Err(NotInstrumented(
                    "a side of the set operation is more than a plain query",
                ));
            }
            for source in alone.from_and_joined() {
                let (Some(name), Some(visible)) = (source.table(), source.visible_name()) else {
                    return Err(NotInstrumented("a side of the set operation reads a query"));
                };
                let Some((place, _)) = self.table(name).filter(|(t, _)| self.is_followed(*t))
                else {
                    continue;
                };
                let of = self.version(place, visible);
                let predicate = self.predicate_of(&alone);
                cells.push(Cell { of: of.clone(), predicate });
                branches.push((alone.clone(), of));
            }
            side = current.set_operation.as_ref().map(|(_, other)| &**other);
        }
        let null = || SelectItem::from(Expr::Literal(Literal::Null));
        let count = branches.len();
        let mut observed: Option<Box<Select>> = None;
        for (number, (side, of)) in branches.into_iter().enumerate().rev() {
            let mut items: Vec<SelectItem> = (0..own_columns + count).map(|_| null()).collect();
            items[own_columns + number] = of.into();
            let below = observed.take().map(|below| (SetOperator::UnionAll, below));
            observed = Some(Box::new(Select { items, set_operation: below, ..side }));
        }
        // Two columns of a derived table may not have the same name.
        let mut whole = whole;
        for (number, item) in whole.items.iter_mut().enumerate() {
            if let SelectItem::Expression { alias, .. } = item {
                *alias = Some(format!("isolde_own_{number}"));
            }
        }
        let mut items = vec![SelectItem::AllOf("isolde_rows".into())];
        items.extend((0..count).map(|_| null()));
        let alias = Some("isolde_rows".into());
        let outer = Select {
            items,
            from: Some(Source::Derived {
                lateral: false,
                select: Box::new(whole),
                alias,
                columns: Vec::new(),
                view: None,
            }),
            set_operation: observed.map(|below| (SetOperator::UnionAll, below)),
            ..Select::default()
        };
        Ok((outer, own_columns, cells))
    }

    /// With the names of columns in the place of `*`, which would show ours.
    fn without_stars(&self, select: &Select) -> Result<Select, NotInstrumented> {
        let items = self.schema.items_without_stars(select);
        let items =
            items.ok_or(NotInstrumented("it selects * of what has no names for its columns"))?;
        Ok(Select { items, ..select.clone() })
    }

    fn gathered(&self, of: Expr) -> Expr {
        let call = |name: &str, arguments| Expr::Call(Function::Named(name.into()), arguments);
        match self.capabilities.gather {
            Gather::StringAgg => call("string_agg", vec![of, super::tables::text(";")]),
            Gather::GroupConcat => call("group_concat", vec![of]),
            Gather::JsonArrayAgg => call("json_arrayagg", vec![of]),
        }
    }
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
            Expr::Call(Function::Named(_), _) => unknown = true,
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

fn outside_of_subqueries<'e>(expression: &'e Expr, see: &mut dyn FnMut(&'e Expr)) {
    see(expression);
    expression.children().into_iter().for_each(|child| outside_of_subqueries(child, see));
}

fn subqueries_of<'e>(expression: &'e Expr, found: &mut Vec<&'e Select>) {
    outside_of_subqueries(expression, &mut |e| found.extend(e.subquery()));
}

fn by_places(count: usize, descending: bool) -> Order {
    let key = |place: usize| isolde_sql::OrderKey {
        of: Expr::int(place as i64),
        descending,
        nulls_first: None,
    };
    Order::By((1..=count).map(key).collect())
}
