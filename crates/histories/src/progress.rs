//! The progress of reading a file.

use std::io::{self, Read};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// The progress of reading a file, updated by the reader and queried on another thread.
#[derive(Clone, Debug, Default)]
pub struct Progress(Arc<Bytes>);

#[derive(Debug, Default)]
struct Bytes {
    read: AtomicU64,
    /// 0 while unknown.
    all: AtomicU64,
}

impl Progress {
    /// The percentage of the file that has been read, in compressed bytes. None if the size is
    /// unknown: stdin, a folder.
    pub fn percent(&self) -> Option<u64> {
        let all = self.0.all.load(Ordering::Relaxed);
        let read = self.0.read.load(Ordering::Relaxed);
        // A file may grow while it is read.
        (all > 0).then(|| (read.saturating_mul(100) / all).min(100))
    }

    pub(crate) fn expect(&self, bytes: u64) {
        self.0.all.store(bytes, Ordering::Relaxed);
    }
}

/// Counts the bytes that are read.
pub(crate) struct CountingReader<R> {
    pub reader: R,
    pub progress: Progress,
}

impl<R: Read> Read for CountingReader<R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let read = self.reader.read(into)?;
        self.progress.0.read.fetch_add(read as u64, Ordering::Relaxed);
        Ok(read)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percent_is_known_once_the_size_is() {
        let progress = Progress::default();
        let mut reader = CountingReader { reader: &[0; 30][..], progress: progress.clone() };
        let mut ten = [0; 10];
        reader.read_exact(&mut ten).unwrap();
        assert_eq!(progress.percent(), None);
        progress.expect(30);
        assert_eq!(progress.percent(), Some(33));
        reader.read_exact(&mut ten).unwrap();
        progress.expect(15);
        assert_eq!(progress.percent(), Some(100));
    }
}
