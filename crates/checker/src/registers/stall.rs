//! What to learn when nobody can run: who waits for whom is a graph in which
//! everybody waits, so it has a circle.
//!
//! A wait is certain, or it comes from choices of the replay. The choices on a circle
//! cannot all be right, and if there are none the history is a violation. A lesson
//! that leaves several ways out makes a wait for one of several; if those are the only
//! waits left, everybody who is reached from one transaction by one reason each is
//! taken together: whoever of them came first would still have to wait for another.

use super::problem::Goal;
use super::replay::{Choice, Lesson, Replay, State};
use super::versions::NONE;
use std::collections::VecDeque;

/// More transactions than this are not looked at in one stall.
const MOST: usize = 20_000;
/// So many are looked at before the first attempt to find a circle among them.
const ENOUGH: usize = 256;
/// From so many of them circles are looked for.
const STARTS: usize = 64;

#[derive(Clone, Copy)]
enum Why {
    Certain,
    Inferred(u32),
    Chosen(Choice),
    Learned(u32),
}

/// A wait: `to` stands for `through`, being the next of its session.
#[derive(Clone, Copy)]
struct Wait {
    to: u32,
    through: u32,
    why: Why,
    cost: u32,
}

#[derive(Default)]
pub(super) struct Stall {
    nodes: Vec<u32>,
    /// For each transaction its place in `nodes`, if it is there.
    place: Vec<u32>,
    starts: Vec<u32>,
    waits: Vec<Wait>,
    /// Lessons with several ways out, by the place of who waits.
    either: Vec<(u32, u32)>,
    cost: Vec<u32>,
    by: Vec<[u32; 2]>,
    /// Waits that were looked at.
    pub steps: u64,
}

impl Stall {
    pub fn new(txns: usize) -> Stall {
        Stall { place: vec![0; txns], ..Stall::default() }
    }

    /// A lesson from the stalled replay, unless too many are involved.
    pub fn lesson(&mut self, replay: &Replay, first: u32) -> Option<Lesson> {
        self.nodes.clear();
        self.starts.clear();
        self.waits.clear();
        self.either.clear();
        if replay.certain.sessions {
            for &head in &replay.session_head {
                if head != NONE {
                    self.node(head);
                }
            }
        } else {
            self.node(first);
        }
        let mut enough = ENOUGH;
        self.starts.push(0);
        while self.explored() < MOST {
            while self.explored() < self.nodes.len().min(enough) {
                self.add_waits(replay, self.explored() as u32);
                self.starts.push(self.waits.len() as u32);
            }
            self.steps += (self.explored() + self.waits.len()) as u64;
            if let Some(lesson) = self.cheapest_circle(replay) {
                return Some(lesson);
            }
            if self.explored() == self.nodes.len() {
                return Some(self.closed_set(replay));
            }
            enough *= 4;
        }
        None
    }

    /// How many nodes have their waits; those after them have been mentioned only.
    fn explored(&self) -> usize {
        self.starts.len() - 1
    }

    fn node(&mut self, txn: u32) -> u32 {
        let known = self.place[txn as usize];
        if self.nodes.get(known as usize) == Some(&txn) {
            return known;
        }
        self.place[txn as usize] = self.nodes.len() as u32;
        self.nodes.push(txn);
        self.nodes.len() as u32 - 1
    }

    fn wait(&mut self, replay: &Replay, through: u32, why: Why, cost: u32) {
        let to = self.node(representative(replay, through));
        self.waits.push(Wait { to, through, why, cost });
    }

    fn add_waits(&mut self, replay: &Replay, node: u32) {
        let txn = self.nodes[node as usize];
        if replay.state[txn as usize] == State::Waiting && replay.missing[txn as usize] > 0 {
            self.add_missing(replay, txn);
            return;
        }
        self.add_overwriting(replay, txn);
        if replay.state[txn as usize] == State::Waiting {
            self.add_lessons(replay, node);
        }
    }

    fn add_missing(&mut self, replay: &Replay, txn: u32) {
        let (certain, inferred) = (replay.certain, replay.inferred);
        let done = |other: u32| replay.state[other as usize] == State::Done;
        let mut add = |other: u32, why| {
            if !done(other) {
                self.wait(replay, other, why, 0);
            }
        };
        let previous = certain.session_previous[txn as usize];
        if previous != NONE {
            add(previous, Why::Certain);
        }
        for &(_, writer) in certain.problem.reads.of(txn) {
            if writer != super::INITIAL {
                add(writer, Why::Certain);
            }
        }
        for slot in certain.slots(txn) {
            let previous = certain.versions.previous[slot as usize];
            if previous != NONE && !certain.versions.is_initial(previous) {
                add(certain.versions.writer[previous as usize], Why::Certain);
            }
        }
        if !inferred.list.is_empty() {
            for &place in inferred.into.of(txn) {
                add(inferred.list[place as usize].from, Why::Inferred(place));
            }
        }
        if let Some(times) = &certain.times
            && replay.ended < times.ended_before[txn as usize]
        {
            add(times.ends[replay.ended as usize], Why::Certain);
        }
    }

