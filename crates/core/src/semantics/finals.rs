//! The queries at the end of a case from a file, on the rows that are left.

use super::Stop;
use super::conclude::compared;
use super::transaction::FIRST_ROWS;
use super::version_tables::View;
use super::walk::Walk;
use crate::sql::{Order, Select, Stmt, Table, read};
use crate::value::same_multiset;

/// The query that gives the rows of a table as they are.
pub fn plain_query(table: &Table) -> String {
    let columns: Vec<&str> = table.columns.iter().map(|c| c.name.as_str()).collect();
    format!("select {} from {}", columns.join(", "), table.name)
}

impl Walk<'_> {
    /// What the other queries at the end give on the committed rows. What is
    /// not read, or not evaluated, is not compared.
    pub async fn final_queries(&mut self) -> Result<(), Stop> {
        let subject = self.subject;
        let schema = &subject.reading.schema;
        let rule = self.txs.iter().find_map(|t| t.conduct.as_ref()).map(|c| c.rules.rollback);
        let Some(rule) = rule else { return Ok(()) };
        let plain: Vec<String> = schema.tables.iter().map(plain_query).collect();
        for seen in &subject.history.final_state {
            if seen.error.is_some() || plain.contains(&seen.query) {
                continue;
            }
            let Some(Stmt::Select(select)) =
                read::statement(&seen.query, subject.reading.dialect.family)
            else {
                continue;
            };
            let known = select.sources().iter().all(|t| schema.table(t).is_some());
            if !known || leaves_rows_open(&select) {
                continue;
            }
            let sql = self.tables.select(&select, &self.last_rows());
            let Ok(rows) = self.evaluate(sql, None).await else { continue };
            if !same_multiset(&rows, &seen.rows) {
                let why = format!("`{}` at the end: {}", seen.query, compared(&seen.rows, &rows));
                return Err(Stop::Outside { step: None, rule, why });
            }
        }
        Ok(())
    }

    fn last_rows(&self) -> View {
        let of_table = |table: usize| {
            let newest = |p| self.newest(p, FIRST_ROWS).filter(|v| !v.dead).map(|v| v.id);
            self.store.places(table).filter_map(newest).collect()
        };
        (0..self.store.tables.len()).map(of_table).collect()
    }
}

fn leaves_rows_open(select: &Select) -> bool {
    select.limit.is_some() && !matches!(select.order, Order::AllItems { .. })
}
