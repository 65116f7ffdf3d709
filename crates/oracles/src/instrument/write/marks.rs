//! The assignments that mark the rows of a write with its number.
//!
//! Most engines evaluate all assignments on the old row. MySQL's family also writes nothing where
//! all values stay, and its statements return no rows, so there the old row is kept as an *image*,
//! and what the write leaves is compared with it:
//!
//! ```text
//!   in order:      past = past + image,  the assignments,  writes and past by (image = the last of past)
//!   on the old row: past and writes by (every new value = the old one),  the assignments
//! ```
//!
//! MySQL evaluates an UPDATE in either way where it may run it as a join. Then both are sent, and
//! what the first assignment leaves tells which of them holds.

use super::super::query::is_unsafe_to_repeat;
use super::super::tables::{
    CELL, IMAGE, NEXT, NULL_CELL, column_of, keys_column, past_column, text, writes_column,
};
use super::Sets;
use crate::instrument::{Instrument, NotInstrumented, StatementId};
use isolde_sql::dialect::Family;
use isolde_sql::{Binary, Class, Column, Expr, Function, Table, Type};

/// What the assignments of a write see.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AssignmentOrder {
    /// Each the ones before it.
    InOrder,
    /// The old row.
    Simultaneous,
    /// One or the other, as the engine plans the statement.
    AsPlanned,
}

/// A marked table: the statement, the names of its columns, and what the comparisons need.
struct Marks<'a> {
    instrument: &'a Instrument,
    table: &'a Table,
    qualifier: &'a str,
    past: String,
    writes: String,
    id: StatementId,
    /// Of a table that actions of foreign keys change.
    keys: Option<Keys>,
}

/// The image of columns that actions change.
struct Keys {
    column: String,
    /// What an action left since the last write, before the assignments.
    pending: Expr,
    /// The image after the assignments, as expressions on the old row and on the new one.
    by_values: Expr,
    by_columns: Expr,
}

/// In the image, before what was pending when the write began.
const PENDING: &str = "#";

impl Instrument {
    /// The assignments of a write with those to the added columns.
    pub(super) fn marked(
        &self,
        id: StatementId,
        (place, table): (usize, &Table),
        qualifier: &str,
        sets: &Sets,
        order: AssignmentOrder,
    ) -> Result<Sets, NotInstrumented> {
        let (past, writes) = (past_column(place), writes_column(place));
        let keys = self.keys_after((place, table), qualifier, sets)?;
        let marks = Marks { instrument: self, table, qualifier, past, writes, id, keys };
        let (before, after) = if self.capabilities.returns_written {
            (std::iter::once(marks.next()).chain(marks.next_keys()).collect(), Vec::new())
        } else if !self.capabilities.skips_equal_updates {
            let kept = (marks.past.clone(), marks.kept(""));
            ([kept, marks.next()].into_iter().chain(marks.next_keys()).collect(), Vec::new())
        } else if order == AssignmentOrder::Simultaneous {
            (marks.by_values(nothing_changes(table, qualifier, sets)?), Vec::new())
        } else {
            // Only this statement ends the past so.
            let seal = format!("{id}#");
            let mut after = marks.by_image(&seal);
            if order == AssignmentOrder::AsPlanned {
                let by_values = marks.by_values(nothing_changes(table, qualifier, sets)?);
                for ((column, value), (other_column, other)) in
                    after.iter_mut().zip(by_values.into_iter().rev())
                {
                    debug_assert_eq!(*column, other_column);
                    let sealed = like(marks.of(&marks.past), text(&format!("%{IMAGE}{seal}")));
                    *value = choose(sealed, value.clone(), other);
                }
            }
            let kept = (marks.past.clone(), marks.kept(&seal));
            (std::iter::once(kept).chain(marks.pending_kept()).collect(), after)
        };
        Ok(before.into_iter().chain(sets.iter().cloned()).chain(after).collect())
    }
}

impl Marks<'_> {
    fn of(&self, column: &str) -> Expr {
        column_of(self.qualifier, column)
    }

    /// The list of writers with this statement, on the old row.
    fn number(&self) -> Expr {
        let pending = self.keys.iter().map(|keys| keys.pending.clone()).collect();
        self.number_after(pending)
    }

    fn number_after(&self, pending: Vec<Expr>) -> Expr {
        let mut parts = vec![self.of(&self.writes)];
        parts.extend(pending);
        parts.push(text(&format!("{NEXT}{}", self.id)));
        self.instrument.joined(parts)
    }

    fn next(&self) -> (String, Expr) {
        (self.writes.clone(), self.number())
    }

    fn next_keys(&self) -> Option<(String, Expr)> {
        self.keys.as_ref().map(|keys| (keys.column.clone(), keys.by_values.clone()))
    }

    /// Keeps what is pending in the image, before the assignments.
    fn pending_kept(&self) -> Option<(String, Expr)> {
        let keys = self.keys.as_ref()?;
        let parts = vec![self.of(&keys.column), text(PENDING), keys.pending.clone()];
        Some((keys.column.clone(), self.instrument.joined(parts)))
    }

    fn image(&self, seal: &str) -> Expr {
        let image = self.instrument.image(self.table, self.qualifier);
        self.instrument.joined(vec![image, text(&format!("{IMAGE}{seal}"))])
    }

    /// The past with the row as it is.
    fn kept(&self, seal: &str) -> Expr {
        self.instrument.joined(vec![self.of(&self.past), self.image(seal)])
    }

    /// Past, image and list, before the assignments.
    fn by_values(&self, equal: Expr) -> Sets {
        let (past, writes) = (self.of(&self.past), self.of(&self.writes));
        let mut marked = vec![(self.past.clone(), choose(equal.clone(), past, self.kept("")))];
        if let Some(keys) = &self.keys {
            let image = choose(equal.clone(), self.of(&keys.column), keys.by_values.clone());
            marked.push((keys.column.clone(), image));
        }
        marked.push((self.writes.clone(), choose(equal, writes, self.number())));
        marked
    }

    /// List, image and past, after the assignments: the past ends with the old row and the seal.
    fn by_image(&self, seal: &str) -> Sets {
        let joined = |parts| self.instrument.joined(parts);
        let (past, writes) = (self.of(&self.past), self.of(&self.writes));
        // The images hold no wildcards.
        let equal = like(
            joined(vec![text(&IMAGE.to_string()), past.clone()]),
            joined(vec![text(&format!("%{IMAGE}")), self.image(seal)]),
        );
        let length = |of: Expr| Expr::Call(Function::Length, vec![of]);
        let without = |end: Expr| {
            let length = Expr::binary(Binary::Minus, length(past.clone()), end);
            Expr::Call(Function::Named("left".into()), vec![past.clone(), length])
        };
        let part = |of: &Keys, number: i64| {
            let arguments = vec![self.of(&of.column), text(PENDING), Expr::int(number)];
            Expr::Call(Function::Named("substring_index".into()), arguments)
        };
        let pending = self.keys.iter().map(|keys| part(keys, -1)).collect();
        let number = self.number_after(pending);
        let mut marked = vec![(self.writes.clone(), choose(equal.clone(), writes, number))];
        if let Some(keys) = &self.keys {
            let image = choose(equal.clone(), part(keys, 1), keys.by_columns.clone());
            marked.push((keys.column.clone(), image));
        }
        let cut = choose(equal, without(length(self.image(seal))), without(length(text(seal))));
        marked.push((self.past.clone(), cut));
        marked
    }
}

