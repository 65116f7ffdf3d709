//! Replays the transactions of a history one by one in an order in which they could have run:
//! an exact yes in nearly linear time.
//!
//! A transaction may run when all its certain predecessors have run, and when every reader of the
//! versions that it overwrites has run. Under snapshot isolation begin and commit are separate
//! events: from its begin on the items that it writes are locked, and it commits once all readers
//! of the versions it overwrites have begun. Writing an item whose new version has readers blocks
//! the item until they have run: a choice that may turn out wrong. Then no transaction can run;
//! `stall` derives from the cycle of waits which choices cannot all be right (a nogood), and the
//! replay backtracks to the latest of them (`backtrack`).

use super::certain_edges::{CertainEdges, InferredEdges};
use super::problem::Goal;
use super::wait_lists::{WAITS_FOR_NOGOOD, WaitLists};
use crate::types::{INITIAL, NONE};
use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};

/// "The first before the second", for two writers of an item.
pub(super) type Choice = (u32, u32);

/// Choices that cannot all be right, with the premises.
#[derive(Default)]
pub(super) struct Nogood {
    /// The choices.
    pub choices: Vec<Choice>,
    /// The transactions on the cycle of waits, and the nogoods and inferences used.
    pub transactions: Vec<u32>,
    pub nogoods: Vec<u32>,
    pub inferences: Vec<u32>,
}

/// The progress of a transaction in the replay.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum State {
    Waiting,
    Begun,
    Done,
}

pub(super) const EARLIER_IN_NOGOOD: u8 = 1;
pub(super) const LATER_IN_NOGOOD: u8 = 2;
const QUEUED: u8 = 4;

pub(super) struct Replay<'a> {
    pub certain: &'a CertainEdges<'a>,
    pub inferred: &'a InferredEdges,
    pub(super) rank: Vec<u32>,
    by_rank: &'a [u32],
    /// The number of certain predecessors that have not run.
    pub missing: Vec<u32>,
    pub state: Vec<State>,
    /// The index of the begin in `events`.
    pub began_at: Vec<u32>,
    /// The current version of each item, and the first version of its run.
    pub current: Vec<[u32; 2]>,
    pub(super) replaced: Vec<[u32; 2]>,
    /// The number of readers of each version that have not begun.
    pub unread: Vec<u32>,
    /// The transaction that has begun and will overwrite each item, or [`NONE`].
    pub locked: Vec<u32>,
    /// Transactions in the order in which they ran; under snapshot isolation begins and commits.
    pub events: Vec<u32>,
    /// The next transaction of each session.
    pub session_head: Vec<u32>,
    /// The number of ends that have passed, in the order of time.
    pub ended: u32,
    ready: BinaryHeap<Reverse<u32>>,
    pub(super) wait_lists: WaitLists,
    waiting_for_nogood: Vec<u32>,
    pub(super) marks: Vec<u8>,
    pub nogoods: Vec<Nogood>,
    pub(super) nogoods_of: HashMap<u32, Vec<u32>>,
    pub steps: u64,
    /// All transactions before this position in `by_rank` are done.
    pub(super) lowest: usize,
}

