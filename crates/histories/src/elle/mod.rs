//! Elle's and Jepsen's histories, in EDN and JSON.
//!
//! An operation is the invocation or the completion of a transaction: `ok` committed, `fail` did
//! not, and the outcome of `info` is unknown. They are matched by their process. Real-time order
//! is given by `:time` if all operations have a plausible one, otherwise by their order in the
//! file, as Jepsen writes it.

mod batch;
mod clock;
mod parse;
mod scan;

use crate::blocks::{in_blocks, line_ends};
use crate::error::ReadError;
use crate::source::Source;
use crate::words::{NIL, Resolver, is_text, number};
use batch::{Batch, OpKind, RecordKind, Syntax};
use clock::Clock;
use isolde_checker::{Builder, History, Item, Session, Status, Value};

/// An operation longer than this is taken for garbage.
const LONGEST: usize = 64 << 20;

pub(crate) fn read_edn(source: &mut Source) -> Result<History, ReadError> {
    read(source, Syntax::Edn)
}

pub(crate) fn read_json(source: &mut Source) -> Result<History, ReadError> {
    read(source, Syntax::Json)
}

fn read(source: &mut Source, syntax: Syntax) -> Result<History, ReadError> {
    let mut text = Text { name: source.name().into(), syntax, ..Text::default() };
    let mut pairing = Pairing::default();
    in_blocks(
        source,
        |block| Batch::parse(block, syntax, false),
        |block, batch| text.feed(block, batch, &mut pairing),
    )?;
    text.end(&mut pairing)?;
    if pairing.transactions == 0 && text.skipped > 0 {
        let name = text.last_skipped.unwrap_or_default();
        let problem = format!(
            "none of its operations is a transaction: the last one is `:f :{name}`. Histories \
             of list-append and rw-register have `:f :txn`, or no :f"
        );
        return Err(ReadError::new(&text.name, problem));
    }
    Ok(pairing.finish())
}

/// The position of the reader in the text: an operation may begin in one block and end in the next.
#[derive(Default)]
struct Text {
    name: String,
    syntax: Syntax,
    /// The beginning of an incomplete operation.
    tail: Vec<u8>,
    /// The number of line ends before the tail.
    lines: u64,
    /// The line in which the vector around all operations was opened.
    opened: Option<u64>,
    closed: bool,
    operations: usize,
    skipped: usize,
    last_skipped: Option<String>,
}

impl Text {
    fn feed(
        &mut self,
        block: Vec<u8>,
        batch: Batch,
        pairing: &mut Pairing,
    ) -> Result<(), ReadError> {
        if self.tail.is_empty() {
            return self.accept(&block, batch, pairing);
        }
        // The block began in the middle of an operation, so its batch is void.
        let mut whole = std::mem::take(&mut self.tail);
        whole.extend(block);
        if whole.len() > LONGEST + (8 << 20) {
            let problem = "an operation of more than 64 MB: a bracket or quote is not closed";
            return Err(ReadError::at(&self.name, self.lines + 1, problem));
        }
        let batch = Batch::parse(&whole, self.syntax, false);
        self.accept(&whole, batch, pairing)
    }

    fn accept(
        &mut self,
        text: &[u8],
        mut batch: Batch,
        pairing: &mut Pairing,
    ) -> Result<(), ReadError> {
        let line = |at: usize| self.lines + line_ends(&text[..at]) + 1;
        let problem = match (&batch.problem, batch.opened, batch.closed) {
            (_, Some(at), _) if self.opened.is_some() || self.operations > 0 => {
                Some((line(at), "a bracket is opened between operations".into()))
            }
            (_, opened, Some(at)) if self.opened.is_none() && opened.is_none() => {
                Some((line(at), "a bracket is closed that was not opened".into()))
            }
            _ if self.closed && batch.rest > 0 && !batch.records.is_empty() => {
                Some((line(0), "there is data after the end of the history".into()))
            }
            (Some((at, problem)), ..) => Some((line(*at), problem.clone())),
            _ => None,
        };
        if let Some((line, problem)) = problem {
            return Err(ReadError::at(&self.name, line, problem));
        }
        self.opened = self.opened.or(batch.opened.map(line));
        self.closed |= batch.closed.is_some();
        self.operations += batch.records.len() + batch.skipped;
        self.skipped += batch.skipped;
        self.last_skipped = batch.last_skipped.take().or(self.last_skipped.take());
        pairing.feed(&batch);
        self.lines += line_ends(&text[..batch.rest]);
        self.tail = text[batch.rest..].to_vec();
        Ok(())
    }

