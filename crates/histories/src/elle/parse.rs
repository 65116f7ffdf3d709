//! Parses a block of Elle's operations, without knowing the text before it.

use super::batch::{Batch, Op, OpKind, Record, RecordKind, Syntax, list_at};
use super::scan::Scan;
use crate::edn::{ParseError, Reader};
use crate::error::excerpt;
use crate::form::Form;
use crate::words::NIL;

impl Batch {
    /// Parses as many operations as the text has. `last` says that it is the end of the file.
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
                        None => Err(ParseError::Incomplete),
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
                    Err(ParseError::At(at, "there is data after the end of the history".into()))
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
                    Err(ParseError::At(at, problem))
                }
            };
            match outcome {
                Ok(next) => at = next,
                Err(ParseError::Incomplete) => return batch,
                Err(ParseError::At(position, problem)) => {
                    batch.problem = Some((position, problem));
                    return batch;
                }
            }
        }
    }

    /// Newer versions of Jepsen write `#jepsen.history.Op{…}`.
    fn tagged(&mut self, text: &[u8], at: usize) -> Result<usize, ParseError> {
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
        self.push_form(&form).map_err(|problem| ParseError::At(at, problem))?;
        Ok(reader.at)
    }

    /// Parses the operation that begins here; returns where it ends.
    fn operation(&mut self, text: &[u8], at: usize, syntax: Syntax) -> Result<usize, ParseError> {
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
        self.push_form(&form).map_err(|problem| ParseError::At(at, problem))?;
        Ok(end)
    }

    pub(super) fn skip_operation(&mut self, name: &str) {
        self.skipped += 1;
        if self.last_skipped.as_deref() != Some(name) {
            self.last_skipped = Some(name.into());
        }
    }

    fn push_form(&mut self, form: &Form) -> Result<(), String> {
        if !matches!(form, Form::Map(_)) {
            return Err(format!("an operation is a map, not `{}`", form.write()));
        }
        if let Some(name) = form.get("f").and_then(Form::name).filter(|name| *name != "txn") {
            self.skip_operation(name);
            return Ok(());
        }
        let kind = form.get("type").ok_or("this operation has no :type")?;
        let kind = kind
            .name()
            .and_then(|name| RecordKind::named(name.as_bytes()))
            .ok_or_else(|| format!(":type is invoke, ok, fail or info, not `{}`", kind.write()))?;
        let process = form.get("process").map_or(NIL, |process| self.word(process));
        let index = form.get("index").map_or(NIL, |index| self.word(index));
        let time = form.get("time").map_or(NIL, |time| self.word(time));
        let begin = self.ops.len();
        match form.get("value") {
            None | Some(Form::Nil) => {}
            Some(value) => {
                if let Err(problem) = self.push_transaction(value) {
                    // Some operations carry an error here instead of their micro-operations.
                    if matches!(kind, RecordKind::Invoke | RecordKind::Ok) {
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
                    return Err(format!("`{}` has no value to write", op.write()));
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

fn json(text: &[u8], at: usize) -> Result<(Form, usize), ParseError> {
    let mut values = serde_json::Deserializer::from_slice(&text[at..]).into_iter();
    match values.next() {
        Some(Ok(value)) => {
            let value: serde_json::Value = value;
            Ok((value.into(), at + values.byte_offset()))
        }
        Some(Err(error)) if !error.is_eof() => {
            // The error counts lines from the start of the operation.
            let message = error.to_string();
            let message = message.split(" at line ").next().unwrap_or_default();
            let lines = text[at..].split(|byte| *byte == b'\n').take(error.line() - 1);
            let position = at + lines.map(|line| line.len() + 1).sum::<usize>();
            Err(ParseError::At(position, format!("{message}, at column {}", error.column())))
        }
        _ => Err(ParseError::Incomplete),
    }
}
