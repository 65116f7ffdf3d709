//! Lock waits that old versions of InnoDB hide: read-only transactions are
//! missing from the text of SHOW ENGINE INNODB STATUS, also while they are
//! blocked.
//!
//! A counter shows how many transactions are blocked. If it equals the number
//! of candidates, all of them are. A transaction that is woken up decrements
//! the counter itself, perhaps late, so a wait counts only if no transaction
//! has ended between two polls. In any other case the answer is in a table that
//! is right, but is refreshed only when it has not been read for 100 ms.

use crate::engine::SessionId;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// How long InnoDB's tables of transactions and locks are served from a cache.
const TABLE_CACHE: Duration = Duration::from_millis(105);

/// An upper bound on the number of transactions.
const NEVER: u64 = u64::MAX;

/// A transaction has ended since a wait was seen: so many polls give the
/// blocked statement time to answer before the table is read.
const LOOKS_BEFORE_TABLE: u8 = 3;

/// The result of the last poll of a statement.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Look {
    /// It may be blocked; so many transactions had ended.
    Perhaps(u64),
    /// It was blocked; so many transactions had ended.
    Waited(u64),
    /// It was blocked, and a transaction has ended since; the number of polls
    /// ago.
    Released(u8),
}

/// The known states of outstanding statements.
#[derive(Default)]
pub struct HiddenWaits {
    looked_at: BTreeMap<SessionId, Look>,
    /// When the cached table was last read by this connection.
    table_read: Option<Instant>,
}

impl HiddenWaits {
    /// `out` are the sessions that have not answered, `waits` those of them
    /// that the text shows as blocked.
    pub fn follow(&mut self, out: &[SessionId], waits: &[SessionId]) {
        // A session that has disappeared from the text has been woken up or has
        // begun another statement: the counter alone cannot distinguish these.
        self.note(waits, Look::Waited(NEVER));
        self.looked_at.retain(|id, _| out.contains(id));
    }

    /// Whether all candidates are blocked, given that the counter equals their
    /// number; none where only the table can decide.
    pub fn all_blocked(&mut self, candidates: &[SessionId], ended: u64) -> Option<bool> {
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

    /// How long to wait before the table is read, so that it is not served from
    /// the cache. On a private server no other client reads it.
    pub fn table_delay(&self, private: bool) -> Duration {
        let idle = match self.table_read.filter(|_| private) {
            Some(read) => read.elapsed(),
            None if private => TABLE_CACHE,
            None => Duration::ZERO,
        };
        TABLE_CACHE.saturating_sub(idle)
    }

    /// Records that the table has just been read: it shows the sessions `waits`
    /// as blocked. So many transactions had ended.
    pub fn note_table(&mut self, waits: &[SessionId], ended: u64) {
        self.table_read = Some(Instant::now());
        self.note(waits, Look::Waited(ended));
    }

    fn note(&mut self, sessions: &[SessionId], look: Look) {
        self.looked_at.extend(sessions.iter().map(|id| (*id, look)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hidden_wait_counts_until_a_transaction_ends() {
        let mut hidden = HiddenWaits::default();
        hidden.follow(&[1, 2], &[2]);
        assert_eq!(hidden.all_blocked(&[1], 10), Some(false), "one look is not enough");
        assert_eq!(hidden.all_blocked(&[1], 11), Some(false), "something ended in between");
        assert_eq!(hidden.all_blocked(&[1], 11), Some(true));
        assert_eq!(hidden.all_blocked(&[1], 11), Some(true));
        for _ in 0..LOOKS_BEFORE_TABLE {
            assert_eq!(hidden.all_blocked(&[1], 12), Some(false), "it may be on its way");
        }
        assert_eq!(hidden.all_blocked(&[1], 12), None, "it would have answered");
        // The next statement of a session is judged afresh.
        hidden.follow(&[2], &[]);
        assert_eq!(hidden.all_blocked(&[1], 12), Some(false));
        // Seen blocked and then no longer: the counter alone is never enough.
        assert!((0..9).all(|_| hidden.all_blocked(&[2], 12) != Some(true)));
    }
}
