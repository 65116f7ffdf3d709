//! Keys and values of a block before they have ids in the whole history: a word is a number, nil,
//! or a text of the block.

use isolde_checker::{Builder, Item, Session, Value};
use std::collections::HashMap;

/// Numbers below this are their own words. The builder uses larger ones for values that are texts.
const NUMBERS: u64 = 1 << 62;
const TEXT: u64 = 1 << 63;
pub(crate) const NIL: u64 = u64::MAX;

/// The word of a number, if it is small enough to be its own word.
pub(crate) fn number(number: u64) -> Option<u64> {
    (number < NUMBERS).then_some(number)
}

pub(crate) fn is_text(word: u64) -> bool {
    word >= TEXT && word != NIL
}

/// The texts of a block.
#[derive(Debug, Default)]
pub(crate) struct Words {
    ids: HashMap<Box<str>, u64>,
    texts: Vec<Box<str>>,
}

impl Words {
    pub(crate) fn text(&mut self, text: &str) -> u64 {
        if let Some(id) = self.ids.get(text) {
            return *id;
        }
        let id = TEXT | self.texts.len() as u64;
        self.ids.insert(text.into(), id);
        self.texts.push(text.into());
        id
    }

    /// The word of a number that may be negative or too large to be its own word.
    pub(crate) fn integer(&mut self, written: &str) -> u64 {
        written.parse().ok().and_then(number).unwrap_or_else(|| self.text(written))
    }

    pub(crate) fn get(&self, word: u64) -> Option<&str> {
        is_text(word).then(|| &*self.texts[(word & !TEXT) as usize])
    }
}

/// Translates the words of one block to ids of a history.
pub(crate) struct Resolver<'a> {
    words: &'a Words,
    items: Vec<Option<Item>>,
    values: Vec<Option<Value>>,
}

impl<'a> Resolver<'a> {
    pub(crate) fn new(words: &'a Words) -> Resolver<'a> {
        let texts = words.texts.len();
        Resolver { words, items: vec![None; texts], values: vec![None; texts] }
    }

    pub(crate) fn item(&mut self, builder: &mut Builder, word: u64) -> Item {
        match self.words.get(word) {
            None if word == NIL => builder.item("nil"),
            None => builder.numbered_item(word),
            Some(text) => {
                *self.items[(word & !TEXT) as usize].get_or_insert_with(|| builder.item(text))
            }
        }
    }

    pub(crate) fn value(&mut self, builder: &mut Builder, word: u64) -> Value {
        match self.words.get(word) {
            None if word == NIL => Value::INITIAL,
            None => Value(word),
            Some(text) => *self.values[(word & !TEXT) as usize]
                .get_or_insert_with(|| builder.text_value(text)),
        }
    }

    pub(crate) fn session(&self, builder: &mut Builder, word: u64) -> Session {
        match self.words.get(word) {
            None if word == NIL => builder.new_session(),
            None => builder.numbered_session(word),
            Some(text) => builder.session(text),
        }
    }
}
