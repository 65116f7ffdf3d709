//! Isolde's own format: JSON lines, one transaction each. `docs/history-format.md` specifies it.

mod line;

use crate::error::ReadError;
use crate::lines::{Lines, read_lines};
use crate::source::Source;
use crate::words::{self, NIL, Resolver, Words, number};
use isolde_checker::{Builder, History, Item, Value, Version};
use line::{Line, OpKind, OpValue, Status, Word};
use std::collections::BTreeMap;

/// The version of the format that is written, and the only one that is read.
pub(crate) const FORMAT_VERSION: u64 = 1;

pub(crate) fn detect(text: &[u8]) -> bool {
    let text = text.trim_ascii_start();
    let line = text.split(|byte| *byte == b'\n').next().unwrap_or_default();
    let has = |name: &[u8]| line.windows(name.len()).any(|window| window == name);
    line.starts_with(b"{") && (has(b"\"isolde-history\"") || has(b"\"ops\""))
}

pub(crate) fn read(source: &mut Source) -> Result<History, ReadError> {
    let mut builder = Builder::new();
    let mut versions = BTreeMap::new();
    read_lines(source, |block: Block| {
        block.feed(&mut builder, &mut versions);
        Ok(())
    })?;
    for (item, versions) in versions {
        let values: Vec<Value> = versions.into_values().collect();
        builder.version_order(item, &values);
    }
    Ok(builder.finish())
}

/// The values by version number, for each item with explicit versions.
type Versions = BTreeMap<Item, BTreeMap<u64, Value>>;

#[derive(Default)]
struct Block {
    txns: Vec<Txn>,
    ops: Vec<Op>,
    /// Data that few operations have, by the index of the operation.
    extras: Vec<(usize, Extra)>,
    elements: Vec<u64>,
    /// Pairs of an item and a value, for predicates.
    pairs: Vec<(u64, u64)>,
    orders: Vec<(u64, Vec<u64>)>,
    satisfied: Vec<(String, Vec<(u64, u64)>)>,
    words: Words,
}

struct Txn {
    session: u64,
    name: u64,
    status: Status,
    times: Option<(u64, u64)>,
    /// Where its operations end.
    end: usize,
}

struct Op {
    kind: OpCode,
    item: u64,
    /// The value, or, for lists and predicates, where they end.
    value: u64,
}

#[derive(Clone, Copy)]
enum OpCode {
    Read,
    LockingRead,
    ReadList,
    Write,
    Append,
    Predicate,
}

struct Extra {
    version: Option<u64>,
    sql: Option<String>,
}

impl Lines for Block {
    fn line(&mut self, _: u32, line: &[u8]) -> Result<(), String> {
        if line.trim_ascii().is_empty() {
            return Ok(());
        }
        let line: Line<'_> = serde_json::from_slice(line).map_err(|error| {
            let message = error.to_string();
            let message = message.split(" at line ").next().unwrap_or_default();
            format!("{message}, at column {}", error.column())
        })?;
        if let Some(version) = line.version {
            return match version {
                FORMAT_VERSION => Ok(()),
                other => Err(format!(
                    "version {other} of the format; this Isolde reads version {FORMAT_VERSION}"
                )),
            };
        }
        match line {
            Line { ops: Some(ops), order: None, predicate: None, .. } => {
                for op in ops {
                    self.push(op)?;
                }
                let session = line.session.map_or(NIL, |word| self.word(&word));
                let name = line.txn.map_or(NIL, |word| self.word(&word));
                let times = match (line.begin, line.end) {
                    (None, None) => None,
                    (Some(begin), end) => Some((begin, end.unwrap_or(u64::MAX))),
                    (None, Some(_)) => return Err("`end` needs `begin`".into()),
                };
                let status = line.status.unwrap_or(Status::Committed);
                self.txns.push(Txn { session, name, status, times, end: self.ops.len() });
                Ok(())
            }
            Line { order: Some(item), versions: Some(versions), ops: None, .. } => {
                let item = self.word(&item);
                let versions = versions.iter().map(|version| self.word(version)).collect();
                self.orders.push((item, versions));
                Ok(())
            }
            Line { predicate: Some(name), satisfied_by: Some(versions), ops: None, .. } => {
                let versions = self.versions(&versions);
                self.satisfied.push((name.into_owned(), versions));
                Ok(())
            }
            _ => Err("a line has `isolde-history`, `ops`, `order` with `versions`, or \
                      `predicate` with `satisfied-by`"
                .into()),
        }
    }
}

impl Block {
    fn word(&mut self, word: &Word<'_>) -> u64 {
        match word {
            Word::Null => NIL,
            Word::Number(number) => {
                words::number(*number).unwrap_or_else(|| self.words.text(&number.to_string()))
            }
            Word::Text(text) => self.words.text(text),
        }
    }

    fn versions(&mut self, versions: &[(Word<'_>, Word<'_>)]) -> Vec<(u64, u64)> {
        versions.iter().map(|(item, value)| (self.word(item), self.word(value))).collect()
    }

