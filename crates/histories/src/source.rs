//! The source of the bytes of a history: a file or stdin, plain or compressed.

use crate::error::ReadError;
use crate::progress::{CountingReader, Progress};
use flate2::read::MultiGzDecoder;
use ruzstd::decoding::errors::{FrameDecoderError, ReadFrameHeaderError};
use ruzstd::decoding::{BlockDecodingStrategy, FrameDecoder};
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;

/// A stream of bytes whose beginning can be inspected.
pub struct Source {
    name: String,
    reader: Box<dyn Read + Send>,
    compression: Option<&'static str>,
    /// Bytes that were inspected and not read yet.
    ahead: Vec<u8>,
    ended: bool,
}

impl Source {
    /// Opens a file; `-` is stdin.
    pub fn open(path: &Path, progress: &Progress) -> Result<Source, ReadError> {
        if path == Path::new("-") {
            return Source::of("stdin", io::stdin());
        }
        let name = path.display().to_string();
        let file = File::open(path).map_err(|error| ReadError::new(&name, error.to_string()))?;
        if let Ok(about) = file.metadata() {
            progress.expect(about.len());
        }
        Source::of(&name, CountingReader { reader: file, progress: progress.clone() })
    }

    /// The bytes of a reader, decompressed if they begin like gzip or zstd.
    pub fn of(name: &str, reader: impl Read + Send + 'static) -> Result<Source, ReadError> {
        let mut reader = BufReader::with_capacity(1 << 18, reader);
        let magic = beginning(&mut reader).map_err(|e| ReadError::new(name, e.to_string()))?;
        let (reader, compression): (Box<dyn Read + Send>, _) = match magic {
            [0x1f, 0x8b, ..] => (Box::new(MultiGzDecoder::new(reader)), Some("gzip")),
            [0x28, 0xb5, 0x2f, 0xfd] => (Box::new(Zstd::new(reader)), Some("zstd")),
            _ => (Box::new(reader), None),
        };
        Ok(Source { name: name.into(), reader, compression, ahead: Vec::new(), ended: false })
    }

    /// The name of the source, for messages.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The compression, if any.
    pub fn compression(&self) -> Option<&'static str> {
        self.compression
    }

    /// The first bytes, which remain to be read.
    pub fn peek(&mut self, length: usize) -> Result<&[u8], ReadError> {
        if self.ahead.len() < length {
            let mut ahead = std::mem::take(&mut self.ahead);
            let missing = length - ahead.len();
            self.fill(&mut ahead, missing)?;
            self.ahead = ahead;
        }
        Ok(&self.ahead[..self.ahead.len().min(length)])
    }

    /// Appends up to this many bytes; fewer only at the end.
    pub fn read(&mut self, into: &mut Vec<u8>, length: usize) -> Result<usize, ReadError> {
        let ready = self.ahead.len().min(length);
        into.extend(self.ahead.drain(..ready));
        Ok(ready + self.fill(into, length - ready)?)
    }

    /// All remaining bytes.
    pub fn rest(&mut self) -> Result<Vec<u8>, ReadError> {
        let mut all = Vec::new();
        while self.read(&mut all, 1 << 22)? > 0 {}
        Ok(all)
    }

    fn fill(&mut self, into: &mut Vec<u8>, length: usize) -> Result<usize, ReadError> {
        if self.ended {
            return Ok(0);
        }
        let read = (&mut self.reader).take(length as u64).read_to_end(into);
        let read = read.map_err(|error| self.failure(&error))?;
        self.ended = read < length;
        Ok(read)
    }

    fn failure(&self, error: &io::Error) -> ReadError {
        let problem = match self.compression {
            Some(packed) if error.kind() == io::ErrorKind::UnexpectedEof => format!(
                "the {packed} data ends in the middle: the file is truncated, copy it again"
            ),
            Some(packed) => format!("the {packed} data is damaged: {error}"),
            None => error.to_string(),
        };
        ReadError::new(&self.name, problem)
    }
}

/// Up to four bytes, without consuming them.
fn beginning(reader: &mut BufReader<impl Read>) -> io::Result<&[u8]> {
    let bytes = reader.fill_buf()?;
    Ok(&bytes[..bytes.len().min(4)])
}

/// Decodes all frames of a zstd stream; the library decodes one.
struct Zstd<R> {
    source: BufReader<R>,
    frame: FrameDecoder,
    inside: bool,
}

