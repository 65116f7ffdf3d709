//! Changes by actions of foreign keys, and the statements that they are attributed to.

use super::*;
use crate::instrument::actions::{Attribution, attribute};
use isolde_model::history::TxEnd;

const FAMILY: [&str; 4] = [
    "create table p (k int primary key, v int)",
    "create table c (x int primary key, f int, foreign key (f) references p (k) on delete cascade)",
    "create table n (y int primary key, g int, \
     foreign key (g) references p (k) on delete set null on update cascade)",
    "create table d (z int, h int, foreign key (h) references c (x) on delete cascade)",
];

/// Parents 1 and 2, a child of each in every table, and the rows of `d` below those of `c`.
fn family() -> Session {
    let dialect = Dialect::for_engine("sqlite", "99");
    let schema = read::schema(FAMILY, Family::Sqlite).schema;
    let instrument = Instrument::new(schema.clone(), dialect, capabilities("sqlite"));
    let pairs = |rows: &[(i64, i64)]| -> Vec<Vec<Literal>> {
        rows.iter().map(|(a, b)| vec![Literal::Int(*a), Literal::Int(*b)]).collect()
    };
    let rows = vec![
        pairs(&[(1, 10), (2, 20)]),
        pairs(&[(11, 1), (12, 2)]),
        pairs(&[(21, 1), (22, 2)]),
        pairs(&[(31, 11), (32, 12)]),
    ];
    let observed = instrument.fixture(&Fixture { schema, rows, dialect });
    let connection = Connection::open_in_memory().unwrap();
    connection.execute_batch("pragma foreign_keys = on").unwrap();
    for sql in observed.create_sql().iter().chain(&observed.reset_sql()) {
        connection.execute_batch(sql).unwrap();
    }
    Session { instrument, connection, next: 1 }
}

/// Statements as transactions of their own, and all rows before and after.
struct Story {
    transactions: Vec<TransactionObservations>,
    first: Vec<Version>,
    last: Vec<Version>,
    attribution: Attribution,
}

fn story(s: &mut Session, statements: &[&str]) -> Story {
    let all = |s: &Session| -> Vec<Version> {
        let results = s.instrument.reads_of_tables().into_iter().map(|sent| {
            match s.instrument.decode(&sent.probe, &s.rows(&sent.statement)) {
                ProbeResult::Rows(rows) => rows,
                other => panic!("{other:?}"),
            }
        });
        results.flatten().collect()
    };
    let mut first = all(s);
    let mut transactions = Vec::new();
    for sql in statements {
        let id = s.next;
        let sent = s.instrument.statement(id, &parsed(sql, Family::Sqlite)).unwrap();
        let probes = sent.into_iter().map(|sent| sent.probe);
        let results = probes.zip(s.run(sql)).collect();
        let statement = StatementObservation { id, text: sql.to_string(), results, undone: false };
        let (name, session) = (format!("t{id}"), format!("t{id}"));
        let (how, times, statements) = (TxEnd::Committed, Some((id, id)), vec![statement]);
        transactions.push(TransactionObservations { name, session, how, times, statements });
    }
    let mut last = all(s);
    let attribution = attribute(&s.instrument, &mut transactions, &mut first, &mut last);
    Story { transactions, first, last, attribution }
}

impl Story {
    /// The versions of a table after the run.
    fn last(&self, table: usize) -> String {
        let of = |version: &&Version| version.entry.table() == Some(table);
        let entries: Vec<Entry> =
            self.last.iter().filter(of).map(|version| version.entry.clone()).collect();
        shown(&entries)
    }

    /// The order of the versions of each row of a table, and which of them end with a deletion.
    fn orders(&self, s: &Session, table: usize) -> Vec<String> {
        let observed = ObservedRun {
            instrument: &s.instrument,
            transactions: self.transactions.clone(),
            first: self.first.clone(),
            last: self.last.clone(),
            writes_read: true,
        };
        let orders =
            observed.version_orders().into_iter().filter(|(_, order)| order.table == table);
        let text = |(row, order): (String, VersionOrder)| {
            let end = if order.is_deleted { " deleted" } else { "" };
            format!("{row} {:?}{end}", order.writers)
        };
        orders.map(text).collect()
    }

    /// What each statement read.
    fn reads(&self, statement: usize) -> String {
        let mut all = Vec::new();
        for (_, results) in &self.transactions[statement].statements[0].results {
            if let ProbeResult::Read(cells) = results {
                all.extend(cells.iter().flatten().cloned());
            }
        }
        shown(&all)
    }
}

