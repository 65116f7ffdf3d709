//! Taking back what a replay did, to before a choice that was wrong.

use super::replay::{EARLIER_IN_LESSON, LATER_IN_LESSON, Lesson, Replay, State, for_each_follower};
use super::versions::NONE;

impl Replay<'_> {
    /// Keeps a lesson, and goes back to before the latest of its choices.
    pub fn learn(&mut self, lesson: Lesson) {
        let number = self.lessons.len() as u32;
        let mut latest = 0;
        for (place, &(earlier, later)) in lesson.choices.iter().enumerate() {
            latest = latest.max(self.began_at[earlier as usize]);
            self.marks[earlier as usize] |= EARLIER_IN_LESSON;
            self.marks[later as usize] |= LATER_IN_LESSON;
            if lesson.choices[..place].iter().all(|(other, _)| *other != earlier) {
                self.lessons_of.entry(earlier).or_default().push(number);
            }
        }
        self.lessons.push(lesson);
        self.back_to(latest as usize);
    }

    fn back_to(&mut self, length: usize) {
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
        self.wake_for_lessons();
    }

    fn undo_commit(&mut self, txn: u32) {
        let (certain, inferred) = (self.certain, self.inferred);
        if let Some(times) = &certain.times {
            while self.ended > times.place[txn as usize] {
                for &other in times.began_after.of(self.ended) {
                    self.missing[other as usize] += 1;
                    self.parked.leave(other);
                }
                self.ended -= 1;
            }
        }
        self.state[txn as usize] = State::Begun;
        for slot in certain.slots(txn) {
            let item = certain.problem.writes.all[slot as usize];
            self.holds[item as usize] = self.replaced[slot as usize];
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
            self.parked.leave(other);
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
