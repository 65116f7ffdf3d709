//! The search for a serial order, compared with a test of all permutations.

use super::{ScriptedRun, SerialOrder, changed, rows};
use isolde_model::Level;
use isolde_model::history::EventKind;
use proptest::prelude::*;
use std::collections::BTreeMap;

#[derive(Clone, Copy, Debug)]
enum Op {
    Read(i64),
    Add(i64, i64),
    Double(i64),
    /// Updates all rows with one value, so that the set of rows it finds depends on
    /// the order.
    Move(i64, i64),
}

/// The result of an operation: the values it read, or the number of rows it changed.
type Outcome = Result<Vec<i64>, u64>;

impl Op {
    fn sql(self) -> String {
        match self {
            Op::Read(id) => format!("select v from t where id = {id}"),
            Op::Add(id, n) => format!("update t set v = v + {n} where id = {id}"),
            Op::Double(id) => format!("update t set v = v * 2 where id = {id}"),
            Op::Move(v, to) => format!("update t set v = {to} where v = {v}"),
        }
    }

    fn run(self, rows: &mut BTreeMap<i64, i64>) -> Outcome {
        let fits = |id: i64, v: i64| match self {
            Op::Read(k) | Op::Add(k, _) | Op::Double(k) => id == k,
            Op::Move(from, _) => v == from,
        };
        let found: Vec<i64> =
            rows.iter().filter(|(id, v)| fits(**id, **v)).map(|(id, _)| *id).collect();
        for id in &found {
            let v = rows[id];
            let new = match self {
                Op::Read(_) => v,
                Op::Add(_, n) => v + n,
                Op::Double(_) => v * 2,
                Op::Move(_, to) => to,
            };
            rows.insert(*id, new);
        }
        match self {
            Op::Read(_) => Ok(found.iter().map(|id| rows[id]).collect()),
            _ => Err(found.len() as u64),
        }
    }
}

fn ops() -> impl Strategy<Value = Vec<Vec<Op>>> {
    let id = 1..3i64;
    let op = prop_oneof![
        3 => id.clone().prop_map(Op::Read),
        2 => (id.clone(), 1..3i64).prop_map(|(id, n)| Op::Add(id, n)),
        1 => id.prop_map(Op::Double),
        1 => (1..4i64, 1..4i64).prop_map(|(v, to)| Op::Move(v, to)),
    ];
    prop::collection::vec(prop::collection::vec(op, 1..4), 1..5)
}

const FIRST: [(i64, i64); 2] = [(1, 1), (2, 2)];

struct Observation {
    outcomes: Vec<Vec<Outcome>>,
    left: BTreeMap<i64, i64>,
}

/// Runs the transactions serially in this order.
fn in_order(transactions: &[Vec<Op>], order: &[usize]) -> Observation {
    let mut left = BTreeMap::from(FIRST);
    let mut outcomes = vec![Vec::new(); transactions.len()];
    for tx in order {
        outcomes[*tx] = transactions[*tx].iter().map(|op| op.run(&mut left)).collect();
    }
    Observation { outcomes, left }
}

/// Interleaves the statements without any isolation.
fn interleaved(transactions: &[Vec<Op>], turns: &[usize]) -> Observation {
    let mut left = BTreeMap::from(FIRST);
    let mut outcomes: Vec<Vec<Outcome>> = vec![Vec::new(); transactions.len()];
    let rest = (0..transactions.len()).cycle().take(transactions.len() * 4);
    for tx in turns.iter().map(|t| t % transactions.len()).chain(rest) {
        if let Some(op) = transactions[tx].get(outcomes[tx].len()) {
            outcomes[tx].push(op.run(&mut left));
        }
    }
    Observation { outcomes, left }
}

/// The observed run as a history in which all transactions commit, in the order of
/// their numbers.
fn run(transactions: &[Vec<Op>], observed: &Observation) -> ScriptedRun {
    let mut run = ScriptedRun::on("postgres", Level::Serializable, &FIRST);
    for (n, (ops, outcomes)) in transactions.iter().zip(&observed.outcomes).enumerate() {
        let session = format!("s{}", n + 1);
        run = run.does(&session, "begin", EventKind::Done);
        for (op, outcome) in ops.iter().zip(outcomes) {
            let what = match outcome {
                Ok(values) => rows(values),
                Err(count) => changed(*count),
            };
            run = run.does(&session, &op.sql(), what);
        }
        run = run.does(&session, "commit", EventKind::Done);
    }
    let left: Vec<(i64, i64)> = observed.left.iter().map(|(id, v)| (*id, *v)).collect();
    run.leaves(&left)
}

fn orders(of: usize) -> Vec<Vec<usize>> {
    (0..(1..=of).product()).map(|n| permutation(of, n)).collect()
}

fn explains(transactions: &[Vec<Op>], order: &[usize], observed: &Observation) -> bool {
    let serial = in_order(transactions, order);
    serial.outcomes == observed.outcomes && serial.left == observed.left
}

