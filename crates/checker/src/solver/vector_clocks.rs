//! Saturation for large histories: infers edges in one sweep in the order of depth, with one
//! vector clock per transaction.
//!
//! Sessions are chains, so the transactions that reach a given one are described by one number
//! per session (a vector clock, as in Plume, OOPSLA 2024). Only the clocks of the latest
//! transactions are kept; an older transaction is only known to come before. Forgetting clocks
//! loses inferences, but never makes a wrong one.
//!
//! Two rules: if N, another writer of the item, reaches a reader of V's version, then N
//! precedes V; if V reaches N, then the readers of V's version precede N. Neighbours in depth
//! are enough: versions farther apart are already ordered by reads and sessions.

use super::certain_edges::{CertainEdges, Inference, Via};
use super::problem::Goal;
use crate::types::{INITIAL, NONE};

/// How many versions to each side are considered.
const NEIGHBOURS: usize = 24;
/// The number of clock entries (32 bits each) that are kept.
const KEPT: usize = 1 << 21;
/// Wider clocks cost more than they gain.
const MOST_SESSIONS: u32 = 1024;

struct Clocks<'a> {
    session_of: &'a [u32],
    /// The position of each transaction in its session, counted from 1.
    position: Vec<u32>,
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

    /// Whether `txn` reaches the transaction whose clock is being computed.
    fn reaches(&self, txn: u32) -> bool {
        self.own[self.session_of[txn as usize] as usize] >= self.position[txn as usize]
    }

    /// Whether one transaction reaches another. If its clock is forgotten, the answer is yes: it is
    /// so far back that most of what precedes it is known to.
    fn reaches_other(&self, txn: u32, other: u32, now: u32) -> bool {
        txn < other
            && self.row(other, now).is_none_or(|row| {
                row[self.session_of[txn as usize] as usize] >= self.position[txn as usize]
            })
    }

    fn merge(&mut self, txn: u32, now: u32) {
        if self.reaches(txn) {
            return;
        }
        if ((now - txn) as usize) <= self.kept {
            let at = txn as usize % self.kept * self.sessions;
            for (own, other) in self.own.iter_mut().zip(&self.rows[at..at + self.sessions]) {
                *own = (*own).max(*other);
            }
        } else {
            self.own[self.session_of[txn as usize] as usize] = self.position[txn as usize];
        }
    }
}

/// Infers edges, in an order in which each depends only on those before it. The transactions
/// must be numbered in a topological order of the certain edges.
pub(super) fn infer(certain: &CertainEdges) -> Vec<Inference> {
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
        position: vec![0; txns as usize],
        sessions,
        kept,
        rows: vec![0; kept * sessions],
        own: vec![0; sessions],
    };
    // The position of each version among those of its item. It is counted, since a search in the
    // item's row for every read and write would take a quarter of the time.
    let mut versions_so_far = vec![0; problem.items as usize];
    let mut row_position = vec![0; problem.writes.all.len()];
    for txn in 0..txns {
        for slot in certain.slots(txn) {
            let count = &mut versions_so_far[problem.writes.all[slot as usize] as usize];
            row_position[slot as usize] = *count;
            *count += 1;
        }
        clocks.own.fill(0);
        let before = certain.session_previous[txn as usize];
        clocks.position[txn as usize] =
            if before == NONE { 1 } else { clocks.position[before as usize] + 1 };
        certain.predecessors(txn, |other| clocks.merge(other, txn));
        if certain.goal == Goal::Serializable {
            readers_before(certain, &mut clocks, &row_position, txn, &mut inferences);
        }
        writers_before(certain, &clocks, &row_position, txn, &mut inferences);
        clocks.own[problem.session_of[txn as usize] as usize] = clocks.position[txn as usize];
        let at = txn as usize % kept * sessions;
        clocks.rows[at..at + sessions].copy_from_slice(&clocks.own);
    }
    inferences
}

/// Infers edges from readers of earlier versions to `txn`, which overwrote them.
fn readers_before(
    certain: &CertainEdges,
    clocks: &mut Clocks,
    row_position: &[u32],
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
        let at = row_position[slot as usize] as usize;
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
                        clocks.merge(reader, txn);
                    }
                }
            }
            // Whatever that version overwrote is known by now.
            if all_known && writer != INITIAL {
                break;
            }
        }
    }
}

/// Infers edges from writers that reach `txn` to the writer of the version that it read.
fn writers_before(
    certain: &CertainEdges,
    clocks: &Clocks,
    row_position: &[u32],
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
        let at = row_position[version as usize] as usize;
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