impl<R: Read> Zstd<R> {
    fn new(source: BufReader<R>) -> Zstd<R> {
        Zstd { source, frame: FrameDecoder::new(), inside: false }
    }

    /// Moves to the next frame with data; false at the end.
    fn next_frame(&mut self) -> io::Result<bool> {
        loop {
            if self.source.fill_buf()?.is_empty() {
                return Ok(false);
            }
            match self.frame.reset(&mut self.source) {
                Ok(()) => return Ok(true),
                Err(FrameDecoderError::ReadFrameHeaderError(ReadFrameHeaderError::SkipFrame {
                    length,
                    ..
                })) => {
                    let wanted = u64::from(length);
                    let skipped = io::copy(&mut (&mut self.source).take(wanted), &mut io::sink())?;
                    if skipped < wanted {
                        return Err(io::ErrorKind::UnexpectedEof.into());
                    }
                }
                Err(error) => return Err(self.failure(&error)),
            }
        }
    }

    /// The library reports an early end as many kinds of errors; what they have in common is that
    /// no input is left.
    fn failure(&mut self, error: &FrameDecoderError) -> io::Error {
        match self.source.fill_buf() {
            Ok([]) => io::ErrorKind::UnexpectedEof.into(),
            _ => io::Error::other(error.to_string()),
        }
    }
}

impl<R: Read> Read for Zstd<R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        loop {
            if self.inside && self.frame.can_collect() > 0 {
                return self.frame.read(into);
            }
            if self.inside && !self.frame.is_finished() {
                let more = BlockDecodingStrategy::UptoBytes(into.len().max(1));
                if let Err(error) = self.frame.decode_blocks(&mut self.source, more) {
                    return Err(self.failure(&error));
                }
                continue;
            }
            self.inside = self.next_frame()?;
            if !self.inside {
                return Ok(0);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flate2::Compression;
    use ruzstd::encoding::{CompressionLevel, compress_to_vec};
    use std::io::{Cursor, Write};

    fn text() -> Vec<u8> {
        (0..50_000).flat_map(|n| format!("w({n},1,0,{n})\n").into_bytes()).collect()
    }

    fn gzip(text: &[u8]) -> Vec<u8> {
        let mut packed = flate2::write::GzEncoder::new(Vec::new(), Compression::fast());
        packed.write_all(text).unwrap();
        packed.finish().unwrap()
    }

    fn zstd(text: &[u8]) -> Vec<u8> {
        compress_to_vec(text, CompressionLevel::Fastest)
    }

    fn unpack(packed: Vec<u8>) -> Result<Vec<u8>, ReadError> {
        let mut source = Source::of("file", Cursor::new(packed))?;
        source.peek(100)?;
        source.rest()
    }

    #[test]
    fn compressed_streams_are_decompressed_also_when_concatenated() {
        for pack in [gzip, zstd] {
            assert_eq!(unpack(pack(&text())).unwrap(), text());
            let twice = [pack(b"ab"), pack(b"cd")].concat();
            assert_eq!(unpack(twice).unwrap(), b"abcd");
        }
        assert_eq!(unpack(text()).unwrap(), text());
        assert_eq!(unpack(Vec::new()).unwrap(), b"");
    }

    #[test]
    fn skippable_zstd_frames_are_skipped() {
        let mut skipped = zstd(b"ab");
        skipped.extend([0x50, 0x2a, 0x4d, 0x18, 3, 0, 0, 0, 1, 2, 3]);
        skipped.extend(zstd(b"cd"));
        assert_eq!(unpack(skipped).unwrap(), b"abcd");
    }

    #[test]
    fn a_compressed_file_that_ends_early_is_reported_as_truncated() {
        for pack in [gzip, zstd] {
            let packed = pack(&text());
            for end in [packed.len() - 1, packed.len() / 2, 20] {
                let error = unpack(packed[..end].to_vec()).unwrap_err();
                assert!(error.problem.contains("truncated"), "{end}: {error}");
            }
        }
    }

    #[test]
    fn a_compressed_file_with_a_wrong_byte_is_reported_as_damaged() {
        let mut packed = gzip(&text());
        let middle = packed.len() / 2;
        packed[middle] ^= 0xff;
        packed[middle + 1] ^= 0xff;
        let error = unpack(packed).unwrap_err();
        assert!(
            error.problem.contains("damaged") || error.problem.contains("truncated"),
            "{error}"
        );
    }
}
