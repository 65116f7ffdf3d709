//! What the checker makes of observations.

use super::*;
use isolde_checker::{Class, Level, Verdict, check};
use isolde_model::history::TxEnd;

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
