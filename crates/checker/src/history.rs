//! The history: what the clients of a database observed.
//!
//! It is stored in flat arrays, so that a history of millions of transactions takes a handful
//! of allocations.

use crate::names::Names;
use std::collections::HashMap;
use std::ops::Range;

/// A transaction, by its index in the history. The transactions of one session are in the
/// order in which the session ran them.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Txn(pub u32);

/// A session, by its index.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Session(pub u32);

/// Something that is read and written (a key, a register, a list, a row), by its index.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Item(pub u32);

/// A written value. It identifies the version that a read observed, so each value should be
/// written to an item at most once.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Value(pub u64);

impl Value {
    /// The version of an item before the first write.
    pub const INITIAL: Value = Value(u64::MAX);
}

impl Txn {
    /// The index into arrays with one entry per transaction.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

impl Item {
    /// The index into arrays with one entry per item.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// How a transaction ended, as its client observed it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Status {
    #[default]
    /// The commit succeeded.
    Committed,
    /// The transaction rolled back.
    Aborted,
    /// The client got no answer. The transaction counts as committed if a committed one read
    /// its writes.
    Unknown,
}

/// The kind of an operation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum OpKind {
    /// A write that replaces the value of a register.
    Write,
    /// An append of an element to a list.
    Append,
    /// A read of a register.
    Read,
    /// A locking read: it reads the latest version instead of a snapshot.
    LockingRead,
    /// A read of a list; [`History::list`] returns its elements.
    ReadList,
    /// A predicate read; [`History::matched`] returns the versions that it matched.
    PredicateRead,
}

/// One read or write of a transaction.
#[derive(Clone, Copy, Debug)]
pub struct Op {
    pub(crate) value: u64,
    pub(crate) item: u32,
    pub(crate) kind: OpKind,
}

impl Op {
    /// The kind of the operation.
    pub fn kind(self) -> OpKind {
        self.kind
    }

    /// The item of a read or write; none for a predicate read.
    pub fn item(self) -> Option<Item> {
        (self.kind != OpKind::PredicateRead).then_some(Item(self.item))
    }

    /// The value that was written or read; none for list reads and predicate reads.
    pub fn value(self) -> Option<Value> {
        match self.kind {
            OpKind::ReadList | OpKind::PredicateRead => None,
            _ => Some(Value(self.value)),
        }
    }

    /// Whether this is a write or an append.
    pub fn writes(self) -> bool {
        matches!(self.kind, OpKind::Write | OpKind::Append)
    }
}

/// The result of a list read, in compact form.
///
/// Nearly always a list is a prefix of the longest list that was read of the item, followed by
/// the reader's own appends. Then only the length of the prefix is stored.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum ListRead {
    /// The first `n` elements of the item's longest list.
    Prefix(u32),
    /// A different list: an index into `History::other_lists`.
    Other(u32),
    /// Such an index, of a list that does not even end with the reader's own appends.
    MissingOwn(u32),
}

const OTHER: u64 = 1 << 32;
const MISSING_OWN: u64 = 1 << 33;

impl ListRead {
    pub(crate) fn pack(self) -> u64 {
        match self {
            ListRead::Prefix(length) => u64::from(length),
            ListRead::Other(number) => OTHER | u64::from(number),
            ListRead::MissingOwn(number) => MISSING_OWN | u64::from(number),
        }
    }

    pub(crate) fn unpack(word: u64) -> ListRead {
        match word & (OTHER | MISSING_OWN) {
            OTHER => ListRead::Other(word as u32),
            MISSING_OWN => ListRead::MissingOwn(word as u32),
            _ => ListRead::Prefix(word as u32),
        }
    }
}

/// A version of an item: the item and the value that was written.
pub type Version = (Item, Value);

/// A history of transactions as the clients of a database observed it.
///
/// Build one with a [`Builder`](crate::Builder), or parse it from the notation that
/// [`NotationError`](crate::NotationError) describes.
#[derive(Clone, Debug, Default)]
pub struct History {
    pub(crate) session_of: Vec<u32>,
    pub(crate) status: Vec<Status>,
    /// Where the operations of each transaction begin, plus the end of the last one.
    pub(crate) starts: Vec<u32>,
    pub(crate) ops: Vec<Op>,
    /// Begin and end of each transaction; empty if the history has no times.
    pub(crate) times: Vec<[u64; 2]>,
    pub(crate) items: Names,
    pub(crate) sessions: Names,
    /// How the source identifies its transactions: by numbers, or by names where it has them.
    /// Both may be shorter than the history.
    pub(crate) txn_numbers: Vec<u64>,
    pub(crate) txn_texts: HashMap<u32, String>,
    /// The longest list that was read of each item.
    pub(crate) longest: Vec<Vec<u64>>,
    pub(crate) other_lists: Vec<Vec<u64>>,
    /// The version orders that the source declared, by item.
    pub(crate) given_orders: Vec<(u32, Vec<u64>)>,
    pub(crate) predicates: Names,
    /// The versions that satisfy each predicate, sorted.
    pub(crate) satisfying: Vec<Vec<Version>>,
    pub(crate) matched: Vec<Vec<Version>>,
    /// The SQL texts of operations, sorted by the index of the operation.
    pub(crate) statements: Vec<(u32, String)>,
    /// Texts of the values that are not numbers.
    pub(crate) value_names: Names,
}