impl Instrument {
    /// The image of the columns that actions change, before and after assignments.
    fn keys_after(
        &self,
        (place, table): (usize, &Table),
        qualifier: &str,
        sets: &Sets,
    ) -> Result<Option<Keys>, NotInstrumented> {
        let Some(pending) = self.pending(place, qualifier) else { return Ok(None) };
        let columns = self.changing_columns(place);
        let mut values = Vec::new();
        for name in &columns {
            let new = sets.iter().rfind(|(column, _)| column == name).map(|(_, value)| value);
            if new.is_some_and(|new| *new == Expr::Default || is_unsafe_to_repeat(new)) {
                return Err(NotInstrumented("what a foreign key refers to then is not known"));
            }
            let of_type = table.column(name).map(|column| &column.of_type);
            values.push(match (new, of_type) {
                (Some(new), Some(of_type)) if self.capabilities.family == Family::Mysql => {
                    stored(new.clone(), of_type)
                }
                (Some(new), Some(of_type)) => {
                    Expr::Cast { of: Box::new(new.clone()), to: of_type.clone() }
                }
                _ => column_of(qualifier, name),
            });
        }
        let by_columns = columns.into_iter().map(|name| column_of(qualifier, name)).collect();
        Ok(Some(Keys {
            column: keys_column(place),
            pending,
            by_values: self.keys_image(values),
            by_columns: self.keys_image(by_columns),
        }))
    }

    /// What a row holds, as text.
    fn image(&self, table: &Table, qualifier: &str) -> Expr {
        let cell = |column: &Column| {
            let value = column_of(qualifier, &column.name);
            let value = match column.of_type.class() {
                Class::Blob => value,
                _ => Expr::Cast { of: Box::new(value), to: Type::Other("char".into()) },
            };
            let digits = Expr::Call(Function::Named("hex".into()), vec![value]);
            Expr::Call(Function::Coalesce, vec![digits, text(NULL_CELL)])
        };
        let cells = table.columns.iter().flat_map(|c| [cell(c), text(&CELL.to_string())]);
        self.joined(cells.collect())
    }
}

fn choose(condition: Expr, then: Expr, otherwise: Expr) -> Expr {
    let branches = vec![(condition, then)];
    Expr::Case { operand: None, branches, otherwise: Some(Box::new(otherwise)) }
}

fn like(of: Expr, pattern: Expr) -> Expr {
    Expr::Like { of: Box::new(of), pattern: Box::new(pattern), negated: false }
}

/// That every assignment leaves its column as it is, where all are evaluated on the old row.
fn nothing_changes(table: &Table, qualifier: &str, sets: &Sets) -> Result<Expr, NotInstrumented> {
    const UNKNOWN: NotInstrumented = NotInstrumented("whether it changes a row is not known");
    let mut all: Option<Expr> = None;
    for (name, new) in sets {
        let mut is_default = false;
        new.visit(&mut |e| is_default |= *e == Expr::Default);
        // Computed twice, it may differ.
        if is_default || is_unsafe_to_repeat(new) {
            return Err(UNKNOWN);
        }
        let column = table.column(name).ok_or(UNKNOWN)?;
        let same = Expr::binary(
            Binary::NotDistinct,
            stored(column_of(qualifier, name), &column.of_type),
            stored(new.clone(), &column.of_type),
        );
        all = Some(all.map_or(same.clone(), |all| all.and(same)));
    }
    all.ok_or(UNKNOWN)
}

/// A value as a column of a type stores it. To the engine a text has changed when its bytes have,
/// whatever its collation.
fn stored(of: Expr, as_type: &Type) -> Expr {
    let to = match (as_type, as_type.class()) {
        (_, Class::Text) => "binary",
        (_, Class::Integer | Class::Bool) => "signed",
        (Type::Decimal, _) => "decimal(10, 2)",
        (_, Class::Date) => "date",
        _ => return of,
    };
    Expr::Cast { of: Box::new(of), to: Type::Other(to.into()) }
}
