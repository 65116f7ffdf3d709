//! What instrumented statements say of themselves, on SQLite in memory, and how they are
//! written for the others.

use super::*;
use isolde_checker::{Class, Level, Verdict, check};
use isolde_model::Value;
use isolde_model::history::{TargetInfo, TxEnd};
use isolde_sql::Literal;
use isolde_sql::dialect::Family;
use isolde_sql::fixture::Fixture;
use isolde_sql::read;
use rusqlite::Connection;

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

    /// The probe results of a statement, without its own columns.
    fn run(&mut self, sql: &str) -> Vec<ProbeResult> {
        let id = self.next;
        self.next += 1;
        let statement = parsed(sql, Family::Sqlite);
        let sent = self.instrument.statement(id, &statement).unwrap();
        sent.iter()
            .map(|sent| self.instrument.decode(&sent.probe, &self.rows(&sent.statement)))
            .collect()
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

#[test]
fn a_query_names_the_versions_of_the_rows_that_it_returns() {
    let mut s = Session::new();
    assert_eq!(s.reads("select b from t where a < 3"), ["0r0@[] 0r1@[]"]);
    s.touched("update t set b = 11 where a = 1");
    assert_eq!(s.reads("select * from t where b = 11"), ["0r0@[2]"]);
    assert_eq!(s.reads("select b from t where a = 99"), [""]);
}

#[test]
fn a_join_names_versions_of_both_tables_and_none_for_a_missing_partner() {
    let mut s = Session::new();
    let joined = s.reads("select t.b, u.e from t left join u on t.a = u.d where t.a > 1");
    assert_eq!(joined, ["0r1@[] 0r2@[]", "1r1@[]"]);
    let twice = s.reads("select t.a from t join t as y on t.b = y.b where t.a = 3");
    assert_eq!(twice, ["0r2@[] 0r2@[]", "0r1@[] 0r2@[]"]);
}

#[test]
fn aggregates_groups_and_distinct_name_all_that_went_in() {
    let mut s = Session::new();
    let all = ["0r0@[] 0r1@[] 0r2@[]"];
    assert_eq!(s.reads("select count(*), max(b) from t"), all);
    assert_eq!(s.reads("select b, count(*) from t group by b"), all);
    assert_eq!(s.reads("select distinct b from t"), all);
    assert_eq!(
        s.reads("select b, count(*) from t group by b having count(*) > 1"),
        ["0r1@[] 0r2@[]"]
    );
}

#[test]
fn set_operations_keep_their_rows_and_name_what_each_side_read() {
    let mut s = Session::new();
    let sql = "select b from t where a > 1 union select e from u where d = 1";
    assert_eq!(s.reads(sql), ["0r1@[] 0r2@[]", "1r0@[]"]);
    let statement = s.instrument.statement(9, &parsed(sql, Family::Sqlite)).unwrap();
    let own = s.rows(&statement[0].statement).into_iter().filter(|row| row[0] != Value::Null);
    assert_eq!(own.count(), 2, "20 once, and 5");
}

#[test]
fn subqueries_name_the_versions_they_read() {
    let mut s = Session::new();
    assert_eq!(
        s.reads("with q as (select a, b from t where b = 20) select a from q where a > 2"),
        ["0r2@[]"]
    );
    assert_eq!(
        s.reads("select a from t where a in (select d from u where e = 6)"),
        ["0r1@[]", "1r1@[]"]
    );
    assert_eq!(s.reads("select x.a from (select a from t where b = 20) as x"), ["0r1@[] 0r2@[]"]);
}

#[test]
fn writes_leave_their_number_and_name_written_and_deleted_versions() {
    let mut s = Session::new();
    assert_eq!(s.touched("insert into t values (7, 70, 'n'), (8, 80, 'm')"), "0s1.0@[1] 0s1.1@[1]");
    assert_eq!(s.touched("update t set b = b + 1 where a > 6"), "0s1.0@[1,2] 0s1.1@[1,2]");
    assert_eq!(s.touched("delete from t where a = 7"), "0s1.0@[1,2]");
    let upsert = "insert into t (a, b) values (8, 1) on conflict (a) do update set b = 5";
    assert_eq!(s.touched(upsert), "0s1.1@[1,2,4]");
    assert_eq!(s.touched("insert into u select a, b from t where a = 2"), "1s5:0r1+@[5]");
    // REPLACE: first what it takes the place of, then what it wrote.
    assert_eq!(s.touched("replace into t (a, b) values (1, 3)"), "0r0@[] 0s6.0@[6]");
}

#[test]
fn a_row_keeps_the_versions_that_it_was_made_of() {
    let mut s = Session::new();
    s.run("update t set b = 1 where a = 2");
    let Some(ProbeResult::Rows(rows)) = s.run("insert into u select a, b from t where a = 2").pop()
    else {
        panic!("rows")
    };
    assert_eq!(shown(&rows[0].origin), "0r1@[1]");
    assert_eq!(rows[0].entry.inserted_by(), Some(2));
    assert_eq!(rows[0].entry.table(), Some(1));
}

#[test]
fn conditions_on_one_row_are_predicates_and_others_are_not() {
    let instrument = instrument("sqlite");
    let predicates = |sql: &str| -> Vec<bool> {
        let statement = parsed(sql, Family::Sqlite);
        match &instrument.statement(1, &statement).unwrap().pop().unwrap().probe {
            Probe::Read { cells, .. } => cells.iter().map(Option::is_some).collect(),
            Probe::Rows { predicate, .. } => vec![predicate.is_some()],
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(predicates("select a from t where b > 1"), [true]);
    assert_eq!(predicates("select count(*) from t"), [true]);
    assert_eq!(predicates("select a from t x where x.b > 1"), [true]);
    assert_eq!(predicates("update t set b = 1 where c is null"), [true]);
    assert_eq!(predicates("delete from t"), [true]);
    assert_eq!(predicates("select a from t union select d from u where d = 1"), [true, true]);
    assert_eq!(
        predicates("with q as (select a from t where a > 1) select a from q where a < 3"),
        [true]
    );
    assert_eq!(predicates("select a from t where b > 1 limit 1"), [false]);
    assert_eq!(predicates("select t.a from t join u on a = d"), [false, false]);
    assert_eq!(predicates("select b from t group by b having count(*) > 1"), [false]);
    assert_eq!(predicates("select a from t where a in (select d from u)"), [false, false]);
}

#[test]
fn unsupported_statement_is_not_instrumented_with_a_reason() {
    let why = |sql: &str| observed("sqlite", 1, sql).unwrap_err().0;
    assert!(why("select distinct a + 1 from t").contains("puts rows together"));
    assert!(why("select my_function(a) from t").contains("may be an aggregate"));
    assert!(why("insert into t select count(*), 1, 'a' from u").contains("several rows"));
}

#[test]
fn mysql_marks_only_changed_rows_and_keeps_the_previous_version() {
    let sql = observed("mysql", 4, "update t set b = 2 where a = 1").unwrap().join("; ");
    assert!(
        sql.starts_with("update t set isolde_past_0 = case when t.b <=> 2 then t.isolde_past_0"),
        "{sql}"
    );
    assert!(
        sql.contains("isolde_writes_0 = case when t.b <=> 2 then t.isolde_writes_0 else concat("),
        "{sql}"
    );
    assert!(sql.ends_with(", b = 2 where a = 1"), "{sql}");
    let delete = observed("mysql", 5, "delete from t where a = 1").unwrap();
    assert!(delete[0].ends_with("from t where a = 1 for update"), "{}", delete[0]);
    assert_eq!(delete[1], "delete from t where a = 1");
    assert_eq!(observed("mariadb", 5, "delete from t where a = 1").unwrap().len(), 1);
}

#[test]
fn images_of_the_past_are_read_back() {
    let instrument = instrument("mysql");
    let row = vec![
        Value::Text("0s3.0@,3,5,9".into()),
        Value::Text(String::new()),
        Value::Text("31/3130/-/|32/-/78/|".into()),
        Value::Int(2),
        Value::Int(30),
        Value::Null,
    ];
    let what = RowsOf::Stored;
    let probe = Probe::Rows { own_columns: 0, table: 0, what, predicate: None };
    let ProbeResult::Rows(rows) = instrument.decode(&probe, &[row]) else { panic!("rows") };
    let text = |t: &str| Value::Text(t.into());
    assert_eq!(rows[0].past[0], [text("1"), text("10"), Value::Null]);
    assert_eq!(rows[0].past[1], [text("2"), Value::Null, text("x")]);
    assert_eq!(rows[0].holds, [Value::Int(2), Value::Int(30), Value::Null]);
}

/// Transactions one after the other in words of their own, and what the checker makes of them.
struct Story {
    instrument: Instrument,
    transactions: Vec<TransactionObservations>,
}

impl Story {
    fn new() -> Story {
        Story { instrument: instrument("sqlite"), transactions: Vec::new() }
    }

    fn transaction(&mut self, name: &str, how: TxEnd, statements: Vec<StatementObservation>) {
        let (name, session) = (name.to_string(), name.to_string());
        let at = self.transactions.len() as u64;
        let times = Some((at, at + 100));
        self.transactions.push(TransactionObservations { name, session, how, times, statements });
    }

    fn report(self, first: Vec<Version>, last: Vec<Version>) -> isolde_checker::Report {
        let Story { instrument, transactions } = self;
        let writes_read = true;
        let observed =
            ObservedRun { instrument: &instrument, transactions, first, last, writes_read };
        let evaluated: Vec<_> = observed
            .evaluations()
            .into_iter()
            .map(|evaluation| {
                // Of each predicate, `b > 15` is all that is asked here.
                let satisfied: Vec<bool> = evaluation
                    .versions
                    .iter()
                    .map(|(_, _, holds)| matches!(holds[1], Value::Int(b) if b > 15))
                    .collect();
                let all = vec![Some(satisfied); evaluation.predicates.len()];
                (evaluation, all)
            })
            .collect();
        check(&observed.extract_history(&evaluated).history)
    }
}

fn entry(row: &str, writes: &[u64]) -> Entry {
    Entry { row: row.into(), writes: writes.to_vec() }
}

fn version(row: &str, writes: &[u64], b: i64) -> Version {
    let holds = vec![Value::Int(1), Value::Int(b), Value::Null];
    Version { entry: entry(row, writes), origin: Vec::new(), past: Vec::new(), holds }
}

fn statement(id: u64, probe: Probe, results: ProbeResult) -> StatementObservation {
    StatementObservation {
        id,
        text: format!("statement {id}"),
        results: vec![(probe, results)],
        undone: false,
    }
}

fn reads(id: u64, entries: Vec<Entry>) -> StatementObservation {
    let probe = Probe::Read { own_columns: 1, appended: false, cells: vec![None], locking: false };
    statement(id, probe, ProbeResult::Read(vec![entries]))
}

fn above_15(id: u64, entries: Vec<Entry>) -> StatementObservation {
    let filter = match parsed("select a from t where b > 15", Family::Sqlite) {
        Stmt::Select(select) => select.filter,
        _ => None,
    };
    let cells = vec![Some(Predicate { table: 0, filter })];
    let probe = Probe::Read { own_columns: 1, appended: false, cells, locking: false };
    statement(id, probe, ProbeResult::Read(vec![entries]))
}

fn rows(id: u64, what: RowsOf, versions: Vec<Version>) -> StatementObservation {
    let probe = Probe::Rows { own_columns: 0, table: 0, what, predicate: None };
    statement(id, probe, ProbeResult::Rows(versions))
}

const COMMITTED: TxEnd = TxEnd::Committed;

#[test]
fn two_updates_from_one_version_are_a_lost_update() {
    let mut chain = Story::new();
    chain.transaction(
        "A",
        COMMITTED,
        vec![
            reads(10, vec![entry("0r0", &[])]),
            rows(1, RowsOf::Written, vec![version("0r0", &[1], 5)]),
        ],
    );
    chain.transaction(
        "B",
        COMMITTED,
        vec![
            reads(11, vec![entry("0r0", &[])]),
            rows(2, RowsOf::Written, vec![version("0r0", &[1, 2], 6)]),
        ],
    );
    let report = chain.report(vec![version("0r0", &[], 1)], vec![version("0r0", &[1, 2], 6)]);
    assert!(report.anomalies.iter().any(|a| a.class == Class::LostUpdate));
    assert_eq!(report.verdict(Level::ReadCommitted), Verdict::Holds);
}

#[test]
fn deleted_row_has_a_last_version() {
    // A reads the row, B deletes it, A reads what B wrote elsewhere: a read skew.
    let mut chain = Story::new();
    chain.transaction(
        "A",
        COMMITTED,
        vec![reads(10, vec![entry("0r0", &[])]), reads(11, vec![entry("0r1", &[3])])],
    );
    chain.transaction(
        "B",
        COMMITTED,
        vec![
            rows(2, RowsOf::Deleted, vec![version("0r0", &[], 1)]),
            rows(3, RowsOf::Written, vec![version("0r1", &[3], 2)]),
        ],
    );
    let first = vec![version("0r0", &[], 1), version("0r1", &[], 1)];
    let report = chain.report(first, vec![version("0r1", &[3], 2)]);
    assert_eq!(report.verdict(Level::ReadAtomic), Verdict::Violated);
}

#[test]
fn read_of_a_write_undone_by_a_savepoint_is_an_aborted_read() {
    let mut chain = Story::new();
    let mut back = rows(1, RowsOf::Written, vec![version("0r0", &[1], 5)]);
    back.undone = true;
    chain.transaction("A", COMMITTED, vec![back]);
    chain.transaction("B", COMMITTED, vec![reads(10, vec![entry("0r0", &[1])])]);
    let report = chain.report(vec![version("0r0", &[], 1)], vec![version("0r0", &[], 1)]);
    assert!(report.anomalies.iter().any(|a| a.class == Class::G1a));
}

#[test]
fn phantom_is_found_where_a_write_changes_a_predicate_result() {
    // Each looks for rows above 15, finds none, and inserts one.
    let chain = |b: i64| {
        let mut chain = Story::new();
        for (name, look, write) in [("A", 10, 1), ("B", 11, 2)] {
            let made = version(&format!("0s{write}.0"), &[write], b);
            chain.transaction(
                name,
                COMMITTED,
                vec![above_15(look, Vec::new()), rows(write, RowsOf::Written, vec![made])],
            );
        }
        let last = [1, 2].map(|id| version(&format!("0s{id}.0"), &[id], b));
        chain.report(Vec::new(), last.to_vec())
    };
    let report = chain(20);
    assert!(report.anomalies.iter().any(|a| a.class == Class::G2));
    assert_eq!(report.verdict(Level::RepeatableRead), Verdict::Holds, "no item was read");
    // Rows that do not satisfy it change nothing.
    assert_eq!(chain(3).verdict(Level::Serializable), Verdict::Holds);
}

#[test]
fn row_that_vanishes_without_an_observed_delete_gives_no_edge() {
    let mut chain = Story::new();
    let made = version("0s1.0", &[1], 20);
    chain.transaction("A", COMMITTED, vec![rows(1, RowsOf::Written, vec![made])]);
    // B finds none: it may have looked before the row came or after it went.
    chain.transaction("B", COMMITTED, vec![above_15(10, Vec::new())]);
    let report = chain.report(Vec::new(), Vec::new());
    assert_eq!(report.verdict(Level::Serializable), Verdict::Holds);
    assert!(report.anomalies.is_empty());
}
