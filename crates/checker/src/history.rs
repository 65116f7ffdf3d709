//! What clients saw, in flat arrays: a history of millions of transactions is
//! a handful of allocations.

use crate::names::Names;
use std::collections::HashMap;
use std::ops::Range;

/// A transaction, by its place in the history. Transactions of one session
/// stand in the order in which it ran them.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Txn(pub u32);

/// A session, by its number.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Session(pub u32);

/// What is read and written (a key, a register, a list, a row), by its number.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Item(pub u32);

/// What a write wrote, by which a read says whose version it saw. The same
/// value should be written to an item only once.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Value(pub u64);

impl Value {
    /// What an item holds before anybody has written it.
    pub const INITIAL: Value = Value(u64::MAX);
}

impl Txn {
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

impl Item {
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// How a transaction ended, as far as its client knows.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Status {
    #[default]
    Committed,
    Aborted,
    /// The client never heard: it has committed if somebody saw its writes.
    Unknown,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum OpKind {
    /// Sets the item, whatever it was.
    Write,
    /// Adds an element to the end of a list.
    Append,
    /// Saw the version that wrote this value.
    Read,
    /// A read that takes a lock: it sees what is current, not a snapshot.
    LockingRead,
    /// Saw a list. [`History::list`] tells which.
    ReadList,
    /// Saw which items satisfy a predicate. [`History::matched`] tells which.
    PredicateRead,
}

/// A read or a write.
#[derive(Clone, Copy, Debug)]
pub struct Op {
    pub(crate) value: u64,
    pub(crate) item: u32,
    pub(crate) kind: OpKind,
}

impl Op {
    pub fn kind(self) -> OpKind {
        self.kind
    }

    /// The item of a read or write. A predicate read has none.
    pub fn item(self) -> Option<Item> {
        (self.kind != OpKind::PredicateRead).then_some(Item(self.item))
    }

    /// The value that was written or read, but for lists and predicates.
    pub fn value(self) -> Option<Value> {
        match self.kind {
            OpKind::ReadList | OpKind::PredicateRead => None,
            _ => Some(Value(self.value)),
        }
    }

    pub fn writes(self) -> bool {
        matches!(self.kind, OpKind::Write | OpKind::Append)
    }
}

/// A list that was read is, nearly always, the beginning of the longest one
/// that anybody read of that item, followed by what the reader had appended
/// itself. Only its length is kept then.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Seen {
    /// So many elements of the item's longest list.
    Beginning(u32),
    /// Something else: one of `History::other_lists`.
    Other(u32),
    /// One of these, and it does not even end with what its reader had appended.
    WithoutOwn(u32),
}

const OTHER: u64 = 1 << 32;
const WITHOUT_OWN: u64 = 1 << 33;

impl Seen {
    pub(crate) fn pack(self) -> u64 {
        match self {
            Seen::Beginning(length) => u64::from(length),
            Seen::Other(number) => OTHER | u64::from(number),
            Seen::WithoutOwn(number) => WITHOUT_OWN | u64::from(number),
        }
    }

    pub(crate) fn unpack(word: u64) -> Seen {
        match word & (OTHER | WITHOUT_OWN) {
            OTHER => Seen::Other(word as u32),
            WITHOUT_OWN => Seen::WithoutOwn(word as u32),
            _ => Seen::Beginning(word as u32),
        }
    }
}

/// A version of an item: which item, and what was written.
pub type Version = (Item, Value);

/// What clients saw of a database. Made by a [`Builder`](crate::Builder) or read
/// from the one-line notation.
#[derive(Clone, Debug, Default)]
pub struct History {
    pub(crate) session_of: Vec<u32>,
    pub(crate) status: Vec<Status>,
    /// Where the operations of each transaction begin, and where the last ends.
    pub(crate) starts: Vec<u32>,
    pub(crate) ops: Vec<Op>,
    /// Begin and end of each transaction, when the history has times.
    pub(crate) times: Vec<[u64; 2]>,
    pub(crate) items: Names,
    pub(crate) sessions: Names,
    /// What the source calls its transactions: numbers, and names where it has
    /// those. Both may be shorter than the history.
    pub(crate) txn_numbers: Vec<u64>,
    pub(crate) txn_texts: HashMap<u32, String>,
    /// For each item the longest list that was read of it.
    pub(crate) longest: Vec<Vec<u64>>,
    pub(crate) other_lists: Vec<Vec<u64>>,
    /// For each item the order of its versions, where it was given.
    pub(crate) given_orders: Vec<(u32, Vec<u64>)>,
    pub(crate) predicates: Names,
    /// The versions that satisfy each predicate, sorted.
    pub(crate) satisfying: Vec<Vec<Version>>,
    pub(crate) matched: Vec<Vec<Version>>,
    /// The text of the statement behind an operation, by its place; sorted.
    pub(crate) statements: Vec<(u32, String)>,
    /// Values that are no numbers, by what stands for them.
    pub(crate) value_names: Names,
}

impl History {
    /// How many transactions there are, whatever became of them.
    pub fn len(&self) -> usize {
        self.status.len()
    }

