//! Makes a history, one operation after the other, in the order in which each
//! session did them.

use crate::history::{History, Item, Op, OpKind, Seen, Session, Status, Txn, Value, Version};
use crate::names::FIRST_TEXT_VALUE;

/// Makes a [`History`].
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
/// A transaction is begun, has its operations, and is ended, before the next
/// one begins: what ran side by side is told one after the other. Only the order
/// within each session counts; times say more where they are known.
#[derive(Debug)]
pub struct Builder {
    history: History,
    open: bool,
    /// What the open transaction has appended so far.
    own: Vec<(u32, u64)>,
    /// The lists that it has read so far, and their elements.
    lists: Vec<OpenList>,
    elements: Vec<u64>,
    initial_value: Option<Value>,
}

/// A list that the open transaction has read: by which operation, how many
/// appends of its own came before, and where its elements begin.
#[derive(Debug)]
struct OpenList {
    op: usize,
    own: usize,
    begin: usize,
}

impl Default for Builder {
    fn default() -> Builder {
        Builder {
            history: History { starts: vec![0], ..History::default() },
            open: false,
            own: Vec::new(),
            lists: Vec::new(),
            elements: Vec::new(),
            initial_value: None,
        }
    }
}

impl Builder {
    pub fn new() -> Builder {
        Builder::default()
    }

    /// The item of this name, the same for the same name.
    pub fn item(&mut self, name: &str) -> Item {
        let id = self.history.items.text(name);
        self.item_of(id)
    }

    /// The item that is called by a number.
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

    pub fn session(&mut self, name: &str) -> Session {
        Session(self.history.sessions.text(name))
    }

    pub fn numbered_session(&mut self, number: u64) -> Session {
        Session(self.history.sessions.number(number))
    }

    /// A session that nobody else is in.
    pub fn new_session(&mut self) -> Session {
        Session(self.history.sessions.anonymous())
    }

    /// A value that is a text, the same for the same text.
    pub fn text_value(&mut self, text: &str) -> Value {
        Value(FIRST_TEXT_VALUE + u64::from(self.history.value_names.text(text)))
    }

    /// Begins the next transaction of a session.
    ///
    /// # Panics
    /// When the one before has not been ended.
    pub fn begin(&mut self, session: Session) -> Txn {
        assert!(!self.open, "a transaction begins before the one before has been ended");
        self.open = true;
        self.own.clear();
        self.history.session_of.push(session.0);
        self.history.status.push(Status::Unknown);
        Txn(self.history.status.len() as u32 - 1)
    }

    /// Calls the open transaction by the number that its source has for it.
    pub fn call_by_number(&mut self, number: u64) {
        let at = self.history.status.len() - 1;
        for unnamed in self.history.txn_numbers.len()..at {
            self.history.txn_numbers.push(unnamed as u64 + 1);
        }
        self.history.txn_numbers.push(number);
    }

    /// Calls the open transaction by a name.
    pub fn call(&mut self, name: &str) {
        let at = self.history.status.len() as u32 - 1;
        self.history.txn_texts.insert(at, name.into());
    }

    /// When the open transaction began and ended. Give times to all or to none: where
    /// one has none, it may have been at any time.
    pub fn times(&mut self, begin: u64, end: u64) {
        let at = self.history.status.len() - 1;
        self.history.times.resize(at, ANY_TIME);
        self.history.times.push([begin, end]);
    }

    /// Tells the times that were given so far by another clock; what never ended stays so.
    pub fn retime(&mut self, clock: impl Fn(u64) -> u64) {
        for times in self.history.times.iter_mut().filter(|times| **times != ANY_TIME) {
            for time in times.iter_mut().filter(|time| **time != u64::MAX) {
                *time = clock(*time);
            }
        }
    }

    fn push(&mut self, kind: OpKind, item: u32, value: u64) {
        debug_assert!(self.open, "an operation outside of a transaction");
        self.history.ops.push(Op { value, item, kind });
    }

    pub fn write(&mut self, item: Item, value: Value) {
        self.push(OpKind::Write, item.0, value.0);
    }

    pub fn read(&mut self, item: Item, value: Value) {
        self.push(OpKind::Read, item.0, value.0);
    }

    /// A read that took a lock (FOR UPDATE, FOR SHARE).
    pub fn locking_read(&mut self, item: Item, value: Value) {
        self.push(OpKind::LockingRead, item.0, value.0);
    }

    pub fn append(&mut self, item: Item, element: Value) {
        self.own.push((item.0, element.0));
        self.push(OpKind::Append, item.0, element.0);
    }

