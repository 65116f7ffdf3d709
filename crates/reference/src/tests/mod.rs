//! Conclusions about scripted runs: a history is written by hand, and SQLite
//! in memory evaluates what a prediction asks for. The rules are those of the
//! engine that the history names.

mod assignments;
mod commits;
mod keys;
mod merge;
mod merging;
mod moves;
mod records;
mod runs;
mod serial;
mod shared_keys;
mod tables;
mod three_way;
mod verdicts;
mod waits;
mod worked_example;

use super::analysis::{predict, serial_order};
use super::version_tables::{MADE_MARK, VersionTables};
use crate::subject::Subject;
use crate::{Conclusion, SerialOrder};
use isolde_model::history::{
    DbError, ErrorClass, ErrorEffect, Event, EventKind, FinalRows, History, SentStep, TargetInfo,
    Transaction, TxEnd,
};
use isolde_model::inquiry::{Inquiry, Request, Response};
use isolde_model::parsed_case::utility::Utility;
use isolde_model::parsed_case::{Operation, ParsedCase};
use isolde_model::value::Row;
use isolde_model::{Level, Value};
use isolde_sql::BeginForm;
use isolde_sql::dialect::{Dialect, Family};
use isolde_sql::{Control, Literal, Stmt, read};
use rusqlite::types::ValueRef;

const TABLE: &str = "create table t (id int primary key, v int)";

/// A history that a test writes by hand.
struct ScriptedRun {
    history: History,
    reading: ParsedCase,
    /// The initial rows of each table.
    first_rows: Vec<Vec<Vec<i64>>>,
    level: Level,
}

impl ScriptedRun {
    fn on(engine: &str, level: Level, first_rows: &[(i64, i64)]) -> ScriptedRun {
        let on = TargetInfo { engine: engine.into(), ..TargetInfo::default() };
        let history = History {
            isolde: String::new(),
            case: "scripted".into(),
            on,
            level: Some(level),
            seed: None,
            steps: Vec::new(),
            events: Vec::new(),
            transactions: Vec::new(),
            final_state: Vec::new(),
            death: None,
        };
        let reading = ParsedCase {
            schema: read::schema([TABLE], Family::Sqlite).schema,
            dialect: Dialect::for_engine("sqlite", "3.45"),
            operations: Vec::new(),
            levels: Vec::new(),
            first_rows: None,
            numbering: Default::default(),
            unknown_waits: false,
            constrained: Default::default(),
            deferrable: Default::default(),
            changes: Vec::new(),
            unknown_tables: Default::default(),
        };
        let first_rows = vec![first_rows.iter().map(|(id, v)| vec![*id, *v]).collect()];
        ScriptedRun { history, reading, first_rows, level }
    }

    /// Replaces the default table.
    fn in_table(mut self, table: &str, rows: &[&[i64]]) -> ScriptedRun {
        self.reading.schema = read::schema([table], Family::Sqlite).schema;
        self.first_rows = vec![rows.iter().map(|row| row.to_vec()).collect()];
        self
    }

    /// Adds a second table.
    fn with_table(mut self, table: &str, rows: &[&[i64]]) -> ScriptedRun {
        self.reading.schema = read::schema([TABLE, table], Family::Sqlite).schema;
        self.first_rows.push(rows.iter().map(|row| row.to_vec()).collect());
        self
    }

    /// Changes a setting of the server.
    fn set(mut self, name: &str, value: &str) -> ScriptedRun {
        self.history.on.settings.insert(name.into(), value.into());
        self
    }

    fn event(&mut self, session: &str, step: usize, what: EventKind) {
        self.history.events.push(Event { session: session.into(), step: Some(step), what });
    }

    /// Sends a statement, without a reply.
    fn sent(mut self, session: &str, sql: &str) -> ScriptedRun {
        let step = self.history.steps.len();
        let nth = self.history.steps.iter().filter(|s| s.session == session).count() + 1;
        self.history.steps.push(SentStep {
            label: format!("{session}.{nth}"),
            session: session.into(),
            sql: sql.into(),
            anyway: false,
        });
        self.reading.levels.push(self.level);
        self.reading.operations.push(match read::statement(sql, Family::Sqlite) {
            Some(Stmt::Control(Control::Begin(_))) => Operation::Begin(BeginForm::Plain),
            Some(Stmt::Control(Control::Commit)) => Operation::Commit,
            Some(Stmt::Control(Control::Rollback)) => Operation::Rollback,
            Some(Stmt::Control(Control::SetAutocommit(false))) => Operation::AutocommitOff,
            Some(other) => Operation::Statement(Box::new(other)),
            None => Operation::Utility(Utility::read(sql, Family::Postgres).expect(sql)),
        });
        self.event(session, step, EventKind::Sent { as_sql: None });
        self
    }

    fn waits(self, session: &str, sql: &str) -> ScriptedRun {
        self.waits_for(session, sql, &[])
    }

    fn waits_for(mut self, session: &str, sql: &str, named: &[&str]) -> ScriptedRun {
        self = self.sent(session, sql);
        let step = self.history.steps.len() - 1;
        let on = named.iter().map(ToString::to_string).collect();
        self.event(session, step, EventKind::Waiting { on });
        self
    }

