//! Rewrites queries so that they return which versions they read.
//!
//! ```text
//!   query ──► stars written out ──► inline: columns more ───────── all reads? ──► sent
//!                                                                     │ no
//!                                                                     ▼
//!                                   appended: the query as it is, and below it what it read
//! ```
//!
//! *Inline*, each source gives the query a column more; where rows are put together (aggregates,
//! groups, DISTINCT) the column gathers all that went in, and queries in FROM hand theirs out.
//! *Appended*, the query keeps its text and stands in FROM; rows below it, marked by a number, say
//! what each query in it read. Both repeat subqueries of expressions next to the row that they are
//! evaluated for, to gather what they read. What neither can say is listed with the reason.

mod appended;
mod inline;
mod stars;
mod subquery;

pub(super) use appended::in_from;
pub(super) use subquery::READ_BY_WRITE;

use super::predicate::Predicate;
use super::{Instrument, NotInstrumented, Probe, Sent};
use isolde_catalog::Gather;
use isolde_model::parsed_case::pure_functions;
use isolde_sql::functions::FUNCTIONS;
use isolde_sql::{Cte, Expr, Function, Select, Source, Stmt, View, sources_below};

/// Where a query stands.
#[derive(Clone)]
pub(super) struct Scope {
    /// The CTEs that it may read.
    ctes: Vec<Cte>,
    /// Whether its subqueries may be repeated: a write that reads current rows would lock more.
    repeats_subqueries: bool,
}

impl Scope {
    /// A query that is a statement.
    const STATEMENT: Scope = Scope { ctes: Vec::new(), repeats_subqueries: true };

    /// The last CTE of this name.
    fn cte(&self, name: &str) -> Option<&Cte> {
        self.ctes.iter().rev().find(|cte| cte.name == name)
    }
}

/// A column that names versions, and the predicate of which it has all.
#[derive(Clone)]
pub(super) struct Cell {
    pub(super) of: Expr,
    predicate: Option<Predicate>,
}

/// A query with cells behind its own columns.
pub(super) struct Rewritten {
    pub(super) select: Select,
    pub(super) own_columns: usize,
    pub(super) cells: Vec<Cell>,
    /// Whether the rows of the query come first, and below them those that name versions.
    appended: bool,
    /// Why some of what it reads is in no cell.
    pub(super) unobserved: Vec<NotInstrumented>,
}

impl Instrument {
    pub(super) fn select(&self, select: &Select) -> Result<Sent, NotInstrumented> {
        let plain = self.with_columns_named(select, &[])?;
        let rewritten = match self.inline(&plain, &Scope::STATEMENT) {
            Ok(inline) if inline.unobserved.is_empty() => inline,
            other => match (other, self.appended(&plain)) {
                (Ok(inline), Ok(below)) if inline.unobserved.len() <= below.unobserved.len() => {
                    inline
                }
                (_, Ok(below)) => below,
                (Ok(inline), Err(_)) => inline,
                (Err(_), Err(why)) => {
                    let unobserved = vec![why];
                    let statement = Stmt::Select(with_views(plain));
                    return Ok(Sent { statement, probe: Probe::Nothing, unobserved });
                }
            },
        };
        let Rewritten { select, own_columns, cells, appended, unobserved } = rewritten;
        let predicates = cells.into_iter().map(|cell| cell.predicate).collect();
        let locking = select.locking.is_some();
        let probe = Probe::Read { own_columns, appended, cells: predicates, locking };
        Ok(Sent { statement: Stmt::Select(select), probe, unobserved })
    }

    /// The views of the schema as they are made to hand out what they read, those that
    /// others stand on first. One that cannot be instrumented stays unchanged.
    pub(super) fn views(&self) -> Vec<View> {
        let observed = |view: &View| {
            let select = self.handing_out(&view.select, &Scope::STATEMENT, &mut Vec::new());
            let select = select.map_or_else(|_| view.select.clone(), |inner| inner.select);
            View { name: view.name.clone(), select: with_views(select) }
        };
        self.schema.views.iter().map(observed).collect()
    }

    /// The query of a write.
    pub(super) fn scope_of_write(&self) -> Scope {
        Scope { ctes: Vec::new(), repeats_subqueries: !self.capabilities.reads_current }
    }

