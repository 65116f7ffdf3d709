//! When operations happened by the clock of who recorded them, and whether to believe it.

use crate::words::number;

/// The `:time` of each operation so far, as long as it can be trusted: every operation has one,
/// and in no process does it run backwards.
#[derive(Default)]
pub(super) struct Clock {
    times: Vec<u64>,
    /// The last time of each process; the first place is for operations without one.
    last: Vec<u64>,
    wrong: bool,
}

impl Clock {
    /// The next operation of the file, by the place of its process and the word of its time.
    pub(super) fn tick(&mut self, process: usize, time: u64) {
        if self.wrong {
            return;
        }
        if process >= self.last.len() {
            self.last.resize(process + 1, 0);
        }
        match number(time) {
            // Operations without a process have nothing to do with each other.
            Some(time) if process == 0 || time >= self.last[process] => {
                self.last[process] = time;
                self.times.push(time);
            }
            _ => {
                self.wrong = true;
                self.times = Vec::new();
            }
        }
    }

    /// The time of each operation, in the order of the file. None if some have none, if it
    /// runs backwards, or if it stands still.
    pub(super) fn times(&self) -> Option<&[u64]> {
        let moves = self.times.windows(2).any(|pair| pair[0] != pair[1]);
        (moves && !self.wrong).then_some(&self.times[..])
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
    fn processes_may_stand_one_after_the_other_in_the_file() {
        assert_eq!(times(&[(1, 5), (1, 8), (2, 6), (2, 7)]), Some(vec![5, 8, 6, 7]));
        assert_eq!(times(&[(0, 5), (0, 4)]), Some(vec![5, 4]));
    }

    #[test]
    fn a_clock_with_gaps_or_that_runs_backwards_or_stands_is_not_believed() {
        assert_eq!(times(&[(1, 5), (1, NIL), (2, 6)]), None);
        assert_eq!(times(&[(1, 5), (1, 4)]), None);
        assert_eq!(times(&[(1, 5), (2, 5), (1, 5)]), None);
        assert_eq!(times(&[]), None);
    }
}