#[test]
fn all_tables_with_actions_are_followed() {
    let s = family();
    assert!((0..FAMILY.len()).all(|table| s.instrument.is_followed(table)));
    let itself = "create table t (a int primary key, b int references t (a) on delete cascade)";
    let text = "create table u (c text references v (d) on update cascade)";
    let schema =
        read::schema(["create table v (d text primary key)", text, itself], Family::Sqlite);
    let dialect = Dialect::for_engine("sqlite", "99");
    let instrument = Instrument::new(schema.schema, dialect, capabilities("sqlite"));
    assert_eq!([0, 1, 2].map(|table| instrument.is_followed(table)), [true, false, false]);
}

#[test]
fn rows_deleted_by_a_cascade_end_with_the_statement_that_deleted_the_parent() {
    let mut s = family();
    let run = story(&mut s, &["update c set f = 1 where x = 12", "delete from p where k = 1"]);
    assert!(run.attribution.is_complete());
    assert_eq!(run.orders(&s, 1), ["1r0 [2] deleted", "1r1 [1, 2] deleted"]);
    // The grandchildren go with the children.
    assert_eq!(run.orders(&s, 3), ["3r0 [2] deleted", "3r1 [2] deleted"]);
}

#[test]
fn column_set_to_null_by_an_action_is_a_version_of_the_statement_that_deleted_the_parent() {
    let mut s = family();
    let look = "select y from n";
    let run = story(&mut s, &[look, "delete from p where v = 20", look, "update n set y = y + 5"]);
    assert!(run.attribution.is_complete());
    assert_eq!(run.reads(0), "2r0@[] 2r1@[]");
    assert_eq!(run.reads(2), "2r0@[] 2r1@[2]");
    // A write after it keeps the action in its list.
    assert_eq!(run.last(2), "2r0@[4] 2r1@[2,4]");
}

#[test]
fn column_changed_by_an_action_is_a_version_of_the_statement_that_changed_the_parent() {
    let mut s = family();
    let changes = [
        "delete from c",
        "update p set k = 3 where k = 1",
        "select g from n where g = 3",
        "update p set k = k + 10 where k > 1",
        "insert into n values (23, 13)",
        "update n set g = 12 where y = 23",
    ];
    let run = story(&mut s, &changes);
    assert!(run.attribution.is_complete());
    assert_eq!(run.reads(2), "2r0@[2]");
    assert_eq!(run.last(2), "2r0@[2,4] 2r1@[4] 2s5.0@[5,6]");
    // What each version held is known.
    let observed = ObservedRun {
        instrument: &s.instrument,
        transactions: run.transactions.clone(),
        first: run.first.clone(),
        last: run.last.clone(),
        writes_read: true,
    };
    let order = &observed.version_orders()["2r0"];
    assert_eq!(order.held(1).unwrap(), &[Value::Int(21), Value::Int(3)]);
    assert_eq!(order.held(2).unwrap(), &[Value::Int(21), Value::Int(13)]);
}

/// Two statements deleted a parent with the same key: which of them the child fell to is open.
#[test]
fn nothing_is_claimed_of_a_row_whose_action_may_belong_to_two_statements() {
    let mut s = family();
    let twice = [
        "delete from p where k = 1",
        "insert into p values (1, 11)",
        "update n set g = 1 where y = 22",
        "delete from p where k = 1",
    ];
    let run = story(&mut s, &twice);
    assert!(!run.attribution.is_complete());
    assert_eq!(run.last(2), "");
    assert_eq!(run.last(0), "0r1@[]");
}

#[test]
fn servers_without_returning_read_the_rows_that_a_delete_cascades_to_before_it() {
    let schema = read::schema(FAMILY, Family::Mysql).schema;
    let dialect = Dialect::for_engine("mariadb", "99");
    let instrument = Instrument::new(schema, dialect, capabilities("mariadb"));
    let sent = |sql: &str| -> Result<Vec<String>, NotInstrumented> {
        let sent = instrument.statement(7, &parsed(sql, Family::Mysql))?;
        Ok(sent.iter().map(|sent| sent.statement.render(&instrument.dialect)).collect())
    };
    let parts = sent("delete from p where v = 20").unwrap();
    assert_eq!(parts.len(), 3, "{parts:#?}");
    let children = "from c where c.f in (select p.k from p where v = 20 for update) for update";
    assert!(parts[0].ends_with(children), "{}", parts[0]);
    assert!(
        parts[1].contains("from d where d.h in (select c.x from c where c.f in"),
        "{}",
        parts[1]
    );
    assert!(parts[2].starts_with("delete from p where v = 20 returning"), "{}", parts[2]);
    assert_eq!(sent("delete from n where g = 1").unwrap().len(), 1);
    assert!(sent("delete from p limit 1").unwrap_err().0.contains("rows of other tables"));
    let marked = sent("update n set g = 2").unwrap().join("; ");
    assert!(marked.contains("isolde_keys_2 = concat(n.isolde_keys_2, '#', case when"), "{marked}");
    assert!(marked.contains("substring_index(n.isolde_keys_2, '#', -1), ',7')"), "{marked}");
}
