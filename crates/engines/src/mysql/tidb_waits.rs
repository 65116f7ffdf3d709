//! Lock waits on TiDB, read from `TIDB_TRX`.
//!
//! A blocked pessimistic statement has the state `LockWaiting`. A statement in
//! autocommit and the COMMIT of an optimistic transaction take their locks only
//! when they commit: if they are blocked, they show as a `Committing` that does
//! not end, which TiDB retries after 100 ms and more.

use super::innodb::number;
use crate::engine::SessionId;
use isolde_model::Value;
use isolde_model::value::Row;
use std::collections::{BTreeSet, HashMap};
use std::time::{Duration, Instant};

/// A released lock stays in the view for some milliseconds: a wait that is new,
/// or older than the end of another transaction, counts if two polls agree.
pub const SECOND_LOOK: Duration = Duration::from_millis(10);
/// Updates that are not blocked show LockWaiting for some milliseconds.
const LEAST_WAIT: i64 = 10_000;
/// A commit that is not blocked is over long before.
const LONGEST_COMMIT: Duration = Duration::from_millis(150);

fn state(row: &Row) -> &str {
    match row.get(1) {
        Some(Value::Text(state)) => state,
        _ => "",
    }
}

/// Whether a transaction is open that is not blocked. Without one there is
/// nothing to wait for but TiDB's own next retry: it does not wake up every
/// session whose lock is free.
fn somebody_holds(rows: &[Row]) -> bool {
    rows.iter().any(|row| !matches!(state(row), "LockWaiting" | "Committing"))
}

/// Sessions that have been in a lock wait for a while. A row is a session, its
/// state and the microseconds of its wait.
pub fn lock_waits(rows: &[Row]) -> Vec<SessionId> {
    if !somebody_holds(rows) {
        return Vec::new();
    }
    let old = |row: &Row| matches!(row.get(2), Some(Value::Int(age)) if *age > LEAST_WAIT);
    let waits = rows.iter().filter(|row| state(row) == "LockWaiting" && old(row));
    waits.filter_map(|row| row.first().and_then(number)).collect()
}

/// Sessions that commit while another one has a transaction open.
pub fn committing(rows: &[Row]) -> Vec<SessionId> {
    if !somebody_holds(rows) {
        return Vec::new();
    }
    let commits = rows.iter().filter(|row| state(row) == "Committing");
    commits.filter_map(|row| row.first().and_then(number)).collect()
}

/// Since when sessions have been committing.
#[derive(Default)]
pub struct Commits(HashMap<SessionId, Instant>);

impl Commits {
    /// Those that have been committing for too long, in every poll.
    pub fn waiting(&mut self, now_committing: &[SessionId], now: Instant) -> Vec<SessionId> {
        self.0.retain(|id, _| now_committing.contains(id));
        for id in now_committing {
            self.0.entry(*id).or_insert(now);
        }
        let late = |id: &SessionId| now.duration_since(self.0[id]) >= LONGEST_COMMIT;
        now_committing.iter().copied().filter(late).collect()
    }
}

/// Lock waits that two polls agreed on, and the transactions of that time.
#[derive(Default)]
pub struct Known {
    waiting: Vec<SessionId>,
    transactions: BTreeSet<u64>,
}

impl Known {
    pub fn new(rows: &[Row], waiting: &[SessionId]) -> Known {
        Known { waiting: waiting.to_vec(), transactions: transactions(rows) }
    }

    /// Locks are held to the end: while no transaction has ended, all waits
    /// persist.
    pub fn still_hold(&self, rows: &[Row], waiting: &[SessionId]) -> bool {
        waiting.iter().all(|id| self.waiting.contains(id))
            && self.transactions.is_subset(&transactions(rows))
    }
}

fn transactions(rows: &[Row]) -> BTreeSet<u64> {
    rows.iter().filter_map(|row| row.get(3).and_then(number)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(id: i64, state: &str, age: Option<i64>) -> Row {
        vec![Value::Int(id), Value::Text(state.into()), age.map_or(Value::Null, Value::Int)]
    }

    #[test]
    fn only_an_old_lock_wait_counts() {
        let rows = [
            row(1, "LockWaiting", Some(20_000)),
            row(2, "LockWaiting", Some(3_000)),
            row(3, "Running", None),
        ];
        assert_eq!(lock_waits(&rows), [1]);
        assert!(lock_waits(&rows[..2]).is_empty());
    }

    #[test]
    fn a_known_wait_is_confirmed_again_only_after_a_transaction_ended() {
        let rows = |ids: &[i64]| -> Vec<Row> {
            let with_id = |id: &i64| {
                let mut row = row(*id, "Idle", None);
                row.push(Value::Int(100 + id));
                row
            };
            ids.iter().map(with_id).collect()
        };
        let known = Known::new(&rows(&[1, 2]), &[2]);
        assert!(known.still_hold(&rows(&[1, 2, 3]), &[2]));
        assert!(!known.still_hold(&rows(&[2, 3]), &[2]), "1 has ended");
        assert!(!known.still_hold(&rows(&[1, 2, 3]), &[2, 3]), "3 is new");
        assert!(!Known::default().still_hold(&rows(&[1]), &[1]));
    }

    #[test]
    fn a_long_commit_is_blocked_while_other_transactions_are_open() {
        let blocked = [row(1, "Committing", None), row(2, "Idle", None)];
        let alone = [row(1, "Committing", None)];
        assert_eq!(committing(&blocked), [1]);
        assert!(committing(&alone).is_empty());
        let mut commits = Commits::default();
        let start = Instant::now();
        assert!(commits.waiting(&[1], start).is_empty());
        assert_eq!(commits.waiting(&[1], start + LONGEST_COMMIT), [1]);
        // Another commit of the same session is counted afresh.
        assert!(commits.waiting(&[], start + LONGEST_COMMIT).is_empty());
        assert!(commits.waiting(&[1], start + LONGEST_COMMIT * 2).is_empty());
    }
}
