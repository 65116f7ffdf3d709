//! Scans the usual shapes of Elle's operations byte by byte, without building a tree. Other shapes
//! are left to the general readers, which also report errors.

use super::batch::{Batch, Op, OpKind, Record, RecordKind, list_at};
use crate::words::{self, NIL};

/// A position in a text of EDN or, with `JSON`, of JSON.
pub(super) struct Scan<'a, const JSON: bool> {
    text: &'a [u8],
    at: usize,
}

impl<'a, const JSON: bool> Scan<'a, JSON> {
    /// Adds the operation that begins here to the batch and returns where it ends. None if it is
    /// not of the usual shape or not complete.
    pub(super) fn operation(text: &'a [u8], at: usize, batch: &mut Batch) -> Option<usize> {
        let mut scan = Scan::<JSON> { text, at };
        let first = batch.ops.len();
        let (mut kind, mut process, mut index, mut time) = (None, NIL, NIL, NIL);
        let mut more = scan.open(b'{', b'}')?;
        while more {
            let name = scan.name()?;
            if JSON {
                scan.blanks();
                scan.expect(b':')?;
            }
            scan.blanks();
            match name {
                b"type" => kind = Some(RecordKind::named(scan.name()?)?),
                b"process" => process = scan.word(batch)?,
                b"index" => index = scan.word(batch)?,
                b"time" => time = scan.word(batch)?,
                b"f" => (scan.name()? == b"txn").then_some(())?,
                b"value" if batch.ops.len() == first => scan.transaction(batch)?,
                b"value" => return None,
                _ => scan.skip()?,
            }
            more = scan.more(b'}')?;
        }
        batch.records.push(Record { kind: kind?, process, index, time, ops: first as u32 });
        Some(scan.at)
    }

    fn byte(&self) -> Option<u8> {
        self.text.get(self.at).copied()
    }

    fn expect(&mut self, byte: u8) -> Option<()> {
        (self.byte()? == byte).then(|| self.at += 1)
    }

    fn blanks(&mut self) {
        while let Some(byte) = self.byte() {
            match byte {
                b' ' | b'\n' | b'\t' | b'\r' => self.at += 1,
                b',' if !JSON => self.at += 1,
                _ => return,
            }
        }
    }

    /// Opens a bracket; returns whether it has contents.
    fn open(&mut self, open: u8, close: u8) -> Option<bool> {
        self.expect(open)?;
        self.blanks();
        let more = self.byte()? != close;
        self.at += usize::from(!more);
        Some(more)
    }

    /// After a form: whether another one follows before the bracket closes.
    fn more(&mut self, close: u8) -> Option<bool> {
        self.blanks();
        let byte = self.byte()?;
        if byte == close {
            self.at += 1;
            return Some(false);
        }
        if JSON {
            self.expect(b',')?;
            self.blanks();
        }
        Some(true)
    }

