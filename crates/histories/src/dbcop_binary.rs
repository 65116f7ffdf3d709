//! dbcop's old binary format, `history.bincode`: little-endian 64-bit counts and fields. Five
//! parameters and three texts, then sessions of transactions of events. The value 0 is the initial
//! version, unless a transaction writes it.

use crate::error::ReadError;
use crate::source::Source;
use crate::words::number;
use isolde_checker::{Builder, History, Status, Value};

const PARAMETERS: usize = 5;
const TEXTS: usize = 3;
/// The size of an event: a flag, two fields, and another flag.
const EVENT: usize = 18;

/// Small numbers have zeros where a text has none.
pub(crate) fn detect(beginning: &[u8]) -> bool {
    beginning.len() >= 8 * PARAMETERS
        && beginning[..8 * PARAMETERS].chunks(8).all(|field| field[5..] == [0, 0, 0])
}

pub(crate) fn read(source: &mut Source) -> Result<History, ReadError> {
    let bytes = source.rest()?;
    let mut reader = Reader { bytes: &bytes, at: 0 };
    history(&mut reader).map_err(|problem| {
        let problem = format!("byte {}: {problem}", reader.at);
        ReadError::new(source.name(), problem)
    })
}

struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
}

const TRUNCATED: &str = "the file ends early: it is truncated";

impl Reader<'_> {
    fn field(&mut self) -> Result<u64, String> {
        let field = self.bytes.get(self.at..self.at + 8).ok_or(TRUNCATED)?;
        self.at += 8;
        Ok(u64::from_le_bytes(field.try_into().expect("eight bytes")))
    }

    /// The number of elements that follow, each of at least this many bytes.
    fn count(&mut self, each: usize) -> Result<u64, String> {
        let count = self.field()?;
        let left = (self.bytes.len() - self.at) / each;
        if count > left as u64 {
            return Err(format!("{count} elements should follow; {TRUNCATED}, or not a history"));
        }
        Ok(count)
    }

    fn flag(&mut self) -> Result<bool, String> {
        let flag = *self.bytes.get(self.at).ok_or(TRUNCATED)?;
        if flag > 1 {
            return Err(format!("a flag is 0 or 1, not {flag}"));
        }
        self.at += 1;
        Ok(flag == 1)
    }
}

fn history(reader: &mut Reader<'_>) -> Result<History, String> {
    let mut builder = Builder::new();
    for _ in 0..PARAMETERS {
        reader.field()?;
    }
    for _ in 0..TEXTS {
        reader.at += reader.count(1)? as usize;
    }
    for session in 0..reader.count(8)? {
        let session = builder.numbered_session(session + 1);
        for _ in 0..reader.count(9)? {
            builder.begin(session);
            for _ in 0..reader.count(EVENT)? {
                let write = reader.flag()?;
                let (variable, value) = (reader.field()?, reader.field()?);
                let value = number(value).ok_or("a value is too large")?;
                // A failed event has neither read nor written anything.
                if reader.flag()? {
                    let item = builder.numbered_item(variable);
                    match write {
                        true => builder.write(item, Value(value)),
                        false => builder.read(item, Value(value)),
                    }
                }
            }
            let committed = reader.flag()?;
            builder.end(if committed { Status::Committed } else { Status::Aborted });
        }
    }
    if reader.at < reader.bytes.len() {
        return Err("there is data after the end of the history".into());
    }
    builder.initial_value(Value(0));
    Ok(builder.finish())
}
