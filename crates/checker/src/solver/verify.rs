//! Verifies a claimed order of transactions, or of begins and commits.
//!
//! It replays the order item by item and shares no code with the procedures that found it. An
//! order that fails here is never reported as *holds*.

use super::problem::{Goal, Problem};
use crate::types::{INITIAL, NONE, RequiredOrders};

/// A claimed order of transactions, or of their begins and commits.
pub(super) enum ClaimedOrder<'a> {
    /// Transactions, each at one moment.
    Serial(&'a [u32]),
    /// Begins (`2 * txn`) and commits (`2 * txn + 1`).
    Snapshots(&'a [u32]),
}

/// The state of the replay.
struct Execution<'a> {
    problem: &'a Problem,
    required: RequiredOrders,
    /// The writer of the current version of each item, and when it committed.
    current: Vec<(u32, u32)>,
    /// The number of versions of each item so far.
    versions: Vec<u32>,
    /// When each transaction began.
    began: Vec<u32>,
    /// The latest transaction of each session that committed.
    latest: Vec<u32>,
    previous: Vec<u32>,
}

pub(super) fn is_valid(
    problem: &Problem,
    required: RequiredOrders,
    claimed_order: &ClaimedOrder,
) -> bool {
    let txns = problem.session_of.len();
    let mut latest = vec![NONE; problem.sessions as usize];
    let previous = problem
        .session_of
        .iter()
        .enumerate()
        .map(|(txn, session)| std::mem::replace(&mut latest[*session as usize], txn as u32));
    let previous: Vec<u32> = previous.collect();
    latest.fill(NONE);
    let mut execution = Execution {
        problem,
        required,
        current: vec![(INITIAL, 0); problem.items as usize],
        versions: vec![0; problem.items as usize],
        began: vec![NONE; txns],
        latest,
        previous,
    };
    let (events, halves) = match claimed_order {
        ClaimedOrder::Serial(order) => (order, false),
        ClaimedOrder::Snapshots(events) => (events, true),
    };
    if events.len() != if halves { 2 * txns } else { txns } {
        return false;
    }
    let valid = events.iter().enumerate().all(|(moment, &event)| match halves {
        false => execution.begin(event, moment as u32) && execution.commit(event, moment as u32),
        true if event % 2 == 0 => execution.begin(event / 2, moment as u32),
        true => execution.commit(event / 2, moment as u32),
    });
    valid
        && (!required.times
            || problem.times.is_empty()
            || respects_real_time(problem, events, halves))
}

impl Execution<'_> {
    /// Begins a transaction. Its reads must observe the current versions.
    fn begin(&mut self, txn: u32, moment: u32) -> bool {
        let Some(began) = self.began.get_mut(txn as usize) else { return false };
        if std::mem::replace(began, moment) != NONE {
            return false;
        }
        let session = self.problem.session_of[txn as usize] as usize;
        if self.required.sessions && self.latest[session] != self.previous[txn as usize] {
            return false;
        }
        let mut reads = self.problem.reads.of(txn).iter();
        reads.all(|&(item, writer)| self.current[item as usize].0 == writer)
    }

    /// Commits a transaction. The versions it overwrites must be those of its begin.
    fn commit(&mut self, txn: u32, moment: u32) -> bool {
        let Some(&began) = self.began.get(txn as usize) else { return false };
        if began == NONE {
            return false;
        }
        self.latest[self.problem.session_of[txn as usize] as usize] = txn;
        for &item in self.problem.writes.of(txn) {
            let (writer, committed) = self.current[item as usize];
            if writer != INITIAL && committed >= began || !self.in_known_order(item, txn) {
                return false;
            }
            self.current[item as usize] = (txn, moment);
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

/// Whether no transaction began after the end of one that commits later.
fn respects_real_time(problem: &Problem, events: &[u32], halves: bool) -> bool {
    let mut first_end = u64::MAX;
    events.iter().rev().all(|&event| {
        let (txn, begins, commits) =
            if halves { (event / 2, event % 2 == 0, event % 2 == 1) } else { (event, true, true) };
        let [begin, end] = problem.times[txn as usize];
        let valid = !begins || first_end >= begin;
        if commits {
            first_end = first_end.min(end.max(begin));
        }
        valid
    })
}

/// The order given by the nodes of a layout.
pub(super) fn claimed_order(goal: Goal, nodes: &[u32]) -> ClaimedOrder<'_> {
    match goal {
        Goal::Serializable => ClaimedOrder::Serial(nodes),
        Goal::SnapshotIsolation => ClaimedOrder::Snapshots(nodes),
    }
}
