//! The line against all that is told, on histories of a database with many copies.

use super::{Line, Outcome, Rule, by_all_that_is_told, clocks, cycle, in_a_line, stale};
use crate::builder::Builder;
use crate::history::{History, Status, Value};
use crate::joined::Joined;
use crate::weak::stale::Against;

struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % limit as u64) as usize
    }
}

const ITEMS: usize = 6;

/// Whether it writes, the item, and the value.
type Done = (bool, usize, u64);

/// Each session has a copy of its own, and takes over what is newer in another's now and then:
/// that is causal. `wrong` in a thousand reads see any version instead, and others see what
/// another copy has.
fn copies(random: &mut Random, sessions: usize, wrong: usize, by_session: bool) -> History {
    let mut copies = vec![[0_u64; ITEMS]; sessions];
    let mut txns: Vec<(usize, Vec<Done>)> = Vec::new();
    let mut written = 0;
    for _ in 0..150 {
        let session = random.below(sessions);
        if random.below(3) > 0 {
            let other = copies[random.below(sessions)];
            for (own, other) in copies[session].iter_mut().zip(other) {
                *own = (*own).max(other);
            }
        }
        let mut ops = Vec::new();
        for _ in 0..1 + random.below(4) {
            let item = random.below(ITEMS);
            if random.below(2) == 0 && ops.iter().all(|(_, of, _)| *of != item) {
                written += 1;
                // Who wrote which item is told by the value.
                copies[session][item] = written * ITEMS as u64 + item as u64;
                ops.push((true, item, copies[session][item]));
            } else if random.below(1000) < wrong {
                let other = random.below(sessions);
                ops.push((false, item, copies[other][item]));
            } else {
                ops.push((false, item, copies[session][item]));
            }
        }
        txns.push((session, ops));
    }
    if by_session {
        txns.sort_by_key(|(session, _)| *session);
    }
    let mut builder = Builder::new();
    for (session, ops) in txns {
        let session = builder.numbered_session(session as u64);
        builder.begin(session);
        for (writes, item, value) in ops {
            let item = builder.numbered_item(item as u64);
            match (writes, value) {
                (true, value) => builder.write(item, Value(value)),
                (false, 0) => builder.read(item, Value::INITIAL),
                (false, value) => builder.read(item, Value(value)),
            }
        }
        builder.end(Status::Committed);
    }
    builder.finish()
}

const RULES: [(Rule, bool); 5] = [
    (Rule::Monotonic, false),
    (Rule::Monotonic, true),
    (Rule::Atomic, false),
    (Rule::Atomic, true),
    (Rule::Causal, true),
];

#[test]
fn a_line_says_the_same_as_all_that_is_told() {
    let mut random = Random(0x5eed);
    for (rule, sessions) in RULES {
        let (mut held, mut violated) = (0, 0);
        for number in 0..600 {
            let wrong = [0, 5, 60][number % 3];
            let history = copies(&mut random, 2 + number % 20, wrong, number % 2 == 0);
            let joined = Joined::of(&history);
            let expected = match by_all_that_is_told(&joined, rule, sessions) {
                Outcome::Holds => true,
                Outcome::Violated(_) => false,
                Outcome::TooWide => panic!("there are few sessions"),
            };
            match in_a_line(&joined, rule, sessions) {
                Some(Outcome::Holds) => {
                    assert!(expected, "{number}: {rule:?} is violated:\n{history}");
                    held += 1;
                }
                Some(Outcome::Violated(told)) => {
                    assert!(!expected, "{number}: {rule:?} holds:\n{history}");
                    let cycle = cycle(&joined, &told, sessions);
                    let next = cycle.iter().cycle().skip(1);
                    assert!(cycle.len() > 1, "{number}: {rule:?}: no cycle:\n{history}");
                    assert!(cycle.iter().zip(next).all(|(edge, next)| edge.to == next.from));
                    violated += 1;
                }
                _ => {}
            }
        }
        assert!(held > 150 && violated > 50, "{rule:?}, {sessions}: {held}, {violated}");
    }
}

#[test]
fn clocks_of_some_sessions_at_a_time_tell_the_same() {
    let mut random = Random(0xc10c);
    let mut told_something = 0;
    for number in 0..200 {
        let history = copies(&mut random, 30, 20, number % 2 == 0);
        let joined = Joined::of(&history);
        let Some(line) = Line::of(&joined, true) else { continue };
        let told = |kept| stale::told_against(&joined, Rule::Causal, true, &line, kept);
        let (whole, in_parts) = (told(clocks::KEPT), told(1));
        match (&whole, &in_parts) {
            // Another part may come upon another one first.
            (Against::Broken(_), Against::Broken(_)) => {}
            _ => assert_eq!(whole, in_parts, "{number}"),
        }
        told_something += usize::from(matches!(whole, Against::Told(told) if !told.is_empty()));
    }
    assert!(told_something > 50, "{told_something}");
}
