//! The rows that a statement read, for a control run.
//!
//! The reference model evaluates statements over version tables. An engine that evaluates a
//! statement there differently than on its tables would seem to return wrong rows. A *control
//! run* tells the two apart: the statement alone, on ordinary tables with the rows that it read.

use crate::model::{ReferenceModel, WriteEvaluation};
use crate::version_tables::{VersionId, View};
use isolde_model::Value;
use isolde_model::value::Row;
use isolde_sql::fixture::Rows;
use isolde_sql::{Class, Column, Literal, LockPatience, Stmt, Table};
use std::rc::Rc;

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
        let read = viewed.and_then(|viewed| {
            let tables = &self.subject.reading.schema.tables;
            let mut view: View = vec![Vec::new(); tables.len()];
            let mut rows: Vec<Rows> = vec![Rows::new(); tables.len()];
            for (table, ids) in &viewed.tables {
                view[*table].clone_from(ids);
                let versions = self.versions_in(*table, &view);
                // A rollback may have removed some of them.
                if versions.len() != ids.len() {
                    return None;
                }
                rows[*table] =
                    versions.iter().map(|(_, row)| literals(&tables[*table], row)).collect();
            }
            Some(ControlRun { step: viewed.step, rows, written: None })
        });
        let writes = self.trace.evaluations().iter().filter_map(|e| self.write_control(e));
        read.into_iter().chain(writes).collect()
    }

    /// The control run of a write, unless its subqueries read other rows of the table than the
    /// write itself.
    fn write_control(&self, write: &WriteEvaluation) -> Option<ControlRun> {
        let tables = &self.subject.reading.schema.tables;
        let name = tables[write.table].name.as_str();
        let mut reads_itself = false;
        self.operation(write.step)?.visit(&mut |e| {
            reads_itself |= e.subquery().is_some_and(|s| s.sources().contains(&name));
        });
        if reads_itself && !write.reads_what_it_searches {
            return None;
        }
        let of_table = |(table, rows): (&Table, &Vec<(VersionId, Rc<Row>)>)| {
            rows.iter().map(|(_, row)| literals(table, row)).collect()
        };
        let rows = tables.iter().zip(&write.rows).map(of_table).collect();
        let own = write.rows[write.table].iter().filter(|(id, _)| !write.found.contains(id));
        let kept = own.map(|(_, row)| (**row).clone());
        let predicted = kept.chain(write.made.iter().cloned()).collect();
        Some(ControlRun { step: write.step, rows, written: Some((write.table, predicted)) })
    }

    /// Records what a write would do without the others.
    pub fn record_evaluation(
        &mut self,
        (step, table): (usize, usize),
        (view, inner): (&View, &View),
        found: Vec<VersionId>,
        made: Vec<Row>,
    ) {
        let rows = (0..view.len())
            .map(|other| self.versions_in(other, if other == table { view } else { inner }))
            .collect();
        let reads_what_it_searches = view[table] == inner[table];
        let evaluation = WriteEvaluation { step, table, rows, reads_what_it_searches, found, made };
        self.trace.record_evaluation(evaluation);
    }

    fn versions_in(&self, table: usize, view: &View) -> Vec<(VersionId, Rc<Row>)> {
        let versions = self.world.tables()[table].iter().flat_map(|chain| &chain.versions);
        versions
            .filter(|version| !version.dead && view[table].contains(&version.id))
            .map(|version| (version.id, version.row.clone()))
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

fn literals(table: &Table, row: &Row) -> Vec<Literal> {
    table.columns.iter().zip(row).map(|(column, value)| literal(column, value)).collect()
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
