//! What instrumented statements say of themselves, on SQLite in memory, and how they are
//! written for the others.

use super::*;
use isolde_model::Value;
use isolde_model::history::TargetInfo;
use isolde_model::value::same_multiset;
use isolde_sql::Literal;
use isolde_sql::dialect::Family;
use isolde_sql::fixture::Fixture;
use isolde_sql::read;
use rusqlite::Connection;

mod actions;
mod history;
mod queries;
mod writes;

const TABLES: [&str; 2] =
    ["create table t (a int primary key, b int, c varchar(20))", "create table u (d int, e int)"];

fn instrument(engine: &str) -> Instrument {
    let dialect = Dialect::for_engine(engine, "99");
    let schema = read::schema(TABLES, Family::Sqlite).schema;
    Instrument::new(schema, dialect, capabilities(engine))
}

fn capabilities(engine: &str) -> EngineCapabilities {
    let (engine, version) = (engine.into(), "99".into());
    TargetInfo { engine, version, ..TargetInfo::default() }.capabilities()
}

fn parsed(sql: &str, family: Family) -> Stmt {
    read::statement(sql, family).unwrap_or_else(|| panic!("not read: {sql}"))
}

fn observed(engine: &str, id: u64, sql: &str) -> Result<Vec<String>, NotInstrumented> {
    let instrument = instrument(engine);
    let statement = parsed(sql, Family::of(engine));
    let sent = instrument.statement(id, &statement)?;
    Ok(sent.iter().map(|sent| sent.statement.render(&instrument.dialect)).collect())
}

/// A database of one session that numbers its statements.
struct Session {
    instrument: Instrument,
    connection: Connection,
    next: u64,
}

impl Session {
    /// Three rows of t, `0r0` to `0r2`, and two of u.
    fn new() -> Session {
        let instrument = instrument("sqlite");
        let int = |n: i64| Literal::Int(n);
        let text = |t: &str| Literal::text(t);
        let rows = vec![
            vec![
                vec![int(1), int(10), text("x")],
                vec![int(2), int(20), text("y")],
                vec![int(3), int(20), Literal::Null],
            ],
            vec![vec![int(1), int(5)], vec![int(2), int(6)]],
        ];
        let schema = instrument.schema.clone();
        let observed = instrument.fixture(&Fixture { schema, rows, dialect: instrument.dialect });
        let connection = Connection::open_in_memory().unwrap();
        for sql in observed.create_sql().iter().chain(&observed.reset_sql()) {
            connection.execute_batch(sql).unwrap();
        }
        Session { instrument, connection, next: 1 }
    }

    fn rows(&self, statement: &Stmt) -> Vec<isolde_model::value::Row> {
        let sql = statement.render(&self.instrument.dialect);
        let mut prepared = self.connection.prepare(&sql).unwrap_or_else(|e| panic!("{sql}: {e}"));
        let columns = prepared.column_count();
        let value = |row: &rusqlite::Row<'_>, at: usize| match row.get_ref(at).unwrap() {
            rusqlite::types::ValueRef::Null => Value::Null,
            rusqlite::types::ValueRef::Integer(n) => Value::Int(n),
            rusqlite::types::ValueRef::Real(f) => Value::Float(f),
            rusqlite::types::ValueRef::Text(t) => Value::Text(String::from_utf8_lossy(t).into()),
            rusqlite::types::ValueRef::Blob(b) => Value::Bytes(b.to_vec()),
        };
        let mut rows = prepared.query([]).unwrap();
        let mut all = Vec::new();
        while let Some(row) = rows.next().unwrap() {
            all.push((0..columns).map(|at| value(row, at)).collect());
        }
        all
    }

    /// The probe results of a statement, without its own columns. The rows of a query are those of
    /// the same query without instrumentation.
    fn run(&mut self, sql: &str) -> Vec<ProbeResult> {
        let id = self.next;
        self.next += 1;
        let statement = self.instrument.schema.without_views(&parsed(sql, Family::Sqlite));
        let sent = self.instrument.statement(id, &statement).unwrap();
        let mut results = Vec::new();
        for Sent { statement: instrumented, probe, .. } in &sent {
            let rows = self.rows(instrumented);
            if let Stmt::Select(select) = &statement {
                let plain = self.instrument.with_columns_named(select, &[]).unwrap();
                let own: Vec<_> = rows.iter().filter_map(|row| probe.own_row(row)).collect();
                let plain = self.rows(&Stmt::Select(plain));
                assert!(same_multiset(&own, &plain), "{sql}: {own:?}, not {plain:?}");
            }
            results.push(self.instrument.decode(probe, &rows));
        }
        results
    }

    /// Why some of what a statement reads is not revealed.
    fn unobserved(&self, sql: &str) -> Vec<&'static str> {
        let sent = self.instrument.statement(1, &parsed(sql, Family::Sqlite)).unwrap();
        sent.into_iter().flat_map(|sent| sent.unobserved).map(|why| why.0).collect()
    }

    /// The versions that a query names, cell by cell: `row@writers`.
    fn reads(&mut self, sql: &str) -> Vec<String> {
        match self.run(sql).pop() {
            Some(ProbeResult::Read(cells)) => cells.iter().map(|cell| shown(cell)).collect(),
            other => panic!("{sql}: {other:?}"),
        }
    }

    fn touched(&mut self, sql: &str) -> String {
        let results = self.run(sql);
        let entries: Vec<Entry> = results
            .into_iter()
            .flat_map(|results| match results {
                ProbeResult::Rows(rows) => rows.into_iter().map(|version| version.entry).collect(),
                _ => Vec::new(),
            })
            .collect();
        shown(&entries)
    }
}

fn shown(entries: &[Entry]) -> String {
    let mut all: Vec<String> =
        entries.iter().map(|e| format!("{}@{:?}", e.row, e.writes).replace(' ', "")).collect();
    all.sort();
    all.join(" ")
}
