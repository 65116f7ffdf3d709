//! Draws nested queries and expressions.
//!
//! Every expression has a [`Class`] and a *depth*, the levels that may still follow below it. The
//! same rules hold as for shallow statements: nothing may depend on the order in which rows are
//! visited. In addition nothing may fail, because an engine evaluates a failing expression or not
//! as its plan has it. Two qualities of a value keep both promises:
//!
//! - An *exact* value is small if it is a number, and equal only to identical values. Only exact
//!   values are grouped, made distinct, sorted, stored, or returned by a query in FROM: of two
//!   texts that are equal but not identical (`a` and `A` in many collations) an engine may return
//!   either.
//! - Any other value is compared, passed to functions or returned.

mod condition;
mod group;
mod query;
mod source;
mod value;
mod window;
mod write;

use isolde_sql::{Class, Column, Expr};

/// A column that an expression may use, of a table or of a query in FROM.
#[derive(Clone)]
pub struct VisibleColumn<'a> {
    qualifier: String,
    name: String,
    class: Class,
    /// Far from every limit, so that arithmetic cannot fail.
    small: bool,
    /// The column of the schema that it is, with the values to search for.
    stored: Option<&'a Column>,
}

impl<'a> VisibleColumn<'a> {
    fn of_table(qualifier: &str, column: &'a Column) -> VisibleColumn<'a> {
        VisibleColumn {
            qualifier: qualifier.into(),
            name: column.name.clone(),
            class: column.of_type.class(),
            small: column.allows_arithmetic(),
            stored: Some(column),
        }
    }

    fn expr(&self) -> Expr {
        Expr::Column { qualifier: Some(self.qualifier.clone()), name: self.name.clone() }
    }

    /// Whether equal values are identical, and arithmetic is safe where there is some.
    fn is_exact(&self) -> bool {
        self.class != Class::Integer || self.small
    }
}

/// What an expression may use: the sources of its own query, and those of the queries around it.
#[derive(Clone, Default)]
pub struct Surroundings<'a> {
    own: Vec<VisibleColumn<'a>>,
    outer: Vec<VisibleColumn<'a>>,
    /// The CTEs that queries in it may read.
    ctes: Vec<NamedQuery<'a>>,
}

/// A CTE or derived table: its name and its columns.
#[derive(Clone)]
struct NamedQuery<'a> {
    name: String,
    columns: Vec<VisibleColumn<'a>>,
}

impl<'a> Surroundings<'a> {
    /// What a subquery can see: all of this.
    fn inside(&self) -> Surroundings<'a> {
        let outer = self.own.iter().chain(&self.outer).cloned().collect();
        Surroundings { own: Vec::new(), outer, ctes: self.ctes.clone() }
    }

    /// What the argument of an aggregate may use. If it used only columns of the queries around,
    /// it would be an aggregate of one of those.
    fn without_outer(&self) -> Surroundings<'a> {
        Surroundings { outer: Vec::new(), ..self.clone() }
    }

    /// What a query in FROM can see: only CTEs.
    fn apart(&self) -> Surroundings<'a> {
        Surroundings { ctes: self.ctes.clone(), ..Surroundings::default() }
    }
}