impl<'a> Replay<'a> {
    /// Starts a replay. Transactions that come earlier in `by_rank` take precedence.
    pub fn new(
        certain: &'a CertainEdges,
        inferred: &'a InferredEdges,
        by_rank: &'a [u32],
    ) -> Replay<'a> {
        let (problem, versions) = (certain.problem, certain.versions);
        let txns = certain.txns() as usize;
        let items = problem.items as usize;
        let mut rank = vec![0; txns];
        for (position, txn) in by_rank.iter().enumerate() {
            rank[*txn as usize] = position as u32;
        }
        let mut session_head = vec![NONE; problem.sessions as usize];
        for txn in (0..txns as u32).rev() {
            session_head[problem.session_of[txn as usize] as usize] = txn;
        }
        let unread = versions.readers.starts.windows(2).map(|two| two[1] - two[0]).collect();
        let mut replay = Replay {
            certain,
            inferred,
            rank,
            by_rank,
            missing: vec![0; txns],
            state: vec![State::Waiting; txns],
            began_at: vec![NONE; txns],
            current: (0..items as u32).map(|item| [versions.initial(item); 2]).collect(),
            replaced: vec![[NONE; 2]; problem.writes.all.len()],
            unread,
            locked: vec![NONE; items],
            events: Vec::new(),
            session_head,
            ended: 0,
            ready: BinaryHeap::new(),
            wait_lists: WaitLists::new(txns, items),
            waiting_for_nogood: Vec::new(),
            marks: vec![0; txns],
            nogoods: Vec::new(),
            nogoods_of: HashMap::new(),
            steps: 0,
            lowest: 0,
        };
        for txn in 0..txns as u32 {
            replay.missing[txn as usize] = replay.predecessors(txn);
            if replay.missing[txn as usize] == 0 {
                replay.queue(txn);
            }
        }
        replay
    }

    fn predecessors(&self, txn: u32) -> u32 {
        let (certain, versions) = (self.certain, self.certain.versions);
        let mut count = u32::from(certain.session_previous[txn as usize] != NONE);
        let reads = certain.problem.reads.of(txn).iter();
        count += reads.filter(|(_, writer)| *writer != INITIAL).count() as u32;
        for slot in certain.slots(txn) {
            let previous = versions.previous[slot as usize];
            count += u32::from(previous != NONE && !versions.is_initial(previous));
        }
        if !self.inferred.list.is_empty() {
            count += self.inferred.into.of(txn).len() as u32;
        }
        if let Some(times) = &certain.times {
            count += u32::from(times.ended_before[txn as usize] > 0);
        }
        count
    }

    pub(super) fn serial(&self) -> bool {
        self.certain.goal == Goal::Serializable
    }

    pub fn finished(&self) -> bool {
        let each = if self.serial() { 1 } else { 2 };
        self.events.len() == each * self.state.len()
    }

    /// The first transaction by rank that is not done; there must be one.
    pub fn lowest(&mut self) -> u32 {
        while self.state[self.by_rank[self.lowest] as usize] == State::Done {
            self.lowest += 1;
        }
        self.by_rank[self.lowest]
    }

    /// Runs until all transactions have run, or none can.
    pub fn run(&mut self) {
        while let Some(Reverse(rank)) = self.ready.pop() {
            let txn = self.by_rank[rank as usize];
            self.marks[txn as usize] &= !QUEUED;
            if self.state[txn as usize] != State::Waiting || self.missing[txn as usize] > 0 {
                continue;
            }
            self.steps += 1;
            if self.marks[txn as usize] & EARLIER_IN_NOGOOD != 0 {
                // All of its nogoods are checked.
                self.steps += self.nogoods_of.get(&txn).map_or(0, Vec::len) as u64;
            }
            self.wait_lists.leave(txn);
            if let Some(item) = self.blocking_item(txn) {
                self.wait_lists.enter(item, txn);
            } else if self.marks[txn as usize] & EARLIER_IN_NOGOOD != 0
                && self.forbidding(txn).next().is_some()
            {
                self.wait_lists.at[txn as usize] = WAITS_FOR_NOGOOD;
                self.waiting_for_nogood.push(txn);
            } else {
                self.begin(txn);
            }
        }
    }

    pub(super) fn queue(&mut self, txn: u32) {
        if self.marks[txn as usize] & QUEUED == 0 {
            self.marks[txn as usize] |= QUEUED;
            self.ready.push(Reverse(self.rank[txn as usize]));
        }
    }

    /// Whether a transaction read the item that it writes.
    pub fn own_read(&self, txn: u32, item: u32) -> bool {
        self.certain.problem.reads.of(txn).iter().any(|(read, _)| *read == item)
    }

    /// An item that the transaction cannot overwrite now.
    fn blocking_item(&self, txn: u32) -> Option<u32> {
        let (problem, versions) = (self.certain.problem, self.certain.versions);
        self.certain.slots(txn).find_map(|slot| {
            let item = problem.writes.all[slot as usize];
            let [version, _] = self.current[item as usize];
            let next = versions.next[version as usize];
            let blocked = self.locked[item as usize] != NONE
                || next != NONE && next != slot
                || self.serial() && {
                    let unread = self.unread[version as usize];
                    unread > 1 || unread == 1 && !self.own_read(txn, item)
                };
            blocked.then_some(item)
        })
    }

    /// The nogoods that forbid the transaction to begin now.
    pub fn forbidding(&self, txn: u32) -> impl Iterator<Item = u32> + '_ {
        let nogoods = self.nogoods_of.get(&txn).map_or(&[][..], Vec::as_slice);
        nogoods.iter().copied().filter(move |nogood| {
            self.nogoods[*nogood as usize].choices.iter().all(|&(earlier, later)| {
                let later_at = self.began_at[later as usize];
                match earlier == txn {
                    true => later_at == NONE,
                    false => {
                        let earlier_at = self.began_at[earlier as usize];
                        earlier_at != NONE && earlier_at < later_at
                    }
                }
            })
        })
    }

    fn begin(&mut self, txn: u32) {
        let certain = self.certain;
        self.state[txn as usize] = State::Begun;
        self.began_at[txn as usize] = self.events.len() as u32;
        self.events.push(if self.serial() { txn } else { 2 * txn });
        let mut may_commit = Vec::new();
        if !self.serial() {
            for slot in certain.slots(txn) {
                self.locked[certain.problem.writes.all[slot as usize] as usize] = txn;
            }
        }
        for (&version, &(item, _)) in
            certain.versions_read(txn).iter().zip(certain.problem.reads.of(txn))
        {
            self.unread[version as usize] -= 1;
            let unread = self.unread[version as usize];
            if unread > 1 || self.current[item as usize][0] != version {
                continue;
            }
            if self.serial() {
                self.wake(item);
            } else if unread == 0 && self.locked[item as usize] != NONE {
                may_commit.push(self.locked[item as usize]);
            }
        }
        if self.marks[txn as usize] & LATER_IN_NOGOOD != 0 {
            self.wake_for_nogoods();
        }
        if self.serial() || self.can_commit(txn) {
            self.commit(txn);
        }
        for other in may_commit {
            if self.state[other as usize] == State::Begun && self.can_commit(other) {
                self.commit(other);
            }
        }
    }

    fn can_commit(&self, txn: u32) -> bool {
        self.certain.slots(txn).all(|slot| {
            let item = self.certain.problem.writes.all[slot as usize];
            self.unread[self.current[item as usize][0] as usize] == 0
        })
    }

    fn commit(&mut self, txn: u32) {
        let (problem, versions) = (self.certain.problem, self.certain.versions);
        self.state[txn as usize] = State::Done;
        if !self.serial() {
            self.events.push(2 * txn + 1);
        }
        for slot in self.certain.slots(txn) {
            let item = problem.writes.all[slot as usize];
            let before = self.current[item as usize];
            let first = if versions.previous[slot as usize] == NONE { slot } else { before[1] };
            self.replaced[slot as usize] = before;
            self.current[item as usize] = [slot, first];
            self.locked[item as usize] = NONE;
            if !self.serial() || self.unread[slot as usize] <= 1 {
                self.wake(item);
            }
        }
        if self.certain.sessions {
            let session = problem.session_of[txn as usize] as usize;
            self.session_head[session] = self.certain.session_next[txn as usize];
        }
        let (certain, inferred) = (self.certain, self.inferred);
        for_each_follower(certain, inferred, txn, |other| {
            self.missing[other as usize] -= 1;
            if self.missing[other as usize] == 0 {
                self.queue(other);
            }
        });
        if let Some(times) = &certain.times {
            while let Some(&next) = times.ends.get(self.ended as usize)
                && self.state[next as usize] == State::Done
            {
                self.ended += 1;
                for &other in times.began_after.of(self.ended) {
                    self.missing[other as usize] -= 1;
                    if self.missing[other as usize] == 0 {
                        self.queue(other);
                    }
                }
            }
        }
    }

    pub(super) fn wake(&mut self, item: u32) {
        let (ready, marks, rank) = (&mut self.ready, &mut self.marks, &self.rank);
        self.wait_lists.leave_all(item, |txn| {
            if marks[txn as usize] & QUEUED == 0 {
                marks[txn as usize] |= QUEUED;
                ready.push(Reverse(rank[txn as usize]));
            }
        });
    }

    pub(super) fn wake_for_nogoods(&mut self) {
        while let Some(txn) = self.waiting_for_nogood.pop() {
            if self.wait_lists.at[txn as usize] == WAITS_FOR_NOGOOD {
                self.wait_lists.at[txn as usize] = NONE;
                self.queue(txn);
            }
        }
    }
}

/// Visits the transactions that wait for this one, once per reason.
pub(super) fn for_each_follower(
    certain: &CertainEdges,
    inferred: &InferredEdges,
    txn: u32,
    mut visit: impl FnMut(u32),
) {
    let versions = certain.versions;
    let next = certain.session_next[txn as usize];
    if next != NONE {
        visit(next);
    }
    for slot in certain.slots(txn) {
        versions.readers.of(slot).iter().for_each(|reader| visit(*reader));
        let next = versions.next[slot as usize];
        if next != NONE {
            visit(versions.writer[next as usize]);
        }
    }
    if !inferred.list.is_empty() {
        for &position in inferred.out.of(txn) {
            visit(inferred.list[position as usize].to);
        }
    }
}