    fn push(&mut self, op: line::Op<'_>) -> Result<(), String> {
        let item = self.word(&op.item);
        let (kind, value) = match (op.kind, &op.value) {
            (OpKind::Read, OpValue::List(elements)) => {
                for element in elements {
                    let word = self.word(element);
                    self.elements.push(word);
                }
                (OpCode::ReadList, self.elements.len() as u64)
            }
            (OpKind::Read, OpValue::One(value)) => {
                let kind = if op.options.locking { OpCode::LockingRead } else { OpCode::Read };
                (kind, self.word(value))
            }
            (OpKind::Write | OpKind::Append, OpValue::One(Word::Null)) => {
                return Err("null is the version before the first write; \
                            it cannot be written"
                    .into());
            }
            (OpKind::Write, OpValue::One(value)) => (OpCode::Write, self.word(value)),
            (OpKind::Append, OpValue::One(value)) => (OpCode::Append, self.word(value)),
            (_, OpValue::Versions(versions)) => {
                let versions = self.versions(versions);
                self.pairs.extend(versions);
                (OpCode::Predicate, self.pairs.len() as u64)
            }
            (_, OpValue::List(_) | OpValue::One(_)) => {
                return Err("a predicate read has a list of the versions that it matched".into());
            }
        };
        if op.options.locking && !matches!(kind, OpCode::LockingRead) {
            return Err("only the read of a register can be `locking`".into());
        }
        if op.options.version.is_some()
            && !matches!(kind, OpCode::Read | OpCode::LockingRead | OpCode::Write)
        {
            return Err("only reads and writes of registers have a `version`".into());
        }
        if op.options.version.is_some() || op.options.sql.is_some() {
            let sql = op.options.sql.map(|sql| sql.into_owned());
            self.extras.push((self.ops.len(), Extra { version: op.options.version, sql }));
        }
        self.ops.push(Op { kind, item, value });
        Ok(())
    }

    fn feed(&self, builder: &mut Builder, known: &mut Versions) {
        let mut words = Resolver::new(&self.words);
        let mut extras = self.extras.iter().peekable();
        let (mut at, mut element, mut pair) = (0, 0, 0);
        for txn in &self.txns {
            let session = words.session(builder, txn.session);
            builder.begin(session);
            match self.words.get(txn.name) {
                Some(name) => builder.name_transaction(name),
                None => {
                    if let Some(name) = number(txn.name) {
                        builder.number_transaction(name);
                    }
                }
            }
            if let Some((begin, end)) = txn.times {
                builder.times(begin, end);
            }
            for (position, op) in self.ops[..txn.end].iter().enumerate().skip(at) {
                let extra = extras.next_if(|(of, _)| *of == position).map(|(_, extra)| extra);
                match op.kind {
                    OpCode::ReadList => {
                        let item = words.item(builder, op.item);
                        let list: Vec<Value> = self.elements[element..op.value as usize]
                            .iter()
                            .map(|word| words.value(builder, *word))
                            .collect();
                        element = op.value as usize;
                        builder.read_list(item, &list);
                    }
                    OpCode::Predicate => {
                        let found = &self.pairs[pair..op.value as usize];
                        pair = op.value as usize;
                        let found = resolve_pairs(found, builder, &mut words);
                        let name = self.name(op.item);
                        builder.predicate_read(&name, &found);
                    }
                    kind => {
                        let item = words.item(builder, op.item);
                        let mut value = words.value(builder, op.value);
                        if let Some(version) = extra.and_then(|extra| extra.version)
                            && value != Value::INITIAL
                        {
                            // Explicit versions permit that the same value is written twice.
                            let text = format!("{}@{version}", self.name(op.value));
                            value = builder.text_value(&text);
                            if matches!(kind, OpCode::Write) {
                                known.entry(item).or_default().insert(version, value);
                            }
                        }
                        match kind {
                            OpCode::Write => builder.write(item, value),
                            OpCode::Append => builder.append(item, value),
                            OpCode::LockingRead => builder.locking_read(item, value),
                            _ => builder.read(item, value),
                        }
                    }
                }
                if let Some(sql) = extra.and_then(|extra| extra.sql.as_ref()) {
                    builder.statement(sql);
                }
            }
            at = txn.end;
            builder.end(match txn.status {
                Status::Committed => isolde_checker::Status::Committed,
                Status::Aborted => isolde_checker::Status::Aborted,
                Status::Unknown => isolde_checker::Status::Unknown,
            });
        }
        for (item, versions) in &self.orders {
            let item = words.item(builder, *item);
            let versions: Vec<Value> =
                versions.iter().map(|version| words.value(builder, *version)).collect();
            builder.version_order(item, &versions);
        }
        for (predicate, versions) in &self.satisfied {
            for version in resolve_pairs(versions, builder, &mut words) {
                builder.satisfies(predicate, version);
            }
        }
    }

    fn name(&self, word: u64) -> String {
        self.words.get(word).map_or_else(|| word.to_string(), str::to_string)
    }
}

fn resolve_pairs(
    pairs: &[(u64, u64)],
    builder: &mut Builder,
    words: &mut Resolver<'_>,
) -> Vec<Version> {
    let mut resolve =
        |(item, value): &(u64, u64)| (words.item(builder, *item), words.value(builder, *value));
    pairs.iter().map(&mut resolve).collect()
}