/// Asserts that the search finds a serial order iff some permutation explains the
/// run, and that the order it finds explains it. Returns whether there is one.
fn agrees(transactions: &[Vec<Op>], observed: &Observation) -> Result<bool, TestCaseError> {
    let exists = orders(transactions.len()).iter().any(|o| explains(transactions, o, observed));
    match run(transactions, observed).serial_order() {
        SerialOrder::Found(sessions) => {
            let place = |s: &String| s[1..].parse::<usize>().unwrap() - 1;
            let order: Vec<usize> = sessions.iter().map(place).collect();
            prop_assert!(explains(transactions, &order, observed), "{sessions:?} explains nothing");
        }
        SerialOrder::None { step, nearest, .. } => prop_assert!(!exists, "{step:?}: {nearest:?}"),
        other => prop_assert!(false, "{other:?}"),
    }
    Ok(exists)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]

    #[test]
    fn serial_order_is_found_iff_one_exists(
        transactions in ops(),
        turns in prop::collection::vec(0..12usize, 0..12),
    ) {
        agrees(&transactions, &interleaved(&transactions, &turns))?;
    }

    #[test]
    fn serial_run_has_a_serial_order_for_any_commit_order(
        transactions in ops(),
        n in 0..24usize,
    ) {
        let all = orders(transactions.len());
        let observed = in_order(&transactions, &all[n % all.len()]);
        prop_assert!(agrees(&transactions, &observed)?);
    }

    #[test]
    fn serial_search_agrees_on_a_run_with_a_changed_final_row(
        transactions in ops(),
        id in 1..3i64,
    ) {
        let mut observed = in_order(&transactions, &orders(transactions.len())[0]);
        *observed.left.entry(id).or_default() += 1;
        agrees(&transactions, &observed)?;
    }
}

#[test]
fn write_skew_has_no_serial_order() {
    let transactions = [vec![Op::Read(1), Op::Add(2, 1)], vec![Op::Read(2), Op::Add(1, 1)]];
    let outcomes = vec![vec![Ok(vec![1]), Err(1)], vec![Ok(vec![2]), Err(1)]];
    let left = BTreeMap::from([(1, 2), (2, 3)]);
    let skewed = run(&transactions, &Observation { outcomes, left });
    assert!(matches!(skewed.serial_order(), SerialOrder::None { .. }));
}

#[test]
fn serial_order_keeps_the_order_of_one_session() {
    let read_then_write = |value: i64| {
        ScriptedRun::on("postgres", Level::Serializable, &FIRST)
            .does("s1", "begin", EventKind::Done)
            .does("s1", "update t set v = 5 where id = 1", changed(1))
            .does("s1", "commit", EventKind::Done)
            .does("s1", "begin", EventKind::Done)
            .does("s1", "select v from t where id = 1", rows(&[value]))
            .does("s1", "commit", EventKind::Done)
            .leaves(&[(1, 5), (2, 2)])
            .serial_order()
    };
    assert!(matches!(read_then_write(5), SerialOrder::Found(_)));
    assert!(matches!(read_then_write(1), SerialOrder::None { .. }));
}

/// The `n`th order of `items`, counted in lexicographic order.
fn permutation(items: usize, mut n: usize) -> Vec<usize> {
    let mut left: Vec<usize> = (0..items).collect();
    let mut order = Vec::with_capacity(items);
    for size in (1..=items).rev() {
        let below: usize = (1..size).product();
        order.push(left.remove(n / below));
        n %= below;
    }
    order
}

/// Each of two transactions depends on what the other one writes: s1 by the key of the
/// statement `first`, s2 by all rows of `t`.
fn write_skew(first: &str, did: EventKind) -> ScriptedRun {
    ScriptedRun::on("postgres", Level::Serializable, &[(7, 0)])
        .with_table("create table u (id int primary key, v int)", &[&[1, 0]])
        .does("s1", "begin", EventKind::Done)
        .does("s2", "begin", EventKind::Done)
        .does("s2", "delete from t", changed(1))
        .does("s1", first, did)
        .does("s1", "insert into t values (6, 0)", changed(1))
        .does("s1", "commit", EventKind::Done)
        .does("s2", "delete from u where id = 1", changed(1))
        .does("s2", "commit", EventKind::Done)
        .leaves(&[(6, 0)])
}

/// The statement that is to blame, and the order of the first attempt.
fn blamed(run: &ScriptedRun) -> (String, Vec<String>) {
    let SerialOrder::None { step, attempts, .. } = run.serial_order() else {
        panic!("{:?}", run.serial_order());
    };
    let label = run.history.steps[step.expect("a statement")].label.clone();
    (label, attempts[0].order.clone())
}

#[test]
fn statement_that_depends_on_a_taken_key_is_blamed_for_a_missing_serial_order() {
    for upsert in [
        "insert into u values (1, 5) on conflict do nothing",
        "insert into u values (1, 5) on conflict (id) do nothing",
    ] {
        let (label, order) = blamed(&write_skew(upsert, changed(0)));
        assert_eq!((label.as_str(), order), ("s1.2", vec!["s2".into(), "s1".into()]), "{upsert}");
    }
}

#[test]
fn one_of_two_searches_is_blamed_for_a_missing_serial_order() {
    let (label, _) = blamed(&write_skew("select id from u where id = 1", rows(&[1])));
    assert!(["s1.2", "s2.2"].contains(&label.as_str()), "{label}");
}
