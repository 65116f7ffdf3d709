//! The queries at the end of a case from a file, on the rows that are left.

use crate::model::ReferenceModel;
use crate::statements::leaves_rows_open;
use crate::stop::Stop;
use crate::version_tables::View;
use crate::world::FIRST_ROWS;
use isolde_model::breach::{Breach, RowDiff};
use isolde_model::value::{Row, same_multiset};
use isolde_sql::{Stmt, Table, read};

/// The query that gives the rows of a table as they are.
pub fn plain_query(table: &Table) -> String {
    let columns: Vec<&str> = table.columns.iter().map(|c| c.name.as_str()).collect();
    format!("select {} from {}", columns.join(", "), table.name)
}

impl ReferenceModel<'_> {
    /// The rows at the end are those of the committed transactions.
    pub fn final_rows(&mut self) -> Result<(), Stop> {
        let subject = self.subject;
        let finals = &subject.history.final_state;
        for (place, table) in subject.reading.schema.tables.iter().enumerate() {
            if subject.reading.unknown_tables.contains(&table.name) {
                continue;
            }
            let query = plain_query(table);
            let Some(seen) = finals.iter().find(|f| f.query == query) else { continue };
            let columns = table.columns.len();
            let rows: Vec<Row> =
                self.world.committed_rows(place).map(|v| v.row[..columns].to_vec()).collect();
            if !same_multiset(&rows, &seen.rows) {
                let rule = self.world.transactions().find_map(|(_, t)| t.concurrency.as_ref());
                let Some(rule) = rule.map(|c| c.rules.rollback) else { return Ok(()) };
                let diff = RowDiff::between(&seen.rows, &rows);
                let breach = Breach::FinalRows { table: table.name.clone(), diff };
                return Err(Stop::Outside { step: None, rule, breach });
            }
        }
        Ok(())
    }

    /// Compares the other final queries with their results on the committed rows.
    /// Queries that were not parsed or cannot be evaluated are not compared.
    pub async fn final_queries(&mut self) -> Result<(), Stop> {
        let subject = self.subject;
        let schema = &subject.reading.schema;
        let rule = self
            .world
            .transactions()
            .find_map(|(_, t)| t.concurrency.as_ref())
            .map(|c| c.rules.rollback);
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
            let unknown = &subject.reading.unknown_tables;
            let known =
                select.sources().iter().all(|t| schema.table(t).is_some() && !unknown.contains(*t));
            if !known || leaves_rows_open(&select, schema) {
                continue;
            }
            let sql = self.tables.select(&select, &self.last_rows());
            let Ok(rows) = self.evaluate(sql, None).await else { continue };
            if !same_multiset(&rows, &seen.rows) {
                let diff = RowDiff::between(&seen.rows, &rows);
                let breach = Breach::FinalQuery { query: seen.query.clone(), diff };
                return Err(Stop::Outside { step: None, rule, breach });
            }
        }
        Ok(())
    }

    fn last_rows(&self) -> View {
        let of_table = |table: usize| {
            let newest = |p| self.world.newest(p, FIRST_ROWS).filter(|v| !v.dead).map(|v| v.id);
            self.world.places(table).filter_map(newest).collect()
        };
        (0..self.world.table_count()).map(of_table).collect()
    }
}
