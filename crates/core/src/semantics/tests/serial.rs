//! The search for a serial order, against all permutations.

use super::{SerialOrder, Told, changed, rows};
use crate::Level;
use crate::history::What;
use proptest::prelude::*;
use std::collections::BTreeMap;

#[derive(Clone, Copy, Debug)]
enum Op {
    Read(i64),
    Add(i64, i64),
    Double(i64),
    /// Key by key, since a search must find what moves.
    Move(i64, i64),
}

/// What an operation came to: the values it read, or the rows it changed.
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

struct Observed {
    outcomes: Vec<Vec<Outcome>>,
    left: BTreeMap<i64, i64>,
}

/// One transaction after the other.
fn in_order(transactions: &[Vec<Op>], order: &[usize]) -> Observed {
    let mut left = BTreeMap::from(FIRST);
    let mut outcomes = vec![Vec::new(); transactions.len()];
    for tx in order {
        outcomes[*tx] = transactions[*tx].iter().map(|op| op.run(&mut left)).collect();
    }
    Observed { outcomes, left }
}

/// Statement by statement, as if there were no isolation at all.
fn woven(transactions: &[Vec<Op>], turns: &[usize]) -> Observed {
    let mut left = BTreeMap::from(FIRST);
    let mut outcomes: Vec<Vec<Outcome>> = vec![Vec::new(); transactions.len()];
    let everybody = (0..transactions.len()).cycle().take(transactions.len() * 4);
    for tx in turns.iter().map(|t| t % transactions.len()).chain(everybody) {
        if let Some(op) = transactions[tx].get(outcomes[tx].len()) {
            outcomes[tx].push(op.run(&mut left));
        }
    }
    Observed { outcomes, left }
}

/// The observed run as a history in which everybody commits in turn.
fn told(transactions: &[Vec<Op>], observed: &Observed) -> Told {
    let mut told = Told::on("postgres", Level::Serializable, &FIRST);
    for (n, (ops, outcomes)) in transactions.iter().zip(&observed.outcomes).enumerate() {
        let session = format!("s{}", n + 1);
        told = told.does(&session, "begin", What::Done);
        for (op, outcome) in ops.iter().zip(outcomes) {
            let what = match outcome {
                Ok(values) => rows(values),
                Err(count) => changed(*count),
            };
            told = told.does(&session, &op.sql(), what);
        }
        told = told.does(&session, "commit", What::Done);
    }
    let left: Vec<(i64, i64)> = observed.left.iter().map(|(id, v)| (*id, *v)).collect();
    told.leaves(&left)
}

fn orders(of: usize) -> Vec<Vec<usize>> {
    (0..(1..=of).product()).map(|n| permutation(of, n)).collect()
}

fn explains(transactions: &[Vec<Op>], order: &[usize], observed: &Observed) -> bool {
    let serial = in_order(transactions, order);
    serial.outcomes == observed.outcomes && serial.left == observed.left
}

/// What the search says is what trying every order says, and an order that it
/// names is one that explains the run.
fn agrees(transactions: &[Vec<Op>], observed: &Observed) -> Result<bool, TestCaseError> {
    let exists = orders(transactions.len()).iter().any(|o| explains(transactions, o, observed));
    match told(transactions, observed).serial_order() {
        SerialOrder::Found(sessions) => {
            let place = |s: &String| s[1..].parse::<usize>().unwrap() - 1;
            let order: Vec<usize> = sessions.iter().map(place).collect();
            prop_assert!(explains(transactions, &order, observed), "{sessions:?} explains nothing");
        }
        SerialOrder::None { step, why } => prop_assert!(!exists, "{step:?}: {why}"),
        other => prop_assert!(false, "{other:?}"),
    }
    Ok(exists)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]

    #[test]
    fn an_order_is_found_iff_one_exists(
        transactions in ops(),
        turns in prop::collection::vec(0..12usize, 0..12),
    ) {
        agrees(&transactions, &woven(&transactions, &turns))?;
    }

    #[test]
    fn a_serial_run_has_an_order_whatever_the_order_of_its_commits(
        transactions in ops(),
        n in 0..24usize,
    ) {
        let all = orders(transactions.len());
        let observed = in_order(&transactions, &all[n % all.len()]);
        prop_assert!(agrees(&transactions, &observed)?);
    }

    #[test]
    fn a_serial_run_with_another_value_at_its_end_is_judged_alike(
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
    let skewed = told(&transactions, &Observed { outcomes, left });
    assert!(matches!(skewed.serial_order(), SerialOrder::None { .. }));
}

#[test]
fn what_belongs_to_one_session_stays_in_its_order() {
    let read_then_write = |value: i64| {
        Told::on("postgres", Level::Serializable, &FIRST)
            .does("s1", "begin", What::Done)
            .does("s1", "update t set v = 5 where id = 1", changed(1))
            .does("s1", "commit", What::Done)
            .does("s1", "begin", What::Done)
            .does("s1", "select v from t where id = 1", rows(&[value]))
            .does("s1", "commit", What::Done)
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
