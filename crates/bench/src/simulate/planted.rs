//! Anomalies that can be planted into a valid history: a few concurrent transactions at its end, on
//! items of their own.

use isolde_checker::{Builder, Status, Value};

/// An anomaly to plant.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Planted {
    /// A read of a version that was rolled back (G1a).
    AbortedRead,
    /// A read of a version that its writer overwrote (G1b).
    IntermediateRead,
    /// Two updates of an item from the same version.
    LostUpdate,
    /// A read of one of two writes of a transaction.
    ReadSkew,
    /// Two transactions that each read what the other one overwrites.
    WriteSkew,
    /// Two readers observe two independent writes in different orders.
    LongFork,
}

impl Planted {
    /// All anomalies that can be planted.
    pub const ALL: [Planted; 6] = [
        Planted::AbortedRead,
        Planted::IntermediateRead,
        Planted::LostUpdate,
        Planted::ReadSkew,
        Planted::WriteSkew,
        Planted::LongFork,
    ];

    /// Adds the transactions of the anomaly, on the items from this number on.
    pub(super) fn plant(self, builder: &mut Builder, lists: bool, item: u64, now: u64) {
        let mut stage = Stage { builder, lists, item, now };
        let (x, y) = (0, 1);
        match self {
            Planted::AbortedRead => {
                stage.play(Status::Aborted, 0, &[Act::Write(x, 1)]);
                stage.play(Status::Committed, 0, &[Act::Read(x, &[1])]);
            }
            Planted::IntermediateRead => {
                stage.play(Status::Committed, 0, &[Act::Write(x, 1), Act::Write(x, 2)]);
                stage.play(Status::Committed, 0, &[Act::Read(x, &[1])]);
                stage.play(Status::Committed, 1, &[Act::Read(x, &[1, 2])]);
            }
            Planted::LostUpdate => {
                stage.play(Status::Committed, 0, &[Act::Read(x, &[]), Act::Write(x, 1)]);
                stage.play(Status::Committed, 0, &[Act::Read(x, &[]), Act::Write(x, 2)]);
                stage.play(Status::Committed, 1, &[Act::Read(x, &[1, 2])]);
            }
            Planted::ReadSkew => {
                stage.play(Status::Committed, 0, &[Act::Write(x, 1), Act::Write(y, 1)]);
                stage.play(Status::Committed, 0, &[Act::Read(x, &[]), Act::Read(y, &[1])]);
                stage.play(Status::Committed, 1, &[Act::Read(x, &[1]), Act::Read(y, &[1])]);
            }
            Planted::WriteSkew => {
                stage.play(Status::Committed, 0, &[Act::Read(x, &[]), Act::Write(y, 1)]);
                stage.play(Status::Committed, 0, &[Act::Read(y, &[]), Act::Write(x, 1)]);
                stage.play(Status::Committed, 1, &[Act::Read(x, &[1]), Act::Read(y, &[1])]);
            }
            Planted::LongFork => {
                stage.play(Status::Committed, 0, &[Act::Write(x, 1)]);
                stage.play(Status::Committed, 0, &[Act::Write(y, 1)]);
                stage.play(Status::Committed, 0, &[Act::Read(x, &[1]), Act::Read(y, &[])]);
                stage.play(Status::Committed, 0, &[Act::Read(x, &[]), Act::Read(y, &[1])]);
                stage.play(Status::Committed, 1, &[Act::Read(x, &[1]), Act::Read(y, &[1])]);
            }
        }
    }
}

#[derive(Clone, Copy)]
enum Act {
    Write(u64, u64),
    /// The versions of the item up to the one that was observed.
    Read(u64, &'static [u64]),
}

struct Stage<'b> {
    builder: &'b mut Builder,
    lists: bool,
    item: u64,
    now: u64,
}

impl Stage<'_> {
    /// Adds a transaction in a session of its own; those of one turn run concurrently.
    fn play(&mut self, status: Status, turn: u64, acts: &[Act]) {
        let session = self.builder.new_session();
        self.builder.begin(session);
        let begin = self.now + 2 * turn;
        self.builder.times(begin, begin + 1);
        for act in acts {
            let (Act::Write(item, _) | Act::Read(item, _)) = *act;
            let item = self.builder.numbered_item(self.item + item);
            match (*act, self.lists) {
                (Act::Write(_, value), true) => self.builder.append(item, Value(value)),
                (Act::Write(_, value), false) => self.builder.write(item, Value(value)),
                (Act::Read(_, seen), true) => {
                    let list: Vec<Value> = seen.iter().copied().map(Value).collect();
                    self.builder.read_list(item, &list);
                }
                (Act::Read(_, seen), false) => {
                    self.builder.read(item, seen.last().map_or(Value::INITIAL, |v| Value(*v)));
                }
            }
        }
        self.builder.end(status);
    }
}
