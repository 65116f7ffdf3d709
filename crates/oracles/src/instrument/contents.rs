//! Which versions satisfy which predicates: the engine says, on a table of all
//! versions.

use super::{Instrument, Predicate, StatementId};
use isolde_model::Value;
use isolde_model::value::Row;
use isolde_sql::dialect::Family;
use isolde_sql::render::{Renderer, listed};
use isolde_sql::{Column, Literal};

/// Predicates that are asked for at once: each has a bit of a number.
const AT_ONCE: usize = 48;
/// Rows of one INSERT.
const ROWS_AT_ONCE: usize = 200;

/// What is asked of the engine: versions of one table and predicates on them.
#[derive(Clone, Debug, PartialEq)]
pub struct Evaluation {
    pub table: usize,
    /// Row, last writer and what it holds.
    pub versions: Vec<(String, Option<StatementId>, Row)>,
    pub predicates: Vec<Predicate>,
}

impl Instrument {
    fn versions_table(&self, table: usize) -> String {
        format!("isolde_versions_{table}")
    }

    /// Makes the tables of versions, where there are none.
    pub fn create_versions_sql(&self) -> Vec<String> {
        let renderer = Renderer::new(&self.dialect);
        let create = |(place, table): (usize, &isolde_sql::Table)| {
            let column = |c: &Column| {
                let plain = Column {
                    not_null: false,
                    numbered: None,
                    generated: None,
                    default: None,
                    ..c.clone()
                };
                renderer.column(&plain)
            };
            let columns = listed(&table.columns, column);
            format!("create table {} (isolde_place int, {columns})", self.versions_table(place))
        };
        self.schema.tables.iter().enumerate().map(create).collect()
    }

    pub fn drop_versions_sql(&self) -> Vec<String> {
        let tables = 0..self.schema.tables.len();
        tables.map(|t| format!("drop table if exists {}", self.versions_table(t))).collect()
    }
}

impl Evaluation {
    /// Fills the table of versions.
    pub fn load_sql(&self, instrument: &Instrument) -> Vec<String> {
        let renderer = Renderer::new(&instrument.dialect);
        let name = instrument.versions_table(self.table);
        let table = &instrument.schema.tables[self.table];
        let names = listed(&table.columns, |c| renderer.name(&c.name).into_owned());
        let mut sql = vec![format!("delete from {name}")];
        let numbered: Vec<(usize, &Row)> =
            self.versions.iter().enumerate().map(|(n, (_, _, holds))| (n, holds)).collect();
        for some in numbered.chunks(ROWS_AT_ONCE) {
            let rows = listed(some, |(number, holds)| {
                let cells = holds.iter().map(|v| literal(&renderer, v)).collect::<Vec<_>>();
                format!("({number}, {})", cells.join(", "))
            });
            sql.push(format!("insert into {name} (isolde_place, {names}) values {rows}"));
        }
        sql
    }

    /// Questions, each for some of the predicates: what comes back is the place of each
    /// version and a number whose bits say which it satisfies.
    pub fn ask_sql(&self, instrument: &Instrument) -> Vec<(std::ops::Range<usize>, String)> {
        let starts = (0..self.predicates.len()).step_by(AT_ONCE);
        let ranges = starts.map(|start| start..(start + AT_ONCE).min(self.predicates.len()));
        ranges.map(|range| (range.clone(), self.ask_for(instrument, range))).collect()
    }

    pub fn ask_for(&self, instrument: &Instrument, range: std::ops::Range<usize>) -> String {
        let renderer = Renderer::new(&instrument.dialect);
        let wide = match instrument.capabilities.family {
            Family::Mysql => "signed",
            _ => "bigint",
        };
        let mut sum = format!("cast(0 as {wide})");
        for (bit, predicate) in self.predicates[range].iter().enumerate() {
            let value = 1u64 << bit;
            sum.push_str(&match &predicate.filter {
                None => format!(" + {value}"),
                Some(filter) => {
                    format!(" + case when {} then {value} else 0 end", renderer.expr(filter))
                }
            });
        }
        let name = instrument.versions_table(self.table);
        format!("select isolde_place, {sum} from {name}")
    }
}

fn literal(renderer: &Renderer<'_>, value: &Value) -> String {
    match value {
        Value::Null => "null".into(),
        Value::Bool(b) => renderer.literal(&Literal::Bool(*b)),
        Value::Int(n) => n.to_string(),
        Value::Float(f) => format!("{f:?}"),
        Value::Decimal(text) => text.clone(),
        Value::Text(text) => renderer.text(text),
        Value::Bytes(bytes) => renderer.literal(&Literal::Blob(bytes.clone())),
    }
}
