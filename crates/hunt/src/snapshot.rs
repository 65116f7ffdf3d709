//! What snapshot isolation predicts: every transaction works on the rows that
//! were committed when it began, and what it changed is added at its commit.
//!
//! The engine itself computes each transaction's part, alone, from the rows of
//! its snapshot. If the parts put together give the outcome of the concurrent
//! run, then snapshot isolation explains it, write skew and all.

use crate::error::HuntError;
use crate::executor::{Executor, Fixture};
use isolde_core::generate::Plan;
use isolde_core::oracle::{
    Concurrent, Executed, serial_transactions, unknown_serial, write_differences,
};
use isolde_core::value::{Row, compare_rows, rows_without, same_multiset};
use isolde_core::{Case, History};
use std::cmp::Ordering;

/// When it was, if the engine breaks.
const ALONE: &str = "in a run of one transaction alone";

type Tables = Vec<Vec<Row>>;

/// What a transaction took away and what it added, by table.
struct Change {
    ended_at: usize,
    removed: Tables,
    added: Tables,
}

/// Whether the rows at the end, and what each write did, are as snapshot
/// isolation has them, with the snapshot taken at BEGIN or at the first
/// statement after it.
pub fn explains(
    executor: &mut Executor,
    plan: &Plan,
    case: &Case,
    concurrent: &History,
) -> Result<bool, HuntError> {
    let run = Concurrent::new(case, concurrent, false);
    let mut nothing = case.clone();
    nothing.steps.clear();
    let first = rows_of(&executor.run_unbroken(&Fixture::of(plan), &nothing, ALONE)?);
    for at_begin in [true, false] {
        if predicted(executor, plan, &run, &first, at_begin)?
            .is_some_and(|rows| same_tables(&rows, &rows_of(concurrent)))
        {
            return Ok(true);
        }
    }
    Ok(false)
}

fn predicted(
    executor: &mut Executor,
    plan: &Plan,
    run: &Concurrent<'_>,
    first: &Tables,
    at_begin: bool,
) -> Result<Option<Tables>, HuntError> {
    let mut changes: Vec<Change> = Vec::new();
    for transaction in run.committed() {
        let (begin, statement) = transaction.snapshot_events(run.history);
        let taken_at = if at_begin { begin } else { statement };
        let mut before = changes.iter().filter(|c| c.ended_at < taken_at);
        let Some(snapshot) = before.try_fold(first.clone(), apply) else { return Ok(None) };
        match alone(executor, plan, run, transaction, snapshot)? {
            Some(change) => changes.push(change),
            None => return Ok(None),
        }
    }
    Ok(changes.iter().try_fold(first.clone(), apply))
}

/// One transaction by itself from the rows of its snapshot; none when its
/// writes did something else than in the concurrent run.
fn alone(
    executor: &mut Executor,
    plan: &Plan,
    run: &Concurrent<'_>,
    transaction: &Executed,
    snapshot: Tables,
) -> Result<Option<Change>, HuntError> {
    let Some(from) = plan.with_rows(&snapshot) else { return Ok(None) };
    let replay = serial_transactions(run, &[transaction], false);
    let history = executor.run_unbroken(&Fixture::of(&from), &replay.case, ALONE)?;
    if unknown_serial(&history).is_some() || !write_differences(run, &replay, &history).is_empty() {
        return Ok(None);
    }
    let after = rows_of(&history);
    let pairs = || snapshot.iter().zip(&after);
    Ok(Some(Change {
        ended_at: transaction.ended_at,
        removed: pairs().map(|(before, after)| rows_without(before, after)).collect(),
        added: pairs().map(|(before, after)| rows_without(after, before)).collect(),
    }))
}

/// None when a row is not there any more: two transactions changed it, which
/// snapshot isolation rules out.
fn apply(mut tables: Tables, change: &Change) -> Option<Tables> {
    for (place, rows) in tables.iter_mut().enumerate() {
        for gone in &change.removed[place] {
            let at = rows.iter().position(|r| compare_rows(r, gone) == Ordering::Equal)?;
            rows.swap_remove(at);
        }
        rows.extend(change.added[place].iter().cloned());
    }
    Some(tables)
}

fn rows_of(history: &History) -> Tables {
    history.final_state.iter().map(|f| f.rows.clone()).collect()
}

fn same_tables(a: &Tables, b: &Tables) -> bool {
    a.len() == b.len() && a.iter().zip(b).all(|(x, y)| same_multiset(x, y))
}

#[cfg(test)]
mod tests {
    use super::*;
    use isolde_core::Value;

    fn table(values: &[i64]) -> Tables {
        vec![values.iter().map(|v| vec![Value::Int(*v)]).collect()]
    }

    #[test]
    fn changes_of_other_rows_add_up_and_of_the_same_row_do_not() {
        let change = |removed: &[i64], added: &[i64]| Change {
            ended_at: 0,
            removed: table(removed),
            added: table(added),
        };
        let once = apply(table(&[1, 2]), &change(&[1], &[10])).unwrap();
        let twice = apply(once.clone(), &change(&[2], &[20])).unwrap();
        assert!(same_tables(&twice, &table(&[20, 10])));
        assert!(apply(once, &change(&[1], &[11])).is_none());
    }
}
