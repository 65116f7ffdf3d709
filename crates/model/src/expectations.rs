//! Compares what a case claims with what a history shows.
//!
//! What it does not verify: whether a claim is reasonable. It only reads the
//! history; an expectation that was recorded from a broken engine holds on it.

use crate::case::{Case, Claim, Expected, Subject};
use crate::history::{DbError, EventKind, History, TxEnd};
use crate::value::{Row, Value, compare_rows, same_multiset, show_rows};
use std::cmp::Ordering;

#[derive(Clone, Debug, PartialEq)]
pub struct Mismatch {
    pub claim: Claim,
    pub observed: String,
}

/// The expectations for this engine and level that the run did not meet.
pub fn mismatches(case: &Case, history: &History) -> Vec<Mismatch> {
    case.expectations_for(&history.on.engine, &history.on.version, history.level)
        .into_iter()
        .flat_map(|block| nearest(&block.outcomes(), |claims| unmet(claims, case, history)))
        .collect()
}

fn unmet(claims: &[Claim], case: &Case, history: &History) -> Vec<Mismatch> {
    let failed = |claim: &Claim| {
        let observed = holds(claim, case, history).err()?;
        Some(Mismatch { claim: claim.clone(), observed })
    };
    claims.iter().filter_map(failed).collect()
}

/// What a run lacks to be the outcome that it is nearest to: nothing when it
/// is one of them.
pub fn nearest<T>(outcomes: &[&[Claim]], lacks: impl Fn(&[Claim]) -> Vec<T>) -> Vec<T> {
    outcomes.iter().map(|claims| lacks(claims)).min_by_key(Vec::len).unwrap_or_default()
}

/// Whether the anomaly that the case is about happened: all claims of one of
/// its conditions hold. Returns the condition.
pub fn condition_met(case: &Case, history: &History) -> Option<usize> {
    case.possible_when
        .iter()
        .position(|c| c.claims.iter().all(|claim| holds(claim, case, history).is_ok()))
}

/// `Err` says what was observed instead.
pub fn holds(claim: &Claim, case: &Case, history: &History) -> Result<(), String> {
    match &claim.subject {
        Subject::Step { session, nth } => match case.step_of_label(session, *nth) {
            Some(step) => step_holds(&claim.expected, history, step),
            None => Err("there is no such step".into()),
        },
        Subject::Setup => Err("it went through".into()),
        Subject::Session(name) => ending_holds(&claim.expected, history.ending(name)),
        Subject::Final(nth) => match history.final_state.get(nth - 1) {
            Some(found) => match &found.error {
                Some(error) if error_fits(&claim.expected, error) => Ok(()),
                Some(error) => Err(format!("error {error}")),
                None => rows_hold(&claim.expected, &found.rows),
            },
            None => Err("there is no such final query".into()),
        },
    }
}

fn step_holds(expected: &Expected, history: &History, step: usize) -> Result<(), String> {
    let outcome = history.outcome(step);
    let observed = || crate::transcript::summary(history, step);
    let fits = match expected {
        Expected::Waits => outcome.waited,
        Expected::WaitsFor(holder) => {
            // A server that does not name the holder is not contradicted.
            let named = &outcome.waited_for;
            outcome.waited && (named.is_empty() || named.contains(&holder.as_str()))
        }
        Expected::DoesNotWait => !outcome.waited,
        Expected::NotSent => matches!(outcome.reply, Some(EventKind::NotSent { .. })),
        Expected::Ok => {
            matches!(
                outcome.reply,
                Some(EventKind::Rows { .. } | EventKind::Affected { .. } | EventKind::Done)
            )
        }
        Expected::Error(_) => outcome
            .reply
            .and_then(EventKind::error)
            .is_some_and(|error| error_fits(expected, error)),
        Expected::Affects(n) => {
            matches!(outcome.reply, Some(EventKind::Affected { count }) if count == n)
        }
        Expected::Rows(_) | Expected::Counts(_) | Expected::Has(_) | Expected::Contains(_) => {
            match outcome.reply.and_then(EventKind::rows) {
                Some(rows) => return rows_hold(expected, rows),
                None => false,
            }
        }
        Expected::Commits | Expected::DoesNotCommit | Expected::RollsBack | Expected::Aborts => {
            false
        }
    };
    if fits { Ok(()) } else { Err(observed()) }
}

pub fn error_fits(expected: &Expected, error: &DbError) -> bool {
    match expected {
        Expected::Error(Some(code)) => *code == error.code || error.sqlstate.as_ref() == Some(code),
        Expected::Error(None) => true,
        _ => false,
    }
}

fn ending_holds(expected: &Expected, ending: Option<TxEnd>) -> Result<(), String> {
    let fits = match expected {
        Expected::Commits => ending == Some(TxEnd::Committed),
        Expected::DoesNotCommit => ending.is_some_and(|e| e != TxEnd::Committed),
        Expected::RollsBack => ending == Some(TxEnd::RolledBack),
        Expected::Aborts => ending == Some(TxEnd::Aborted),
        _ => false,
    };
    if fits { Ok(()) } else { Err(ending.map_or("no transaction", TxEnd::name).into()) }
}

pub fn contains(rows: &[Row], text: &str) -> bool {
    rows.iter().flatten().any(|value| matches!(value, Value::Text(t) if t.contains(text)))
}

fn rows_hold(expected: &Expected, rows: &[Row]) -> Result<(), String> {
    let fits = match expected {
        Expected::Rows(wanted) => same_multiset(wanted, rows),
        Expected::Counts(count) => rows.len() as u64 == *count,
        Expected::Has(wanted) => rows.iter().any(|r| compare_rows(r, wanted) == Ordering::Equal),
        Expected::Contains(text) => contains(rows, text),
        _ => false,
    };
    if fits { Ok(()) } else { Err(show_rows(rows)) }
}
