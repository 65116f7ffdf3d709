//! The fast procedure against full inference, on histories of a replicated database.

use super::contradictions::{Contradictions, contradicting_edges};
use super::{
    LinearOrder, Outcome, Visibility, cycle, decide_by_full_inference, decide_by_linear_order,
    vector_clocks,
};
use crate::builder::Builder;
use crate::history::{History, Status, Value};
use crate::resolve::ResolvedHistory;

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
type Operation = (bool, usize, u64);

/// Each session has a replica of its own and now and then merges newer versions from another one:
/// that is causally consistent. `wrong` in a thousand reads observe another replica instead.
fn replicas(random: &mut Random, sessions: usize, wrong: usize, by_session: bool) -> History {
    let mut replicas = vec![[0_u64; ITEMS]; sessions];
    let mut txns: Vec<(usize, Vec<Operation>)> = Vec::new();
    let mut written = 0;
    for _ in 0..150 {
        let session = random.below(sessions);
        if random.below(3) > 0 {
            let other = replicas[random.below(sessions)];
            for (own, other) in replicas[session].iter_mut().zip(other) {
                *own = (*own).max(other);
            }
        }
        let mut ops = Vec::new();
        for _ in 0..1 + random.below(4) {
            let item = random.below(ITEMS);
            if random.below(2) == 0 && ops.iter().all(|(_, of, _)| *of != item) {
                written += 1;
                // The value identifies writer and item.
                replicas[session][item] = written * ITEMS as u64 + item as u64;
                ops.push((true, item, replicas[session][item]));
            } else if random.below(1000) < wrong {
                let other = random.below(sessions);
                ops.push((false, item, replicas[other][item]));
            } else {
                ops.push((false, item, replicas[session][item]));
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

const VISIBILITIES: [(Visibility, bool); 5] = [
    (Visibility::Monotonic, false),
    (Visibility::Monotonic, true),
    (Visibility::Atomic, false),
    (Visibility::Atomic, true),
    (Visibility::Causal, true),
];

#[test]
fn linear_order_and_full_inference_agree() {
    let mut random = Random(0x5eed);
    for (visibility, sessions) in VISIBILITIES {
        let (mut held, mut violated) = (0, 0);
        for number in 0..600 {
            let wrong = [0, 5, 60][number % 3];
            let history = replicas(&mut random, 2 + number % 20, wrong, number % 2 == 0);
            let resolved = ResolvedHistory::of(&history);
            let expected = match decide_by_full_inference(&resolved, visibility, sessions) {
                Outcome::Holds => true,
                Outcome::Violated(_) => false,
                Outcome::TooManySessions => panic!("there are few sessions"),
            };
            match decide_by_linear_order(&resolved, visibility, sessions) {
                Some(Outcome::Holds) => {
                    assert!(expected, "{number}: {visibility:?} is violated:\n{history}");
                    held += 1;
                }
                Some(Outcome::Violated(inferred)) => {
                    assert!(!expected, "{number}: {visibility:?} holds:\n{history}");
                    let cycle = cycle(&resolved, &inferred, sessions);
                    let next = cycle.iter().cycle().skip(1);
                    assert!(cycle.len() > 1, "{number}: {visibility:?}: no cycle:\n{history}");
                    assert!(cycle.iter().zip(next).all(|(edge, next)| edge.to == next.from));
                    violated += 1;
                }
                _ => {}
            }
        }
        assert!(held > 150 && violated > 50, "{visibility:?}, {sessions}: {held}, {violated}");
    }
}

#[test]
fn clocks_of_some_sessions_at_a_time_infer_the_same_edges() {
    let mut random = Random(0xc10c);
    let mut with_edges = 0;
    for number in 0..200 {
        let history = replicas(&mut random, 30, 20, number % 2 == 0);
        let resolved = ResolvedHistory::of(&history);
        let Some(order) = LinearOrder::of(&resolved, true) else { continue };
        let inferred =
            |kept| contradicting_edges(&resolved, Visibility::Causal, true, &order, kept);
        let (whole, in_parts) = (inferred(vector_clocks::KEPT), inferred(1));
        match (&whole, &in_parts) {
            // Another part of the sessions may find another violation first.
            (Contradictions::Violation(_), Contradictions::Violation(_)) => {}
            _ => assert_eq!(whole, in_parts, "{number}"),
        }
        with_edges +=
            usize::from(matches!(whole, Contradictions::Edges(inferred) if !inferred.is_empty()));
    }
    assert!(with_edges > 50, "{with_edges}");
}
