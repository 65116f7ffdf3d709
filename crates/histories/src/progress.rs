//! How far the reading of a file has come, for who waits for it.

use std::io::{self, Read};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Is told by who reads and asked by who waits, on another thread.
#[derive(Clone, Debug, Default)]
pub struct Progress(Arc<Bytes>);

#[derive(Debug, Default)]
struct Bytes {
    read: AtomicU64,
    /// 0 as long as nobody knows.
    all: AtomicU64,
}

impl Progress {
    /// How much of the file has been read, packed as it is. None where its size says nothing:
    /// stdin, a folder.
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

/// Counts what is read.
pub(crate) struct Counted<R> {
    pub reader: R,
    pub progress: Progress,
}

impl<R: Read> Read for Counted<R> {
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
    fn percents_count_what_was_read_of_a_size_that_is_known() {
        let progress = Progress::default();
        let mut counted = Counted { reader: &[0; 30][..], progress: progress.clone() };
        let mut ten = [0; 10];
        counted.read_exact(&mut ten).unwrap();
        assert_eq!(progress.percent(), None);
        progress.expect(30);
        assert_eq!(progress.percent(), Some(33));
        counted.read_exact(&mut ten).unwrap();
        progress.expect(15);
        assert_eq!(progress.percent(), Some(100));
    }
}