    fn end(&mut self, pairing: &mut Pairing) -> Result<(), ReadError> {
        let tail = std::mem::take(&mut self.tail);
        let batch = Batch::parse(&tail, self.syntax, true);
        self.accept(&tail, batch, pairing)?;
        if !self.tail.is_empty() {
            let problem = "the file ends in the middle of the operation that begins here: it is \
                           truncated";
            return Err(ReadError::at(&self.name, self.lines + 1, problem));
        }
        match self.opened.filter(|_| !self.closed) {
            Some(opened) => {
                let problem = format!(
                    "the file ends before the bracket of line {opened} is closed: it is truncated"
                );
                Err(ReadError::at(&self.name, self.lines + 1, problem))
            }
            None => Ok(()),
        }
    }
}

/// Matches invocations and completions.
#[derive(Default)]
struct Pairing {
    builder: Builder,
    /// The pending invocation of each session; the first one is for operations without a process.
    open: Vec<Invocation>,
    /// The number of operations so far: positions in the file, from 1 on.
    now: u64,
    clock: Clock,
    last_index: Option<u64>,
    transactions: usize,
    /// Whether the history has lists, so that nil is an empty list.
    lists: bool,
    registers: bool,
    /// In a history with lists and registers, the items that are lists.
    list_items: Vec<bool>,
    values: Vec<Value>,
}

#[derive(Default)]
struct Invocation {
    active: bool,
    begin: u64,
    index: u64,
    writes: Vec<(OpKind, Item, Value)>,
}

impl Pairing {
    fn feed(&mut self, batch: &Batch) {
        let mut builder = std::mem::take(&mut self.builder);
        let mut words = Resolver::new(&batch.words);
        self.classify_items(batch, &mut builder, &mut words);
        for (at, record) in batch.records.iter().enumerate() {
            self.now += 1;
            let ops = batch.ops_of(at);
            let (session, slot) = if record.process == NIL {
                (None, 0)
            } else {
                let session = words.session(&mut builder, record.process);
                (Some(session), session.0 as usize + 1)
            };
            if slot >= self.open.len() {
                self.open.resize_with(slot + 1, Invocation::default);
            }
            self.clock.tick(slot, record.time);
            let mut invocation = std::mem::take(&mut self.open[slot]);
            if record.kind == RecordKind::Invoke {
                if invocation.active {
                    let session = session.unwrap_or_else(|| builder.new_session());
                    builder.begin(session);
                    self.end_unknown(&mut builder, &invocation);
                }
                invocation.writes.clear();
                for op in ops {
                    if matches!(op.kind, OpKind::Append | OpKind::Write) {
                        let item = words.item(&mut builder, op.key);
                        let value = words.value(&mut builder, op.value);
                        invocation.writes.push((op.kind, item, value));
                    }
                }
                (invocation.active, invocation.begin, invocation.index) =
                    (true, self.now, record.index);
                self.open[slot] = invocation;
                continue;
            }
            self.transactions += 1;
            let session = session.unwrap_or_else(|| builder.new_session());
            builder.begin(session);
            self.name(&mut builder, record.index, session);
            if invocation.active {
                let end = if record.kind == RecordKind::Info { u64::MAX } else { self.now };
                builder.times(invocation.begin, end);
            }
            let status = match record.kind {
                RecordKind::Ok => Status::Committed,
                RecordKind::Fail => Status::Aborted,
                RecordKind::Info | RecordKind::Invoke => Status::Unknown,
            };
            if record.kind == RecordKind::Ok && !(ops.is_empty() && invocation.active) {
                self.push_ops(&mut builder, &mut words, batch, at);
            } else if invocation.active {
                push_writes(&mut builder, &invocation);
            } else {
                for op in ops {
                    if matches!(op.kind, OpKind::Append | OpKind::Write) {
                        let item = words.item(&mut builder, op.key);
                        let value = words.value(&mut builder, op.value);
                        push_write(&mut builder, op.kind, item, value);
                    }
                }
            }
            builder.end(status);
            invocation.active = false;
            self.open[slot] = invocation;
        }
        self.builder = builder;
    }

