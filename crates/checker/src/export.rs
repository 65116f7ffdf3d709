//! Accessors that writers of history files need: names, whole lists, version orders.

use crate::history::{History, Item, ListRead, Op, OpKind, Session, Txn, Value, Version};
use crate::names::Name;

/// A name as the source of the history wrote it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Label<'a> {
    /// The source used a number.
    Number(u64),
    /// The source used a text.
    Text(&'a str),
    /// The source gave no name; for values, the initial version.
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
    /// The name of an item.
    pub fn item_label(&self, item: Item) -> Label<'_> {
        self.items.get(item.0).into()
    }

    /// The name of a session.
    pub fn session_label(&self, session: Session) -> Label<'_> {
        self.sessions.get(session.0).into()
    }

    /// The name of a transaction.
    pub fn txn_label(&self, txn: Txn) -> Label<'_> {
        match self.txn_texts.get(&txn.0) {
            Some(text) => Label::Text(text),
            None => self.txn_numbers.get(txn.index()).map_or(Label::None, |n| Label::Number(*n)),
        }
    }

    /// The name of a value.
    pub fn value_label(&self, value: Value) -> Label<'_> {
        match value {
            Value::INITIAL => Label::None,
            Value(word) => match self.value_names.text_of_value(word) {
                Some(text) => Label::Text(text),
                None => Label::Number(word),
            },
        }
    }

    /// The whole list that operation number `position` of a transaction read, including the
    /// transaction's own appends.
    pub fn whole_list(&self, txn: Txn, position: usize) -> Option<Vec<Value>> {
        let ops = self.ops(txn);
        let op = ops.get(position)?;
        let mut list: Vec<Value> = self.list(*op)?.iter().copied().map(Value).collect();
        if !matches!(ListRead::unpack(op.value), ListRead::MissingOwn(_)) {
            let own = ops[..position]
                .iter()
                .filter(|own| own.kind == OpKind::Append && own.item == op.item);
            list.extend(own.map(|own| Value(own.value)));
        }
        Some(list)
    }

    /// The SQL text of operation number `position` of a transaction, where the history has it.
    pub fn statement_of(&self, txn: Txn, position: usize) -> Option<&str> {
        self.statement(self.op_range(txn).start + position)
    }

    /// The name of the predicate of a predicate read.
    pub fn predicate_name(&self, op: Op) -> Option<String> {
        (op.kind == OpKind::PredicateRead).then(|| self.predicates.name(op.item, "P"))
    }

    /// The version orders that the source declared.
    pub fn version_orders(&self) -> impl Iterator<Item = (Item, &[u64])> {
        self.given_orders.iter().map(|(item, order)| (Item(*item), &order[..]))
    }

    /// All predicates, each with the versions that satisfy it.
    pub fn satisfying(&self) -> impl Iterator<Item = (String, &[Version])> {
        self.satisfying
            .iter()
            .enumerate()
            .map(|(id, versions)| (self.predicates.name(id as u32, "P"), &versions[..]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Builder, Status};

    /// A list that a transaction reads after its own append, recorded with or without it.
    fn read_after_append(recorded: &[u64]) -> (History, Txn) {
        let mut builder = Builder::new();
        let (list, other) = (builder.item("x"), builder.item("y"));
        let session = builder.session("s1");
        builder.begin(session);
        builder.append(list, Value(1));
        builder.end(Status::Committed);
        let txn = builder.begin(session);
        builder.append(other, Value(7));
        builder.append(list, Value(2));
        let elements: Vec<Value> = recorded.iter().copied().map(Value).collect();
        builder.read_list(list, &elements);
        builder.end(Status::Committed);
        (builder.finish(), txn)
    }

    #[test]
    fn whole_list_is_what_was_recorded() {
        for recorded in [&[1, 2][..], &[1], &[]] {
            let (history, txn) = read_after_append(recorded);
            let expected: Vec<Value> = recorded.iter().copied().map(Value).collect();
            assert_eq!(history.whole_list(txn, 2), Some(expected), "{recorded:?}");
        }
        let (history, txn) = read_after_append(&[1, 2]);
        assert_eq!(history.whole_list(txn, 1), None, "an append is no read");
        assert_eq!(history.whole_list(txn, 9), None);
    }
}
