//! The traces of Leopard and Pisco: a folder with one file per thread, each an array of operations.
//!
//! Their tuples have values and no versions. Each cell of a row is an item, and the written value
//! identifies the write that a read observed; a row is an item of its own, which is locked. A
//! value that no operation wrote is the initial value, if a cell has only one such value. A value
//! that was written more than once identifies no write, and reads of it are ignored.

use isolde_model::Level;
use isolde_model::history::{ErrorClass, TargetInfo, TxEnd};
use isolde_model::trace::{Access, Accesses, Lock, Operation, OperationResult, Recorder, Trace};
use serde::Deserialize;
use serde_json::Value;
use std::collections::{BTreeMap, HashMap};

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct OperationRecord {
    #[serde(rename = "threadID")]
    thread: Value,
    #[serde(rename = "transactionID")]
    transaction: Value,
    #[serde(rename = "operationID", default)]
    _operation: Value,
    #[serde(default)]
    sql: Option<String>,
    operation_trace_type: String,
    start_timestamp: u64,
    finish_timestamp: u64,
    #[serde(default)]
    isolation_level: Option<String>,
    #[serde(default)]
    trace_lock_mode: Option<String>,
    #[serde(default)]
    read_tuple_list: Option<Vec<Tuple>>,
    #[serde(default)]
    write_tuple_list: Option<Vec<Tuple>>,
    /// Some traces record why an operation failed.
    #[serde(default)]
    exception: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Tuple {
    table: Value,
    primary_key: Value,
    #[serde(default)]
    value_map: Option<BTreeMap<String, Value>>,
}

/// The position of an operation, for messages.
struct RecordLocation {
    file: String,
    index: usize,
}

impl RecordLocation {
    fn wrong(&self, why: impl std::fmt::Display) -> LeopardError {
        LeopardError::new(&self.file, format!("element {} of the array: {why}", self.index))
    }
}

/// Why files of Leopard could not be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{file}{}: {problem}", line.map_or(String::new(), |line| format!(":{line}")))]
pub struct LeopardError {
    pub file: String,
    /// The line, counted from 1, where the file is not JSON.
    pub line: Option<u64>,
    pub problem: String,
}

impl LeopardError {
    pub fn new(file: &str, problem: impl Into<String>) -> LeopardError {
        LeopardError { file: file.into(), line: None, problem: problem.into() }
    }
}

/// Reads a trace from the names and texts of its files, one per thread.
pub fn read(files: &[(String, String)]) -> Result<Trace, LeopardError> {
    let mut all: Vec<(OperationRecord, RecordLocation)> = Vec::new();
    for (name, text) in files {
        let wrong = |e: serde_json::Error| LeopardError {
            line: Some(e.line() as u64),
            ..LeopardError::new(name, e.to_string())
        };
        let record: Vec<Value> = serde_json::from_str(text).map_err(wrong)?;
        for (index, value) in record.into_iter().enumerate() {
            let place = RecordLocation { file: name.clone(), index };
            let record = serde_json::from_value(value).map_err(|e| place.wrong(e))?;
            all.push((record, place));
        }
    }
    all.sort_by_key(|(record, _)| record.finish_timestamp);
    let mut reader = Reader::default();
    reader.number(&all)?;
    reader.trace(&all)
}

#[derive(Default)]
struct Reader {
    sessions: Vec<String>,
    /// Versions by cell and value; none for a value that was written more than once.
    written: HashMap<(String, String), Option<u64>>,
    /// The initial value of each cell: the one that no operation wrote.
    first: HashMap<String, String>,
    next: u64,
}

fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

fn row(tuple: &Tuple) -> String {
    format!("{}/{}", plain(&tuple.table), plain(&tuple.primary_key))
}

impl Reader {
    fn version(&mut self) -> u64 {
        self.next += 1;
        self.next
    }

    /// Gives every value that is written its version.
    fn number(&mut self, all: &[(OperationRecord, RecordLocation)]) -> Result<(), LeopardError> {
        for (record, place) in all {
            let thread = plain(&record.thread);
            if !self.sessions.contains(&thread) {
                self.sessions.push(thread);
            }
            if record.finish_timestamp < record.start_timestamp {
                return Err(place.wrong("it ends before it starts"));
            }
            for tuple in record.write_tuple_list.iter().flatten() {
                for (column, value) in tuple.value_map.iter().flatten() {
                    let version = self.version();
                    let cell = (format!("{}/{column}", row(tuple)), plain(value));
                    self.written.entry(cell).and_modify(|v| *v = None).or_insert(Some(version));
                }
            }
        }
        self.sessions.sort();
        Ok(())
    }

    fn trace(&mut self, all: &[(OperationRecord, RecordLocation)]) -> Result<Trace, LeopardError> {
        let levels: Vec<Option<Level>> =
            all.iter().map(|(record, place)| level(record, place)).collect::<Result<_, _>>()?;
        let common = levels.iter().flatten().next().copied();
        let names = self.sessions.iter().map(|thread| format!("thread-{thread}")).collect();
        let on = TargetInfo { target: "leopard".into(), ..TargetInfo::default() };
        let mut recorder = Recorder::new(on, common, names);
        let mut transactions: HashMap<(String, String), (u32, bool)> = HashMap::new();
        let mut own_levels: Vec<(u32, Level)> = Vec::new();
        for ((record, place), level) in all.iter().zip(&levels) {
            let thread = plain(&record.thread);
            let session = self.sessions.iter().position(|s| *s == thread).unwrap_or(0);
            let session = u32::try_from(session).unwrap_or(u32::MAX);
            let key = (thread, plain(&record.transaction));
            let kind = record.operation_trace_type.to_ascii_uppercase();
            let known = transactions.get(&key).copied();
            if kind != "START" && known.is_none() {
                let why = format!("transaction {} of thread {} has no START", key.1, key.0);
                return Err(place.wrong(why));
            }
            if let Some((_, true)) = known {
                return Err(place.wrong(format!("transaction {} has ended before", key.1)));
            }
            let (transaction, _) = known.unwrap_or_else(|| (recorder.begin(session, None), false));
            own_levels.extend(level.filter(|l| Some(*l) != common).map(|l| (transaction, l)));
            let ends = matches!(kind.as_str(), "COMMIT" | "ROLLBACK");
            transactions.insert(key, (transaction, ends));
            let failed = record.exception.as_ref().is_some_and(|text| !text.is_empty());
            let accesses = self.accesses(record, place, &mut recorder, failed)?;
            let count = |list: &Option<Vec<Tuple>>| list.as_ref().map_or(0, Vec::len) as u64;
            let (default, result) = match kind.as_str() {
                "START" => ("begin", OperationResult::Done),
                "COMMIT" => ("commit", OperationResult::Done),
                "ROLLBACK" => ("rollback", OperationResult::Done),
                "SELECT" => ("select", OperationResult::Rows(count(&record.read_tuple_list))),
                "UPDATE" | "INSERT" | "DELETE" => {
                    (kind.as_str(), OperationResult::Affected(count(&record.write_tuple_list)))
                }
                other => {
                    return Err(place.wrong(format!(
                        "operationTraceType is {other:?}; known are START, SELECT, UPDATE, \
                         INSERT, DELETE, COMMIT and ROLLBACK"
                    )));
                }
            };
            let sql = record.sql.as_deref().map(str::trim).filter(|sql| !sql.is_empty() && !ends);
            let statement = recorder.statement(sql.filter(|_| kind != "START").unwrap_or(default));
            let failure = OperationResult::Error(ErrorClass::Other);
            recorder.operation(Operation {
                session,
                transaction,
                statement,
                start: record.start_timestamp,
                end: record.finish_timestamp,
                result: if failed { failure } else { result },
                accesses,
            });
            let how = match (kind.as_str(), failed) {
                ("COMMIT", false) => TxEnd::Committed,
                ("COMMIT", true) => TxEnd::Aborted,
                ("ROLLBACK", _) => TxEnd::RolledBack,
                _ => TxEnd::Lost,
            };
            recorder.end(transaction, how);
        }
        let mut trace = recorder.finish(None);
        for (transaction, level) in own_levels {
            trace.transactions[transaction as usize].level = Some(level);
        }
        trace.check().map_err(|wrong| all[wrong.operation].1.wrong(wrong.why))?;
        Ok(trace)
    }

    fn accesses(
        &mut self,
        record: &OperationRecord,
        place: &RecordLocation,
        recorder: &mut Recorder,
        failed: bool,
    ) -> Result<Option<Box<Accesses>>, LeopardError> {
        let mut accesses = Accesses { lock: lock(record), ..Accesses::default() };
        for tuple in record.read_tuple_list.iter().flatten() {
            let row = row(tuple);
            for (column, value) in tuple.value_map.iter().flatten() {
                let (cell, value) = (format!("{row}/{column}"), plain(value));
                let version = match self.written.get(&(cell.clone(), value.clone())) {
                    Some(Some(version)) => *version,
                    // Written more than once: the writer is unknown.
                    Some(None) => continue,
                    None => {
                        let first = self.first.entry(cell.clone()).or_insert(value.clone());
                        if *first != value {
                            return Err(place.wrong(format!(
                                "it reads {value} in {cell}, which no operation wrote: before any \
                                 operation wrote it, {first} was read there"
                            )));
                        }
                        0
                    }
                };
                accesses.reads.push(Access { item: recorder.item(&cell), version });
            }
        }
        for tuple in record.write_tuple_list.iter().flatten().filter(|_| !failed) {
            let row = row(tuple);
            // A write to any cell locks the row.
            let version = self.version();
            accesses.writes.push(Access { item: recorder.item(&row), version });
            for (column, value) in tuple.value_map.iter().flatten() {
                let cell = format!("{row}/{column}");
                let known = self.written.get(&(cell.clone(), plain(value))).copied().flatten();
                let version = known.unwrap_or_else(|| self.version());
                accesses.writes.push(Access { item: recorder.item(&cell), version });
            }
        }
        let none = accesses.reads.is_empty() && accesses.writes.is_empty();
        Ok((!none).then(|| Box::new(accesses)))
    }
}

fn lock(record: &OperationRecord) -> Option<Lock> {
    let mode = record.trace_lock_mode.as_deref()?.to_ascii_uppercase();
    if mode.contains("EXCLUSIVE") {
        Some(Lock::Exclusive)
    } else if mode.contains("SHARE") {
        Some(Lock::Shared)
    } else {
        None
    }
}

fn level(record: &OperationRecord, place: &RecordLocation) -> Result<Option<Level>, LeopardError> {
    let Some(name) = record.isolation_level.as_deref().filter(|name| !name.is_empty()) else {
        return Ok(None);
    };
    let plain = name.to_ascii_uppercase().replace('_', " ");
    let plain = plain.trim_start_matches("TRANSACTION ").trim();
    let level = match plain {
        "SNAPSHOT ISOLATION" => Ok(Level::Snapshot),
        other => other.parse(),
    };
    level.map(Some).map_err(|_| place.wrong(format!("there is no isolation level {name:?}")))
}

#[cfg(test)]
#[path = "leopard_tests.rs"]
mod tests;
