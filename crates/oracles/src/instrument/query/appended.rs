//! A query as it is, and below its rows those that name what each query in it read.
//!
//! ```text
//!   with q as (…) select isolde_rows.*, 0, '', '' from (the query) as isolde_rows
//!   union all select null, 1, <versions>, '' from <sources of one query in it> where <its condition>
//!   union all select null, 2, '', <versions> from <sources of another> where <its condition>
//! ```

use super::subquery::rows_of;
use super::{
    Cell, Rewritten, Scope, is_unsafe_to_repeat, members, subqueries_of, used_ctes, width,
    with_views,
};
use crate::instrument::tables::{column_of, text};
use crate::instrument::{Instrument, NotInstrumented};
use isolde_sql::{Expr, Literal, Order, Select, SelectItem, SetOperator, Source};

/// What one query in a statement reads: its sources and condition, and the cells of each row.
struct Block {
    rows: Select,
    cells: Vec<Cell>,
}

/// The blocks of a statement.
struct Blocks<'i> {
    instrument: &'i Instrument,
    scope: &'i Scope,
    found: Vec<Block>,
    unobserved: Vec<NotInstrumented>,
}

impl Instrument {
    /// A query without `*`, and what all queries in it read below its rows.
    pub(super) fn appended(&self, select: &Select) -> Result<Rewritten, NotInstrumented> {
        if members(select).any(|member| member.locking.is_some()) {
            return Err(NotInstrumented("it locks rows that are put together"));
        }
        let scope = &Scope { ctes: select.ctes.clone(), ..Scope::STATEMENT };
        let mut blocks =
            Blocks { instrument: self, scope, found: Vec::new(), unobserved: Vec::new() };
        for cte in used_ctes(select) {
            blocks.add_query(&cte.select);
        }
        members(select).for_each(|member| blocks.add_member(member));
        let Blocks { found: blocks, unobserved, .. } = blocks;
        let own_columns = width(select);
        let count = blocks.iter().map(|block| block.cells.len()).sum();
        let mut below: Option<Box<Select>> = None;
        let mut cells: Vec<Cell> = Vec::new();
        let starts = blocks.iter().scan(0, |next, block| {
            let start = *next;
            *next += block.cells.len();
            Some(start)
        });
        let starts: Vec<usize> = starts.collect();
        for (number, block) in blocks.iter().enumerate().rev() {
            let mut items: Vec<SelectItem> = Vec::new();
            items.extend((0..own_columns).map(|_| Expr::Literal(Literal::Null).into()));
            items.push(Expr::int(number as i64 + 1).into());
            let start = starts[number];
            for place in 0..count {
                let own = place.checked_sub(start).and_then(|at| block.cells.get(at));
                items.push(own.map_or_else(|| text(""), |cell| cell.of.clone()).into());
            }
            let set_operation = below.take().map(|below| (SetOperator::UnionAll, below));
            below = Some(Box::new(Select { items, set_operation, ..block.rows.clone() }));
        }
        blocks.into_iter().for_each(|block| cells.extend(block.cells));
        let mut outer = in_from(select);
        outer.items.push(Expr::int(0).into());
        outer.items.extend((0..count).map(|_| text("").into()));
        let select =
            Select { set_operation: below.map(|below| (SetOperator::UnionAll, below)), ..outer };
        Ok(Rewritten { select, own_columns, cells, appended: true, unobserved })
    }
}

/// The alias of a query that is moved to FROM.
pub(in crate::instrument) const ROWS: &str = "isolde_rows";

/// A query around a query, which returns the same columns. Two columns of a query in FROM may not
/// have the same name.
pub(in crate::instrument) fn in_from(select: &Select) -> Select {
    let mut whole = with_views(select.clone());
    let ctes = std::mem::take(&mut whole.ctes);
    let recursive = std::mem::take(&mut whole.recursive);
    if whole.limit.is_none() {
        // In FROM an order means nothing.
        whole.order = Order::None;
    }
    let mut taken: Vec<String> = Vec::new();
    let mut items = Vec::new();
    for (number, item) in whole.items.iter_mut().enumerate() {
        let name = item.name().map(str::to_string);
        let is_free = |name: &String| !taken.contains(&name.to_lowercase());
        let inside = match name.clone().filter(is_free) {
            Some(name) => name,
            None => {
                let inside = own_name(number);
                if let SelectItem::Expression { alias, .. } = item {
                    *alias = Some(inside.clone());
                }
                inside
            }
        };
        taken.push(inside.to_lowercase());
        let alias = name.filter(|name| *name != inside);
        items.push(SelectItem::Expression { of: column_of(ROWS, &inside), alias });
    }
    // VALUES has no names.
    let columns: Vec<String> = match whole.values.is_empty() {
        true => Vec::new(),
        false => (0..width(&whole)).map(own_name).collect(),
    };
    items.extend(columns.iter().map(|name| SelectItem::from(column_of(ROWS, name))));
    let (select, alias) = (Box::new(whole), Some(ROWS.into()));
    let from = Source::Derived { lateral: false, select, alias, columns, view: None };
    Select { recursive, ctes, items, from: Some(from), ..Select::default() }
}

fn own_name(number: usize) -> String {
    format!("isolde_own_{number}")
}

impl Blocks<'_> {
    /// The blocks of a query that depends on nothing around it.
    fn add_query(&mut self, select: &Select) {
        if !select.ctes.is_empty() {
            self.unobserved.push(NotInstrumented("a query inside of it has CTEs of its own"));
            return;
        }
        members(select).for_each(|member| self.add_member(member));
    }

    fn add_member(&mut self, member: &Select) {
        let mut cells = Vec::new();
        for source in member.from_and_joined() {
            match source {
                // It may use the columns of the sources before it.
                Source::Derived { select, .. } if self.depends_on_outer(select) => {
                    cells.extend(self.read_beside(select));
                }
                Source::Derived { select, .. } => self.add_query(select),
                Source::Table { .. } => {
                    let place = self.instrument.followed_table(source, self.scope);
                    if let (Some(place), Some(visible)) = (place, source.visible_name()) {
                        let of = self.instrument.version(place, visible);
                        let predicate = self.instrument.predicate_of(&rows_of(member));
                        cells.push(Cell { of, predicate });
                    }
                }
            }
        }
        for subquery in subqueries_of(member) {
            let read = self.instrument.read_by_subquery(subquery, self.scope, &mut self.unobserved);
            cells.extend(read.into_iter().map(|of| Cell { of, predicate: None }));
        }
        if cells.is_empty() {
            return;
        }
        let rows = rows_of(member);
        if rows.own_expressions().any(is_unsafe_to_repeat) {
            self.unobserved.push(NotInstrumented("a condition calls a function with an effect"));
            return;
        }
        self.found.push(Block { rows, cells });
    }

    /// The cells of a query that is evaluated for each row.
    fn read_beside(&mut self, query: &Select) -> Vec<Cell> {
        let read = self.instrument.read_by_subquery(query, self.scope, &mut self.unobserved);
        read.into_iter().map(|of| Cell { of, predicate: None }).collect()
    }

    fn depends_on_outer(&self, select: &Select) -> bool {
        self.instrument.depends_on_outer(select, self.scope)
    }
}
