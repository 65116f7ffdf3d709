//! A block of Elle's operations in columns: compact.

use crate::words::Words;

#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) enum Syntax {
    #[default]
    Edn,
    Json,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum RecordKind {
    Invoke,
    Ok,
    Fail,
    Info,
}

impl RecordKind {
    pub(super) fn named(name: &[u8]) -> Option<RecordKind> {
        match name {
            b"invoke" => Some(RecordKind::Invoke),
            b"ok" => Some(RecordKind::Ok),
            b"fail" => Some(RecordKind::Fail),
            b"info" => Some(RecordKind::Info),
            _ => None,
        }
    }
}

/// An operation of the history: the invocation or the completion of a transaction.
#[derive(Clone, Copy, Debug)]
pub(super) struct Record {
    pub(super) kind: RecordKind,
    pub(super) process: u64,
    /// The `:index` of the operation, as a word.
    pub(super) index: u64,
    /// The `:time` of the operation, as a word.
    pub(super) time: u64,
    /// Where its micro-operations begin.
    pub(super) ops: u32,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum OpKind {
    Append,
    Write,
    Read,
    /// A read of a list; its value locates the list in `elements`.
    ReadList,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Op {
    pub(super) key: u64,
    pub(super) value: u64,
    pub(super) kind: OpKind,
}

/// The location of a list among the elements, in one word.
pub(super) fn list_at(begin: usize, end: usize) -> u64 {
    (begin as u64) << 32 | (end - begin) as u64
}

/// The operations of a block.
#[derive(Debug, Default)]
pub(super) struct Batch {
    pub(super) records: Vec<Record>,
    pub(super) ops: Vec<Op>,
    /// The elements of lists, as words.
    pub(super) elements: Vec<u64>,
    pub(super) words: Words,
    /// How much of the text was parsed; an incomplete operation follows.
    pub(super) rest: usize,
    /// Where the vector around all operations is opened and closed.
    pub(super) opened: Option<usize>,
    pub(super) closed: Option<usize>,
    /// The number of operations that are not transactions, and the name of the last one.
    pub(super) skipped: usize,
    pub(super) last_skipped: Option<String>,
    /// The problem that ended the parsing, and its offset.
    pub(super) problem: Option<(usize, String)>,
}

impl Batch {
    pub(super) fn ops_of(&self, record: usize) -> &[Op] {
        let end = self.records.get(record + 1).map_or(self.ops.len(), |next| next.ops as usize);
        &self.ops[self.records[record].ops as usize..end]
    }

    pub(super) fn list(&self, op: Op) -> &[u64] {
        let begin = (op.value >> 32) as usize;
        &self.elements[begin..begin + (op.value & 0xffff_ffff) as usize]
    }
}