    fn add_overwriting(&mut self, replay: &Replay, txn: u32) {
        let (problem, versions) = (replay.certain.problem, replay.certain.versions);
        let begun = replay.state[txn as usize] == State::Begun;
        for slot in replay.certain.slots(txn) {
            let item = problem.writes.all[slot as usize];
            let [version, first] = replay.holds[item as usize];
            let after_run = match versions.is_initial(first) {
                true => (Why::Certain, 0),
                false => (Why::Chosen((versions.writer[first as usize], txn)), 1),
            };
            let holder = replay.locked[item as usize];
            let next = versions.next[version as usize];
            if !begun && holder != NONE {
                let continues = next != NONE && versions.writer[next as usize] == holder;
                let (why, cost) =
                    if continues { after_run } else { (Why::Chosen((holder, txn)), 1) };
                self.wait(replay, holder, why, cost);
            } else if next != NONE && next != slot {
                self.wait(replay, versions.writer[next as usize], after_run.0, after_run.1);
            } else if begun || replay.certain.goal == Goal::Serializable {
                let (why, cost) = if next == slot { (Why::Certain, 0) } else { after_run };
                for &reader in versions.readers.of(version) {
                    if reader != txn && replay.state[reader as usize] == State::Waiting {
                        self.wait(replay, reader, why, cost);
                    }
                }
            }
        }
    }

    fn add_lessons(&mut self, replay: &Replay, node: u32) {
        let txn = self.nodes[node as usize];
        let forbidding: Vec<u32> = replay.forbidding(txn).collect();
        for number in forbidding {
            let choices = &replay.lessons[number as usize].choices;
            let mut ways = choices.iter().filter(|(earlier, _)| *earlier == txn);
            match (ways.next(), ways.next()) {
                (Some(&(_, later)), None) => {
                    let cost = choices.len() as u32 - 1;
                    self.wait(replay, later, Why::Learned(number), cost);
                }
                _ => self.either.push((node, number)),
            }
        }
        // Those who would be the way out are waited for in their turn.
        for place in 0..self.either.len() {
            let (at, number) = self.either[place];
            if at == node {
                for &(earlier, later) in &replay.lessons[number as usize].choices {
                    if earlier == txn {
                        self.node(representative(replay, later));
                    }
                }
            }
        }
    }

    fn waits_of(&self, node: u32) -> std::ops::Range<u32> {
        self.starts[node as usize]..self.starts[node as usize + 1]
    }

    /// The circle with the fewest choices on it, of those that need no way out of several.
    fn cheapest_circle(&mut self, replay: &Replay) -> Option<Lesson> {
        let mut best: Option<(u32, Vec<[u32; 2]>)> = None;
        let mut queue = VecDeque::new();
        for start in 0..self.explored().min(STARTS) as u32 {
            let limit = best.as_ref().map_or(u32::MAX, |(cost, _)| *cost);
            if limit <= 1 || limit <= 2 && start >= 8 {
                break;
            }
            self.cost.clear();
            self.cost.resize(self.nodes.len(), u32::MAX);
            self.by.resize(self.nodes.len(), [NONE; 2]);
            let mut back = (limit, NONE, NONE);
            queue.clear();
            queue.push_back((start, 0));
            while let Some((node, cost)) = queue.pop_front() {
                if cost >= back.0 || cost > self.cost[node as usize] {
                    continue;
                }
                self.steps += u64::from(self.waits_of(node).end - self.waits_of(node).start);
                for number in self.waits_of(node) {
                    let wait = self.waits[number as usize];
                    let cost = cost + wait.cost;
                    if wait.to as usize >= self.explored() {
                        continue;
                    }
                    if wait.to == start {
                        if cost < back.0 {
                            back = (cost, node, number);
                        }
                    } else if cost < self.cost[wait.to as usize] && cost < back.0 {
                        self.cost[wait.to as usize] = cost;
                        self.by[wait.to as usize] = [node, number];
                        match wait.cost {
                            0 => queue.push_front((wait.to, cost)),
                            _ => queue.push_back((wait.to, cost)),
                        }
                    }
                }
            }
            if back.1 != NONE {
                let mut circle = vec![[back.1, back.2]];
                let mut node = back.1;
                while node != start {
                    circle.push(self.by[node as usize]);
                    node = self.by[node as usize][0];
                }
                best = Some((back.0, circle));
            }
        }
        // Nobody among the first may lie on a circle, if there are many.
        let circle = match best {
            Some((_, circle)) => circle,
            None => self.any_circle()?,
        };
        let mut lesson = Lesson::default();
        for [node, number] in circle {
            self.take(replay, node, number, &mut lesson);
        }
        Some(tidy(lesson))
    }

