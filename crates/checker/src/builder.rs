//! Builds a history operation by operation, in the order in which each session ran them.

use crate::history::{History, Item, ListRead, Op, OpKind, Session, Status, Txn, Value, Version};
use crate::names::FIRST_TEXT_VALUE;

/// Builds a [`History`].
///
/// ```
/// use isolde_checker::{Builder, Level, Status, Value, Verdict, check};
///
/// let mut history = Builder::new();
/// let (x, teller) = (history.item("x"), history.session("teller"));
/// history.begin(teller);
/// history.read(x, Value::INITIAL);
/// history.write(x, Value(100));
/// history.end(Status::Committed);
/// let report = check(&history.finish());
/// assert_eq!(report.verdict(Level::Serializable), Verdict::Holds);
/// ```
///
/// Transactions are added one at a time: begin, operations, end. Concurrent transactions are
/// therefore added one after the other; only their order within each session matters. Real-time
/// order is known only where [`Builder::times`] gives it.
#[derive(Debug)]
pub struct Builder {
    history: History,
    is_open: bool,
    /// The appends of the open transaction so far, as pairs of item and element.
    own_appends: Vec<(u32, u64)>,
    /// The list reads of the open transaction so far, and their elements.
    lists: Vec<OpenList>,
    elements: Vec<u64>,
    initial_value: Option<Value>,
}

/// A list read of the open transaction: its operation, how many appends of the transaction
/// precede it, and where its elements begin.
#[derive(Debug)]
struct OpenList {
    op: usize,
    own_appends: usize,
    begin: usize,
}

impl Default for Builder {
    fn default() -> Builder {
        Builder {
            history: History { starts: vec![0], ..History::default() },
            is_open: false,
            own_appends: Vec::new(),
            lists: Vec::new(),
            elements: Vec::new(),
            initial_value: None,
        }
    }
}

impl Builder {
    /// An empty history.
    pub fn new() -> Builder {
        Builder::default()
    }

    /// The item with this name. The same name always gives the same item.
    pub fn item(&mut self, name: &str) -> Item {
        let id = self.history.items.text(name);
        self.item_of(id)
    }

    /// The item with this number as its name.
    pub fn numbered_item(&mut self, number: u64) -> Item {
        let id = self.history.items.number(number);
        self.item_of(id)
    }

    fn item_of(&mut self, id: u32) -> Item {
        if id as usize >= self.history.longest.len() {
            self.history.longest.push(Vec::new());
        }
        Item(id)
    }

    /// The session with this name. The same name always gives the same session.
    pub fn session(&mut self, name: &str) -> Session {
        Session(self.history.sessions.text(name))
    }

    /// The session with this number as its name.
    pub fn numbered_session(&mut self, number: u64) -> Session {
        Session(self.history.sessions.number(number))
    }

    /// A new session without a name, for a transaction that belongs to no session.
    pub fn new_session(&mut self) -> Session {
        Session(self.history.sessions.anonymous())
    }

    /// A value for this text. The same text always gives the same value.
    pub fn text_value(&mut self, text: &str) -> Value {
        Value(FIRST_TEXT_VALUE + u64::from(self.history.value_names.text(text)))
    }

    /// Begins the next transaction of a session.
    ///
    /// # Panics
    /// If the previous transaction has not been ended.
    pub fn begin(&mut self, session: Session) -> Txn {
        assert!(!self.is_open, "a transaction begins while another one is open");
        self.is_open = true;
        self.own_appends.clear();
        self.history.session_of.push(session.0);
        self.history.status.push(Status::Unknown);
        Txn(self.history.status.len() as u32 - 1)
    }

    /// Sets the number by which the source of the history identifies the open transaction.
    pub fn number_transaction(&mut self, number: u64) {
        let at = self.history.status.len() - 1;
        for unnamed in self.history.txn_numbers.len()..at {
            self.history.txn_numbers.push(unnamed as u64 + 1);
        }
        self.history.txn_numbers.push(number);
    }

    /// Sets the name of the open transaction.
    pub fn name_transaction(&mut self, name: &str) {
        let at = self.history.status.len() as u32 - 1;
        self.history.txn_texts.insert(at, name.into());
    }

    /// Sets the times at which the open transaction began and ended. Either all transactions
    /// should have times or none: one without times may have run at any time.
    pub fn times(&mut self, begin: u64, end: u64) {
        let at = self.history.status.len() - 1;
        self.history.times.resize(at, ANY_TIME);
        self.history.times.push([begin, end]);
    }

    /// Replaces all times set so far by `clock(time)`; open ends (`u64::MAX`) stay open.
    pub fn map_times(&mut self, clock: impl Fn(u64) -> u64) {
        for times in self.history.times.iter_mut().filter(|times| **times != ANY_TIME) {
            for time in times.iter_mut().filter(|time| **time != u64::MAX) {
                *time = clock(*time);
            }
        }
    }

    fn push(&mut self, kind: OpKind, item: u32, value: u64) {
        debug_assert!(self.is_open, "an operation outside of a transaction");
        self.history.ops.push(Op { value, item, kind });
    }

    /// Adds a write of a register.
    pub fn write(&mut self, item: Item, value: Value) {
        self.push(OpKind::Write, item.0, value.0);
    }

    /// Adds a read of a register that returned this value.
    pub fn read(&mut self, item: Item, value: Value) {
        self.push(OpKind::Read, item.0, value.0);
    }

    /// Adds a locking read (`FOR UPDATE`, `FOR SHARE`) that returned this value.
    pub fn locking_read(&mut self, item: Item, value: Value) {
        self.push(OpKind::LockingRead, item.0, value.0);
    }

