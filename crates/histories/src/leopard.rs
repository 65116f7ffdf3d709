//! The traces of Leopard and Pisco: a folder with a file a thread, each an array of operations.
//!
//! Their tuples have values and no versions. Each cell of a row is an item, and what was written
//! to it tells who wrote what is read; a row is an item of its own, which is locked. A value that
//! nobody wrote is what was there before, if a cell has only one such value. A value that was
//! written more than once tells nothing, and reads of it are left out.

use crate::error::ReadError;
use isolde_core::Level;
use isolde_core::history::{ErrorClass, TargetInfo, TxEnd};
use isolde_core::trace::{Access, Accesses, Lock, Operation, OperationResult, Recorder, Trace};
use serde::Deserialize;
use serde_json::Value;
use std::collections::{BTreeMap, HashMap};
use std::path::Path;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Told {
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
    /// Some write why an operation failed.
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

/// Where an operation stands.
struct Place {
    file: String,
    index: usize,
}

impl Place {
    fn wrong(&self, why: impl std::fmt::Display) -> ReadError {
        ReadError::new(&self.file, format!("element {} of the array: {why}", self.index))
    }
}

/// Reads a folder.
pub fn read(folder: &Path) -> Result<Trace, ReadError> {
    let name = folder.display().to_string();
    let listed = std::fs::read_dir(folder).map_err(|e| ReadError::new(&name, e.to_string()))?;
    let mut files: Vec<_> = listed.filter_map(|entry| Some(entry.ok()?.path())).collect();
    files.retain(|file| file.extension().is_some_and(|extension| extension == "json"));
    files.sort();
    if files.is_empty() {
        return Err(ReadError::new(&name, "there are no .json files in it, one a thread"));
    }
    let mut all: Vec<(Told, Place)> = Vec::new();
    for file in files {
        let name = file.display().to_string();
        let text = std::fs::read_to_string(&file);
        let text = text.map_err(|e| ReadError::new(&name, e.to_string()))?;
        let wrong = |e: serde_json::Error| ReadError::at(&name, e.line() as u64, e.to_string());
        let told: Vec<Value> = serde_json::from_str(&text).map_err(wrong)?;
        for (index, value) in told.into_iter().enumerate() {
            let place = Place { file: name.clone(), index };
            let told = serde_json::from_value(value).map_err(|e| place.wrong(e))?;
            all.push((told, place));
        }
    }
    all.sort_by_key(|(told, _)| told.finish_timestamp);
    let mut reader = Reader::default();
    reader.number(&all)?;
    reader.trace(&all)
}

#[derive(Default)]
struct Reader {
    sessions: Vec<String>,
    /// Versions by cell and value; none for a value that was written more than once.
    written: HashMap<(String, String), Option<u64>>,
    /// The value of each cell that nobody wrote.
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
    fn number(&mut self, all: &[(Told, Place)]) -> Result<(), ReadError> {
        for (told, place) in all {
            let thread = plain(&told.thread);
            if !self.sessions.contains(&thread) {
                self.sessions.push(thread);
            }
            if told.finish_timestamp < told.start_timestamp {
                return Err(place.wrong("it ends before it starts"));
            }
            for tuple in told.write_tuple_list.iter().flatten() {
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

    fn trace(&mut self, all: &[(Told, Place)]) -> Result<Trace, ReadError> {
        let levels: Vec<Option<Level>> =
            all.iter().map(|(told, place)| level(told, place)).collect::<Result<_, _>>()?;
        let common = levels.iter().flatten().next().copied();
        let names = self.sessions.iter().map(|thread| format!("thread-{thread}")).collect();
        let on = TargetInfo { target: "leopard".into(), ..TargetInfo::default() };
        let mut recorder = Recorder::new(on, common, names);
        let mut transactions: HashMap<(String, String), (u32, bool)> = HashMap::new();
        let mut own_levels: Vec<(u32, Level)> = Vec::new();
        for ((told, place), level) in all.iter().zip(&levels) {
            let thread = plain(&told.thread);
            let session = self.sessions.iter().position(|s| *s == thread).unwrap_or(0);
            let session = u32::try_from(session).unwrap_or(u32::MAX);
            let key = (thread, plain(&told.transaction));
            let kind = told.operation_trace_type.to_ascii_uppercase();
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
            let failed = told.exception.as_ref().is_some_and(|text| !text.is_empty());
            let accesses = self.accesses(told, place, &mut recorder, failed)?;
            let count = |list: &Option<Vec<Tuple>>| list.as_ref().map_or(0, Vec::len) as u64;
            let (default, result) = match kind.as_str() {
                "START" => ("begin", OperationResult::Done),
                "COMMIT" => ("commit", OperationResult::Done),
                "ROLLBACK" => ("rollback", OperationResult::Done),
                "SELECT" => ("select", OperationResult::Rows(count(&told.read_tuple_list))),
                "UPDATE" | "INSERT" | "DELETE" => {
                    (kind.as_str(), OperationResult::Affected(count(&told.write_tuple_list)))
                }
                other => {
                    return Err(place.wrong(format!(
                        "operationTraceType is {other:?}; known are START, SELECT, UPDATE, \
                         INSERT, DELETE, COMMIT and ROLLBACK"
                    )));
                }
            };
            let sql = told.sql.as_deref().map(str::trim).filter(|sql| !sql.is_empty() && !ends);
            let statement = recorder.statement(sql.filter(|_| kind != "START").unwrap_or(default));
            let failure = OperationResult::Error(ErrorClass::Other);
            recorder.operation(Operation {
                session,
                transaction,
                statement,
                start: told.start_timestamp,
                end: told.finish_timestamp,
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
        told: &Told,
        place: &Place,
        recorder: &mut Recorder,
        failed: bool,
    ) -> Result<Option<Box<Accesses>>, ReadError> {
        let mut accesses = Accesses { lock: lock(told), ..Accesses::default() };
        for tuple in told.read_tuple_list.iter().flatten() {
            let row = row(tuple);
            for (column, value) in tuple.value_map.iter().flatten() {
                let (cell, value) = (format!("{row}/{column}"), plain(value));
                let version = match self.written.get(&(cell.clone(), value.clone())) {
                    Some(Some(version)) => *version,
                    // Written more than once: nobody knows by whom it was.
                    Some(None) => continue,
                    None => {
                        let first = self.first.entry(cell.clone()).or_insert(value.clone());
                        if *first != value {
                            return Err(place.wrong(format!(
                                "it reads {value} in {cell}, which nobody wrote: before anybody \
                                 wrote it, {first} was read there"
                            )));
                        }
                        0
                    }
                };
                accesses.reads.push(Access { item: recorder.item(&cell), version });
            }
        }
        for tuple in told.write_tuple_list.iter().flatten().filter(|_| !failed) {
            let row = row(tuple);
            // Whoever writes any of its cells has the lock of the row.
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

fn lock(told: &Told) -> Option<Lock> {
    let mode = told.trace_lock_mode.as_deref()?.to_ascii_uppercase();
    if mode.contains("EXCLUSIVE") {
        Some(Lock::Exclusive)
    } else if mode.contains("SHARE") {
        Some(Lock::Shared)
    } else {
        None
    }
}

fn level(told: &Told, place: &Place) -> Result<Option<Level>, ReadError> {
    let Some(name) = told.isolation_level.as_deref().filter(|name| !name.is_empty()) else {
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
