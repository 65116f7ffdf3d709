//! The times of operations by the recorder's clock, and whether they are plausible.

use crate::words::number;

/// The `:time` of each operation so far, as long as it is plausible: every operation has one, and
/// it does not decrease within a process.
#[derive(Default)]
pub(super) struct Clock {
    times: Vec<u64>,
    /// The last time of each process; the first entry is for operations without a process.
    last: Vec<u64>,
    implausible: bool,
}

impl Clock {
    /// Adds the next operation of the file: the slot of its process and the word of its time.
    pub(super) fn tick(&mut self, process: usize, time: u64) {
        if self.implausible {
            return;
        }
        if process >= self.last.len() {
            self.last.resize(process + 1, 0);
        }
        match number(time) {
            // Operations without a process are independent of each other.
            Some(time) if process == 0 || time >= self.last[process] => {
                self.last[process] = time;
                self.times.push(time);
            }
            _ => {
                self.implausible = true;
                self.times = Vec::new();
            }
        }
    }

    /// The time of each operation, in the order of the file. None if one is missing, if times
    /// decrease within a process, or if all are equal.
    pub(super) fn times(&self) -> Option<&[u64]> {
        let moves = self.times.windows(2).any(|pair| pair[0] != pair[1]);
        (moves && !self.implausible).then_some(&self.times[..])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::words::NIL;

    fn times(ticks: &[(usize, u64)]) -> Option<Vec<u64>> {
        let mut clock = Clock::default();
        ticks.iter().for_each(|(process, time)| clock.tick(*process, *time));
        clock.times().map(<[u64]>::to_vec)
    }

    #[test]
    fn processes_may_be_consecutive_in_the_file() {
        assert_eq!(times(&[(1, 5), (1, 8), (2, 6), (2, 7)]), Some(vec![5, 8, 6, 7]));
        assert_eq!(times(&[(0, 5), (0, 4)]), Some(vec![5, 4]));
    }

    #[test]
    fn clocks_with_gaps_or_decreasing_or_constant_times_are_rejected() {
        assert_eq!(times(&[(1, 5), (1, NIL), (2, 6)]), None);
        assert_eq!(times(&[(1, 5), (1, 4)]), None);
        assert_eq!(times(&[(1, 5), (2, 5), (1, 5)]), None);
        assert_eq!(times(&[]), None);
    }
}
