//! Waits that old versions of InnoDB hide: transactions that only read are
//! missing from the text of SHOW ENGINE INNODB STATUS, also while they wait.
//!
//! A counter tells that somebody waits. If as many wait as could, it is all of
//! them. Who is woken up takes itself off that counter, perhaps late; so a wait
//! counts only if no transaction has ended between two looks. In any other
//! case the answer stands in a table that is right, but is made anew only when
//! nobody has read it for 100 ms.

use super::engine::MySqlEngine;
use super::innodb;
use crate::engine::{EngineResult, SessionId};
use isolde_core::Value;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// How long InnoDB's tables of transactions and locks are served from a cache.
const TABLE_CACHE: Duration = Duration::from_millis(105);

/// A number of transactions that is not reached.
const NEVER: u64 = u64::MAX;

/// A transaction has ended since somebody was known to wait: so many looks give
/// it time to answer before the table is asked.
const LOOKS_BEFORE_TABLE: u8 = 3;

/// The last look at a statement.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Look {
    /// It may wait; so many transactions had ended.
    Perhaps(u64),
    /// It waited; so many transactions had ended.
    Waited(u64),
    /// It waited, and something has ended since; how many looks ago.
    Released(u8),
}

/// What is known of the statements that are out.
#[derive(Default)]
pub struct Hidden {
    looked_at: BTreeMap<SessionId, Look>,
    /// When the cached table was last read, by us.
    table_read: Option<Instant>,
}

impl Hidden {
    /// `out` are the sessions that have not answered, `waits` those of them
    /// that the text shows waiting.
    pub fn follow(&mut self, out: &[SessionId], waits: &[SessionId]) {
        // Who is gone from the text has been woken up, or has begun something
        // else: the counter alone does not tell which.
        self.note(waits, Look::Waited(NEVER));
        self.looked_at.retain(|id, _| out.contains(id));
    }

    /// Whether all candidates wait, given that as many wait as could; none
    /// where only the table tells.
    fn all_wait(&mut self, candidates: &[SessionId], ended: u64) -> Option<bool> {
        let looks: Vec<Option<Look>> =
            candidates.iter().map(|id| self.looked_at.get(id).copied()).collect();
        let same = |look: &Option<Look>| matches!(look, Some(Look::Perhaps(then) | Look::Waited(then)) if *then == ended);
        if looks.iter().all(same) {
            self.note(candidates, Look::Waited(ended));
            return Some(true);
        }
        for (id, look) in candidates.iter().zip(looks) {
            let now = match look {
                Some(Look::Released(looks)) if looks >= LOOKS_BEFORE_TABLE => return None,
                Some(Look::Released(looks)) => Look::Released(looks + 1),
                Some(Look::Waited(then)) if then != ended => Look::Released(1),
                Some(Look::Waited(then)) => Look::Waited(then),
                Some(Look::Perhaps(_)) | None => Look::Perhaps(ended),
            };
            self.looked_at.insert(*id, now);
        }
        Some(false)
    }

    fn note(&mut self, sessions: &[SessionId], look: Look) {
        self.looked_at.extend(sessions.iter().map(|id| (*id, look)));
    }
}

impl MySqlEngine {
    /// Who of the sessions that look free waits; `seen` others do.
    pub(super) fn hidden_waits(
        &mut self,
        candidates: &[SessionId],
        seen: usize,
    ) -> EngineResult<Vec<SessionId>> {
        let (waits, ended) = self.counters()?;
        if waits <= seen {
            return Ok(Vec::new());
        }
        // On a private server nobody else waits, or reads that table.
        let private = self.private.is_some();
        if private && waits >= seen + candidates.len() {
            match self.hidden.all_wait(candidates, ended) {
                Some(true) => return Ok(candidates.to_vec()),
                Some(false) => return Ok(Vec::new()),
                None => {}
            }
        }
        let idle = match self.hidden.table_read.filter(|_| private) {
            Some(read) => read.elapsed(),
            None if private => TABLE_CACHE,
            None => Duration::ZERO,
        };
        std::thread::sleep(TABLE_CACHE.saturating_sub(idle));
        let rows = self.rows(
            "select trx_mysql_thread_id from information_schema.innodb_trx where trx_state = 'LOCK WAIT'",
        )?;
        self.hidden.table_read = Some(Instant::now());
        let mut waiting: Vec<SessionId> =
            rows.iter().filter_map(|r| r.first().and_then(innodb::number)).collect();
        waiting.retain(|id| candidates.contains(id));
        self.hidden.note(&waiting, Look::Waited(ended));
        Ok(waiting)
    }

    /// How many wait now, and how many transactions have ended.
    fn counters(&mut self) -> EngineResult<(usize, u64)> {
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
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wait_counts_while_nothing_ends_and_is_looked_up_when_something_did() {
        let mut hidden = Hidden::default();
        hidden.follow(&[1, 2], &[2]);
        assert_eq!(hidden.all_wait(&[1], 10), Some(false), "one look is not enough");
        assert_eq!(hidden.all_wait(&[1], 11), Some(false), "something ended in between");
        assert_eq!(hidden.all_wait(&[1], 11), Some(true));
        assert_eq!(hidden.all_wait(&[1], 11), Some(true));
        for _ in 0..LOOKS_BEFORE_TABLE {
            assert_eq!(hidden.all_wait(&[1], 12), Some(false), "it may be on its way");
        }
        assert_eq!(hidden.all_wait(&[1], 12), None, "it would have answered");
        // Its next statement is another matter.
        hidden.follow(&[2], &[]);
        assert_eq!(hidden.all_wait(&[1], 12), Some(false));
        // Seen waiting, and seen no more: the counter alone is never enough.
        assert!((0..9).all(|_| hidden.all_wait(&[2], 12) != Some(true)));
    }
}
