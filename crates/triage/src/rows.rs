//! Where unexpected and missing rows come from: the setup, an INSERT, or an
//! UPDATE.

use super::run::Run;
use isolde_model::value::{Row, Value};
use isolde_sql::{Expr, Insert, InsertSource, Literal, Schema, Stmt, Write, read};
use std::collections::BTreeMap;

/// A row in plain texts, comparable over engines.
pub type Cells = Vec<String>;

/// Rows by table.
pub type Tables = BTreeMap<String, Vec<Cells>>;

pub fn cells(row: &Row) -> Cells {
    row.iter().map(|value| plain(&value.to_string())).collect()
}

/// One cell without what engines write differently: quotes, zeros behind the
/// point, the words for true and false.
fn plain(text: &str) -> String {
    let text = text.trim();
    if let Some(inner) = text.strip_prefix('\'').and_then(|t| t.strip_suffix('\'')) {
        return inner.replace("''", "'");
    }
    match text {
        "true" => return "1".into(),
        "false" => return "0".into(),
        _ => {}
    }
    if text.contains('.') && text.bytes().all(|b| b.is_ascii_digit() || b"-.".contains(&b)) {
        return text.trim_end_matches('0').trim_end_matches('.').to_string();
    }
    text.to_string()
}

fn literal(expression: &Expr) -> Option<String> {
    let Expr::Literal(literal) = expression else { return None };
    Some(match literal {
        Literal::Null => "null".into(),
        Literal::Int(n) => n.to_string(),
        Literal::Decimal(n) => plain(&format!("{:.2}", *n as f64 / 100.0)),
        Literal::Float(n) => plain(&format!("{:?}", *n as f64 / 4.0)),
        Literal::Number(text) => plain(text),
        Literal::Text(text) | Literal::Date(text) => text.clone(),
        Literal::Bool(b) => u8::from(*b).to_string(),
        Literal::Blob(bytes) => Value::Bytes(bytes.clone()).to_string(),
    })
}

/// The rows that an INSERT gives in so many words, in the order of the table's
/// columns; a cell that is not written down is empty.
pub fn given(insert: &Insert, schema: &Schema) -> Vec<Cells> {
    let InsertSource::Values(rows) = &insert.source else { return Vec::new() };
    let table = schema.tables.iter().find(|t| t.name.eq_ignore_ascii_case(&insert.table));
    let order: Vec<Option<usize>> = match (table, insert.columns.is_empty()) {
        (Some(table), false) => {
            let place =
                |name: &str| insert.columns.iter().position(|c| c.eq_ignore_ascii_case(name));
            table.columns.iter().map(|c| place(&c.name)).collect()
        }
        _ => (0..rows.first().map_or(0, Vec::len)).map(Some).collect(),
    };
    let row = |row: &Vec<Expr>| {
        let cell = |place: &Option<usize>| match place.and_then(|p| row.get(p)) {
            Some(expression) => literal(expression).unwrap_or_default(),
            None => "null".into(),
        };
        order.iter().map(cell).collect()
    };
    rows.iter().map(row).collect()
}

/// The rows that the setup leaves, as far as it says them.
pub fn first_rows(run: &Run<'_>) -> Tables {
    let mut tables = Tables::new();
    for text in &run.setup {
        if let Some(Stmt::Write(Write::Insert(insert))) = read::statement(text, run.family) {
            let rows = given(&insert, &run.schema);
            tables.entry(insert.table.to_ascii_lowercase()).or_default().extend(rows);
        }
    }
    tables
}

/// Rows added to and missing from an expected result, as plain texts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CellDiff {
    pub extra: Vec<Cells>,
    pub missing: Vec<Cells>,
}

impl CellDiff {
    pub fn between(extra: &[Row], missing: &[Row]) -> CellDiff {
        let all = |rows: &[Row]| rows.iter().map(cells).collect();
        CellDiff { extra: all(extra), missing: all(missing) }
    }

    /// What is wrong with the rows of a table, each kind once.
    pub fn describe(&self, table: &str, run: &Run<'_>, first: &Tables) -> Vec<String> {
        let origin = |row: &Cells| origin(row, table, run, first);
        let mut found: Vec<String> = match (self.extra.is_empty(), self.missing.is_empty()) {
            (false, false) => {
                let pairs = self.extra.iter().zip(&self.missing);
                pairs.map(|(a, b)| format!("{} instead of {}", origin(a), origin(b))).collect()
            }
            (false, true) => self.extra.iter().map(|r| format!("{} too many", origin(r))).collect(),
            (true, _) => self.missing.iter().map(|r| format!("{} missing", origin(r))).collect(),
        };
        found.sort();
        found.dedup();
        found
    }
}

/// Where a row of a table comes from.
fn origin(row: &Cells, table: &str, run: &Run<'_>, first: &Tables) -> &'static str {
    let fits = |other: &Cells| {
        other.len() == row.len() && other.iter().zip(row).all(|(a, b)| a.is_empty() || a == b)
    };
    if first.get(table).is_some_and(|rows| rows.iter().any(fits)) {
        return "a first row";
    }
    for (n, step) in run.case.steps.iter().enumerate() {
        let Some(Stmt::Write(Write::Insert(insert))) = step.statement() else { continue };
        if insert.table.eq_ignore_ascii_case(table) && given(insert, &run.schema).iter().any(fits) {
            return match run.end_of(n) {
                Some("rolls back") => "a row whose insert was rolled back",
                _ => "an inserted row",
            };
        }
    }
    "a changed row"
}