    /// Any circle at all, found by walking.
    fn any_circle(&self) -> Option<Vec<[u32; 2]>> {
        // 0: not seen, 1: on the way, 2: leads nowhere.
        let mut seen = vec![0u8; self.nodes.len()];
        seen[self.explored()..].fill(2);
        for start in 0..self.explored() as u32 {
            if seen[start as usize] != 0 {
                continue;
            }
            seen[start as usize] = 1;
            let mut way = vec![[start, self.starts[start as usize]]];
            while let Some(&[node, number]) = way.last() {
                if number == self.starts[node as usize + 1] {
                    seen[node as usize] = 2;
                    way.pop();
                    continue;
                }
                let to = self.waits[number as usize].to;
                match seen[to as usize] {
                    0 => {
                        seen[to as usize] = 1;
                        way.push([to, self.starts[to as usize]]);
                    }
                    1 => {
                        let from = way.iter().position(|[node, _]| *node == to)?;
                        return Some(way.split_off(from));
                    }
                    _ => way.last_mut().expect("it is the last")[1] += 1,
                }
            }
        }
        None
    }

    /// Everybody who is reached from one transaction by one reason each, such that the
    /// choices are few.
    fn closed_set(&mut self, replay: &Replay) -> Lesson {
        let mut best: Option<Lesson> = None;
        for start in 0..self.nodes.len().min(STARTS) as u32 {
            let mut lesson = Lesson::default();
            let mut inside = vec![false; self.nodes.len()];
            self.steps += self.nodes.len() as u64;
            let mut open = vec![start];
            inside[start as usize] = true;
            while let Some(node) = open.pop() {
                let cheapest = self.waits_of(node).min_by_key(|w| self.waits[*w as usize].cost);
                let mut reached = Vec::new();
                if let Some(number) = cheapest {
                    self.take(replay, node, number, &mut lesson);
                    reached.push(self.waits[number as usize].to);
                } else if let Some((_, number)) = self.either.iter().find(|(at, _)| *at == node) {
                    let txn = self.nodes[node as usize];
                    lesson.transactions.push(txn);
                    lesson.lessons.push(*number);
                    for &(earlier, later) in &replay.lessons[*number as usize].choices {
                        if earlier == txn {
                            lesson.transactions.push(later);
                            reached.push(self.place[representative(replay, later) as usize]);
                        } else {
                            lesson.choices.push((earlier, later));
                        }
                    }
                }
                for to in reached {
                    if !std::mem::replace(&mut inside[to as usize], true) {
                        open.push(to);
                    }
                }
            }
            lesson = tidy(lesson);
            if best.as_ref().is_none_or(|best| lesson.choices.len() < best.choices.len()) {
                best = Some(lesson);
            }
        }
        best.unwrap_or_default()
    }

    /// Adds what a wait rests on.
    fn take(&self, replay: &Replay, node: u32, number: u32, lesson: &mut Lesson) {
        let wait = self.waits[number as usize];
        let txn = self.nodes[node as usize];
        lesson.transactions.extend([txn, wait.through]);
        match wait.why {
            Why::Certain => {}
            Why::Inferred(place) => lesson.inferences.push(place),
            Why::Chosen(choice) => {
                lesson.transactions.push(choice.0);
                lesson.choices.push(choice);
            }
            Why::Learned(other) => {
                lesson.lessons.push(other);
                let choices = &replay.lessons[other as usize].choices;
                lesson.choices.extend(choices.iter().filter(|(earlier, _)| *earlier != txn));
            }
        }
    }
}

fn representative(replay: &Replay, txn: u32) -> u32 {
    match replay.certain.sessions {
        true => replay.session_head[replay.certain.problem.session_of[txn as usize] as usize],
        false => txn,
    }
}

fn tidy(mut lesson: Lesson) -> Lesson {
    lesson.choices.sort_unstable();
    lesson.choices.dedup();
    for list in [&mut lesson.transactions, &mut lesson.lessons, &mut lesson.inferences] {
        list.sort_unstable();
        list.dedup();
        list.shrink_to_fit();
    }
    lesson
}
