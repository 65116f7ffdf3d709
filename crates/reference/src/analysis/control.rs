//! The rows that a statement read, for a control run.
//!
//! The reference model evaluates statements over version tables. An engine that evaluates a
//! statement there differently than on its tables would seem to return wrong rows. A *control
//! run* tells the two apart: the statement alone, on ordinary tables with the rows that it read.

use crate::model::ReferenceModel;
use isolde_model::Value;
use isolde_sql::fixture::Rows;
use isolde_sql::{Class, Column, Literal, LockPatience, Stmt};

/// A statement, and the rows of each table that it read.
#[derive(Clone, Debug, PartialEq)]
pub struct ControlRun {
    pub step: usize,
    pub rows: Vec<Rows>,
}

impl ReferenceModel<'_> {
    /// The rows that a statement read, if the replay came to them and evaluated it on no others:
    /// the result of one that waited or skipped locked rows depends on more.
    pub(super) fn control_run(&self, step: usize) -> Option<ControlRun> {
        if self.subject.history.outcome(step).waited || self.skips_locked_rows(step) {
            return None;
        }
        let viewed = self.trace.views().iter().rfind(|viewed| viewed.step == step)?;
        let tables = &self.subject.reading.schema.tables;
        let mut rows: Vec<Rows> = vec![Rows::new(); tables.len()];
        for (table, ids) in &viewed.tables {
            let versions = self.world.tables()[*table].iter().flat_map(|chain| &chain.versions);
            for version in versions.filter(|v| !v.dead && ids.contains(&v.id)) {
                let cells = tables[*table].columns.iter().zip(version.row.iter());
                rows[*table].push(cells.map(|(column, value)| literal(column, value)).collect());
            }
        }
        Some(ControlRun { step, rows })
    }

    fn skips_locked_rows(&self, step: usize) -> bool {
        match self.operation(step).map(Stmt::unprepared) {
            Some(Stmt::Select(select)) => select
                .locking
                .as_ref()
                .is_some_and(|locking| locking.patience == LockPatience::SkipLocked),
            _ => false,
        }
    }
}

fn literal(column: &Column, value: &Value) -> Literal {
    match value {
        Value::Null => Literal::Null,
        Value::Bool(value) => Literal::Bool(*value),
        Value::Int(number) => Literal::Int(*number),
        Value::Float(number) => Literal::Number(format!("{number:?}")),
        Value::Decimal(digits) => Literal::Number(digits.clone()),
        Value::Text(text) if column.of_type.class() == Class::Date => Literal::Date(text.clone()),
        Value::Text(text) => Literal::Text(text.clone()),
        Value::Bytes(bytes) => Literal::Blob(bytes.clone()),
    }
}
