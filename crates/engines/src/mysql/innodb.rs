//! Reads lock waits from the views of MySQL's family.
//!
//! Measured: `information_schema.innodb_trx` and its relatives are cached for
//! 100 ms and wrong in both directions, so they are read only for what no other
//! view shows (`hidden`). These are accurate at once:
//! `performance_schema.data_lock_waits` (MySQL from 8.0, which also names the
//! lock holders, both by transaction) and the `LOCK WAIT` lines of transactions
//! in `SHOW ENGINE INNODB STATUS` (MariaDB, older MySQL). Metadata locks show
//! in neither; for those there is the process list, whose states are written by
//! the blocked thread itself and may be a moment late, so they count only when
//! two polls agree.

use crate::engine::SessionId;
use isolde_model::Value;
use isolde_model::value::Row;
use std::collections::HashMap;

/// The connections whose transaction is in `LOCK WAIT`, from the text of `SHOW
/// ENGINE INNODB STATUS`.
pub fn lock_waits(status: &str) -> Vec<SessionId> {
    // The section on the latest deadlock has the same form and comes before.
    let Some(start) = status.rfind("\nTRANSACTIONS\n") else { return Vec::new() };
    status[start..]
        .split("\n---TRANSACTION ")
        .skip(1)
        .filter(|block| block.lines().any(|l| l.starts_with("LOCK WAIT ")))
        .filter_map(thread_id)
        .collect()
}

/// Lock waits with their holders, from pairs of transactions (waiter, holder)
/// and the thread that each transaction (first column) belongs to. A
/// transaction that has ended between the two queries has no thread, and is not
/// blocked.
pub fn waits_of_transactions(
    waits: &[Row],
    owners: &[Row],
    connections: &HashMap<u64, SessionId>,
) -> Vec<(SessionId, Vec<SessionId>)> {
    let id = |row: &Row, column: usize| row.get(column).and_then(number);
    let owner: HashMap<u64, SessionId> = owners
        .iter()
        .filter_map(|row| Some((id(row, 0)?, *connections.get(&id(row, 1)?)?)))
        .collect();
    let connection = |row: &Row, column| id(row, column).and_then(|t| owner.get(&t)).copied();
    let mut found: Vec<(SessionId, Vec<SessionId>)> = Vec::new();
    for row in waits {
        let Some(waiter) = connection(row, 0) else { continue };
        let holder = connection(row, 1);
        match found.iter_mut().find(|(w, _)| *w == waiter) {
            Some((_, holders)) => holders.extend(holder),
            None => found.push((waiter, holder.into_iter().collect())),
        }
    }
    found
}

/// `MySQL thread id 12, …` or `MariaDB thread id 12, …`.
fn thread_id(block: &str) -> Option<SessionId> {
    let (_, after) = block.split_once(" thread id ")?;
    let digits = after.find(|c: char| !c.is_ascii_digit()).unwrap_or(after.len());
    after[..digits].parse().ok()
}

/// Sessions of a process list (`id`, `state`) that wait for a lock above
/// InnoDB: metadata, table, backup or user locks. Sleeping is not waiting.
pub fn state_waits(rows: &[Row]) -> Vec<SessionId> {
    rows.iter()
        .filter_map(|row| match (row.first(), row.get(1)) {
            (Some(id), Some(Value::Text(state))) if is_lock_state(state) => number(id),
            _ => None,
        })
        .collect()
}

fn is_lock_state(state: &str) -> bool {
    let state = state.to_ascii_lowercase();
    state == "user lock"
        || (state.starts_with("waiting for ")
            && (state.contains("lock") || state.contains("flush")))
}

pub fn number(value: &Value) -> Option<u64> {
    match value {
        Value::Int(i) => u64::try_from(*i).ok(),
        Value::Decimal(d) => d.parse().ok(),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STATUS: &str = "\n------------------------\nLATEST DETECTED DEADLOCK\n---TRANSACTION 1, ACTIVE\nLOCK WAIT 2 lock struct(s)\nMariaDB thread id 99, x\n\
------------\nTRANSACTIONS\n------------\nTrx id counter 40\n\
---TRANSACTION 39, ACTIVE 0 sec starting index read\nmysql tables in use 1, locked 1\nLOCK WAIT 2 lock struct(s), heap size 1128\nMariaDB thread id 7, OS thread handle 1, query id 5 127.0.0.1 root Updating\nupdate t set a = 1\n------- TRX HAS BEEN WAITING 12 us FOR THIS LOCK TO BE GRANTED:\n\
---TRANSACTION 38, ACTIVE 1 sec\n2 lock struct(s), heap size 1128, 1 row lock(s)\nMySQL thread id 6, OS thread handle 2\n\
---TRANSACTION (0x7f), not started\n0 lock struct(s)\n";

    #[test]
    fn only_lock_wait_transactions_are_blocked() {
        assert_eq!(lock_waits(STATUS), [7]);
        assert!(lock_waits("").is_empty());
    }

    #[test]
    fn a_wait_belongs_to_the_transaction_not_the_creating_thread() {
        let rows = |pairs: &[[i64; 2]]| -> Vec<Row> {
            pairs.iter().map(|pair| pair.map(Value::Int).to_vec()).collect()
        };
        // Transaction 1562 of thread 41 holds a row and has moved it: it
        // created the lock records of both waiters. Transaction 9 has just
        // ended.
        let waits =
            rows(&[[375300395569944, 1562], [1563, 1562], [1563, 375300395569944], [9, 1562]]);
        let owners = rows(&[[1562, 41], [375300395569944, 43], [1563, 42], [77, 50]]);
        let connections = HashMap::from([(41, 10), (42, 11), (43, 12)]);
        let found = waits_of_transactions(&waits, &owners, &connections);
        assert_eq!(found, [(12, vec![10]), (11, vec![10, 12])]);
    }

    #[test]
    fn a_metadata_lock_is_a_wait_and_a_sleep_is_not() {
        let row = |id, state: &str| vec![Value::Int(id), Value::Text(state.into())];
        let rows = [
            row(1, "Waiting for table metadata lock"),
            row(2, "User sleep"),
            row(3, "Sending data"),
            row(4, "User lock"),
            row(5, "Waiting for table flush"),
        ];
        assert_eq!(state_waits(&rows), [1, 4, 5]);
    }
}
