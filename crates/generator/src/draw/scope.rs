//! The columns that an expression may use.

use super::Sampler;
use isolde_sql::Class;
use isolde_sql::{Column, Expr, Literal, Table};

#[derive(Clone, Copy)]
pub struct ScopeColumn<'a> {
    pub qualifier: Option<&'a str>,
    pub column: &'a Column,
}

impl ScopeColumn<'_> {
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

pub type Scope<'a> = Vec<ScopeColumn<'a>>;

pub fn of_table(table: &Table) -> Scope<'_> {
    of_columns(None, table.columns.iter())
}

pub fn of_columns<'a>(
    qualifier: Option<&'a str>,
    columns: impl Iterator<Item = &'a Column>,
) -> Scope<'a> {
    columns.map(|column| ScopeColumn { qualifier, column }).collect()
}

pub fn of_class<'a>(scope: &Scope<'a>, class: Class) -> Scope<'a> {
    scope.iter().copied().filter(|c| c.class() == class).collect()
}

impl<'a> Sampler<'a> {
    /// Draws a value for a column: from its pool, or NULL if the column allows it.
    pub fn draw(&mut self, column: &Column) -> Literal {
        if !column.not_null && self.random.chance(10) {
            return Literal::Null;
        }
        self.random.pick(&column.pool).clone()
    }

    /// Draws a value to search for: that of the hot row, that of another row, or one from the
    /// pool, which may not be stored.
    pub fn likely_value(&mut self, column: &Column) -> Literal {
        if self.options.for_rounds {
            return self.random.pick(&column.pool).clone();
        }
        let choice = self.random.below(100);
        let stored = self.stored_values(column);
        let found = match (choice, stored) {
            (0..40, Some((hot, values))) => values.get(hot).copied().cloned(),
            (40..75, Some((_, values))) => self.random.pick_any(&values).copied().cloned(),
            _ => None,
        };
        found.filter(|v| !v.is_null()).unwrap_or_else(|| self.random.pick(&column.pool).clone())
    }

    /// The stored values of this column, and the index of the hot row.
    fn stored_values(&self, column: &Column) -> Option<(usize, Vec<&'a Literal>)> {
        let holds = |t: &Table| t.columns.iter().position(|c| c.name == column.name);
        let tables = self.schema.tables.iter().enumerate();
        let (table, cell) = tables.filter_map(|(n, t)| Some((n, holds(t)?))).next()?;
        let rows = self.rows;
        Some((self.hot_rows[table], rows[table].iter().map(|row| &row[cell]).collect()))
    }

    /// Draws two columns that can be compared, one from each side.
    pub fn comparable<'s>(
        &mut self,
        left: &Scope<'s>,
        right: &Scope<'s>,
    ) -> Option<(ScopeColumn<'s>, ScopeColumn<'s>)> {
        let pairs: Vec<(ScopeColumn, ScopeColumn)> = left
            .iter()
            .flat_map(|l| right.iter().map(move |r| (*l, *r)))
            .filter(|(l, r)| l.class() == r.class())
            .collect();
        self.random.pick_any(&pairs).copied()
    }
}
