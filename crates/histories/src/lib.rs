//! Reads and writes histories of transactions in the formats of the published checkers, and in
//! Isolde's own format (`docs/history-format.md`), and draws the anomalies found in them.
//!
//! [`read`] takes a file, a folder or stdin, plain or compressed, and detects the format; the
//! result is a [`History`] for [`isolde_checker::check`]:
//!
//! ```
//! use isolde_checker::{Level, Verdict, check};
//! use isolde_histories::{picture, read_bytes};
//!
//! // Plume's format: r(key,value,session,txn). Transactions 2 and 3 read the same version of key 1
//! // and both overwrite it.
//! let text = "w(1,7,0,1)\nr(1,7,1,2)\nw(1,8,1,2)\nr(1,7,2,3)\nw(1,9,2,3)\n";
//! let read = read_bytes("example", text.as_bytes().to_vec(), None)?;
//! assert_eq!((read.format.name, read.history.len()), ("plume", 3));
//!
//! let report = check(&read.history);
//! assert_eq!(report.verdict(Level::SnapshotIsolation), Verdict::Violated);
//!
//! let anomaly = &report.anomalies[0];
//! assert_eq!(anomaly.name(), "lost-update");
//! assert_eq!(
//!     anomaly.sentences(&read.history)[0],
//!     "T2 read key 1 = 7, which T3 overwrote with key 1 = 9, so T2 comes before T3"
//! );
//! let svg = picture::draw(&[picture::Group { history: &read.history, anomaly }]);
//! assert!(svg.starts_with("<svg"));
//! # Ok::<(), isolde_histories::ReadError>(())
//! ```
//!
//! # Structure
//!
//! Each format is one module and one entry of [`FORMATS`]. Long texts are read in blocks that are
//! parsed in parallel (`blocks`, `lines`); a block becomes columns of numbers (`words`), which are
//! passed to the [`Builder`](isolde_checker::Builder) in the order of the file. Every reader
//! reports what is wrong with a file and in which line ([`ReadError`]); none panics on damaged
//! input.

#![forbid(unsafe_code)]
#![warn(missing_docs)]

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
mod lines;
mod own;
pub mod picture;
mod plume;
mod progress;
mod source;
pub mod svg;
mod words;
mod write;

pub use error::ReadError;
use isolde_checker::History;
pub use progress::Progress;
use source::Source;
use std::path::{Path, PathBuf};
pub use write::{write_elle_edn, write_elle_json, write_own, write_own_about};

/// A file format for histories.
pub struct Format {
    /// The name of the format, as `--format` takes it.
    pub name: &'static str,
    /// Which tool writes the format, in a few words.
    pub about: &'static str,
    /// Other accepted names.
    aliases: &'static [&'static str],
    /// Whether a file with this beginning is of this format.
    detect: fn(&[u8]) -> bool,
    read: ReadFunction,
}

/// How a format is read.
enum ReadFunction {
    Stream(fn(&mut Source) -> Result<History, ReadError>),
    Folder(fn(&Path) -> Result<History, ReadError>),
}

/// All formats, in the order in which they are tried on a file.
pub static FORMATS: [Format; 9] = [
    Format {
        name: "isolde",
        about: "Isolde's own JSON lines: one transaction per line (docs/history-format.md)",
        aliases: &["jsonl", "own"],
        detect: own::detect,
        read: ReadFunction::Stream(own::read),
    },
    Format {
        name: "dbcop-binary",
        about: "dbcop's old history.bincode",
        aliases: &["bincode"],
        detect: dbcop_binary::detect,
        read: ReadFunction::Stream(dbcop_binary::read),
    },
    Format {
        name: "dbcop-json",
        about: "dbcop's JSON: sessions of transactions of events",
        aliases: &["dbcop"],
        detect: dbcop_json::detect,
        read: ReadFunction::Stream(dbcop_json::read),
    },
    Format {
        name: "dbcop-text",
        about: "dbcop's text: [x:=1 y==2]",
        aliases: &["hist"],
        detect: dbcop_text::detect,
        read: ReadFunction::Stream(dbcop_text::read),
    },
    Format {
        name: "plume",
        about: "Plume, PolySI, IsoVista: r(key,value,session,txn)",
        aliases: &["polysi", "isovista", "text"],
        detect: plume::detect,
        read: ReadFunction::Stream(plume::read),
    },
    Format {
        name: "awdit",
        about: "AWDIT's test format: r KEY VALUE, ----- and =====",
        aliases: &["awdit-test", "test"],
        detect: awdit::detect,
        read: ReadFunction::Stream(awdit::read),
    },
    Format {
        name: "cobra",
        about: "Cobra: a directory of .log files, one per session",
        aliases: &[],
        detect: |_| false,
        read: ReadFunction::Folder(cobra::read),
    },
    Format {
        name: "elle-json",
        about: "Elle and Jepsen in JSON: an array, or one operation per line",
        aliases: &["elle-jsonl", "jepsen-json"],
        detect: |text| looks_like_elle(text, b'"'),
        read: ReadFunction::Stream(elle::read_json),
    },
    Format {
        name: "elle-edn",
        about: "Elle and Jepsen in EDN: history.edn",
        aliases: &["elle", "jepsen", "edn"],
        detect: |text| looks_like_elle(text, b':'),
        read: ReadFunction::Stream(elle::read_edn),
    },
];