    pub fn is_empty(&self) -> bool {
        self.status.is_empty()
    }

    pub fn transactions(&self) -> impl DoubleEndedIterator<Item = Txn> + ExactSizeIterator + use<> {
        (0..self.status.len() as u32).map(Txn)
    }

    pub fn session_count(&self) -> usize {
        self.sessions.len()
    }

    pub fn item_count(&self) -> usize {
        self.items.len()
    }

    pub fn session_of(&self, txn: Txn) -> Session {
        Session(self.session_of[txn.index()])
    }

    pub fn status(&self, txn: Txn) -> Status {
        self.status[txn.index()]
    }

    pub(crate) fn op_range(&self, txn: Txn) -> Range<usize> {
        self.starts[txn.index()] as usize..self.starts[txn.index() + 1] as usize
    }

    pub fn ops(&self, txn: Txn) -> &[Op] {
        &self.ops[self.op_range(txn)]
    }

    /// When the transaction began and ended, by the clients' clock.
    pub fn times(&self, txn: Txn) -> Option<(u64, u64)> {
        self.times.get(txn.index()).map(|[begin, end]| (*begin, *end))
    }

    pub fn has_times(&self) -> bool {
        !self.times.is_empty()
    }

    /// Whether any session has more than one transaction, so that its order says
    /// something.
    pub fn has_sessions(&self) -> bool {
        let mut used = vec![false; self.sessions.len()];
        self.session_of.iter().any(|session| std::mem::replace(&mut used[*session as usize], true))
    }

    /// The elements that a list read saw, without those that its own transaction
    /// had appended at the end.
    pub fn list(&self, op: Op) -> Option<&[u64]> {
        (op.kind == OpKind::ReadList).then(|| match Seen::unpack(op.value) {
            Seen::Beginning(length) => &self.longest[op.item as usize][..length as usize],
            Seen::Other(number) | Seen::WithoutOwn(number) => {
                &self.other_lists[number as usize][..]
            }
        })
    }

    /// The versions that a predicate read found.
    pub fn matched(&self, op: Op) -> Option<&[Version]> {
        (op.kind == OpKind::PredicateRead).then(|| &self.matched[op.value as usize][..])
    }

    /// The text of the statement that did this, by its place in the history.
    pub(crate) fn statement(&self, op: usize) -> Option<&str> {
        let at = self.statements.binary_search_by_key(&(op as u32), |(op, _)| *op).ok()?;
        Some(&self.statements[at].1)
    }

    pub fn item_name(&self, item: Item) -> String {
        self.items.name(item.0, "")
    }

    pub fn session_name(&self, session: Session) -> String {
        self.sessions.name(session.0, "s")
    }

    pub fn txn_name(&self, txn: Txn) -> String {
        if let Some(text) = self.txn_texts.get(&txn.0) {
            return text.clone();
        }
        format!("T{}", self.txn_numbers.get(txn.index()).copied().unwrap_or(u64::from(txn.0) + 1))
    }

    pub fn value_name(&self, value: Value) -> String {
        match value {
            Value::INITIAL => "nil".into(),
            Value(word) => {
                self.value_names.known(word).map_or_else(|| word.to_string(), str::to_string)
            }
        }
    }
}
