//! The question, freed from everything that does not decide it.

/// Stands for the writer of what an item holds in the beginning.
pub const INITIAL: u32 = u32::MAX;

/// Rows of different lengths in one array: those of `n` stand from `starts[n]` to
/// `starts[n + 1]`.
#[derive(Clone, Debug)]
pub struct Rows<T> {
    pub starts: Vec<u32>,
    pub all: Vec<T>,
}

impl<T> Default for Rows<T> {
    fn default() -> Rows<T> {
        Rows { starts: vec![0], all: Vec::new() }
    }
}

impl<T> Rows<T> {
    #[inline]
    pub fn of(&self, row: u32) -> &[T] {
        &self.all[self.starts[row as usize] as usize..self.starts[row as usize + 1] as usize]
    }

    /// Ends the row to which elements were pushed into `all`.
    pub fn end_row(&mut self) {
        self.starts.push(self.all.len() as u32);
    }

    pub fn len(&self) -> usize {
        self.starts.len() - 1
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// Committed transactions (0 to n - 1, those of a session in its order), what
/// each read from whom, what each wrote, and what is known of version orders.
#[derive(Clone, Debug, Default)]
pub struct Problem {
    pub session_of: Vec<u32>,
    pub sessions: u32,
    pub items: u32,
    /// A row for each transaction: item and writer of each version that it read
    /// from others, each pair once, sorted. Reads of own writes are not in it. A writer
    /// is a transaction that wrote the item, or [`INITIAL`]. Two writers for one item mean
    /// that the reader saw it change.
    pub reads: Rows<(u32, u32)>,
    /// A row for each transaction: the items that it wrote, sorted, each once.
    pub writes: Rows<u32>,
    /// A row for each item: the writers whose versions are known to be its first ones,
    /// in this order. All other writers of the item come after them, in an order that is
    /// not known. Mostly empty for registers; nearly everything for lists.
    pub known_order: Rows<u32>,
    /// Begin and end of each transaction, or empty.
    pub times: Vec<[u64; 2]>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Goal {
    Serializable,
    SnapshotIsolation,
}

/// Which orders must be kept besides the dependencies.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Keep {
    /// Transactions of one session, one after the other.
    pub sessions: bool,
    /// A transaction that ended before another began comes before it.
    pub times: bool,
}

/// How two transactions are ordered.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Order {
    /// They ran one after the other in one session.
    Session,
    /// One ended before the other began.
    Time,
    /// The second read what the first wrote.
    Read { item: u32 },
    /// The second overwrote what the first wrote.
    Overwrite { item: u32 },
    /// The first read what the second overwrote: the version of `writer`.
    Before { item: u32, writer: u32 },
}

/// Why an order is certain.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Because {
    /// It is in the history. For versions: the later one was made by who had read the
    /// earlier one, or the earlier one belongs to the known beginning and the later one
    /// does not, or comes later in it.
    Observed,
    /// The opposite order of the two versions would close a cycle with these steps, which
    /// are a path or already a cycle. Versions that were each made by who had read the one
    /// before stay together, so the opposite puts the whole of one such run before the
    /// other.
    Opposite(Vec<Step>),
    /// This is the opposite that a step around this one refutes. Only inside of
    /// [`Because::Opposite`].
    Assumed,
    /// No order of versions was found to work without it, in a search that is too long
    /// to tell.
    Search,
}

/// An edge of a cycle that shows a violation.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Step {
    pub from: u32,
    pub to: u32,
    pub order: Order,
    pub because: Because,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Decision {
    /// The level holds; for each transaction its place in the order of commits.
    Holds { commit_order: Vec<u32> },
    /// It does not: a cycle, of which no step depends on a choice.
    Violated { cycle: Vec<Step> },
    /// The budget ran out: so many pairs of versions were still unordered, in
    /// so many transactions.
    Unknown { open_pairs: usize, transactions: usize },
}

/// How much may be done before the answer is [`Decision::Unknown`]. It counts work and not
/// time, so that the same history always gets the same answer.
#[derive(Clone, Copy)]
pub struct Budget<'a> {
    /// Dead ends in the search for an order.
    pub conflicts: u64,
    /// Transactions that are placed, taken back, or looked at in a dead end.
    pub steps: u64,
    /// Asked now and then; true ends the work.
    pub stop: Option<&'a dyn Fn() -> bool>,
}

impl Default for Budget<'_> {
    fn default() -> Self {
        Budget { conflicts: 200_000, steps: 300_000_000, stop: None }
    }
}

impl Budget<'_> {
    pub(super) fn stopped(&self) -> bool {
        self.stop.is_some_and(|stop| stop())
    }
}
