//! The assignments that mark the rows of a write with its number.
//!
//! Most engines evaluate all assignments on the old row. MySQL's family also writes nothing where
//! all values stay, and its statements return no rows, so there the old row is kept as an *image*,
//! and what the write leaves is compared with it:
//!
//! ```text
//!   in order:   past = past + image,  the assignments,  writes and past by (image = the last of past)
//!   otherwise:  past and writes by (every new value = the old one),  the assignments
//! ```

use super::super::query::is_unsafe_to_repeat;
use super::super::tables::{
    CELL, IMAGE, NEXT, NULL_CELL, column_of, past_column, text, writes_column,
};
use super::Sets;
use crate::instrument::{Instrument, NotInstrumented, StatementId};
use isolde_sql::{Binary, Class, Column, Expr, Function, Table, Type};

impl Instrument {
    /// The assignments of a write with those to the added columns. `in_order` says whether each
    /// sees those before it.
    pub(super) fn marked(
        &self,
        id: StatementId,
        (place, table): (usize, &Table),
        qualifier: &str,
        sets: &Sets,
        in_order: bool,
    ) -> Result<Sets, NotInstrumented> {
        let writes = writes_column(place);
        let of = |name: &str| column_of(qualifier, name);
        let number = self.joined(vec![of(&writes), text(&format!("{NEXT}{id}"))]);
        if self.capabilities.returns_written {
            let mut marked = vec![(writes, number)];
            marked.extend(sets.iter().cloned());
            return Ok(marked);
        }
        let past = past_column(place);
        let image = || self.joined(vec![self.image(table, qualifier), text(&IMAGE.to_string())]);
        let kept = self.joined(vec![of(&past), image()]);
        if !self.capabilities.skips_equal_updates {
            let mut marked = vec![(past, kept), (writes, number)];
            marked.extend(sets.iter().cloned());
            return Ok(marked);
        }
        if in_order {
            // The images hold no wildcards.
            let last = self.joined(vec![text(&format!("%{IMAGE}")), image()]);
            let stays = Expr::Like {
                of: Box::new(self.joined(vec![text(&IMAGE.to_string()), of(&past)])),
                pattern: Box::new(last),
                negated: false,
            };
            let length = |of: Expr| Expr::Call(Function::Length, vec![of]);
            let shorter = Expr::binary(Binary::Minus, length(of(&past)), length(image()));
            let cut = Expr::Call(Function::Named("left".into()), vec![of(&past), shorter]);
            let mut marked = vec![(past.clone(), kept)];
            marked.extend(sets.iter().cloned());
            marked.push((writes.clone(), either(stays.clone(), of(&writes), number)));
            marked.push((past.clone(), either(stays, cut, of(&past))));
            return Ok(marked);
        }
        if self.capabilities.assigns_in_order && uses_an_earlier_one(sets) {
            return Err(NotInstrumented("an assignment uses what one before it may have changed"));
        }
        let mut marked = match nothing_changes(table, qualifier, sets) {
            Some(stays) => vec![
                (past.clone(), either(stays.clone(), of(&past), kept)),
                (writes.clone(), either(stays, of(&writes), number)),
            ],
            None => return Err(NotInstrumented("whether it changes a row is not known")),
        };
        marked.extend(sets.iter().cloned());
        Ok(marked)
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

fn either(condition: Expr, then: Expr, otherwise: Expr) -> Expr {
    let branches = vec![(condition, then)];
    Expr::Case { operand: None, branches, otherwise: Some(Box::new(otherwise)) }
}

/// Whether an assignment mentions the column of one before it.
fn uses_an_earlier_one(sets: &Sets) -> bool {
    sets.iter().enumerate().any(|(number, (_, value))| {
        let mut found = false;
        value.visit(&mut |e| {
            if let Expr::Column { name, .. } = e {
                found |= sets[..number].iter().any(|(column, _)| column == name);
            }
        });
        found
    })
}

/// That every assignment leaves its column as it is, where the values are those that are computed
/// on the old row. None where that cannot be expressed without computing something twice that may
/// differ.
fn nothing_changes(table: &Table, qualifier: &str, sets: &Sets) -> Option<Expr> {
    let mut all: Option<Expr> = None;
    for (name, new) in sets {
        let mut is_default = false;
        new.visit(&mut |e| is_default |= *e == Expr::Default);
        if is_default || is_unsafe_to_repeat(new) {
            return None;
        }
        let column = table.column(name)?;
        let same = Expr::binary(
            Binary::NotDistinct,
            stored(column_of(qualifier, name), &column.of_type),
            stored(new.clone(), &column.of_type),
        );
        all = Some(all.map_or(same.clone(), |all| all.and(same)));
    }
    all
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
