//! Predictions of runs that nobody ran: a history is written down, and SQLite
//! in memory evaluates what a prediction asks for. The rules are those of the
//! engine that the history names.

mod commits;
mod merging;
mod moves;
mod records;
mod runs;
mod serial;
mod three_way;
mod waits;

use super::version_tables::{MADE_MARK, VersionTables};
use super::{Operation, Prediction, Reading, SerialOrder, Subject, predict, serial_order};
use crate::generate::BeginForm;
use crate::history::{
    DbError, ErrorClass, ErrorEffect, Event, FinalRows, History, SentStep, TargetInfo, Transaction,
    TxEnd, What,
};
use crate::inquiry::{Answer, Inquiry, Question};
use crate::sql::dialect::{Dialect, Family};
use crate::sql::{Literal, Stmt, read};
use crate::value::Row;
use crate::{Level, Value};
use rusqlite::types::ValueRef;

const TABLE: &str = "create table t (id int primary key, v int)";

/// A history as it is written down.
struct Told {
    history: History,
    reading: Reading,
    /// Of each table.
    first_rows: Vec<Vec<Vec<i64>>>,
    level: Level,
}

impl Told {
    fn on(engine: &str, level: Level, first_rows: &[(i64, i64)]) -> Told {
        let on = TargetInfo { engine: engine.into(), ..TargetInfo::default() };
        let history = History {
            isolde: String::new(),
            case: "told".into(),
            on,
            level: Some(level),
            seed: None,
            steps: Vec::new(),
            events: Vec::new(),
            transactions: Vec::new(),
            final_state: Vec::new(),
            death: None,
        };
        let reading = Reading {
            schema: read::schema([TABLE], Family::Sqlite).schema,
            dialect: Dialect::for_engine("sqlite", "3.45"),
            operations: Vec::new(),
            levels: Vec::new(),
            first_rows: None,
        };
        let first_rows = vec![first_rows.iter().map(|(id, v)| vec![*id, *v]).collect()];
        Told { history, reading, first_rows, level }
    }

    /// Another table in the place of the usual one.
    fn in_table(mut self, table: &str, rows: &[&[i64]]) -> Told {
        self.reading.schema = read::schema([table], Family::Sqlite).schema;
        self.first_rows = vec![rows.iter().map(|row| row.to_vec()).collect()];
        self
    }

    /// A second table beside the usual one.
    fn beside(mut self, table: &str, rows: &[&[i64]]) -> Told {
        self.reading.schema = read::schema([TABLE, table], Family::Sqlite).schema;
        self.first_rows.push(rows.iter().map(|row| row.to_vec()).collect());
        self
    }

    /// On a server that is set like this.
    fn set(mut self, name: &str, value: &str) -> Told {
        self.history.on.settings.insert(name.into(), value.into());
        self
    }

    fn event(&mut self, session: &str, step: usize, what: What) {
        self.history.events.push(Event { session: session.into(), step: Some(step), what });
    }

    /// A statement that is sent and does not come back yet.
    fn sent(mut self, session: &str, sql: &str) -> Told {
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
            Some(Stmt::Begin(_)) => Operation::Begin(BeginForm::Plain),
            Some(Stmt::Commit) => Operation::Commit,
            Some(Stmt::Rollback) => Operation::Rollback,
            Some(Stmt::SetAutocommit(false)) => Operation::AutocommitOff,
            Some(other) => Operation::Statement(Box::new(other)),
            None => panic!("{sql}"),
        });
        self.event(session, step, What::Sent { as_sql: None });
        self
    }

    fn waits(self, session: &str, sql: &str) -> Told {
        self.waits_for(session, sql, &[])
    }

    fn waits_for(mut self, session: &str, sql: &str, named: &[&str]) -> Told {
        self = self.sent(session, sql);
        let step = self.history.steps.len() - 1;
        let on = named.iter().map(ToString::to_string).collect();
        self.event(session, step, What::Waiting { on });
        self
    }

    fn resumes(mut self, session: &str) -> Told {
        let step = self.history.steps.iter().rposition(|s| s.session == session).unwrap();
        self.event(session, step, What::Resumed);
        self
    }

    /// What the last statement of a session comes to.
    fn replies(mut self, session: &str, what: What) -> Told {
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
            self.event(session, step, What::Ended { transaction, how });
        }
        self
    }

    fn does(self, session: &str, sql: &str, what: What) -> Told {
        self.sent(session, sql).replies(session, what)
    }

    fn leaves(self, rows: &[(i64, i64)]) -> Told {
        let rows: Vec<[i64; 2]> = rows.iter().map(|(id, v)| [*id, *v]).collect();
        self.leaves_rows(&rows.iter().map(|row| &row[..]).collect::<Vec<_>>())
    }

    fn leaves_rows(mut self, rows: &[&[i64]]) -> Told {
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
            Question::Evaluate(sql) => {
                made += 1;
                let filed = |s: &String| s.replace(MADE_MARK, &made.to_string());
                let sql: Vec<String> = sql.iter().map(filed).collect();
                Ok(Answer::Evaluated(Ok(evaluate(&database, &sql))))
            }
            Question::Run(_) | Question::RunOn(..) => Err("nothing can be run here"),
        });
        answered.unwrap()
    }

    fn predicted(&self) -> Prediction {
        let subject = Subject { history: &self.history, reading: &self.reading };
        self.answered(Inquiry::new(|desk| predict(&subject, desk)))
    }

    fn serial_order(&self) -> SerialOrder {
        let subject = Subject { history: &self.history, reading: &self.reading };
        self.answered(Inquiry::new(|desk| serial_order(&subject, desk)))
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

fn rows(values: &[i64]) -> What {
    let rows = values.iter().map(|v| vec![Value::Int(*v)]).collect();
    What::Rows { columns: vec!["v".into()], rows }
}

fn changed(count: u64) -> What {
    What::Affected { count }
}

fn error(class: ErrorClass) -> What {
    What::Error(DbError {
        code: "told".into(),
        sqlstate: None,
        message: String::new(),
        class,
        effect: ErrorEffect::RolledBack,
    })
}
