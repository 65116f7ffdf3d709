//! The order in which a walk takes the events of a run: what finished between
//! two submissions may have done so in any order.

use super::Stop;
use super::walk::Walk;
use crate::history::What;

/// More statements that finish together are taken in the recorded order.
const MOST_TOGETHER: usize = 5;

/// Events that are taken in their order, or in any.
enum Turn {
    Event(usize),
    /// Each a block: what one session's statement came to, and what it ended.
    Together(Vec<Vec<usize>>),
}

impl Walk<'_> {
    /// Through all events. Which of those that finished together came next is
    /// chosen when the walk is there, so that a beginning that explains
    /// nothing is left with all that could follow it.
    pub async fn take_turns(&mut self) -> Result<(), Stop> {
        for turn in self.turns() {
            match turn {
                Turn::Event(event) => self.next_event(event).await?,
                Turn::Together(mut blocks) => {
                    let in_order = blocks.len() > MOST_TOGETHER;
                    while !blocks.is_empty() {
                        let open = if in_order { 1 } else { blocks.len() };
                        let chosen = self.choices.choose(open);
                        for event in blocks.remove(chosen) {
                            self.next_event(event).await?;
                        }
                        self.leave_if_tried(&blocks)?;
                    }
                }
            }
        }
        Ok(())
    }

    async fn next_event(&mut self, event: usize) -> Result<(), Stop> {
        self.now += 1;
        self.event(event).await
    }

    fn turns(&self) -> Vec<Turn> {
        let events = &self.subject.history.events;
        let mut turns = Vec::new();
        let mut at = 0;
        while at < events.len() {
            if !finishes(&events[at].what) {
                turns.push(Turn::Event(at));
                at += 1;
                continue;
            }
            let mut blocks: Vec<Vec<usize>> = Vec::new();
            let mut after = Vec::new();
            while at < events.len() && !matches!(events[at].what, What::Sent { .. }) {
                let session = &events[at].session;
                if !finishes(&events[at].what) {
                    after.push(at);
                    at += 1;
                    continue;
                }
                match blocks.last_mut() {
                    Some(block) if events[block[0]].session == *session => block.push(at),
                    _ => blocks.push(vec![at]),
                }
                at += 1;
            }
            // Who was found waiting meanwhile and has finished waits no more.
            let done = |event: &usize| {
                let step = events[*event].step;
                blocks.iter().flatten().any(|e| events[*e].step == step)
            };
            after.retain(|event| {
                !matches!(events[*event].what, What::Waiting { .. }) || !done(event)
            });
            turns.push(Turn::Together(blocks));
            turns.extend(after.into_iter().map(Turn::Event));
        }
        turns
    }
}

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
