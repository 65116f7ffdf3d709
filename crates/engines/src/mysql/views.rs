//! Asking the views of MySQL's family who waits; `innodb` reads the answers.

use super::engine::MySqlEngine;
use super::flavour::View;
use super::{innodb, tidb_waits};
use crate::engine::{EngineResult, SessionId, WaitState};
use isolde_core::Value;
use std::time::{Duration, Instant};

/// Between two looks at a view that may be a moment late.
const SECOND_LOOK: Duration = Duration::from_millis(4);

impl MySqlEngine {
    pub(super) fn wait_states(&mut self, sessions: &[SessionId]) -> EngineResult<Vec<WaitState>> {
        let waits = match self.flavour.view {
            View::DataLockWaits => self.data_lock_waits()?,
            View::InnodbStatus | View::OldInnodbStatus => self.innodb_status()?,
            View::TidbTrx => match self.tidb_waits()? {
                rows if rows.is_empty() && self.looks % 4 == 3 => {
                    // A change of the schema passes through the view even when
                    // nobody is in its way.
                    let first = self.tidb_ddl_waits()?;
                    if !first.is_empty() {
                        std::thread::sleep(Duration::from_millis(20));
                    }
                    let still = self.tidb_ddl_waits()?;
                    first.into_iter().filter(|wait| still.contains(wait)).collect()
                }
                rows => rows,
            },
            View::Nothing => Vec::new(),
        };
        let waiters: Vec<SessionId> = waits.iter().map(|(waiter, _)| *waiter).collect();
        self.hidden.follow(sessions, &waiters);
        let mut states: Vec<WaitState> = sessions
            .iter()
            .map(|s| match waits.iter().find(|(waiter, _)| waiter == s) {
                Some((_, holders)) => WaitState::Waiting(holders.clone()),
                None => WaitState::Free,
            })
            .collect();
        let rest: Vec<SessionId> = sessions
            .iter()
            .zip(&states)
            .filter(|(_, state)| **state == WaitState::Free)
            .map(|(s, _)| *s)
            .collect();
        // Waits above InnoDB are rare; asking about them every time would make
        // all others be seen later. "Free" only means: ask again.
        self.looks += 1;
        let innodb = !matches!(self.flavour.view, View::TidbTrx | View::Nothing);
        if innodb && !rest.is_empty() && self.looks.is_multiple_of(4) {
            let mut above = self.upper_locks(&rest)?;
            if above.is_empty() && self.flavour.view == View::OldInnodbStatus {
                above = self.hidden_waits(&rest, waits.len())?;
            }
            for (session, state) in sessions.iter().zip(&mut states) {
                if above.contains(session) {
                    *state = WaitState::Waiting(Vec::new());
                }
            }
        }
        Ok(states)
    }

    /// The thread in a row of these views is the one that made the lock, which
    /// need not be its owner's: a waiter makes the lock of a row that another
    /// has just inserted, and a holder makes everybody's locks anew when its
    /// update moves the row. Whose a lock is says the transaction's id alone,
    /// and whose a transaction is say its locks on tables, which nobody but
    /// its own thread makes.
    fn data_lock_waits(&mut self) -> EngineResult<Vec<(SessionId, Vec<SessionId>)>> {
        let waits = self.rows(
            "select requesting_engine_transaction_id, blocking_engine_transaction_id \
             from performance_schema.data_lock_waits",
        )?;
        if waits.is_empty() {
            return Ok(Vec::new());
        }
        let owners = self.rows(
            "select engine_transaction_id, thread_id from performance_schema.data_locks \
             where lock_type = 'TABLE'",
        )?;
        Ok(innodb::waits_of_transactions(&waits, &owners, &self.threads))
    }

    fn innodb_status(&mut self) -> EngineResult<Vec<(SessionId, Vec<SessionId>)>> {
        let rows = self.rows("show engine innodb status")?;
        let text = match rows.first().and_then(|r| r.last()) {
            Some(Value::Text(text)) => text.as_str(),
            _ => "",
        };
        Ok(innodb::lock_waits(text).into_iter().map(|id| (id, Vec::new())).collect())
    }

    /// Locks above the storage engine; two looks must agree.
    fn upper_locks(&mut self, sessions: &[SessionId]) -> EngineResult<Vec<SessionId>> {
        let list: Vec<String> = sessions.iter().map(SessionId::to_string).collect();
        let sql = format!(
            "select id, state from information_schema.processlist where id in ({})",
            list.join(",")
        );
        let first = innodb::state_waits(&self.rows(&sql)?);
        if first.is_empty() {
            return Ok(first);
        }
        std::thread::sleep(SECOND_LOOK);
        let second = innodb::state_waits(&self.rows(&sql)?);
        Ok(first.into_iter().filter(|id| second.contains(id)).collect())
    }

    /// DDL of TiDB that waits for transactions on its table, with their sessions.
    fn tidb_ddl_waits(&mut self) -> EngineResult<Vec<(SessionId, Vec<SessionId>)>> {
        let sql = "select p.id, v.session_id from information_schema.processlist p \
                   join mysql.tidb_mdl_view v on v.query = p.info";
        let Ok(rows) = self.rows(sql) else {
            // Versions before metadata locks have no such view, and no wait.
            return Ok(Vec::new());
        };
        let mut waits: Vec<(SessionId, Vec<SessionId>)> = Vec::new();
        for row in &rows {
            let id = |i: usize| row.get(i).and_then(innodb::number);
            if let (Some(waiter), Some(holder)) = (id(0), id(1)) {
                match waits.iter_mut().find(|(w, _)| *w == waiter) {
                    Some((_, holders)) => holders.push(holder),
                    None => waits.push((waiter, vec![holder])),
                }
            }
        }
        Ok(waits)
    }

    fn tidb_waits(&mut self) -> EngineResult<Vec<(SessionId, Vec<SessionId>)>> {
        let sql = "select session_id, state, \
                   timestampdiff(microsecond, waiting_start_time, now(6)), id \
                   from information_schema.tidb_trx";
        let rows = self.rows(sql)?;
        let commits = self.tidb_commits.waiting(&tidb_waits::committing(&rows), Instant::now());
        let mut found = tidb_waits::lock_waits(&rows);
        if !found.is_empty() && !self.tidb_known.still_hold(&rows, &found) {
            std::thread::sleep(tidb_waits::SECOND_LOOK);
            let rows = self.rows(sql)?;
            let second = tidb_waits::lock_waits(&rows);
            found.retain(|id| second.contains(id));
            self.tidb_known = tidb_waits::Known::new(&rows, &found);
        }
        found.extend(commits);
        Ok(found.into_iter().map(|id| (id, Vec::new())).collect())
    }
}
