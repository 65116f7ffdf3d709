//! Choices that the rules leave open, tried one after the other.
//!
//! A prediction is a function of its choices: which of several concurrent replies
//! came first, or which version of a row a scan has read. It is repeated with the
//! next choice until one explains the observed run, or none is left. Results that
//! the engine has computed are cached, so that a repetition costs little; so are
//! states after which every choice has failed.

use std::collections::HashSet;

#[derive(Debug, Default)]
pub struct Choices {
    /// For each choice the chosen alternative, and the number of alternatives.
    script: Vec<(usize, usize)>,
    at: usize,
    /// The states of this replay, with the number of choices before each.
    passed: Vec<(usize, u64)>,
    failed: HashSet<u64>,
}

impl Choices {
    /// One of `of` possibilities, counted from 0.
    pub fn choose(&mut self, of: usize) -> usize {
        if of < 2 {
            return 0;
        }
        if self.at == self.script.len() {
            self.script.push((0, of));
        }
        self.at += 1;
        self.script[self.at - 1].0
    }

    /// Whether all ways on from a state have failed; else this way has passed
    /// it.
    pub fn has_failed(&mut self, state: u64) -> bool {
        let failed = self.failed.contains(&state);
        if !failed {
            self.passed.push((self.at, state));
        }
        failed
    }

    /// On to the next way through; false when all have been tried.
    pub fn advance(&mut self) -> bool {
        self.at = 0;
        while let Some((chosen, of)) = self.script.pop() {
            if chosen + 1 < of {
                self.script.push((chosen + 1, of));
                break;
            }
        }
        // What came after the choice that changes now has no way on left.
        let left = self.passed.drain(..).filter(|(choices, _)| *choices >= self.script.len());
        self.failed.extend(left.map(|(_, state)| state));
        !self.script.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn choices_enumerate_every_combination_once() {
        let mut choices = Choices::default();
        let mut seen = Vec::new();
        loop {
            let first = choices.choose(2);
            let second = if first == 0 { choices.choose(3) } else { 9 };
            seen.push((first, second));
            if !choices.advance() {
                break;
            }
        }
        assert_eq!(seen, [(0, 0), (0, 1), (0, 2), (1, 9)]);
    }

    #[test]
    fn state_has_failed_once_all_choices_after_it_are_exhausted() {
        let mut choices = Choices::default();
        let mut left = 0;
        loop {
            let first = choices.choose(3);
            // The second and the third choice lead to the same state.
            if choices.has_failed(first.min(1) as u64) {
                left += 1;
            } else {
                choices.choose(2);
            }
            if !choices.advance() {
                break;
            }
        }
        assert_eq!(left, 1);
    }
}
