//! A block of Elle's operations in columns: compact, and parsed without knowing
//! what stands before it in the file.

use super::scan::Scan;
use crate::edn::{Reader, Unreadable};
use crate::error::excerpt;
use crate::form::Form;
use crate::words::{NIL, Words};

#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) enum Syntax {
    #[default]
    Edn,
    Json,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Kind {
    Invoke,
    Ok,
    Fail,
    Info,
}

impl Kind {
    pub(super) fn named(name: &[u8]) -> Option<Kind> {
        match name {
            b"invoke" => Some(Kind::Invoke),
            b"ok" => Some(Kind::Ok),
            b"fail" => Some(Kind::Fail),
            b"info" => Some(Kind::Info),
            _ => None,
        }
    }
}

/// An operation of the history: a transaction is invoked, or completes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Record {
    pub(super) kind: Kind,
    pub(super) process: u64,
    /// The index that the file gives it, as a word.
    pub(super) index: u64,
    /// When it happened, as a word.
    pub(super) time: u64,
    /// Where its micro-operations begin.
    pub(super) ops: u32,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum OpKind {
    Append,
    Write,
    Read,
    /// A read of a list; its value says where in `elements`.
    ReadList,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Op {
    pub(super) key: u64,
    pub(super) value: u64,
    pub(super) kind: OpKind,
}

/// Where a list stands among the elements, in one word.
pub(super) fn list_at(begin: usize, end: usize) -> u64 {
    (begin as u64) << 32 | (end - begin) as u64
}

#[derive(Debug, Default)]
pub(super) struct Batch {
    pub(super) records: Vec<Record>,
    pub(super) ops: Vec<Op>,
    /// The elements of lists, as words.
    pub(super) elements: Vec<u64>,
    pub(super) words: Words,
    /// How much of the text was read; what follows is the beginning of an operation.
    pub(super) rest: usize,
    /// Where the vector around all operations is opened and closed.
    pub(super) opened: Option<usize>,
    pub(super) closed: Option<usize>,
    /// What is not about transactions: how much, and what the last was called.
    pub(super) passed_over: usize,
    pub(super) last_passed_over: Option<String>,
    /// What ended the reading, and where.
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

    /// Reads as many operations as the text has. `last` says that nothing follows it.
    pub(super) fn parse(text: &[u8], syntax: Syntax, last: bool) -> Batch {
        let mut batch = Batch::default();
        let mut at = 0;
        loop {
            let blank = |byte: &u8| matches!(byte, b' ' | b'\t' | b'\n' | b'\r' | b',');
            at += text[at..].iter().position(|byte| !blank(byte)).unwrap_or(text.len() - at);
            batch.rest = at;
            let Some(byte) = text.get(at) else { return batch };
            let outcome = match byte {
                b';' if syntax == Syntax::Edn => {
                    match text[at..].iter().position(|byte| *byte == b'\n') {
                        Some(length) => Ok(at + length),
                        None if last => Ok(text.len()),
                        None => Err(Unreadable::Incomplete),
                    }
                }
                b'[' | b'(' if batch.opened.is_none() && batch.records.is_empty() => {
                    batch.opened = Some(at);
                    Ok(at + 1)
                }
                b']' | b')' if batch.closed.is_none() => {
                    batch.closed = Some(at);
                    Ok(at + 1)
                }
                _ if batch.closed.is_some() => {
                    Err(Unreadable::At(at, "something follows the end of the history".into()))
                }
                b'{' => batch.operation(text, at, syntax),
                b'#' if syntax == Syntax::Edn => batch.tagged(text, at),
                _ => {
                    let example = match syntax {
                        Syntax::Edn => "{:type :ok, :process 0, :f :txn, :value [[:r 1 2]]}",
                        Syntax::Json => {
                            r#"{"type":"ok","process":0,"f":"txn","value":[["r",1,2]]}"#
                        }
                    };
                    let found = excerpt(&text[at..]);
                    let problem = format!("expected an operation, such as {example}, not {found}");
                    Err(Unreadable::At(at, problem))
                }
            };
            match outcome {
                Ok(next) => at = next,
                Err(Unreadable::Incomplete) => return batch,
                Err(Unreadable::At(place, problem)) => {
                    batch.problem = Some((place, problem));
                    return batch;
                }
            }
        }
    }

    /// Newer Jepsens write `#jepsen.history.Op{…}`.
    fn tagged(&mut self, text: &[u8], at: usize) -> Result<usize, Unreadable> {
        const OPERATION: &[u8] = b"#jepsen.history.Op";
        if text[at..].starts_with(b"#_") {
            let mut reader = Reader::new(text, at + 2);
            reader.form()?;
            return Ok(reader.at);
        }
        if text[at..].starts_with(OPERATION) && text.get(at + OPERATION.len()) == Some(&b'{') {
            return self.operation(text, at + OPERATION.len(), Syntax::Edn);
        }
        let mut reader = Reader::new(text, at);
        let form = reader.form()?;
        self.push_form(&form).map_err(|problem| Unreadable::At(at, problem))?;
        Ok(reader.at)
    }

    /// Reads the operation that begins here, and says where it ends.
    fn operation(&mut self, text: &[u8], at: usize, syntax: Syntax) -> Result<usize, Unreadable> {
        let (ops, elements) = (self.ops.len(), self.elements.len());
        let scanned = match syntax {
            Syntax::Edn => Scan::<false>::operation(text, at, self),
            Syntax::Json => Scan::<true>::operation(text, at, self),
        };
        if let Some(end) = scanned {
            return Ok(end);
        }
        self.ops.truncate(ops);
        self.elements.truncate(elements);
        let (form, end) = match syntax {
            Syntax::Edn => {
                let mut reader = Reader::new(text, at);
                (reader.form()?, reader.at)
            }
            Syntax::Json => json(text, at)?,
        };
        self.push_form(&form).map_err(|problem| Unreadable::At(at, problem))?;
        Ok(end)
    }

    pub(super) fn pass_over(&mut self, name: &str) {
        self.passed_over += 1;
        if self.last_passed_over.as_deref() != Some(name) {
            self.last_passed_over = Some(name.into());
        }
    }

    fn push_form(&mut self, form: &Form) -> Result<(), String> {
        if !matches!(form, Form::Map(_)) {
            return Err(format!("an operation is a map, not `{}`", form.write()));
        }
        if let Some(name) = form.get("f").and_then(Form::name).filter(|name| *name != "txn") {
            self.pass_over(name);
            return Ok(());
        }
        let kind = form.get("type").ok_or("this operation has no :type")?;
        let kind = kind
            .name()
            .and_then(|name| Kind::named(name.as_bytes()))
            .ok_or_else(|| format!(":type is invoke, ok, fail or info, not `{}`", kind.write()))?;
        let process = form.get("process").map_or(NIL, |process| self.word(process));
        let index = form.get("index").map_or(NIL, |index| self.word(index));
        let time = form.get("time").map_or(NIL, |time| self.word(time));
        let begin = self.ops.len();
        match form.get("value") {
            None | Some(Form::Nil) => {}
            Some(value) => {
                if let Err(problem) = self.push_transaction(value) {
                    // Instead of what they did, some say here why they failed.
                    if matches!(kind, Kind::Invoke | Kind::Ok) {
                        return Err(problem);
                    }
                    self.ops.truncate(begin);
                }
            }
        }
        self.records.push(Record { kind, process, index, time, ops: begin as u32 });
        Ok(())
    }

    fn push_transaction(&mut self, value: &Form) -> Result<(), String> {
        let Form::Sequence(ops) = value else {
            return Err(format!(
                ":value is a list of reads and writes, such as [[:r 1 2] [:append 1 3]], not `{}`",
                value.write()
            ));
        };
        for op in ops {
            let wrong = || format!("`{}` is none of [:r k v], [:w k v], [:append k v]", op.write());
            let Form::Sequence(parts) = op else { return Err(wrong()) };
            let (name, key, value) = match &parts[..] {
                [name, key] => (name, key, &Form::Nil),
                [name, key, value] => (name, key, value),
                _ => return Err(wrong()),
            };
            let key = self.word(key);
            let kind = match name.name() {
                Some("append") => OpKind::Append,
                Some("w") => OpKind::Write,
                Some("r") => OpKind::Read,
                _ => return Err(wrong()),
            };
            let op = match value {
                Form::Sequence(elements) if kind == OpKind::Read => {
                    let begin = self.elements.len();
                    for element in elements {
                        let word = self.word(element);
                        self.elements.push(word);
                    }
                    let list = list_at(begin, self.elements.len());
                    Op { key, value: list, kind: OpKind::ReadList }
                }
                Form::Nil if kind != OpKind::Read => {
                    return Err(format!("`{}` writes nothing", op.write()));
                }
                value => Op { key, value: self.word(value), kind },
            };
            self.ops.push(op);
        }
        Ok(())
    }

    fn word(&mut self, form: &Form) -> u64 {
        match form {
            Form::Nil => NIL,
            Form::Integer(written) => self.words.integer(written),
            Form::Text(text) | Form::Keyword(text) => self.words.text(text),
            other => self.words.text(&other.write()),
        }
    }
}

fn json(text: &[u8], at: usize) -> Result<(Form, usize), Unreadable> {
    let mut values = serde_json::Deserializer::from_slice(&text[at..]).into_iter();
    match values.next() {
        Some(Ok(value)) => {
            let value: serde_json::Value = value;
            Ok((value.into(), at + values.byte_offset()))
        }
        Some(Err(error)) if !error.is_eof() => {
            // The error counts lines from the operation on; ours stand in front.
            let message = error.to_string();
            let message = message.split(" at line ").next().unwrap_or_default();
            let lines = text[at..].split(|byte| *byte == b'\n').take(error.line() - 1);
            let place = at + lines.map(|line| line.len() + 1).sum::<usize>();
            Err(Unreadable::At(place, format!("{message}, at column {}", error.column())))
        }
        _ => Err(Unreadable::Incomplete),
    }
}
