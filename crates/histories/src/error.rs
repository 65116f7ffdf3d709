//! Errors of readers: the file, the line, and what is wrong.

use std::fmt;

/// Why a history could not be read.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub struct ReadError {
    /// The name of the file.
    pub file: String,
    /// The line, counted from 1, where the format has lines.
    pub line: Option<u64>,
    /// What is wrong, as a sentence.
    pub problem: String,
    /// The format as which the file was read, if it was detected and not requested.
    pub format: Option<&'static str>,
}

impl ReadError {
    /// An error about the whole file.
    pub fn new(file: &str, problem: impl Into<String>) -> ReadError {
        ReadError { file: file.into(), line: None, problem: problem.into(), format: None }
    }

    /// An error in a line, counted from 1.
    pub fn at(file: &str, line: u64, problem: impl Into<String>) -> ReadError {
        ReadError { line: Some(line), ..ReadError::new(file, problem) }
    }
}

impl fmt::Display for ReadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.file)?;
        if let Some(line) = self.line {
            write!(f, ":{line}")?;
        }
        write!(f, ": {}", self.problem)?;
        if let Some(format) = self.format {
            write!(f, " (read as {format}; --format takes another)")?;
        }
        Ok(())
    }
}

/// An excerpt of a file for a message: short, and on one line.
pub(crate) fn excerpt(text: &[u8]) -> String {
    const LONGEST: usize = 60;
    let line = text.split(|byte| *byte == b'\n').next().unwrap_or_default();
    let line = String::from_utf8_lossy(line);
    let line = line.trim();
    match line.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("`{}…`", &line[..end]),
        None => format!("`{line}`"),
    }
}
