//! Cobra's logs: a directory with one `.log` file per session. Entries are a tag and big-endian
//! 64-bit fields: `S` txn, `W` write-id key value, `R` previous-txn write-id key value, `C` txn,
//! `A`. The write id identifies a version; two special ids mean the initial version.

use crate::error::ReadError;
use crate::words::Words;
use isolde_checker::{Builder, History, Item, Session, Status, Value};
use std::path::{Path, PathBuf};

const INITIAL: [u64; 2] = [0xdead_beef, 0xbebe_ebee];

pub(crate) fn logs(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let mut logs: Vec<PathBuf> = entries
        .map(|entry| entry.path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "log"))
        .collect();
    logs.sort();
    logs
}

pub(crate) fn read(folder: &Path) -> Result<History, ReadError> {
    let mut builder = Builder::new();
    let logs = logs(folder);
    if logs.is_empty() {
        let problem = "this directory has no .log files: Cobra writes one per session";
        return Err(ReadError::new(&folder.display().to_string(), problem));
    }
    for log in logs {
        let name = log.display().to_string();
        let bytes = std::fs::read(&log).map_err(|e| ReadError::new(&name, e.to_string()))?;
        let session = builder.session(&log.file_stem().unwrap_or_default().to_string_lossy());
        let mut reader = Log { bytes: &bytes, at: 0 };
        reader.session(&mut builder, session).map_err(|problem| {
            let problem = format!("byte {}: {problem}", reader.at);
            ReadError::new(&name, problem)
        })?;
    }
    Ok(builder.finish())
}

struct Log<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl Log<'_> {
    fn field(&mut self) -> Result<u64, String> {
        let field = self.bytes.get(self.at..self.at + 8);
        let field = field.ok_or("the log ends in the middle of an entry: it is truncated")?;
        self.at += 8;
        Ok(u64::from_be_bytes(field.try_into().expect("eight bytes")))
    }

    fn session(&mut self, builder: &mut Builder, session: Session) -> Result<(), String> {
        let mut open: Option<u64> = None;
        while let Some(tag) = self.bytes.get(self.at) {
            match (tag, open) {
                (b'S', None) => {
                    self.at += 1;
                    let txn = self.field()?;
                    builder.begin(session);
                    builder.number_transaction(txn);
                    open = Some(txn);
                }
                (b'W', Some(_)) => {
                    self.at += 1;
                    let [id, key, _] = [self.field()?, self.field()?, self.field()?];
                    let item = item(builder, key);
                    let value = version(builder, id);
                    builder.write(item, value);
                }
                (b'R', Some(_)) => {
                    self.at += 1;
                    let [_, id, key, _] =
                        [self.field()?, self.field()?, self.field()?, self.field()?];
                    let item = item(builder, key);
                    let initial = INITIAL.contains(&id);
                    let value = if initial { Value::INITIAL } else { version(builder, id) };
                    builder.read(item, value);
                }
                (b'C', Some(txn)) => {
                    self.at += 1;
                    let committed = self.field()?;
                    if committed != txn {
                        return Err(format!("transaction {txn} is open, but {committed} commits"));
                    }
                    builder.end(Status::Committed);
                    open = None;
                }
                (b'A', Some(txn)) => {
                    self.at += 1;
                    // Some logs name the transaction here, too.
                    let next = self.bytes.get(self.at..self.at + 8);
                    if next == Some(&txn.to_be_bytes()[..]) {
                        self.at += 8;
                    }
                    builder.end(Status::Aborted);
                    open = None;
                }
                (b'S', Some(txn)) => {
                    return Err(format!("a transaction begins while {txn} is open"));
                }
                (b'W' | b'R' | b'C' | b'A', None) => {
                    return Err("no transaction is open here".into());
                }
                (other, _) => {
                    return Err(format!("an entry begins with S, W, R, C or A, not {other:#04x}"));
                }
            }
        }
        if open.is_some() {
            builder.end(Status::Unknown);
        }
        Ok(())
    }
}

/// The item of a key. Keys are hashes that use all 64 bits.
fn item(builder: &mut Builder, key: u64) -> Item {
    builder.numbered_item(key)
}

fn version(builder: &mut Builder, id: u64) -> Value {
    let mut words = Words::default();
    let word = words.integer(&id.to_string());
    crate::words::Resolver::new(&words).value(builder, word)
}
