//! The order in which a walk takes the events of a run.

use super::choice::permutation;
use super::walk::Walk;
use crate::history::What;

/// More statements that finish together are taken in the recorded order.
const MOST_TOGETHER: usize = 5;

fn finishes(what: &What) -> bool {
    matches!(
        what,
        What::Resumed
            | What::Rows { .. }
            | What::Affected { .. }
            | What::Done
            | What::Error(_)
            | What::Ended { .. }
    )
}

impl Walk<'_> {
    /// The events in an order that the run leaves open: what finished between
    /// two submissions may have done so in any order.
    pub fn turns(&mut self) -> Vec<usize> {
        let events = &self.subject.history.events;
        let mut turns = Vec::new();
        let mut at = 0;
        while at < events.len() {
            if !finishes(&events[at].what) {
                turns.push(at);
                at += 1;
                continue;
            }
            // A block: what one session's statement came to, and what it ended.
            let mut blocks: Vec<Vec<usize>> = Vec::new();
            while at < events.len() && !matches!(events[at].what, What::Sent { .. }) {
                let session = &events[at].session;
                if !finishes(&events[at].what) {
                    at += 1;
                    continue;
                }
                match blocks.last_mut() {
                    Some(block) if events[block[0]].session == *session => block.push(at),
                    _ => blocks.push(vec![at]),
                }
                at += 1;
            }
            let open = if blocks.len() <= MOST_TOGETHER { blocks.len() } else { 1 };
            let order = self.choices.choose((1..=open).product());
            let order =
                if open == 1 { (0..blocks.len()).collect() } else { permutation(open, order) };
            let events = order.into_iter().flat_map(|block| blocks[block].iter().copied());
            turns.extend(events);
        }
        turns
    }
}
