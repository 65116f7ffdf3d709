//! Draws transactions. What each session gets depends on the seed and on how many
//! transactions were drawn before, which at full speed is the database's choice.

use super::shape::Shape;
use isolde_model::random::Random;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Operation {
    Read { key: u64, how: Access },
    Write { key: u64, value: u64, how: Access },
}

/// By which way a statement comes to its row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Access {
    /// The primary key; a write makes the row if it is not there.
    Key,
    /// A column that has the same value; a write only finds rows that are there.
    Other,
}

pub(super) struct Draw {
    shape: Shape,
    random: Random,
    /// The keys in use, and how often each was written.
    keys: Vec<(u64, usize)>,
    next_key: u64,
    next_value: u64,
}

impl Draw {
    pub(super) fn new(shape: Shape, seed: u64) -> Draw {
        let keys = shape.keys.max(1);
        Draw {
            shape,
            random: Random::stream(seed, "workload", 0),
            keys: (0..keys as u64).map(|key| (key, 0)).collect(),
            next_key: keys as u64,
            next_value: 1,
        }
    }

    /// The operations of the next transaction. Every value is written once.
    pub(super) fn transaction(&mut self) -> Vec<Operation> {
        let count = self.random.between(1, self.shape.operations.max(1));
        (0..count).map(|_| self.operation()).collect()
    }

    fn operation(&mut self) -> Operation {
        let place = self.random.below(self.keys.len());
        let key = self.keys[place].0;
        let how = if self.random.chance(self.shape.scans) { Access::Other } else { Access::Key };
        if self.random.chance(self.shape.reads) {
            return Operation::Read { key, how };
        }
        let value = self.next_value;
        self.next_value += 1;
        self.keys[place].1 += 1;
        if self.keys[place].1 >= self.shape.writes_per_key {
            self.keys[place] = (self.next_key, 0);
            self.next_key += 1;
        }
        // A row must be made before it can be found by another column.
        Operation::Write { key, value, how }
    }
}