impl History {
    /// The number of transactions, whatever their status.
    pub fn len(&self) -> usize {
        self.status.len()
    }

    /// Whether the history has no transactions.
    pub fn is_empty(&self) -> bool {
        self.status.is_empty()
    }

    /// All transactions, in the order of the history.
    pub fn transactions(&self) -> impl DoubleEndedIterator<Item = Txn> + ExactSizeIterator + use<> {
        (0..self.status.len() as u32).map(Txn)
    }

    /// The number of sessions.
    pub fn session_count(&self) -> usize {
        self.sessions.len()
    }

    /// Whether an operation writes. Every level holds for a history without one.
    pub fn has_writes(&self) -> bool {
        self.ops.iter().any(|op| matches!(op.kind, OpKind::Write | OpKind::Append))
    }

    /// The number of items.
    pub fn item_count(&self) -> usize {
        self.items.len()
    }

    /// The session that ran a transaction.
    pub fn session_of(&self, txn: Txn) -> Session {
        Session(self.session_of[txn.index()])
    }

    /// How a transaction ended.
    pub fn status(&self, txn: Txn) -> Status {
        self.status[txn.index()]
    }

    pub(crate) fn op_range(&self, txn: Txn) -> Range<usize> {
        self.starts[txn.index()] as usize..self.starts[txn.index() + 1] as usize
    }

    /// The operations of a transaction, in program order.
    pub fn ops(&self, txn: Txn) -> &[Op] {
        &self.ops[self.op_range(txn)]
    }

    /// When a transaction began and ended, by the clients' clock.
    pub fn times(&self, txn: Txn) -> Option<(u64, u64)> {
        self.times.get(txn.index()).map(|[begin, end]| (*begin, *end))
    }

    /// Whether the history has times, so that real-time order is known.
    pub fn has_times(&self) -> bool {
        !self.times.is_empty()
    }

    /// Whether any session has more than one transaction, so that session order orders anything.
    pub fn has_sessions(&self) -> bool {
        let mut used = vec![false; self.sessions.len()];
        self.session_of.iter().any(|session| std::mem::replace(&mut used[*session as usize], true))
    }

    /// The elements that a list read returned, without the reader's own appends at the end.
    pub fn list(&self, op: Op) -> Option<&[u64]> {
        (op.kind == OpKind::ReadList).then(|| match ListRead::unpack(op.value) {
            ListRead::Prefix(length) => &self.longest[op.item as usize][..length as usize],
            ListRead::Other(number) | ListRead::MissingOwn(number) => {
                &self.other_lists[number as usize][..]
            }
        })
    }

    /// The versions that a predicate read matched.
    pub fn matched(&self, op: Op) -> Option<&[Version]> {
        (op.kind == OpKind::PredicateRead).then(|| &self.matched[op.value as usize][..])
    }

    /// The SQL text of the operation with this index in the history.
    pub(crate) fn statement(&self, op: usize) -> Option<&str> {
        let at = self.statements.binary_search_by_key(&(op as u32), |(op, _)| *op).ok()?;
        Some(&self.statements[at].1)
    }

    /// The name of an item, for messages.
    pub fn item_name(&self, item: Item) -> String {
        self.items.name(item.0, "")
    }

    /// The name of a session, for messages.
    pub fn session_name(&self, session: Session) -> String {
        self.sessions.name(session.0, "s")
    }

    /// The name of a transaction, for messages.
    pub fn txn_name(&self, txn: Txn) -> String {
        if let Some(text) = self.txn_texts.get(&txn.0) {
            return text.clone();
        }
        format!("T{}", self.txn_numbers.get(txn.index()).copied().unwrap_or(u64::from(txn.0) + 1))
    }

    /// The name of a value, for messages; `nil` is the initial version.
    pub fn value_name(&self, value: Value) -> String {
        match value {
            Value::INITIAL => "nil".into(),
            Value(word) => self
                .value_names
                .text_of_value(word)
                .map_or_else(|| word.to_string(), str::to_string),
        }
    }
}
