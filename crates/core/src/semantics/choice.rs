//! Choices that the rules leave open, tried one after the other.
//!
//! A prediction is a function of its choices: which of several statements that
//! finished together came first, which of the rows that may be changed was. It
//! is run again with the next choice until one explains what was observed, or
//! none is left. What the engine computed is remembered, so that running again
//! costs little.

#[derive(Debug, Default)]
pub struct Choices {
    /// What was chosen, of how many.
    script: Vec<(usize, usize)>,
    at: usize,
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

    /// On to the next way through; false when all have been tried.
    pub fn advance(&mut self) -> bool {
        self.at = 0;
        while let Some((chosen, of)) = self.script.pop() {
            if chosen + 1 < of {
                self.script.push((chosen + 1, of));
                return true;
            }
        }
        false
    }
}

/// The `n`th order of `items`, counted in lexicographic order.
pub fn permutation(items: usize, mut n: usize) -> Vec<usize> {
    let mut left: Vec<usize> = (0..items).collect();
    let mut order = Vec::with_capacity(items);
    for size in (1..=items).rev() {
        let below: usize = (1..size).product();
        order.push(left.remove(n / below));
        n %= below;
    }
    order
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_way_is_tried_once() {
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
    fn permutations_begin_with_the_order_itself() {
        let all: Vec<Vec<usize>> = (0..6).map(|n| permutation(3, n)).collect();
        assert_eq!(all[0], [0, 1, 2]);
        assert_eq!(all[5], [2, 1, 0]);
        let mut distinct = all.clone();
        distinct.sort();
        distinct.dedup();
        assert_eq!(distinct.len(), 6);
    }
}
