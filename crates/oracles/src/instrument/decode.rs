//! Decodes result rows of instrumented statements into row versions and their contents.

use super::action_mark::writer;
use super::tables::{CELL, IMAGE, NULL_CELL, WRITTEN_BY};
use super::{Instrument, Probe, RowsOf, StatementId};
use isolde_model::Value;
use isolde_model::value::Row;
use isolde_sql::Class;

/// A row in one of its versions: the statements that wrote it, in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    pub row: String,
    /// A statement that wrote a row twice is in it twice.
    pub writes: Vec<StatementId>,
}

/// A whole row, and its past where that is kept.
#[derive(Clone, Debug, PartialEq)]
pub struct Version {
    pub entry: Entry,
    /// The versions that it was made of.
    pub origin: Vec<Entry>,
    /// What it held before, the oldest first; the last of these before the last write.
    pub past: Vec<Row>,
    pub holds: Row,
}

/// The decoded result of one statement.
#[derive(Clone, Debug, PartialEq)]
pub enum ProbeResult {
    Nothing,
    /// The versions that each cell named.
    Read(Vec<Vec<Entry>>),
    Rows(Vec<Version>),
    /// How many rows a write has changed, if the engine said.
    Count(Option<u64>),
}

impl Entry {
    /// Its last writer; none if no statement has written it since the setup.
    pub fn last(&self) -> Option<StatementId> {
        self.writes.last().copied()
    }

    /// The place of its table.
    pub fn table(&self) -> Option<usize> {
        let digits = self.row.find(|c: char| !c.is_ascii_digit())?;
        self.row[..digits].parse().ok()
    }

    /// The statement that inserted it; none for a row of the setup.
    pub fn inserted_by(&self) -> Option<StatementId> {
        let (_, rest) = self.row.split_once('s')?;
        let digits = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
        rest[..digits].parse().ok()
    }
}

/// The versions that a cell names, however they were put together.
pub(super) fn entries(cell: &Value) -> Vec<Entry> {
    let bytes;
    let text = match cell {
        Value::Text(text) => text.as_str(),
        Value::Bytes(raw) => {
            bytes = String::from_utf8_lossy(raw);
            &bytes
        }
        _ => return Vec::new(),
    };
    let mut found: Vec<Entry> = Vec::new();
    for word in text.split([',', ';', '"', '[', ']', '\\', ' ']).filter(|word| !word.is_empty()) {
        match (word.strip_suffix(WRITTEN_BY), found.last_mut()) {
            (Some(row), _) => found.push(Entry { row: row.into(), writes: Vec::new() }),
            (None, Some(entry)) => entry.writes.extend(writer(word)),
            (None, None) => {}
        }
    }
    found
}

impl Instrument {
    /// Decodes the rows of a result.
    pub fn decode(&self, probe: &Probe, rows: &[Row]) -> ProbeResult {
        match probe {
            Probe::Nothing => ProbeResult::Nothing,
            Probe::Count => ProbeResult::Count(None),
            Probe::View => {
                ProbeResult::Read(vec![rows.iter().flatten().flat_map(entries).collect()])
            }
            Probe::Read { own_columns, appended, cells, .. } => {
                let mut results = vec![Vec::new(); cells.len()];
                let before = own_columns + usize::from(*appended);
                for row in rows {
                    for (cell, into) in row.iter().skip(before).zip(&mut results) {
                        into.extend(entries(cell));
                    }
                }
                ProbeResult::Read(results)
            }
            Probe::Rows { own_columns, table, .. } => {
                let version =
                    |row: &Row| self.version_in(&row[(*own_columns).min(row.len())..], *table);
                ProbeResult::Rows(rows.iter().filter_map(version).collect())
            }
        }
    }

    fn version_in(&self, cells: &[Value], table: usize) -> Option<Version> {
        let (version, rest) = cells.split_first()?;
        let (origin, mut rest) = rest.split_first()?;
        let mut past = Vec::new();
        if !self.capabilities.returns_written {
            let (images, holds) = rest.split_first()?;
            past = self.images(images, table);
            rest = holds;
        }
        let entry = entries(version).pop()?;
        Some(Version { entry, origin: entries(origin), past, holds: rest.to_vec() })
    }

    fn images(&self, cell: &Value, table: usize) -> Vec<Row> {
        let text = match cell {
            Value::Text(text) => text.clone(),
            Value::Bytes(bytes) => String::from_utf8_lossy(bytes).into_owned(),
            _ => return Vec::new(),
        };
        let image = |image: &str| {
            let columns = &self.schema.tables[table].columns;
            let cells = image.split_terminator(CELL).zip(columns);
            cells.map(|(cell, column)| held(cell, column.of_type.class())).collect()
        };
        text.split_terminator(IMAGE).map(image).collect()
    }
}

impl Probe {
    /// A row of the statement's own result; none for a row that only names versions.
    pub fn own_row(&self, row: &Row) -> Option<Row> {
        match self {
            Probe::Read { own_columns, appended, .. } => {
                let is_own = !appended || row[*own_columns] == Value::Int(0);
                is_own.then(|| row[..*own_columns].to_vec())
            }
            Probe::Rows { own_columns, .. } => Some(row[..*own_columns].to_vec()),
            Probe::Nothing | Probe::View | Probe::Count => Some(row.clone()),
        }
    }

    /// Decodes the result of a statement that returned only a number of rows.
    pub fn counted(&self, count: Option<u64>) -> ProbeResult {
        match self {
            Probe::Count => ProbeResult::Count(count),
            // It returns what it did, and did nothing.
            Probe::Rows { what: RowsOf::Written | RowsOf::Deleted, .. } => {
                ProbeResult::Rows(Vec::new())
            }
            _ => ProbeResult::Nothing,
        }
    }
}

fn held(cell: &str, class: Class) -> Value {
    if cell == NULL_CELL {
        return Value::Null;
    }
    let digit = |at: usize| cell.get(at..at + 2).and_then(|pair| u8::from_str_radix(pair, 16).ok());
    let bytes: Vec<u8> = (0..cell.len() / 2).filter_map(|n| digit(2 * n)).collect();
    match class {
        Class::Blob => Value::Bytes(bytes),
        _ => Value::Text(String::from_utf8_lossy(&bytes).into_owned()),
    }
}
