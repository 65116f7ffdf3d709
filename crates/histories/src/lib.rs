//! Reads and writes histories of transactions in the formats of the published
//! checkers, and in one of our own (`docs/history-format.md`).
//!
//! ```
//! use isolde_checker::{Level, check};
//!
//! let text = "r(1,0,0,1)\nw(1,7,0,1)\nr(1,7,1,2)\n";
//! let read = isolde_histories::read_bytes("example", text.as_bytes().to_vec(), None)?;
//! assert_eq!((read.format.name, read.history.len()), ("plume", 2));
//! # Ok::<(), isolde_histories::ReadError>(())
//! ```
//!
//! Each format is a file and a line of [`FORMATS`]. Long texts are read in blocks
//! that are parsed side by side (`blocks`); a block becomes columns of numbers,
//! which are fed to the builder of the history in the order of the file.

mod awdit;
mod blocks;
mod cobra;
mod dbcop_binary;
mod dbcop_json;
mod dbcop_text;
pub mod dot;
mod edn;
mod elle;
mod error;
mod form;
mod leopard;
mod lines;
mod own;
pub mod picture;
mod plume;
mod progress;
pub mod simulate;
mod source;
mod words;
mod write;

pub use error::ReadError;
use isolde_checker::History;
pub use leopard::read as read_leopard;
pub use progress::Progress;
use source::Source;
use std::path::{Path, PathBuf};
pub use write::{write_elle_edn, write_elle_json, write_own, write_own_about};

/// A format that histories come in.
pub struct Format {
    pub name: &'static str,
    /// What writes it.
    pub about: &'static str,
    /// Other names that people try.
    also: &'static [&'static str],
    /// Whether a file that begins so is of this format.
    detect: fn(&[u8]) -> bool,
    read: Reading,
}

enum Reading {
    Stream(fn(&mut Source) -> Result<History, ReadError>),
    Folder(fn(&Path) -> Result<History, ReadError>),
}

/// All formats, in the order in which a file is tried.
pub static FORMATS: [Format; 9] = [
    Format {
        name: "isolde",
        about: "Isolde's own JSON lines: a transaction a line (docs/history-format.md)",
        also: &["jsonl", "own"],
        detect: own::detect,
        read: Reading::Stream(own::read),
    },
    Format {
        name: "dbcop-binary",
        about: "dbcop's old history.bincode",
        also: &["bincode"],
        detect: dbcop_binary::detect,
        read: Reading::Stream(dbcop_binary::read),
    },
    Format {
        name: "dbcop-json",
        about: "dbcop's JSON: sessions of transactions of events",
        also: &["dbcop"],
        detect: dbcop_json::detect,
        read: Reading::Stream(dbcop_json::read),
    },
    Format {
        name: "dbcop-text",
        about: "dbcop's text: [x:=1 y==2]",
        also: &["hist"],
        detect: dbcop_text::detect,
        read: Reading::Stream(dbcop_text::read),
    },
    Format {
        name: "plume",
        about: "Plume, PolySI, IsoVista: r(key,value,session,txn)",
        also: &["polysi", "isovista", "text"],
        detect: plume::detect,
        read: Reading::Stream(plume::read),
    },
    Format {
        name: "awdit",
        about: "AWDIT's test format: r KEY VALUE, ----- and =====",
        also: &["awdit-test", "test"],
        detect: awdit::detect,
        read: Reading::Stream(awdit::read),
    },
    Format {
        name: "cobra",
        about: "Cobra: a directory of .log files, one a session",
        also: &[],
        detect: |_| false,
        read: Reading::Folder(cobra::read),
    },
    Format {
        name: "elle-json",
        about: "Elle and Jepsen in JSON: an array, or an operation a line",
        also: &["elle-jsonl", "jepsen-json"],
        detect: |text| looks_like_elle(text, b'"'),
        read: Reading::Stream(elle::read_json),
    },
    Format {
        name: "elle-edn",
        about: "Elle and Jepsen in EDN: history.edn",
        also: &["elle", "jepsen", "edn"],
        detect: |text| looks_like_elle(text, b':'),
        read: Reading::Stream(elle::read_edn),
    },
];