    /// The place of a table whose versions a source can name.
    pub(super) fn followed_table(&self, source: &Source, scope: &Scope) -> Option<usize> {
        let name = source.table().filter(|name| scope.cte(name).is_none())?;
        self.place(name).filter(|place| self.is_followed(*place))
    }

    /// Whether a query reads rows whose versions can be told, at any depth.
    pub(super) fn reads_followed_tables(&self, select: &Select) -> bool {
        let is_followed =
            |name: &str| self.place(name).is_some_and(|place| self.is_followed(place));
        select.sources().into_iter().any(is_followed)
    }

    /// Whether the engine can put the versions of a group of rows together.
    fn gathers(&self) -> Result<(), NotInstrumented> {
        match self.capabilities.gather {
            Gather::Nothing => Err(NotInstrumented("this version cannot put texts together")),
            _ => Ok(()),
        }
    }

    /// All versions of a group of rows, in one text.
    fn gathered(&self, of: Expr) -> Expr {
        let call = |name: &str, arguments| Expr::Call(Function::Named(name.into()), arguments);
        match self.capabilities.gather {
            Gather::StringAgg => call("string_agg", vec![of, super::tables::text(";")]),
            Gather::GroupConcat => call("group_concat", vec![of]),
            Gather::JsonArrayAgg => call("json_arrayagg", vec![of]),
            // Nothing is put together where there is no such function.
            Gather::Nothing => of,
        }
    }
}

/// A query and those that a set operation combines it with.
pub(super) fn members(select: &Select) -> impl Iterator<Item = &Select> {
    std::iter::successors(Some(select), |s| s.set_operation.as_ref().map(|(_, other)| &**other))
}

/// The CTEs of a query that it reads, directly or through others.
fn used_ctes(select: &Select) -> Vec<&Cte> {
    let mut names: Vec<&str> = select.from_and_joined().filter_map(Source::table).collect();
    // The first parts of a query are its CTEs.
    names.extend(select.parts().skip(select.ctes.len()).flat_map(Select::sources));
    names.extend(select.own_expressions().flat_map(sources_below));
    let mut used: Vec<&Cte> = Vec::new();
    for cte in select.ctes.iter().rev() {
        if names.contains(&cte.name.as_str()) {
            names.extend(cte.select.sources());
            used.insert(0, cte);
        }
    }
    used
}

/// How many columns a query without `*` returns.
pub(super) fn width(select: &Select) -> usize {
    select.values.first().map_or(select.items.len(), Vec::len)
}

/// Visits an expression without what is inside of its subqueries.
pub(super) fn outside_of_subqueries<'e>(expression: &'e Expr, see: &mut dyn FnMut(&'e Expr)) {
    see(expression);
    expression.children().into_iter().for_each(|child| outside_of_subqueries(child, see));
}

/// The subqueries of the expressions of one query, without those inside of them.
pub(super) fn subqueries_of(select: &Select) -> Vec<&Select> {
    let mut found = Vec::new();
    for expression in select.own_expressions() {
        outside_of_subqueries(expression, &mut |e| found.extend(e.subquery()));
    }
    found
}

/// Whether a function has the same value for the same arguments, and no effect.
fn is_pure(function: &str) -> bool {
    pure_functions::is_pure(function) || FUNCTIONS.iter().any(|form| form.name == function)
}

/// Whether an expression calls a function that may have an effect, or another result each time.
pub(super) fn is_unsafe_to_repeat(expression: &Expr) -> bool {
    let mut found = false;
    expression.visit(&mut |e| {
        found |= matches!(e, Expr::Call(Function::Named(name), _) if !is_pure(name));
    });
    found
}

/// The query with the names of views in the place of their queries.
fn with_views(mut select: Select) -> Select {
    let joined = select.joins.iter_mut().map(|join| &mut join.source);
    for source in select.from.iter_mut().chain(joined) {
        view_by_name(source);
    }
    select.visit_mut(&mut |e| {
        if let Some(subquery) = e.subquery_mut() {
            *subquery = with_views(std::mem::take(subquery));
        }
    });
    let parts: Vec<&mut Select> = select.parts_mut().collect();
    for part in parts {
        *part = with_views(std::mem::take(part));
    }
    select
}

fn view_by_name(source: &mut Source) {
    if let Source::Derived { view: Some(name), alias, .. } = source {
        let alias = alias.take().filter(|alias| alias != name);
        *source = Source::Table { name: name.clone(), alias };
    }
}
