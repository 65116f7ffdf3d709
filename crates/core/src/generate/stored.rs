//! Rows as an engine returned them, as rows of a plan: what was read can be
//! stored again.

use super::plan::Plan;
use crate::Value;
use crate::sql::{Column, Literal, Type};
use crate::value::Row;

impl Plan {
    /// The same plan from other rows, a list for each table in the order of
    /// [`Plan::final_sql`]. None when a value is not one of its column's type.
    pub fn with_rows(&self, tables: &[Vec<Row>]) -> Option<Plan> {
        if tables.len() != self.schema.tables.len() {
            return None;
        }
        let mut plan = self.clone();
        for (place, rows) in tables.iter().enumerate() {
            let columns = &self.schema.tables[place].columns;
            plan.rows[place] = rows
                .iter()
                .map(|row| {
                    let cells = columns.iter().zip(row);
                    cells.map(|(column, value)| literal(column, value)).collect()
                })
                .collect::<Option<_>>()?;
        }
        Some(plan)
    }
}

fn literal(column: &Column, value: &Value) -> Option<Literal> {
    // Generated columns are computed; whatever stands there is not written.
    if column.generated.is_some() || *value == Value::Null {
        return Some(Literal::Null);
    }
    Some(match (&column.of_type, value) {
        (Type::Int | Type::BigInt, value) => Literal::Int(whole(value)?),
        (Type::Decimal, value) => Literal::Decimal(scaled(value, 100.0)?),
        (Type::Float, value) => Literal::Float(scaled(value, 4.0)?),
        (Type::Bool, Value::Bool(b)) => Literal::Bool(*b),
        (Type::Bool, value) => Literal::Bool(whole(value)? != 0),
        (Type::Text(_), Value::Text(text)) => Literal::Text(text.clone()),
        (Type::Date, Value::Text(text)) => Literal::Date(text.clone()),
        (Type::Blob, Value::Bytes(bytes)) => Literal::Blob(bytes.clone()),
        (Type::Blob, Value::Text(text)) => Literal::Blob(text.clone().into_bytes()),
        _ => return None,
    })
}

fn whole(value: &Value) -> Option<i64> {
    match value {
        Value::Int(i) => Some(*i),
        Value::Bool(b) => Some(i64::from(*b)),
        Value::Decimal(text) => text.parse().ok(),
        _ => None,
    }
}

/// A number in parts of its unit; none when that loses something.
#[allow(clippy::cast_possible_truncation, clippy::cast_precision_loss)]
fn scaled(value: &Value, parts: f64) -> Option<i64> {
    let number = match value {
        Value::Int(i) => *i as f64,
        Value::Float(x) => *x,
        Value::Decimal(text) => text.parse().ok()?,
        _ => return None,
    };
    let scaled = (number * parts).round();
    let exact = (scaled / parts - number).abs() < 1e-9 && scaled.abs() < 1e15;
    exact.then_some(scaled as i64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Level;
    use crate::generate::{Dialect, Generator, Options};

    #[test]
    fn rows_that_were_read_are_stored_as_they_were() {
        let options = Options::new(vec![Level::Serializable], Level::Serializable);
        let generator = Generator::new(Dialect::for_engine("sqlite", "3.54"), 1, options);
        for number in (0..600).step_by(30) {
            let plan = generator.plan(number);
            let read: Vec<Vec<Row>> = plan
                .rows
                .iter()
                .map(|rows| rows.iter().map(|r| r.iter().map(as_read).collect()).collect())
                .collect();
            let again = plan.with_rows(&read).expect("values of the plan's own columns");
            assert_eq!(again.reset_sql(), plan.reset_sql(), "case {number}");
        }
    }

    fn as_read(literal: &Literal) -> Value {
        match literal {
            Literal::Null => Value::Null,
            Literal::Int(i) => Value::Int(*i),
            Literal::Decimal(n) => Value::Decimal(format!("{:.2}", *n as f64 / 100.0)),
            Literal::Float(n) => Value::Float(*n as f64 / 4.0),
            Literal::Number(n) => Value::Decimal(n.clone()),
            Literal::Text(t) | Literal::Date(t) => Value::Text(t.clone()),
            Literal::Bool(b) => Value::Bool(*b),
            Literal::Blob(b) => Value::Bytes(b.clone()),
        }
    }
}
