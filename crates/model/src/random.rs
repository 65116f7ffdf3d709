//! Chance that is the same on every machine and in every version.
//!
//! The stream of words is ChaCha8, which is fixed for good. All that is drawn
//! from it is computed here, because a library's distributions may change
//! between versions, and then a seed would mean other cases.

use chacha20::ChaCha8Rng;
use chacha20::rand_core::{Rng, SeedableRng};

#[derive(Debug)]
pub struct Random(ChaCha8Rng);

impl Random {
    /// A stream of its own for each seed, label and index: what is drawn from
    /// one moves nothing in another.
    pub fn stream(seed: u64, label: &str, index: u64) -> Random {
        let mut key = [0; 32];
        key[..8].copy_from_slice(&seed.to_le_bytes());
        key[8..16].copy_from_slice(&index.to_le_bytes());
        key[16..24].copy_from_slice(&fingerprint(label).to_le_bytes());
        Random(ChaCha8Rng::from_seed(key))
    }

    pub fn word(&mut self) -> u64 {
        self.0.next_u64()
    }

    /// A number from 0 to `n` - 1; `n` must not be 0. Sixty-four bits over
    /// numbers this small leave no measurable bias.
    pub fn below(&mut self, n: usize) -> usize {
        assert!(n > 0, "there is nothing below 0");
        ((u128::from(self.word()) * n as u128) >> 64) as usize
    }

    /// A number from `low` to `high`, both of them possible.
    pub fn between(&mut self, low: usize, high: usize) -> usize {
        low + self.below(high - low + 1)
    }

    pub fn chance(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }

    pub fn pick<'a, T>(&mut self, from: &'a [T]) -> &'a T {
        &from[self.below(from.len())]
    }

    /// One of them, or none when there are none.
    pub fn pick_any<'a, T>(&mut self, from: &'a [T]) -> Option<&'a T> {
        if from.is_empty() { None } else { Some(self.pick(from)) }
    }

    /// An index, drawn as often as its weight says.
    pub fn weighted(&mut self, weights: &[usize]) -> usize {
        let mut left = self.below(weights.iter().sum());
        weights
            .iter()
            .position(|weight| {
                let here = left < *weight;
                left = left.saturating_sub(*weight);
                here
            })
            .expect("the draw is below the sum of the weights")
    }

    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for last in (1..items.len()).rev() {
            items.swap(last, self.below(last + 1));
        }
    }

    /// Some of them, at least one, in their order.
    pub fn some_of<T: Clone>(&mut self, from: &[T], at_most: usize) -> Vec<T> {
        let wanted = self.between(1, at_most.min(from.len()).max(1));
        let mut places: Vec<usize> = (0..from.len()).collect();
        self.shuffle(&mut places);
        places.truncate(wanted);
        places.sort_unstable();
        places.into_iter().map(|place| from[place].clone()).collect()
    }
}

/// FNV-1a: short, and the same for good.
pub fn fingerprint(text: &str) -> u64 {
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_draws_of_a_seed_never_change() {
        let mut random = Random::stream(1, "test", 0);
        let draws: Vec<usize> = (0..8).map(|_| random.below(1000)).collect();
        assert_eq!(draws, [455, 874, 155, 686, 28, 604, 188, 800]);
    }

    #[test]
    fn streams_differ_by_seed_label_and_index() {
        let first = |seed, label, index| Random::stream(seed, label, index).word();
        let words = [first(1, "a", 0), first(2, "a", 0), first(1, "b", 0), first(1, "a", 1)];
        for (i, word) in words.iter().enumerate() {
            assert!(!words[..i].contains(word));
        }
    }

    #[test]
    fn draws_stay_in_their_range_and_reach_its_ends() {
        let mut random = Random::stream(7, "range", 0);
        let draws: Vec<usize> = (0..200).map(|_| random.between(2, 5)).collect();
        assert_eq!((draws.iter().min(), draws.iter().max()), (Some(&2), Some(&5)));
        assert!((0..100).all(|_| random.weighted(&[0, 3, 0]) == 1));
        let mut items = [1, 2, 3, 4, 5];
        random.shuffle(&mut items);
        items.sort_unstable();
        assert_eq!(items, [1, 2, 3, 4, 5]);
        let some = random.some_of(&[1, 2, 3], 2);
        assert!((1..=2).contains(&some.len()) && some.is_sorted());
    }
}