    fn resumes(mut self, session: &str) -> ScriptedRun {
        let step = self.history.steps.iter().rposition(|s| s.session == session).unwrap();
        self.event(session, step, EventKind::Resumed);
        self
    }

    /// Adds the reply to the last statement of a session.
    fn replies(mut self, session: &str, what: EventKind) -> ScriptedRun {
        let step = self.history.steps.iter().rposition(|s| s.session == session).unwrap();
        let ends = match self.reading.operations[step] {
            Operation::Commit if what.error().is_none() => Some(TxEnd::Committed),
            Operation::Rollback => Some(TxEnd::RolledBack),
            _ => what.error().map(|_| TxEnd::Aborted),
        };
        if matches!(self.reading.operations[step], Operation::Begin(_)) {
            self.history.transactions.push(Transaction {
                session: session.into(),
                begin: step,
                autocommit: false,
                how: TxEnd::RolledBack,
            });
        }
        self.event(session, step, what);
        let mine = |t: &Transaction| t.session == session;
        let transaction = self.history.transactions.iter().rposition(mine);
        if let (Some(how), Some(transaction)) = (ends, transaction) {
            self.history.transactions[transaction].how = how;
            self.event(session, step, EventKind::Ended { transaction, how });
        }
        self
    }

    fn does(self, session: &str, sql: &str, what: EventKind) -> ScriptedRun {
        self.sent(session, sql).replies(session, what)
    }

    fn leaves(self, rows: &[(i64, i64)]) -> ScriptedRun {
        let rows: Vec<[i64; 2]> = rows.iter().map(|(id, v)| [*id, *v]).collect();
        self.leaves_rows(&rows.iter().map(|row| &row[..]).collect::<Vec<_>>())
    }

    fn leaves_rows(mut self, rows: &[&[i64]]) -> ScriptedRun {
        let columns = self.reading.schema.tables[0].columns.iter();
        let columns: Vec<String> = columns.map(|c| c.name.clone()).collect();
        let query = format!("select {} from t", columns.join(", "));
        let rows = rows.iter().map(|row| row.iter().map(|v| Value::Int(*v)).collect()).collect();
        self.history.final_state = vec![FinalRows { query, columns, rows, error: None }];
        self
    }

    fn database(&self) -> rusqlite::Connection {
        let database = rusqlite::Connection::open_in_memory().unwrap();
        let tables = VersionTables { schema: &self.reading.schema, dialect: &self.reading.dialect };
        let literals = |row: &Vec<i64>| row.iter().map(|v| Literal::Int(*v)).collect();
        let rows: Vec<_> =
            self.first_rows.iter().map(|rows| rows.iter().map(literals).collect()).collect();
        for sql in tables.create_sql().iter().chain(&tables.load_sql(&rows)) {
            database.execute(sql, []).unwrap();
        }
        database
    }

    fn answered<T>(&self, inquiry: Inquiry<'_, T>) -> T {
        let database = self.database();
        let mut made = 0;
        let answered = inquiry.answered_by(|question| match question {
            Request::Evaluate(sql) => {
                made += 1;
                let filed = |s: &String| s.replace(MADE_MARK, &made.to_string());
                let sql: Vec<String> = sql.iter().map(filed).collect();
                Ok(Response::Evaluated(Ok(evaluate(&database, &sql))))
            }
            Request::Run(_) | Request::RunOnFixture(..) => Err("nothing can be run here"),
        });
        answered.unwrap()
    }

    fn predicted(&self) -> Conclusion {
        let subject = Subject::new(&self.history, &self.reading);
        let subject = &subject;
        self.answered(Inquiry::new(|channel| async move { predict(subject, &channel).await.0 }))
    }

    fn serial_order(&self) -> SerialOrder {
        let subject = Subject::new(&self.history, &self.reading);
        self.answered(Inquiry::new(|channel| serial_order(&subject, channel)))
    }
}

fn evaluate(database: &rusqlite::Connection, statements: &[String]) -> Vec<Row> {
    let mut last = Vec::new();
    for sql in statements {
        let mut prepared = database.prepare(sql).unwrap_or_else(|e| panic!("{e}: {sql}"));
        let columns = prepared.column_count();
        let cell = |row: &rusqlite::Row<'_>, n| match row.get_ref(n).unwrap() {
            ValueRef::Null => Value::Null,
            ValueRef::Integer(i) => Value::Int(i),
            other => panic!("{other:?}"),
        };
        let rows = prepared.query_map([], |row| Ok((0..columns).map(|n| cell(row, n)).collect()));
        last = rows.unwrap().collect::<Result<Vec<Row>, _>>().unwrap();
    }
    last
}

fn rows(values: &[i64]) -> EventKind {
    let rows = values.iter().map(|v| vec![Value::Int(*v)]).collect();
    EventKind::Rows { columns: vec!["v".into()], rows }
}

fn changed(count: u64) -> EventKind {
    EventKind::Affected { count }
}

fn error(class: ErrorClass) -> EventKind {
    EventKind::Error(DbError {
        code: "scripted".into(),
        sqlstate: None,
        message: String::new(),
        class,
        effect: ErrorEffect::RolledBack,
    })
}
