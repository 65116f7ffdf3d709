//! What a history holds, for those who write it down again.

use crate::history::{History, Item, Op, OpKind, Seen, Session, Txn, Value, Version};
use crate::names::Name;

/// What the source of a history calls something.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Label<'a> {
    Number(u64),
    Text(&'a str),
    /// It had no name; of values, the one from before the first write.
    None,
}

impl<'a> From<Option<&'a Name>> for Label<'a> {
    fn from(name: Option<&'a Name>) -> Label<'a> {
        match name {
            Some(Name::Number(number)) => Label::Number(*number),
            Some(Name::Text(text)) => Label::Text(text),
            Some(Name::None) | None => Label::None,
        }
    }
}

impl History {
    pub fn item_label(&self, item: Item) -> Label<'_> {
        self.items.get(item.0).into()
    }

    pub fn session_label(&self, session: Session) -> Label<'_> {
        self.sessions.get(session.0).into()
    }

    pub fn txn_label(&self, txn: Txn) -> Label<'_> {
        match self.txn_texts.get(&txn.0) {
            Some(text) => Label::Text(text),
            None => self.txn_numbers.get(txn.index()).map_or(Label::None, |n| Label::Number(*n)),
        }
    }

    pub fn value_label(&self, value: Value) -> Label<'_> {
        match value {
            Value::INITIAL => Label::None,
            Value(word) => match self.value_names.known(word) {
                Some(text) => Label::Text(text),
                None => Label::Number(word),
            },
        }
    }

    /// The whole list that an operation of a transaction read, with what the
    /// transaction had appended itself.
    pub fn whole_list(&self, txn: Txn, place: usize) -> Option<Vec<Value>> {
        let ops = self.ops(txn);
        let op = ops.get(place)?;
        let mut list: Vec<Value> = self.list(*op)?.iter().copied().map(Value).collect();
        if !matches!(Seen::unpack(op.value), Seen::WithoutOwn(_)) {
            let own =
                ops[..place].iter().filter(|own| own.kind == OpKind::Append && own.item == op.item);
            list.extend(own.map(|own| Value(own.value)));
        }
        Some(list)
    }

    /// The text of the statement behind an operation of a transaction.
    pub fn statement_of(&self, txn: Txn, place: usize) -> Option<&str> {
        self.statement(self.op_range(txn).start + place)
    }

    /// The predicate of a predicate read.
    pub fn predicate_name(&self, op: Op) -> Option<String> {
        (op.kind == OpKind::PredicateRead).then(|| self.predicates.name(op.item, "P"))
    }

    /// The orders of versions that the source gave.
    pub fn version_orders(&self) -> impl Iterator<Item = (Item, &[u64])> {
        self.given_orders.iter().map(|(item, order)| (Item(*item), &order[..]))
    }

    /// All predicates, and the versions that satisfy them.
    pub fn satisfying(&self) -> impl Iterator<Item = (String, &[Version])> {
        self.satisfying
            .iter()
            .enumerate()
            .map(|(id, versions)| (self.predicates.name(id as u32, "P"), &versions[..]))
    }
}