    /// Adds an append to a list.
    pub fn append(&mut self, item: Item, element: Value) {
        self.own_appends.push((item.0, element.0));
        self.push(OpKind::Append, item.0, element.0);
    }

    /// Adds a read of a whole list.
    pub fn read_list(&mut self, item: Item, elements: &[Value]) {
        let begin = self.elements.len();
        self.elements.extend(elements.iter().map(|element| element.0));
        self.lists.push(OpenList {
            op: self.history.ops.len(),
            own_appends: self.own_appends.len(),
            begin,
        });
        self.push(OpKind::ReadList, item.0, 0);
    }

    /// Packs the list reads of the open transaction. Only lists that a committed transaction
    /// read extend the item's longest list.
    fn pack_lists(&mut self, status: Status) {
        let lists = std::mem::take(&mut self.lists);
        let elements = std::mem::take(&mut self.elements);
        let mut end = elements.len();
        for OpenList { op, own_appends, begin } in lists.iter().rev() {
            let item = self.history.ops[*op].item;
            let mut list = &elements[*begin..end];
            end = *begin;
            let own_appends = self.own_appends[..*own_appends].iter().filter(|(of, _)| *of == item);
            let count = own_appends.clone().count();
            let others = list.len().checked_sub(count);
            let packed = match others {
                Some(others) if own_appends.map(|(_, element)| element).eq(&list[others..]) => {
                    list = &list[..others];
                    self.pack_list(item, list, status)
                }
                // The transaction's own appends are missing: keep the list as it is, so that the
                // checker reports it.
                _ => ListRead::MissingOwn(self.store_list(list)),
            };
            self.history.ops[*op].value = packed.pack();
        }
        (self.lists, self.elements) = (lists, elements);
        self.lists.clear();
        self.elements.clear();
    }

    fn pack_list(&mut self, item: u32, list: &[u64], status: Status) -> ListRead {
        let longest = &mut self.history.longest[item as usize];
        let common = longest.len().min(list.len());
        if longest[..common] != list[..common] {
            return ListRead::Other(self.store_list(list));
        }
        if list.len() > common {
            if status != Status::Committed {
                return ListRead::Other(self.store_list(list));
            }
            longest.extend_from_slice(&list[common..]);
        }
        ListRead::Prefix(list.len() as u32)
    }

    fn store_list(&mut self, list: &[u64]) -> u32 {
        self.history.other_lists.push(list.to_vec());
        self.history.other_lists.len() as u32 - 1
    }

    /// Adds a predicate read that matched these versions. If it also returned the items, add
    /// reads of them as well.
    pub fn predicate_read(&mut self, predicate: &str, matched: &[Version]) {
        let predicate = self.predicate(predicate);
        let mut matched = matched.to_vec();
        matched.sort_unstable();
        self.history.matched.push(matched);
        let position = self.history.matched.len() as u64 - 1;
        self.push(OpKind::PredicateRead, predicate, position);
    }

    /// Declares that a version satisfies a predicate. Versions without such a declaration do not.
    pub fn satisfies(&mut self, predicate: &str, version: Version) {
        let predicate = self.predicate(predicate) as usize;
        let versions = &mut self.history.satisfying[predicate];
        if let Err(position) = versions.binary_search(&version) {
            versions.insert(position, version);
        }
    }

    fn predicate(&mut self, name: &str) -> u32 {
        let id = self.history.predicates.text(name);
        if id as usize >= self.history.satisfying.len() {
            self.history.satisfying.push(Vec::new());
        }
        id
    }

    /// Declares the version order of an item, where the source of the history knows it.
    pub fn version_order(&mut self, item: Item, values: &[Value]) {
        let order = values.iter().map(|value| value.0).collect();
        self.history.given_orders.push((item.0, order));
    }

    /// Declares the value that stands for the initial version in the source of the history.
    /// Reads of this value are reads of the initial version, except for items to which some
    /// transaction wrote the value.
    pub fn initial_value(&mut self, value: Value) {
        self.initial_value = Some(value);
    }

    fn normalize_initial_reads(&mut self, value: Value) {
        let mut written = vec![false; self.history.items.len()];
        for op in self.history.ops.iter().filter(|op| op.kind == OpKind::Write) {
            written[op.item as usize] |= op.value == value.0;
        }
        for op in &mut self.history.ops {
            let reads = matches!(op.kind, OpKind::Read | OpKind::LockingRead);
            if reads && op.value == value.0 && !written[op.item as usize] {
                op.value = Value::INITIAL.0;
            }
        }
    }

    /// Sets the SQL text of the last operation, which witnesses quote.
    pub fn statement(&mut self, text: &str) {
        let last = self.history.ops.len() as u32 - 1;
        self.history.statements.push((last, text.into()));
    }

    /// Ends the open transaction with this status.
    ///
    /// # Panics
    /// If no transaction is open.
    pub fn end(&mut self, status: Status) {
        assert!(self.is_open, "a transaction ends that has not begun");
        self.is_open = false;
        self.pack_lists(status);
        *self.history.status.last_mut().expect("one has begun") = status;
        let end = u32::try_from(self.history.ops.len()).expect("fewer than 2^32 operations");
        self.history.starts.push(end);
    }

    /// The history. The status of a transaction that is still open is unknown.
    pub fn finish(mut self) -> History {
        if self.is_open {
            self.end(Status::Unknown);
        }
        if let Some(value) = self.initial_value {
            self.normalize_initial_reads(value);
        }
        if !self.history.times.is_empty() {
            self.history.times.resize(self.history.status.len(), ANY_TIME);
        }
        self.history
    }
}

const ANY_TIME: [u64; 2] = [0, u64::MAX];
