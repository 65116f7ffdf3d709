//! Interning of names: dense ids for names, and back. Most histories name their items by
//! small numbers, for which a table is a lot faster than hashing.

use std::collections::HashMap;

/// Names below this are looked up in a table.
const SMALL: u64 = 1 << 22;

#[derive(Clone, Debug, Default)]
pub(crate) struct Names {
    by_number: Vec<u32>,
    by_large_number: HashMap<u64, u32>,
    by_text: HashMap<String, u32>,
    names: Vec<Name>,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Name {
    Number(u64),
    Text(String),
    /// No name: its id is shown instead.
    None,
}

impl Names {
    pub(crate) fn len(&self) -> usize {
        self.names.len()
    }

    fn push(&mut self, name: Name) -> u32 {
        let id = u32::try_from(self.names.len()).expect("fewer than 2^32 names");
        self.names.push(name);
        id
    }

    pub(crate) fn number(&mut self, number: u64) -> u32 {
        if number < SMALL {
            let position = number as usize;
            if position >= self.by_number.len() {
                self.by_number.resize((position + 1).next_power_of_two(), 0);
            }
            // The table holds id + 1, so that 0 means "new".
            if self.by_number[position] == 0 {
                self.by_number[position] = self.push(Name::Number(number)) + 1;
            }
            return self.by_number[position] - 1;
        }
        if let Some(id) = self.by_large_number.get(&number) {
            return *id;
        }
        let id = self.push(Name::Number(number));
        self.by_large_number.insert(number, id);
        id
    }

    pub(crate) fn text(&mut self, text: &str) -> u32 {
        if let Some(id) = self.by_text.get(text) {
            return *id;
        }
        let id = self.push(Name::Text(text.into()));
        self.by_text.insert(text.into(), id);
        id
    }

    /// A new id without a name.
    pub(crate) fn anonymous(&mut self) -> u32 {
        self.push(Name::None)
    }

    /// The name for messages; a number gets the prefix, so that it reads as a name.
    pub(crate) fn name(&self, id: u32, prefix: &str) -> String {
        match self.names.get(id as usize) {
            Some(Name::Text(text)) => text.clone(),
            Some(Name::Number(number)) => format!("{prefix}{number}"),
            Some(Name::None) | None => format!("{prefix}{}", id + 1),
        }
    }

    pub(crate) fn get(&self, id: u32) -> Option<&Name> {
        self.names.get(id as usize)
    }

    /// The text that a value stands for, if it stands for one.
    pub(crate) fn text_of_value(&self, word: u64) -> Option<&str> {
        let id = word.checked_sub(FIRST_TEXT_VALUE)?;
        match self.names.get(usize::try_from(id).ok()?) {
            Some(Name::Text(text)) => Some(text),
            _ => None,
        }
    }
}

/// Values for texts are numbered from here on. No client that counts its values up reaches
/// this number.
pub(crate) const FIRST_TEXT_VALUE: u64 = 1 << 62;