    /// A read of a whole list.
    pub fn read_list(&mut self, item: Item, elements: &[Value]) {
        let begin = self.elements.len();
        self.elements.extend(elements.iter().map(|element| element.0));
        self.lists.push(OpenList { op: self.history.ops.len(), own: self.own.len(), begin });
        self.push(OpKind::ReadList, item.0, 0);
    }

    /// Files the lists that the open transaction read. Only what a committed
    /// transaction saw says how the list grew.
    fn file_lists(&mut self, status: Status) {
        let lists = std::mem::take(&mut self.lists);
        let elements = std::mem::take(&mut self.elements);
        let mut end = elements.len();
        for OpenList { op, own, begin } in lists.iter().rev() {
            let item = self.history.ops[*op].item;
            let mut list = &elements[*begin..end];
            end = *begin;
            let own = self.own[..*own].iter().filter(|(of, _)| *of == item);
            let count = own.clone().count();
            let others = list.len().checked_sub(count);
            let seen = match others {
                Some(others) if own.map(|(_, element)| element).eq(&list[others..]) => {
                    list = &list[..others];
                    self.seen(item, list, status)
                }
                // Not even its own appends: kept as it is, for the checker to say so.
                _ => Seen::WithoutOwn(self.keep(list)),
            };
            self.history.ops[*op].value = seen.pack();
        }
        (self.lists, self.elements) = (lists, elements);
        self.lists.clear();
        self.elements.clear();
    }

    fn seen(&mut self, item: u32, list: &[u64], status: Status) -> Seen {
        let longest = &mut self.history.longest[item as usize];
        let common = longest.len().min(list.len());
        if longest[..common] != list[..common] {
            return Seen::Other(self.keep(list));
        }
        if list.len() > common {
            if status != Status::Committed {
                return Seen::Other(self.keep(list));
            }
            longest.extend_from_slice(&list[common..]);
        }
        Seen::Beginning(list.len() as u32)
    }

    fn keep(&mut self, list: &[u64]) -> u32 {
        self.history.other_lists.push(list.to_vec());
        self.history.other_lists.len() as u32 - 1
    }

    /// A read of all items that satisfy a predicate, with the versions that it
    /// found. Reads of these items are reads besides, if it returned them.
    pub fn predicate_read(&mut self, predicate: &str, matched: &[Version]) {
        let predicate = self.predicate(predicate);
        let mut matched = matched.to_vec();
        matched.sort_unstable();
        self.history.matched.push(matched);
        let place = self.history.matched.len() as u64 - 1;
        self.push(OpKind::PredicateRead, predicate, place);
    }

    /// Says that a version, of those that were ever written, satisfies a predicate.
    /// All versions of which it is not said do not.
    pub fn satisfies(&mut self, predicate: &str, version: Version) {
        let predicate = self.predicate(predicate) as usize;
        let versions = &mut self.history.satisfying[predicate];
        if let Err(place) = versions.binary_search(&version) {
            versions.insert(place, version);
        }
    }

    fn predicate(&mut self, name: &str) -> u32 {
        let id = self.history.predicates.text(name);
        if id as usize >= self.history.satisfying.len() {
            self.history.satisfying.push(Vec::new());
        }
        id
    }

    /// The order of the versions of an item, where the source knows it.
    pub fn version_order(&mut self, item: Item, values: &[Value]) {
        let order = values.iter().map(|value| value.0).collect();
        self.history.given_orders.push((item.0, order));
    }

    /// Says that the source calls what was there in the beginning by this value.
    /// Reads of it saw that, but of items to which somebody wrote the value.
    pub fn initial_value(&mut self, value: Value) {
        self.initial_value = Some(value);
    }

    fn rename_initial(&mut self, value: Value) {
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

    /// The text of the statement behind the last operation, for witnesses.
    pub fn statement(&mut self, text: &str) {
        let last = self.history.ops.len() as u32 - 1;
        self.history.statements.push((last, text.into()));
    }

    /// Ends the open transaction.
    ///
    /// # Panics
    /// When none is open.
    pub fn end(&mut self, status: Status) {
        assert!(self.open, "a transaction is ended that has not begun");
        self.open = false;
        self.file_lists(status);
        *self.history.status.last_mut().expect("one has begun") = status;
        let end = u32::try_from(self.history.ops.len()).expect("fewer than 2^32 operations");
        self.history.starts.push(end);
    }

    /// The history. A transaction that is still open has an unknown end.
    pub fn finish(mut self) -> History {
        if self.open {
            self.end(Status::Unknown);
        }
        if let Some(value) = self.initial_value {
            self.rename_initial(value);
        }
        if !self.history.times.is_empty() {
            self.history.times.resize(self.history.status.len(), ANY_TIME);
        }
        self.history
    }
}

const ANY_TIME: [u64; 2] = [0, u64::MAX];
