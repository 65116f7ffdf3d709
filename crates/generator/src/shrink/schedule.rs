//! The same transactions with fewer switches between sessions.

use crate::plan::{OpId, Plan, TxPlan};
use std::collections::BTreeMap;

impl Plan {
    /// The schedule in turns: a session and the operations that it sends before another session
    /// continues.
    fn turns(&self) -> Vec<(&str, Vec<OpId>)> {
        let of = |tx: &TxPlan| -> Vec<OpId> { tx.sequence().iter().map(|(id, _)| *id).collect() };
        let sessions: BTreeMap<OpId, &str> = self
            .transactions
            .iter()
            .flat_map(|tx| of(tx).into_iter().map(|id| (id, tx.session.as_str())))
            .collect();
        let mut turns: Vec<(&str, Vec<OpId>)> = Vec::new();
        for id in &self.schedule {
            let Some(session) = sessions.get(id) else { continue };
            match turns.last_mut() {
                Some((last, ids)) if last == session => ids.push(*id),
                _ => turns.push((session, vec![*id])),
            }
        }
        turns
    }

    /// The nth way to merge two turns of a session: the later one moves to the earlier one, or the
    /// reverse.
    pub(super) fn with_fewer_switches(&self, nth: usize) -> Option<Plan> {
        let turns = self.turns();
        let before = |later: usize| turns[..later].iter().rposition(|t| t.0 == turns[later].0);
        let pairs: Vec<(usize, usize)> =
            (0..turns.len()).filter_map(|later| Some((before(later)?, later))).collect();
        let (earlier, later) = *pairs.get(nth / 2)?;
        let mut ids: Vec<Vec<OpId>> = turns.iter().map(|(_, ids)| ids.clone()).collect();
        if nth.is_multiple_of(2) {
            let moved = std::mem::take(&mut ids[later]);
            ids[earlier].extend(moved);
        } else {
            let mut moved = std::mem::take(&mut ids[earlier]);
            moved.append(&mut ids[later]);
            ids[later] = moved;
        }
        let mut plan = self.copied();
        plan.schedule = ids.concat();
        Some(plan)
    }
}
