//! Which columns an expression may use.

use super::Maker;
use crate::generate::sql::value::Class;
use crate::generate::sql::{Column, Expr, Literal, Table};

#[derive(Clone, Copy)]
pub struct InScope<'a> {
    pub qualifier: Option<&'a str>,
    pub column: &'a Column,
}

impl InScope<'_> {
    pub fn expr(&self) -> Expr {
        Expr::Column {
            qualifier: self.qualifier.map(str::to_string),
            name: self.column.name.clone(),
        }
    }

    pub fn class(&self) -> Class {
        self.column.of_type.class()
    }
}

pub type Scope<'a> = Vec<InScope<'a>>;

pub fn of_table(table: &Table) -> Scope<'_> {
    of_columns(None, table.columns.iter())
}

pub fn of_columns<'a>(
    qualifier: Option<&'a str>,
    columns: impl Iterator<Item = &'a Column>,
) -> Scope<'a> {
    columns.map(|column| InScope { qualifier, column }).collect()
}

pub fn of_class<'a>(scope: &Scope<'a>, class: Class) -> Scope<'a> {
    scope.iter().copied().filter(|c| c.class() == class).collect()
}

impl Maker<'_> {
    /// A value for a column: from its pool, or NULL where that may be.
    pub fn draw(&mut self, column: &Column) -> Literal {
        if !column.not_null && self.random.chance(10) {
            return Literal::Null;
        }
        self.known_value(column)
    }

    /// A value that likely is in the table.
    pub fn known_value(&mut self, column: &Column) -> Literal {
        self.random.pick(&column.pool).clone()
    }

    /// Two columns that may be compared, one from each side.
    pub fn comparable<'s>(
        &mut self,
        left: &Scope<'s>,
        right: &Scope<'s>,
    ) -> Option<(InScope<'s>, InScope<'s>)> {
        let pairs: Vec<(InScope, InScope)> = left
            .iter()
            .flat_map(|l| right.iter().map(move |r| (*l, *r)))
            .filter(|(l, r)| l.class() == r.class())
            .collect();
        self.random.pick_any(&pairs).copied()
    }
}
