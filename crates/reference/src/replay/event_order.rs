//! The order in which a replay takes the events of a run: statements that finished
//! between two submissions may have finished in any order.

use crate::model::ReferenceModel;
use crate::stop::Stop;
use isolde_model::history::EventKind;

/// If more statements than this finish together, they are replayed in the recorded
/// order.
const MOST_TOGETHER: usize = 5;

/// Events that are replayed in their order, or in any order.
enum Turn {
    Event(usize),
    /// One block per session: the reply to its statement, and the transaction that
    /// this ended.
    Together(Vec<Vec<usize>>),
}

impl ReferenceModel<'_> {
    /// Replays all events. Which of those that finished together came next is a
    /// choice made during the replay, so that a prefix that explains nothing is
    /// discarded with everything that could follow it.
    pub async fn replay_events(&mut self) -> Result<(), Stop> {
        for turn in self.turns() {
            match turn {
                Turn::Event(event) => self.next_event(event).await?,
                Turn::Together(mut blocks) => {
                    let in_order = blocks.len() > MOST_TOGETHER;
                    while !blocks.is_empty() {
                        let open = if in_order { 1 } else { blocks.len() };
                        let chosen = self.search.choose(open);
                        for event in blocks.remove(chosen) {
                            self.next_event(event).await?;
                        }
                        self.stop_if_visited(&blocks)?;
                    }
                }
            }
        }
        Ok(())
    }

    async fn next_event(&mut self, event: usize) -> Result<(), Stop> {
        self.world.tick();
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
            while at < events.len() && !matches!(events[at].what, EventKind::Sent { .. }) {
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
            // A step that was found blocked and has finished is not blocked any more.
            let done = |event: &usize| {
                let step = events[*event].step;
                blocks.iter().flatten().any(|e| events[*e].step == step)
            };
            after.retain(|event| {
                !matches!(events[*event].what, EventKind::Waiting { .. }) || !done(event)
            });
            turns.push(Turn::Together(blocks));
            turns.extend(after.into_iter().map(Turn::Event));
        }
        turns
    }
}

fn finishes(what: &EventKind) -> bool {
    matches!(
        what,
        EventKind::Resumed
            | EventKind::Rows { .. }
            | EventKind::Affected { .. }
            | EventKind::Done
            | EventKind::Error(_)
            | EventKind::Ended { .. }
    )
}
