//! Visited states: two attempts that reach the same state continue alike, so a
//! state from which every continuation has failed is not tried again.

use crate::model::ReferenceModel;
use crate::stop::Stop;
use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};

impl ReferenceModel<'_> {
    /// Stops where every continuation is known to fail. `left` are the events
    /// that finished together and have not been taken.
    pub fn stop_if_visited(&mut self, left: &[Vec<usize>]) -> Result<(), Stop> {
        let state = self.state(left);
        if self.search.has_failed(state) { Err(Stop::Tried) } else { Ok(()) }
    }

    /// A hash of all that later steps may depend on.
    fn state(&self, left: &[Vec<usize>]) -> u64 {
        let mut hasher = DefaultHasher::new();
        left.hash(&mut hasher);
        let distinct = self.world.distinct();
        self.world.hash_state(&distinct, &mut hasher);
        self.dirty_reads.hash_state(self.world.waiting(), &mut hasher);
        self.commit_buffer.hash_state(&distinct, &mut hasher);
        hasher.finish()
    }
}
