//! Reads long files in blocks of whole lines, which are parsed in parallel and passed on in their
//! order. At most a few blocks are in memory at a time.

use crate::error::ReadError;
use crate::source::Source;
use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::mpsc::sync_channel;
use std::thread;

const BLOCK: usize = 4 << 20;
/// A line longer than this is cut where the block ends.
const LONGEST_LINE: usize = 64 << 20;

/// Passes the text of a source, block by block, to `parse` on several threads, and its result, with
/// the text, to `feed` in the order of the file.
pub(crate) fn in_blocks<P: Send>(
    source: &mut Source,
    parse: impl Fn(&[u8]) -> P + Sync,
    mut feed: impl FnMut(Vec<u8>, P) -> Result<(), ReadError>,
) -> Result<(), ReadError> {
    let mut block_reader =
        BlockReader { source, partial_line: Vec::new(), number: 0, ended: false };
    let Some((_, first)) = block_reader.next()? else { return Ok(()) };
    let parsed = parse(&first);
    feed(first, parsed)?;
    let Some(second) = block_reader.next()? else { return Ok(()) };
    let workers = thread::available_parallelism().map_or(1, usize::from).min(8);
    let block_reader = Mutex::new(block_reader);
    let waiting = Mutex::new(Some(second));
    thread::scope(|scope| {
        let (send, receive) = sync_channel(workers);
        for _ in 0..workers {
            let (send, block_reader, waiting, parse) =
                (send.clone(), &block_reader, &waiting, &parse);
            scope.spawn(move || {
                loop {
                    let mut block_reader =
                        block_reader.lock().expect("no thread panics while it reads");
                    let taken = waiting.lock().expect("no thread panics here").take();
                    let next = taken.map_or_else(|| block_reader.next(), |block| Ok(Some(block)));
                    drop(block_reader);
                    let message = match next {
                        Ok(None) => break,
                        Ok(Some((number, text))) => {
                            let parsed = parse(&text);
                            Ok((number, text, parsed))
                        }
                        Err(error) => Err(error),
                    };
                    let failed = message.is_err();
                    // The receiver hangs up after the first error.
                    if send.send(message).is_err() || failed {
                        break;
                    }
                }
            });
        }
        drop(send);
        let mut out_of_order = BTreeMap::new();
        let mut expected = 1;
        let mut failure = None;
        for message in receive {
            match message {
                Ok((number, text, parsed)) => out_of_order.insert(number, (text, parsed)),
                // Blocks before it are fed first: an earlier line may be wrong, too.
                Err(error) => {
                    failure = Some(error);
                    continue;
                }
            };
            while let Some((text, parsed)) = out_of_order.remove(&expected) {
                feed(text, parsed)?;
                expected += 1;
            }
        }
        failure.map_or(Ok(()), Err)
    })
}

/// Cuts a source into blocks.
struct BlockReader<'a> {
    source: &'a mut Source,
    /// The beginning of a line that ends in the next block.
    partial_line: Vec<u8>,
    number: u64,
    ended: bool,
}

impl BlockReader<'_> {
    fn next(&mut self) -> Result<Option<(u64, Vec<u8>)>, ReadError> {
        let mut text = std::mem::take(&mut self.partial_line);
        text.reserve(BLOCK);
        while !self.ended {
            let before = text.len();
            self.ended = self.source.read(&mut text, BLOCK)? < BLOCK;
            if self.ended {
                break;
            }
            if let Some(end) = text[before..].iter().rposition(|byte| *byte == b'\n') {
                self.partial_line = text.split_off(before + end + 1);
                break;
            }
            if text.len() >= LONGEST_LINE {
                break;
            }
        }
        if text.is_empty() {
            return Ok(None);
        }
        self.number += 1;
        Ok(Some((self.number - 1, text)))
    }
}

/// The number of line ends.
pub(crate) fn line_ends(text: &[u8]) -> u64 {
    text.iter().filter(|byte| **byte == b'\n').count() as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Cursor;

    fn blocks(text: &[u8]) -> Vec<Vec<u8>> {
        let mut source = Source::of("file", Cursor::new(text.to_vec())).unwrap();
        let mut blocks = Vec::new();
        in_blocks(&mut source, <[u8]>::len, |text, length| {
            assert_eq!(text.len(), length);
            blocks.push(text);
            Ok(())
        })
        .unwrap();
        blocks
    }

    #[test]
    fn blocks_come_in_order_and_end_with_lines() {
        let text: Vec<u8> =
            (0..2_000_000).flat_map(|n| format!("line {n}\n").into_bytes()).collect();
        let blocks = blocks(&text);
        assert!(blocks.len() > 4);
        assert!(blocks.iter().all(|block| block.ends_with(b"\n")));
        assert!(blocks.concat() == text);
    }

    #[test]
    fn a_last_line_needs_no_end_and_an_empty_file_has_no_blocks() {
        assert_eq!(blocks(b"a\nb"), [b"a\nb"]);
        assert!(blocks(b"").is_empty());
    }

    #[test]
    fn an_error_from_feed_ends_the_reading() {
        let text = vec![b'\n'; 5 * BLOCK];
        let mut source = Source::of("file", Cursor::new(text)).unwrap();
        let mut fed = 0;
        let result = in_blocks(
            &mut source,
            |_| (),
            |_, ()| {
                fed += 1;
                if fed == 2 { Err(ReadError::new("file", "wrong")) } else { Ok(()) }
            },
        );
        assert_eq!((result.unwrap_err().problem.as_str(), fed), ("wrong", 2));
    }
}
