//! Queries the views of MySQL's family for lock waits; `innodb`, `hidden` and
//! `tidb_waits` interpret the results.

use super::engine::MySqlEngine;
use super::flavour::View;
use super::{innodb, tidb_waits};
use crate::engine::{EngineResult, SessionId, WaitState};
use isolde_model::Value;
use std::time::{Duration, Instant};

/// Pause between two polls of a view that may be a moment late.
const SECOND_LOOK: Duration = Duration::from_millis(4);

impl MySqlEngine {
    pub(super) fn wait_states(&mut self, sessions: &[SessionId]) -> EngineResult<Vec<WaitState>> {
        let waits = match self.flavour.view {
            View::DataLockWaits => self.data_lock_waits()?,
            View::InnodbStatus | View::OldInnodbStatus => self.innodb_status()?,
            View::TidbTrx => match self.tidb_waits()? {
                rows if rows.is_empty() && self.looks % 4 == 3 => {
                    // A schema change passes through the view even when nothing
                    // blocks it.
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
        // Lock waits above InnoDB are rare; polling for them every time would
        // delay the detection of all others. "Free" only means: poll again.
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

    /// The thread in a row of these views is the one that created the lock
    /// record, which need not be that of its owner: a waiter creates the lock
    /// of a row that another transaction has just inserted, and a holder
    /// recreates all locks when its update moves the row. Only the transaction
    /// id identifies the owner of a lock, and only the transaction's table
    /// locks, which its own thread creates, identify its thread.
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

    /// Locks above the storage engine; two polls must agree.
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

    /// Which of the sessions that look free are blocked; `seen` others are.
    fn hidden_waits(
        &mut self,
        candidates: &[SessionId],
        seen: usize,
    ) -> EngineResult<Vec<SessionId>> {
        let (waits, ended) = self.wait_counters()?;
        if waits <= seen {
            return Ok(Vec::new());
        }
        // On a private server no other client waits.
        let private = self.private.is_some();
        if private && waits >= seen + candidates.len() {
            match self.hidden.all_blocked(candidates, ended) {
                Some(true) => return Ok(candidates.to_vec()),
                Some(false) => return Ok(Vec::new()),
                None => {}
            }
        }
        std::thread::sleep(self.hidden.table_delay(private));
        let rows = self.rows(
            "select trx_mysql_thread_id from information_schema.innodb_trx where trx_state = 'LOCK WAIT'",
        )?;
        let mut waiting: Vec<SessionId> =
            rows.iter().filter_map(|r| r.first().and_then(innodb::number)).collect();
        waiting.retain(|id| candidates.contains(id));
        self.hidden.note_table(&waiting, ended);
        Ok(waiting)
    }

    /// How many transactions are blocked now, and how many have ended.
    fn wait_counters(&mut self) -> EngineResult<(usize, u64)> {
        let rows = self.rows(
            "show global status where variable_name in \
             ('Innodb_row_lock_current_waits', 'Handler_commit', 'Handler_rollback')",
        )?;
        let (mut waits, mut ended) = (0, 0);
        for row in &rows {
            let (Some(Value::Text(name)), Some(Value::Text(count))) = (row.first(), row.get(1))
            else {
                continue;
            };
            match name.as_str() {
                "Innodb_row_lock_current_waits" => waits = count.parse().unwrap_or(0),
                _ => ended += count.parse::<u64>().unwrap_or(0),
            }
        }
        Ok((waits, ended))
    }

    /// DDL of TiDB that waits for transactions on its table, with their
    /// sessions.
    fn tidb_ddl_waits(&mut self) -> EngineResult<Vec<(SessionId, Vec<SessionId>)>> {
        let sql = "select p.id, v.session_id from information_schema.processlist p \
                   join mysql.tidb_mdl_view v on v.query = p.info";
        let Ok(rows) = self.rows(sql) else {
            // Versions before metadata locks have neither this view nor such
            // waits.
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
