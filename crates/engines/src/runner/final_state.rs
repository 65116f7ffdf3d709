//! The rows in the database after every transaction has ended.

use super::run::Run;
use crate::engine::{EngineError, Outcome};
use isolde_model::history::{DbError, FinalRows};
use isolde_model::value::compare_rows;

impl Run<'_> {
    /// Reads the final rows: by the case's own queries, or every table in full.
    pub(super) fn read_final_state(&mut self) -> Vec<FinalRows> {
        if self.history.death.is_some() {
            return Vec::new();
        }
        let queries: Vec<String> = if self.case.finals.is_empty() {
            match self.engine.tables() {
                Ok(tables) => tables.iter().map(|t| format!("select * from {t}")).collect(),
                Err(error) => {
                    let error = Some(self.not_read(error));
                    let query = "(which tables there are)".to_string();
                    return vec![FinalRows { query, columns: Vec::new(), rows: Vec::new(), error }];
                }
            }
        } else {
            self.case.finals.iter().map(|s| s.sql.clone()).collect()
        };
        queries.into_iter().map(|query| self.read_final(query)).collect()
    }

    fn read_final(&mut self, query: String) -> FinalRows {
        let mut result =
            FinalRows { query: query.clone(), columns: Vec::new(), rows: Vec::new(), error: None };
        match self.engine.control(&query) {
            Ok(Outcome::Rows { columns, mut rows }) => {
                rows.sort_by(|a, b| compare_rows(a, b));
                result.columns = columns;
                result.rows = rows;
            }
            Ok(Outcome::Error(error)) => result.error = Some(error),
            Ok(Outcome::Affected(_) | Outcome::Done) => {}
            Err(error) => result.error = Some(self.not_read(error)),
        }
        result
    }

    fn not_read(&mut self, error: EngineError) -> DbError {
        let text = error.to_string();
        // Any reason other than a server failure is in the text.
        let _ = self.record_failure(error);
        DbError::lost(text)
    }
}
