//! Whether an order of begins and commits is what it claims to be.
//!
//! It plays the order through, item by item, and knows nothing of how it was found. A
//! yes that does not stand here is never given.

use super::problem::{Goal, INITIAL, Keep, Problem};
use super::versions::NONE;

/// An order of transactions, or of their halves.
pub(super) enum Witness<'a> {
    /// Transactions, each at one moment.
    Serial(&'a [u32]),
    /// Begins (`2 * txn`) and commits (`2 * txn + 1`).
    Snapshots(&'a [u32]),
}

struct Play<'a> {
    problem: &'a Problem,
    keep: Keep,
    /// The writer of what each item holds, and when it was committed.
    holds: Vec<(u32, u32)>,
    /// How many versions each item has had.
    versions: Vec<u32>,
    /// When each transaction began, and then when it committed.
    began: Vec<u32>,
    /// The latest transaction that committed in each session.
    latest: Vec<u32>,
    previous: Vec<u32>,
}

pub(super) fn stands(problem: &Problem, keep: Keep, witness: &Witness) -> bool {
    let txns = problem.session_of.len();
    let mut latest = vec![NONE; problem.sessions as usize];
    let previous = problem
        .session_of
        .iter()
        .enumerate()
        .map(|(txn, session)| std::mem::replace(&mut latest[*session as usize], txn as u32));
    let previous: Vec<u32> = previous.collect();
    latest.fill(NONE);
    let mut play = Play {
        problem,
        keep,
        holds: vec![(INITIAL, 0); problem.items as usize],
        versions: vec![0; problem.items as usize],
        began: vec![NONE; txns],
        latest,
        previous,
    };
    let (events, halves) = match witness {
        Witness::Serial(order) => (order, false),
        Witness::Snapshots(events) => (events, true),
    };
    if events.len() != if halves { 2 * txns } else { txns } {
        return false;
    }
    let right = events.iter().enumerate().all(|(moment, &event)| match halves {
        false => play.begin(event, moment as u32) && play.commit(event, moment as u32),
        true if event % 2 == 0 => play.begin(event / 2, moment as u32),
        true => play.commit(event / 2, moment as u32),
    });
    right && (!keep.times || problem.times.is_empty() || in_time(problem, events, halves))
}

impl Play<'_> {
    /// It reads what is there, after all that it follows.
    fn begin(&mut self, txn: u32, moment: u32) -> bool {
        let Some(began) = self.began.get_mut(txn as usize) else { return false };
        if std::mem::replace(began, moment) != NONE {
            return false;
        }
        let session = self.problem.session_of[txn as usize] as usize;
        if self.keep.sessions && self.latest[session] != self.previous[txn as usize] {
            return false;
        }
        let mut reads = self.problem.reads.of(txn).iter();
        reads.all(|&(item, writer)| self.holds[item as usize].0 == writer)
    }

    /// It overwrites what was there when it began.
    fn commit(&mut self, txn: u32, moment: u32) -> bool {
        let Some(&began) = self.began.get(txn as usize) else { return false };
        if began == NONE {
            return false;
        }
        self.latest[self.problem.session_of[txn as usize] as usize] = txn;
        for &item in self.problem.writes.of(txn) {
            let (writer, committed) = self.holds[item as usize];
            if writer != INITIAL && committed >= began || !self.in_known_order(item, txn) {
                return false;
            }
            self.holds[item as usize] = (txn, moment);
            self.versions[item as usize] += 1;
        }
        true
    }

    fn in_known_order(&self, item: u32, txn: u32) -> bool {
        let known = &self.problem.known_order;
        if item as usize >= known.len() {
            return true;
        }
        known.of(item).get(self.versions[item as usize] as usize).is_none_or(|first| *first == txn)
    }
}

/// Nobody began after the end of somebody who commits later.
fn in_time(problem: &Problem, events: &[u32], halves: bool) -> bool {
    let mut first_end = u64::MAX;
    events.iter().rev().all(|&event| {
        let (txn, begins, commits) =
            if halves { (event / 2, event % 2 == 0, event % 2 == 1) } else { (event, true, true) };
        let [begin, end] = problem.times[txn as usize];
        let right = !begins || first_end >= begin;
        if commits {
            first_end = first_end.min(end.max(begin));
        }
        right
    })
}

/// How a layout's nodes are to be read.
pub(super) fn witness(goal: Goal, nodes: &[u32]) -> Witness<'_> {
    match goal {
        Goal::Serializable => Witness::Serial(nodes),
        Goal::SnapshotIsolation => Witness::Snapshots(nodes),
    }
}
