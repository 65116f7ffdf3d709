//! Inference for large histories: one sweep in the order of depth, with a vector
//! clock for each transaction.
//!
//! Sessions are chains, so who reaches a transaction is one number a session. Only
//! the clocks of the latest transactions are kept; of an older one, only that it
//! comes before. What is forgotten makes inferences fewer, never wrong.
//!
//! If N, who wrote the same item, reaches a reader of V's version, then N comes before
//! V. If V reaches N, then V's readers come before N. Neighbours in depth are enough: the
//! farther ones are ordered by reads and sessions already.

use super::certain::{Certain, Inference, Via};
use super::problem::{Goal, INITIAL};
use super::versions::NONE;

/// How many versions to each side are looked at.
const NEIGHBOURS: usize = 24;
/// Clocks that are kept, in numbers of 32 bits.
const KEPT: usize = 1 << 21;
/// Wider clocks cost more than they bring.
const MOST_SESSIONS: u32 = 1024;

struct Clocks<'a> {
    session_of: &'a [u32],
    /// The place of each transaction in its session, from one on.
    place: Vec<u32>,
    sessions: usize,
    kept: usize,
    rows: Vec<u32>,
    own: Vec<u32>,
}

impl Clocks<'_> {
    fn row(&self, txn: u32, now: u32) -> Option<&[u32]> {
        ((now - txn) as usize <= self.kept).then(|| {
            let at = txn as usize % self.kept * self.sessions;
            &self.rows[at..at + self.sessions]
        })
    }

    /// Whether `txn` reaches the transaction of the own clock.
    fn reaches(&self, txn: u32) -> bool {
        self.own[self.session_of[txn as usize] as usize] >= self.place[txn as usize]
    }

    /// Whether one transaction reaches another. What is forgotten is so far back that most
    /// of what was before it is known.
    fn reaches_other(&self, txn: u32, other: u32, now: u32) -> bool {
        txn < other
            && self.row(other, now).is_none_or(|row| {
                row[self.session_of[txn as usize] as usize] >= self.place[txn as usize]
            })
    }

    fn join(&mut self, txn: u32, now: u32) {
        if self.reaches(txn) {
            return;
        }
        if ((now - txn) as usize) <= self.kept {
            let at = txn as usize % self.kept * self.sessions;
            for (own, other) in self.own.iter_mut().zip(&self.rows[at..at + self.sessions]) {
                *own = (*own).max(*other);
            }
        } else {
            self.own[self.session_of[txn as usize] as usize] = self.place[txn as usize];
        }
    }
}

/// What can be inferred, in an order in which each only needs those before. The
/// transactions have to be numbered so that all that is certain leads upwards.
pub(super) fn infer(certain: &Certain) -> Vec<Inference> {
    let problem = certain.problem;
    let txns = certain.txns();
    let mut inferences = Vec::new();
    if txns == 0 || !certain.sessions || problem.sessions > MOST_SESSIONS {
        return inferences;
    }
    let sessions = problem.sessions as usize;
    let kept = (KEPT / sessions).clamp(1, txns as usize);
    let mut clocks = Clocks {
        session_of: &problem.session_of,
        place: vec![0; txns as usize],
        sessions,
        kept,
        rows: vec![0; kept * sessions],
        own: vec![0; sessions],
    };
    // Where each version stands among those of its item: counted, since a search in the
    // item's row for every read and write would take a quarter of the time.
    let mut versions_so_far = vec![0; problem.items as usize];
    let mut row_place = vec![0; problem.writes.all.len()];
    for txn in 0..txns {
        for slot in certain.slots(txn) {
            let count = &mut versions_so_far[problem.writes.all[slot as usize] as usize];
            row_place[slot as usize] = *count;
            *count += 1;
        }
        clocks.own.fill(0);
        let before = certain.session_previous[txn as usize];
        clocks.place[txn as usize] =
            if before == NONE { 1 } else { clocks.place[before as usize] + 1 };
        certain.predecessors(txn, |other| clocks.join(other, txn));
        if certain.goal == Goal::Serializable {
            readers_before(certain, &mut clocks, &row_place, txn, &mut inferences);
        }
        writers_before(certain, &clocks, &row_place, txn, &mut inferences);
        clocks.own[problem.session_of[txn as usize] as usize] = clocks.place[txn as usize];
        let at = txn as usize % kept * sessions;
        clocks.rows[at..at + sessions].copy_from_slice(&clocks.own);
    }
    inferences
}

/// Readers of versions that come before one that `txn` wrote come before `txn`.
fn readers_before(
    certain: &Certain,
    clocks: &mut Clocks,
    row_place: &[u32],
    txn: u32,
    found: &mut Vec<Inference>,
) {
    let versions = certain.versions;
    for slot in certain.slots(txn) {
        let item = certain.problem.writes.all[slot as usize];
        if versions.previous[slot as usize] != NONE {
            continue;
        }
        let row = versions.of_item.of(item);
        let at = row_place[slot as usize] as usize;
        let earlier = row[..at].iter().rev().take(NEIGHBOURS).copied();
        let initial = (at < NEIGHBOURS).then(|| versions.initial(item));
        for version in earlier.chain(initial) {
            let writer = versions.writer[version as usize];
            if writer != INITIAL && !clocks.reaches(writer) {
                continue;
            }
            let mut all_known = true;
            for &reader in versions.readers.of(version) {
                if reader < txn && clocks.reaches(reader) {
                    continue;
                }
                all_known = false;
                if reader != txn {
                    found.push(Inference { from: reader, to: txn, via: Via::Writer(writer) });
                    if reader < txn {
                        clocks.join(reader, txn);
                    }
                }
            }
            // What it overwrote in its turn is known by now.
            if all_known && writer != INITIAL {
                break;
            }
        }
    }
}

/// Writers that reach `txn` come before whoever wrote what it read.
fn writers_before(
    certain: &Certain,
    clocks: &Clocks,
    row_place: &[u32],
    txn: u32,
    found: &mut Vec<Inference>,
) {
    let versions = certain.versions;
    for (&version, &(item, writer)) in
        certain.versions_read(txn).iter().zip(certain.problem.reads.of(txn))
    {
        if writer == INITIAL {
            continue;
        }
        let row = versions.of_item.of(item);
        let at = row_place[version as usize] as usize;
        let mut infer = |other: u32| {
            let other = versions.writer[other as usize];
            let reaches = other < txn && clocks.reaches(other);
            let known = reaches && clocks.reaches_other(other, writer, txn);
            if reaches && !known {
                found.push(Inference { from: other, to: writer, via: Via::Reader(txn) });
            }
            known
        };
        for &other in row[at + 1..].iter().take(NEIGHBOURS) {
            if versions.writer[other as usize] >= txn {
                break;
            }
            infer(other);
        }
        for &other in row[..at].iter().rev().take(NEIGHBOURS) {
            if infer(other) {
                break;
            }
        }
    }
}
