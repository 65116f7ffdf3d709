//! Tests of the schedule on simulated connections.

use super::*;
use crate::engine::EngineResult;
use crate::engine::{Notification, SpecAnswer};

/// Connections on which every step has its answer at once, without notices.
#[derive(Default)]
struct Prompt {
    answers: usize,
    looks: usize,
}

impl SpecLinks for Prompt {
    fn send(&mut self, _: usize, _: &str) -> Result<(), String> {
        self.answers = 1;
        Ok(())
    }

    fn is_busy(&mut self, _: usize) -> bool {
        self.looks += 1;
        false
    }

    fn wait(&mut self, _: usize, _: Duration) -> Result<bool, String> {
        Ok(false)
    }

    fn next_answer(&mut self, _: usize) -> Option<SpecAnswer> {
        let left = self.answers.checked_sub(1)?;
        self.answers = left;
        Some(SpecAnswer::Done)
    }

    fn take_notices(&mut self, _: usize) -> Vec<String> {
        Vec::new()
    }

    fn take_notifications(&mut self, _: usize) -> Vec<Notification> {
        Vec::new()
    }

    fn id(&self, index: usize) -> u64 {
        index as u64
    }

    fn is_blocked(&mut self, _: usize) -> EngineResult<bool> {
        Ok(false)
    }

    fn cancel(&mut self, _: usize) -> EngineResult<()> {
        Ok(())
    }
}

#[test]
fn a_step_delayed_by_an_annotation_is_polled_with_pauses() {
    let text = "session a step a1 {x} step a2 {y}\nsession b step b1 {z}\n\
                permutation a1(b1 notices 1) b1 a2\n";
    let spec = isolde_interop::spec::parse(text).unwrap();
    let limit = Duration::from_millis(100);
    let options = Options { step_limit: limit, lock_limit: limit, ..Options::new("x") };
    let mut links = Prompt::default();
    let mut said = String::new();
    let outcome = run(&mut links, &spec, &options, &mut |text| said.push_str(text)).unwrap();
    assert!(!outcome.finished && said.contains("step a1 timed out"), "{said}");
    // Twice the limit at one poll per ten milliseconds, and the first ones.
    assert!(links.looks < 60, "{} looks", links.looks);
}