/// Whether a text begins with a map whose first key begins with this byte, bare or in a vector.
fn looks_like_elle(text: &[u8], first: u8) -> bool {
    let blank = |byte: &u8| byte.is_ascii_whitespace() || matches!(byte, b'[' | b'(' | b',');
    let start = text.iter().position(|byte| !blank(byte)).unwrap_or(text.len());
    match &text[start..] {
        [b'{', inside @ ..] => inside.trim_ascii_start().first().is_none_or(|b| *b == first),
        [b'#' | b';', ..] => first == b':',
        // The text may be just the empty vector of operations.
        rest => first == b':' && start > 0 && rest.starts_with(b"]"),
    }
}

impl Format {
    /// The format with this name.
    pub fn named(name: &str) -> Option<&'static Format> {
        let name = name.to_lowercase();
        FORMATS.iter().find(|format| format.name == name || format.aliases.contains(&&name[..]))
    }
}

/// A history, and how it was read.
pub struct Read {
    /// The history.
    pub history: History,
    /// The format in which it was read.
    pub format: &'static Format,
    /// The compression of the file: `gzip`, `zstd` or none.
    pub compression: Option<&'static str>,
}

/// How many bytes of a file are inspected to detect its format.
const BEGINNING: usize = 1 << 16;

/// Reads a file, a folder, or (`-`) stdin. Detects the format if none is given.
pub fn read(path: &Path, format: Option<&'static Format>) -> Result<Read, ReadError> {
    read_with_progress(path, format, &Progress::default())
}

/// The same, and updates `progress` while it reads.
pub fn read_with_progress(
    path: &Path,
    format: Option<&'static Format>,
    progress: &Progress,
) -> Result<Read, ReadError> {
    let path = if path.is_dir() {
        match folder_contents(path, format)? {
            FolderContents::History(file) => file,
            FolderContents::Logs => {
                let format = Format::named("cobra").expect("it is in the table");
                let ReadFunction::Folder(read) = format.read else {
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

/// Reads a history from memory; `name` is its name in messages.
pub fn read_bytes(
    name: &str,
    bytes: Vec<u8>,
    format: Option<&'static Format>,
) -> Result<Read, ReadError> {
    read_source(Source::of(name, std::io::Cursor::new(bytes))?, format)
}

/// What a folder contains.
enum FolderContents {
    History(PathBuf),
    Logs,
}

/// Finds the history in a folder.
fn folder_contents(
    folder: &Path,
    format: Option<&'static Format>,
) -> Result<FolderContents, ReadError> {
    const KNOWN: [&str; 5] =
        ["history.bincode", "history.edn", "history.jsonl", "history.json", "history.txt"];
    let cobra = format.is_none_or(|format| format.name == "cobra");
    let known = KNOWN.iter().map(|name| folder.join(name)).find(|file| file.is_file());
    match known {
        Some(file) if format.is_none_or(|format| format.name != "cobra") => {
            Ok(FolderContents::History(file))
        }
        _ if cobra && (format.is_some() || !cobra::logs(folder).is_empty()) => {
            Ok(FolderContents::Logs)
        }
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
    let requested = format.is_some();
    let format = match format {
        Some(format) => format,
        None => {
            let beginning = source.peek(BEGINNING)?;
            if beginning.trim_ascii().is_empty() {
                return Err(ReadError::new(&name, "the file is empty"));
            }
            FORMATS.iter().find(|format| (format.detect)(beginning)).ok_or_else(|| {
                let names: Vec<&str> = FORMATS.iter().map(|format| format.name).collect();
                let problem = format!(
                    "no format begins with {}; --format takes {}",
                    error::excerpt(&beginning[..beginning.len().min(200)]),
                    names.join(", ")
                );
                ReadError::new(&name, problem)
            })?
        }
    };
    let ReadFunction::Stream(read) = format.read else {
        return Err(ReadError::new(&name, format!("{} is a directory", format.about)));
    };
    let compression = source.compression();
    let history = read(&mut source).map_err(|error| match requested {
        true => error,
        false => ReadError { format: Some(format.name), ..error },
    })?;
    Ok(Read { history, format, compression })
}