    /// A keyword, or a string without escapes.
    fn name(&mut self) -> Option<&'a [u8]> {
        match self.byte()? {
            b':' if !JSON => {
                self.at += 1;
                self.bare()
            }
            b'"' => self.quoted(),
            _ => None,
        }
    }

    fn quoted(&mut self) -> Option<&'a [u8]> {
        let begin = self.at + 1;
        let rest = self.text.get(begin..)?;
        let length = rest.iter().position(|byte| matches!(byte, b'"' | b'\\' | ..0x20))?;
        self.at = begin + length + 1;
        (rest[length] == b'"').then_some(&rest[..length])
    }

    /// The letters and digits at this position; a delimiter must follow them.
    fn bare(&mut self) -> Option<&'a [u8]> {
        let begin = self.at;
        loop {
            match self.byte()? {
                b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'/' | b'?' => {
                    self.at += 1;
                }
                b' ' | b',' | b'\n' | b'\r' | b'\t' | b']' | b'}' if self.at > begin => {
                    return Some(&self.text[begin..self.at]);
                }
                _ => return None,
            }
        }
    }

    /// A number, nil, or a text.
    fn word(&mut self, batch: &mut Batch) -> Option<u64> {
        let begin = self.at;
        match self.byte()? {
            b'0'..=b'9' => {
                let mut number = 0u64;
                while let Some(digit @ b'0'..=b'9') = self.byte() {
                    number = number.checked_mul(10)?.checked_add(u64::from(digit - b'0'))?;
                    self.at += 1;
                }
                // `1.5`, `3N` and the like are left to the general readers.
                matches!(self.byte()?, b' ' | b',' | b']' | b'}' | b'\n' | b'\r' | b'\t')
                    .then_some(())?;
                words::number(number)
            }
            b'"' => {
                let text = std::str::from_utf8(self.quoted()?).ok()?;
                Some(batch.words.text(text))
            }
            b':' if !JSON => {
                self.at += 1;
                let text = std::str::from_utf8(self.bare()?).ok()?;
                Some(batch.words.text(text))
            }
            b'n' => {
                let nil: &[u8] = if JSON { b"null" } else { b"nil" };
                self.text[begin..].starts_with(nil).then_some(())?;
                self.at += nil.len();
                matches!(self.byte()?, b' ' | b',' | b']' | b'}' | b'\n' | b'\r' | b'\t')
                    .then_some(NIL)
            }
            b'a'..=b'z' | b'A'..=b'Z' if !JSON => {
                let text = std::str::from_utf8(self.bare()?).ok()?;
                Some(batch.words.text(text))
            }
            _ => None,
        }
    }

    fn transaction(&mut self, batch: &mut Batch) -> Option<()> {
        if self.byte()? == b'n' {
            return (self.word(batch)? == NIL).then_some(());
        }
        let mut more = self.open(b'[', b']')?;
        while more {
            self.micro_operation(batch)?;
            more = self.more(b']')?;
        }
        Some(())
    }

    fn micro_operation(&mut self, batch: &mut Batch) -> Option<()> {
        self.open(b'[', b']')?.then_some(())?;
        let kind = match self.name()? {
            b"r" => OpKind::Read,
            b"append" => OpKind::Append,
            b"w" => OpKind::Write,
            _ => return None,
        };
        self.more(b']')?.then_some(())?;
        let key = self.word(batch)?;
        if !self.more(b']')? {
            // An invoked read has no value yet.
            (kind == OpKind::Read).then_some(())?;
            batch.ops.push(Op { key, value: NIL, kind });
            return Some(());
        }
        if kind == OpKind::Read && self.byte()? == b'[' {
            let begin = batch.elements.len();
            let mut more = self.open(b'[', b']')?;
            while more {
                let element = self.word(batch)?;
                batch.elements.push(element);
                more = self.more(b']')?;
            }
            let value = list_at(begin, batch.elements.len());
            batch.ops.push(Op { key, value, kind: OpKind::ReadList });
        } else {
            let value = self.word(batch)?;
            (kind == OpKind::Read || value != NIL).then_some(())?;
            batch.ops.push(Op { key, value, kind });
        }
        (!self.more(b']')?).then_some(())
    }

    /// Skips a form that does not matter. Forms that need more than counting brackets are not of
    /// the usual shape.
    fn skip(&mut self) -> Option<()> {
        let mut depth = 0usize;
        loop {
            match self.byte()? {
                b'"' => {
                    self.quoted()?;
                }
                b'[' | b'{' | b'(' => {
                    depth += 1;
                    self.at += 1;
                }
                b']' | b'}' | b')' => {
                    depth = depth.checked_sub(1)?;
                    self.at += 1;
                }
                b';' | b'\\' | b'#' => return None,
                b' ' | b'\n' | b'\r' | b'\t' | b',' | b':' if depth > 0 => self.at += 1,
                b':' if !JSON => {
                    self.at += 1;
                    self.bare()?;
                }
                _ => {
                    self.bare()?;
                }
            }
            if depth == 0 {
                return Some(());
            }
        }
    }
}
