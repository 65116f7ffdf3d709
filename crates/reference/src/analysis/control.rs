//! The rows that a statement read, for a control run.
//!
//! The reference model evaluates statements over version tables. An engine that evaluates a
//! statement there differently than on its tables would seem to return wrong rows. A *control
//! run* tells the two apart: the statement alone, on ordinary tables with the rows that it read.

use crate::model::{ReferenceModel, WriteEvaluation};
use crate::version_tables::VersionId;
use crate::world::Version;
use isolde_model::Value;
use isolde_model::value::Row;
use isolde_sql::fixture::Rows;
use isolde_sql::{Class, Column, Literal, LockPatience, Stmt};

/// A statement, and the rows of each table that it read.
#[derive(Clone, Debug, PartialEq)]
pub struct ControlRun {
    pub step: usize,
    pub rows: Vec<Rows>,
    /// For a statement whose reply the analysis does not blame: the table that it writes, and the
    /// rows that the table is predicted to have afterwards.
    pub written: Option<(usize, Vec<Row>)>,
}

impl ReferenceModel<'_> {
    /// The control runs for a breach: the statement to blame on the rows that it read, if the
    /// replay came to them and evaluated it on no others (the result of one that waited or skipped
    /// locked rows depends on more), and the writes before it.
    pub(super) fn control_runs(&self, step: Option<usize>) -> Vec<ControlRun> {
        let blamed = step.filter(|step| {
            !self.subject.history.outcome(*step).waited && !self.skips_locked_rows(*step)
        });
        let viewed =
            blamed.and_then(|step| self.trace.views().iter().rfind(|viewed| viewed.step == step));
        let read = viewed.map(|viewed| {
            let mut rows = self.no_rows();
            for (table, ids) in &viewed.tables {
                rows[*table] = self.literals(*table, ids);
            }
            ControlRun { step: viewed.step, rows, written: None }
        });
        let writes = self.trace.evaluations().iter().filter_map(|e| self.write_control(e));
        read.into_iter().chain(writes).collect()
    }

    /// The control run of a write, unless its subqueries read other rows of the table than the
    /// write itself.
    fn write_control(&self, write: &WriteEvaluation) -> Option<ControlRun> {
        let WriteEvaluation { step, table, view, inner, found, made } = write;
        let name = &self.subject.reading.schema.tables[*table].name;
        let mut reads_itself = false;
        self.operation(*step)?.visit(&mut |e| {
            reads_itself |= e.subquery().is_some_and(|s| s.sources().contains(&name.as_str()));
        });
        if reads_itself && view[*table] != inner[*table] {
            return None;
        }
        let mut rows = self.no_rows();
        for other in 0..rows.len() {
            let ids = if other == *table { &view[other] } else { &inner[other] };
            rows[other] = self.literals(other, ids);
        }
        let mut predicted: Vec<Row> = self
            .live_versions(*table, &view[*table])
            .filter(|version| !found.contains(&version.id))
            .map(|version| (*version.row).clone())
            .collect();
        predicted.extend(made.iter().cloned());
        Some(ControlRun { step: *step, rows, written: Some((*table, predicted)) })
    }

    fn no_rows(&self) -> Vec<Rows> {
        vec![Rows::new(); self.subject.reading.schema.tables.len()]
    }

    fn live_versions(&self, table: usize, ids: &[VersionId]) -> impl Iterator<Item = &Version> {
        let versions = self.world.tables()[table].iter().flat_map(|chain| &chain.versions);
        versions.filter(|version| !version.dead && ids.contains(&version.id))
    }

    fn literals(&self, table: usize, ids: &[VersionId]) -> Rows {
        let columns = &self.subject.reading.schema.tables[table].columns;
        self.live_versions(table, ids)
            .map(|version| {
                let cells = columns.iter().zip(version.row.iter());
                cells.map(|(column, value)| literal(column, value)).collect()
            })
            .collect()
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
