//! The schedule on connections that are no server's.

use super::*;
use crate::engine::EngineResult;
use crate::spec::link::{Answer, Notification};

/// Every step has its answer at once, and nobody ever sends a notice.
#[derive(Default)]
struct Prompt {
    answers: usize,
    looks: usize,
}

impl Links for Prompt {
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

    fn next_answer(&mut self, _: usize) -> Option<Answer> {
        let left = self.answers.checked_sub(1)?;
        self.answers = left;
        Some(Answer::Done)
    }

    fn take_notices(&mut self, _: usize) -> Vec<String> {
        Vec::new()
    }

    fn take_notifications(&mut self, _: usize) -> Vec<Notification> {
        Vec::new()
    }

    fn id(&self, who: usize) -> u64 {
        who as u64
    }

    fn is_blocked(&mut self, _: usize) -> EngineResult<bool> {
        Ok(false)
    }

    fn cancel(&mut self, _: usize) -> EngineResult<()> {
        Ok(())
    }
}

#[test]
fn a_step_that_is_held_back_is_looked_at_now_and_then_and_not_without_a_pause() {
    let text = "session a step a1 {x} step a2 {y}\nsession b step b1 {z}\n\
                permutation a1(b1 notices 1) b1 a2\n";
    let spec = isolde_core::spec::parse(text).unwrap();
    let limit = Duration::from_millis(100);
    let options = Options { step_limit: limit, lock_limit: limit, ..Options::new("x") };
    let mut links = Prompt::default();
    let mut said = String::new();
    let played = run(&mut links, &spec, &options, &mut |text| said.push_str(text)).unwrap();
    assert!(!played.finished && said.contains("step a1 timed out"), "{said}");
    // Twice the limit at one look every ten milliseconds, and the first ones.
    assert!(links.looks < 60, "{} looks", links.looks);
}
