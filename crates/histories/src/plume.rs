//! The text format of Plume, PolySI and IsoVista: `r(key,value,session,txn)`, one operation per
//! line. Transaction -1 was rolled back. The value 0 is the initial version, unless a transaction
//! writes it.

use crate::error::{ReadError, excerpt};
use crate::lines::{Lines, Problem, read_lines};
use crate::source::Source;
use crate::words::{self, Resolver, Words};
use isolde_checker::{Builder, History, Item, Session, Status, Value};
use std::collections::{HashMap, HashSet};

pub(crate) fn detect(text: &[u8]) -> bool {
    let line = text.trim_ascii_start();
    matches!(line, [b'r' | b'w', b'(', ..])
}

pub(crate) fn read(source: &mut Source) -> Result<History, ReadError> {
    let mut sessions = Sessions::default();
    read_lines(source, |block: Block| sessions.feed(&block))?;
    Ok(sessions.finish())
}

#[derive(Default)]
struct Block {
    ops: Vec<Op>,
    words: Words,
}

struct Op {
    key: u64,
    value: u64,
    session: u64,
    txn: u64,
    line: u32,
    write: bool,
}

impl Lines for Block {
    fn line(&mut self, number: u32, line: &[u8]) -> Result<(), String> {
        let line = line.trim_ascii();
        if line.is_empty() || line.starts_with(b"#") {
            return Ok(());
        }
        let op = self.operation(number, line).ok_or_else(|| {
            format!("expected r(key,value,session,txn) or w(…), not {}", excerpt(line))
        })?;
        self.ops.push(op);
        Ok(())
    }
}

impl Block {
    fn operation(&mut self, number: u32, line: &[u8]) -> Option<Op> {
        let write = match line {
            [b'r', b'(', ..] => false,
            [b'w', b'(', ..] => true,
            _ => return None,
        };
        let mut rest = line[2..].strip_suffix(b")")?;
        let mut fields = [0; 4];
        for (at, field) in fields.iter_mut().enumerate() {
            let end = rest.iter().position(|byte| *byte == b',').unwrap_or(rest.len());
            *field = self.word(&rest[..end])?;
            if at < 3 {
                rest = rest.get(end + 1..)?;
            } else if end < rest.len() {
                return None;
            }
        }
        let [key, value, session, txn] = fields;
        Some(Op { key, value, session, txn, line: number, write })
    }

    fn word(&mut self, field: &[u8]) -> Option<u64> {
        let mut number = 0u64;
        for byte in field {
            if !byte.is_ascii_digit() || number > 1 << 57 {
                let text = std::str::from_utf8(field).ok()?.trim();
                let plain = !text.is_empty() && !text.contains(['(', ')', ' ']);
                return plain.then(|| self.words.integer(text));
            }
            number = number * 10 + u64::from(byte - b'0');
        }
        if field.is_empty() { None } else { words::number(number) }
    }
}

/// The sessions, each with its open transaction. Their lines may be interleaved.
#[derive(Default)]
struct Sessions {
    builder: Builder,
    open: HashMap<Session, OpenTransaction>,
    ended: HashSet<(Session, u64)>,
}

struct OpenTransaction {
    txn: TxnName,
    ops: Vec<(bool, Item, Value)>,
}

#[derive(Clone, PartialEq, Eq)]
enum TxnName {
    Aborted,
    Number(u64),
    Text(String),
}

impl Sessions {
    fn feed(&mut self, block: &Block) -> Result<(), Problem> {
        let mut words = Resolver::new(&block.words);
        let mut at = 0;
        while let Some(op) = block.ops.get(at) {
            let (session_word, txn_word) = (op.session, op.txn);
            let session = words.session(&mut self.builder, session_word);
            let txn = match block.words.get(txn_word) {
                Some("-1") => TxnName::Aborted,
                Some(text) => TxnName::Text(text.into()),
                None => TxnName::Number(txn_word),
            };
            let open = self.enter(session, txn).map_err(|problem| (op.line, problem))?;
            let mut ops = std::mem::take(&mut open.ops);
            // Nearly always the lines of a transaction are consecutive.
            while let Some(op) = block.ops.get(at) {
                if op.session != session_word || op.txn != txn_word {
                    break;
                }
                let item = words.item(&mut self.builder, op.key);
                ops.push((op.write, item, words.value(&mut self.builder, op.value)));
                at += 1;
            }
            if let Some(open) = self.open.get_mut(&session) {
                open.ops = ops;
            }
        }
        Ok(())
    }

    /// The open transaction of the session from here on.
    fn enter(&mut self, session: Session, txn: TxnName) -> Result<&mut OpenTransaction, String> {
        if self.open.get(&session).is_none_or(|open| open.txn != txn) {
            if let TxnName::Number(number) = txn
                && self.ended.contains(&(session, number))
            {
                let session = session.0;
                return Err(format!(
                    "transaction {number} continues here, after another transaction of its session \
                     (number {session} in the file) has begun"
                ));
            }
            self.end(session);
            self.open.insert(session, OpenTransaction { txn, ops: Vec::new() });
        }
        Ok(self.open.get_mut(&session).expect("it is there or was put there"))
    }

    fn end(&mut self, session: Session) {
        let Some(OpenTransaction { txn, ops }) = self.open.remove(&session) else { return };
        self.builder.begin(session);
        match &txn {
            TxnName::Aborted => {}
            TxnName::Number(number) => {
                self.builder.number_transaction(*number);
                self.ended.insert((session, *number));
            }
            TxnName::Text(text) => self.builder.name_transaction(text),
        }
        for (write, item, value) in ops {
            match write {
                true => self.builder.write(item, value),
                false => self.builder.read(item, value),
            }
        }
        let aborted = txn == TxnName::Aborted;
        self.builder.end(if aborted { Status::Aborted } else { Status::Committed });
    }

    fn finish(mut self) -> History {
        let mut left: Vec<Session> = self.open.keys().copied().collect();
        left.sort_unstable();
        for session in left {
            self.end(session);
        }
        self.builder.initial_value(Value(0));
        self.builder.finish()
    }
}