/// A map whose first key begins with this byte, bare or in a vector.
fn looks_like_elle(text: &[u8], first: u8) -> bool {
    let blank = |byte: &u8| byte.is_ascii_whitespace() || matches!(byte, b'[' | b'(' | b',');
    let start = text.iter().position(|byte| !blank(byte)).unwrap_or(text.len());
    match &text[start..] {
        [b'{', inside @ ..] => inside.trim_ascii_start().first().is_none_or(|b| *b == first),
        [b'#' | b';', ..] => first == b':',
        // All that there is may be the vector of no operations.
        rest => first == b':' && start > 0 && rest.starts_with(b"]"),
    }
}

impl Format {
    /// The format of this name.
    pub fn named(name: &str) -> Option<&'static Format> {
        let name = name.to_lowercase();
        FORMATS.iter().find(|format| format.name == name || format.also.contains(&&name[..]))
    }
}

/// A history, and how it was read.
pub struct Read {
    pub history: History,
    pub format: &'static Format,
    pub compression: Option<&'static str>,
}

/// How much of a file is looked at to tell its format.
const BEGINNING: usize = 1 << 16;

/// Reads a file, a folder, or (`-`) stdin. Without a format it is told by the content.
pub fn read(path: &Path, format: Option<&'static Format>) -> Result<Read, ReadError> {
    read_watched(path, format, &Progress::default())
}

/// The same, telling how far it has come.
pub fn read_watched(
    path: &Path,
    format: Option<&'static Format>,
    progress: &Progress,
) -> Result<Read, ReadError> {
    let path = if path.is_dir() {
        match inside(path, format)? {
            Inside::History(file) => file,
            Inside::Logs => {
                let format = Format::named("cobra").expect("it is in the table");
                let Reading::Folder(read) = format.read else {
                    unreachable!("Cobra's is a folder")
                };
                return Ok(Read { history: read(path)?, format, compression: None });
            }
        }
    } else {
        path.to_path_buf()
    };
    read_source(Source::open(&path, progress)?, format)
}

/// Reads what is in memory.
pub fn read_bytes(
    name: &str,
    bytes: Vec<u8>,
    format: Option<&'static Format>,
) -> Result<Read, ReadError> {
    read_source(Source::of(name, std::io::Cursor::new(bytes))?, format)
}

enum Inside {
    History(PathBuf),
    Logs,
}

/// What there is to read in a folder.
fn inside(folder: &Path, format: Option<&'static Format>) -> Result<Inside, ReadError> {
    const KNOWN: [&str; 5] =
        ["history.bincode", "history.edn", "history.jsonl", "history.json", "history.txt"];
    let cobra = format.is_none_or(|format| format.name == "cobra");
    let known = KNOWN.iter().map(|name| folder.join(name)).find(|file| file.is_file());
    match known {
        Some(file) if format.is_none_or(|format| format.name != "cobra") => {
            Ok(Inside::History(file))
        }
        _ if cobra && (format.is_some() || !cobra::logs(folder).is_empty()) => Ok(Inside::Logs),
        _ => {
            let problem = format!(
                "there is no history in this folder: neither .log files of Cobra nor one of {}",
                KNOWN.join(", ")
            );
            Err(ReadError::new(&folder.display().to_string(), problem))
        }
    }
}

fn read_source(mut source: Source, format: Option<&'static Format>) -> Result<Read, ReadError> {
    let name = source.name().to_string();
    let asked = format.is_some();
    let format = match format {
        Some(format) => format,
        None => {
            let beginning = source.peek(BEGINNING)?;
            if beginning.trim_ascii().is_empty() {
                return Err(ReadError::new(&name, "there is nothing in it"));
            }
            FORMATS.iter().find(|format| (format.detect)(beginning)).ok_or_else(|| {
                let names: Vec<&str> = FORMATS.iter().map(|format| format.name).collect();
                let problem = format!(
                    "no history that begins with {} is known; --format takes {}",
                    error::excerpt(&beginning[..beginning.len().min(200)]),
                    names.join(", ")
                );
                ReadError::new(&name, problem)
            })?
        }
    };
    let Reading::Stream(read) = format.read else {
        return Err(ReadError::new(&name, format!("{} is a directory", format.about)));
    };
    let compression = source.compression();
    let history = read(&mut source).map_err(|error| match asked {
        true => error,
        false => ReadError { format: Some(format.name), ..error },
    })?;
    Ok(Read { history, format, compression })
}
