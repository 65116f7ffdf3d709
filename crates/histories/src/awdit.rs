//! AWDIT's test format: `r KEY VALUE` and `w KEY VALUE`, `-----` between transactions, `=====`
//! between sessions. The value 0 is the initial version, unless a transaction writes it.

use crate::error::{ReadError, excerpt};
use crate::lines::{Lines, read_lines};
use crate::source::Source;
use crate::words::{Resolver, Words};
use isolde_checker::{Builder, History, Session, Status, Value};

pub(crate) fn detect(text: &[u8]) -> bool {
    let mut lines = text.split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii);
    let first = lines.find(|line| {
        !line.is_empty() && !line.starts_with(b"-----") && !line.starts_with(b"=====")
    });
    matches!(first, Some([b'r' | b'w', b' ', ..]))
}

pub(crate) fn read(source: &mut Source) -> Result<History, ReadError> {
    let mut builder = Builder::new();
    let mut session: Option<Session> = None;
    let mut number = 0;
    let mut inside = false;
    read_lines(source, |block: Block| {
        let mut words = Resolver::new(&block.words);
        for entry in &block.entries {
            match *entry {
                Entry::Operation { write, key, value } => {
                    if !inside {
                        let session = *session.get_or_insert_with(|| {
                            number += 1;
                            builder.numbered_session(number)
                        });
                        builder.begin(session);
                        inside = true;
                    }
                    let item = words.item(&mut builder, key);
                    let value = words.value(&mut builder, value);
                    match write {
                        true => builder.write(item, value),
                        false => builder.read(item, value),
                    }
                }
                Entry::EndOfTransaction | Entry::EndOfSession => {
                    if inside {
                        builder.end(Status::Committed);
                        inside = false;
                    }
                    session = session.filter(|_| matches!(entry, Entry::EndOfTransaction));
                }
            }
        }
        Ok(())
    })?;
    if inside {
        builder.end(Status::Committed);
    }
    builder.initial_value(Value(0));
    Ok(builder.finish())
}

#[derive(Default)]
struct Block {
    entries: Vec<Entry>,
    words: Words,
}

enum Entry {
    Operation { write: bool, key: u64, value: u64 },
    EndOfTransaction,
    EndOfSession,
}

impl Lines for Block {
    fn line(&mut self, _: u32, line: &[u8]) -> Result<(), String> {
        let line = line.trim_ascii();
        let all = |byte: u8| line.len() >= 3 && line.iter().all(|b| *b == byte);
        if line.is_empty() {
            return Ok(());
        }
        let entry = if all(b'-') {
            Some(Entry::EndOfTransaction)
        } else if all(b'=') {
            Some(Entry::EndOfSession)
        } else {
            self.operation(line)
        };
        let entry = entry.ok_or_else(|| {
            let found = excerpt(line);
            format!("expected `r KEY VALUE`, `w KEY VALUE`, `-----` or `=====`, not {found}")
        })?;
        self.entries.push(entry);
        Ok(())
    }
}

impl Block {
    fn operation(&mut self, line: &[u8]) -> Option<Entry> {
        let line = std::str::from_utf8(line).ok()?;
        let mut fields = line.split_ascii_whitespace();
        let write = match fields.next()? {
            "r" => false,
            "w" => true,
            _ => return None,
        };
        let (key, value) = (fields.next()?, fields.next()?);
        let (key, value) = (self.words.integer(key), self.words.integer(value));
        fields.next().is_none().then_some(Entry::Operation { write, key, value })
    }
}