    /// Determines which items are lists. A nil that was read is an empty list or the initial
    /// version of a register, which only the writes reveal.
    fn classify_items(&mut self, batch: &Batch, builder: &mut Builder, words: &mut Resolver<'_>) {
        let any = |kinds: &[OpKind]| batch.ops.iter().any(|op| kinds.contains(&op.kind));
        self.lists = self.lists || any(&[OpKind::Append, OpKind::ReadList]);
        self.registers = self.registers || any(&[OpKind::Write]);
        if self.lists && self.registers {
            for op in &batch.ops {
                if matches!(op.kind, OpKind::Append | OpKind::ReadList) {
                    let item = words.item(builder, op.key).index();
                    if item >= self.list_items.len() {
                        self.list_items.resize(item + 1, false);
                    }
                    self.list_items[item] = true;
                }
            }
        }
    }

    fn push_ops(
        &mut self,
        builder: &mut Builder,
        words: &mut Resolver<'_>,
        batch: &Batch,
        record: usize,
    ) {
        for op in batch.ops_of(record) {
            let item = words.item(builder, op.key);
            match op.kind {
                OpKind::Append => {
                    let value = words.value(builder, op.value);
                    builder.append(item, value);
                }
                OpKind::Write => {
                    let value = words.value(builder, op.value);
                    builder.write(item, value);
                }
                OpKind::ReadList => {
                    let elements = batch.list(*op);
                    self.values.clear();
                    if elements.iter().any(|word| is_text(*word)) {
                        let values = elements.iter().map(|word| words.value(builder, *word));
                        self.values.extend(values);
                    } else {
                        self.values.extend(elements.iter().map(|word| Value(*word)));
                    }
                    builder.read_list(item, &self.values);
                }
                OpKind::Read if op.value == NIL && self.is_list(item) => {
                    builder.read_list(item, &[]);
                }
                OpKind::Read => {
                    let value = words.value(builder, op.value);
                    builder.read(item, value);
                }
            }
        }
    }

    fn is_list(&self, item: Item) -> bool {
        match self.registers {
            true => self.list_items.get(item.index()).copied().unwrap_or(false),
            false => self.lists,
        }
    }

    /// Names the open transaction by the index of its completion. Handwritten files may count per
    /// process.
    fn name(&mut self, builder: &mut Builder, index: u64, session: Session) {
        let Some(index) = number(index) else { return };
        if self.last_index.is_none_or(|last| index > last) {
            self.last_index = Some(index);
            builder.number_transaction(index);
        } else {
            builder.name_transaction(&format!("T{index}-{}", session.0));
        }
    }

    /// Ends the open transaction with unknown status.
    fn end_unknown(&mut self, builder: &mut Builder, invocation: &Invocation) {
        self.transactions += 1;
        if let Some(index) = number(invocation.index) {
            builder.number_transaction(index);
        }
        builder.times(invocation.begin, u64::MAX);
        push_writes(builder, invocation);
        builder.end(Status::Unknown);
    }

    fn finish(mut self) -> History {
        let mut builder = std::mem::take(&mut self.builder);
        let mut open: Vec<(usize, Invocation)> = std::mem::take(&mut self.open)
            .into_iter()
            .enumerate()
            .filter(|(_, invocation)| invocation.active)
            .collect();
        open.sort_by_key(|(_, invocation)| invocation.begin);
        for (slot, invocation) in open {
            let session = match slot.checked_sub(1) {
                Some(session) => Session(session as u32),
                None => builder.new_session(),
            };
            builder.begin(session);
            self.end_unknown(&mut builder, &invocation);
        }
        if let Some(times) = self.clock.times() {
            builder.map_times(|position| times[position as usize - 1]);
        }
        builder.finish()
    }
}

fn push_writes(builder: &mut Builder, invocation: &Invocation) {
    for (kind, item, value) in &invocation.writes {
        push_write(builder, *kind, *item, *value);
    }
}

fn push_write(builder: &mut Builder, kind: OpKind, item: Item, value: Value) {
    match kind {
        OpKind::Append => builder.append(item, value),
        _ => builder.write(item, value),
    }
}
