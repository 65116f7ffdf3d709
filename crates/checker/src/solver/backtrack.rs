//! Undoes the events of a replay back to before a wrong choice.

use super::replay::{EARLIER_IN_NOGOOD, LATER_IN_NOGOOD, Nogood, Replay, State, for_each_follower};
use crate::types::NONE;

impl Replay<'_> {
    /// Adds a nogood, and backtracks to before the latest of its choices.
    pub fn learn(&mut self, nogood: Nogood) {
        let number = self.nogoods.len() as u32;
        let mut latest = 0;
        for (position, &(earlier, later)) in nogood.choices.iter().enumerate() {
            latest = latest.max(self.began_at[earlier as usize]);
            self.marks[earlier as usize] |= EARLIER_IN_NOGOOD;
            self.marks[later as usize] |= LATER_IN_NOGOOD;
            if nogood.choices[..position].iter().all(|(other, _)| *other != earlier) {
                self.nogoods_of.entry(earlier).or_default().push(number);
            }
        }
        self.nogoods.push(nogood);
        self.backtrack_to(latest as usize);
    }

    fn backtrack_to(&mut self, length: usize) {
        while self.events.len() > length {
            self.steps += 1;
            let event = self.events.pop().expect("there are more");
            match self.serial() {
                true => {
                    self.undo_commit(event);
                    self.undo_begin(event);
                }
                false if event % 2 == 1 => self.undo_commit(event / 2),
                false => self.undo_begin(event / 2),
            }
        }
        self.wake_for_nogoods();
    }

    fn undo_commit(&mut self, txn: u32) {
        let (certain, inferred) = (self.certain, self.inferred);
        if let Some(times) = &certain.times {
            while self.ended > times.position[txn as usize] {
                for &other in times.began_after.of(self.ended) {
                    self.missing[other as usize] += 1;
                    self.wait_lists.leave(other);
                }
                self.ended -= 1;
            }
        }
        self.state[txn as usize] = State::Begun;
        for slot in certain.slots(txn) {
            let item = certain.problem.writes.all[slot as usize];
            self.current[item as usize] = self.replaced[slot as usize];
            if !self.serial() {
                self.locked[item as usize] = txn;
            }
            self.wake(item);
        }
        if certain.sessions {
            self.session_head[certain.problem.session_of[txn as usize] as usize] = txn;
        }
        for_each_follower(certain, inferred, txn, |other| {
            self.missing[other as usize] += 1;
            self.wait_lists.leave(other);
        });
    }

    fn undo_begin(&mut self, txn: u32) {
        let certain = self.certain;
        self.state[txn as usize] = State::Waiting;
        self.began_at[txn as usize] = NONE;
        self.lowest = self.lowest.min(self.rank[txn as usize] as usize);
        for slot in certain.slots(txn) {
            let item = certain.problem.writes.all[slot as usize];
            self.locked[item as usize] = NONE;
            self.wake(item);
        }
        for &version in certain.versions_read(txn) {
            self.unread[version as usize] += 1;
        }
        self.queue(txn);
    }
}
