//! Formats in which every line is independent.

use crate::blocks::in_blocks;
use crate::error::ReadError;
use crate::source::Source;

/// The parsed lines of a block.
pub(crate) trait Lines: Default + Send {
    /// Parses a line without its end.
    fn line(&mut self, number: u32, line: &[u8]) -> Result<(), String>;
}

/// A problem with a line of a block, counted from 0.
pub(crate) type Problem = (u32, String);

/// Reads a whole source; `feed` gets the blocks in their order.
pub(crate) fn read_lines<L: Lines>(
    source: &mut Source,
    mut feed: impl FnMut(L) -> Result<(), Problem>,
) -> Result<(), ReadError> {
    let name = source.name().to_string();
    let mut before = 0;
    in_blocks(source, parse::<L>, |text, (lines, count, problem)| {
        let failure = match problem {
            Some((line, problem)) => {
                // If the last line has no end, it was probably cut off.
                let last = line + 1 == count && !text.ends_with(b"\n");
                let cut = ": the file may be truncated, its last line has no end";
                Some((line, if last { problem + cut } else { problem }))
            }
            None => feed(lines).err(),
        };
        if let Some((line, problem)) = failure {
            return Err(ReadError::at(&name, before + u64::from(line) + 1, problem));
        }
        before += u64::from(count);
        Ok(())
    })
}

fn parse<L: Lines>(text: &[u8]) -> (L, u32, Option<Problem>) {
    let mut lines = L::default();
    let mut count = 0;
    let mut problem = None;
    for line in text.split_inclusive(|byte| *byte == b'\n') {
        let line = line.strip_suffix(b"\n").unwrap_or(line);
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        if problem.is_none() {
            problem = lines.line(count, line).err().map(|problem| (count, problem));
        }
        count += 1;
    }
    (lines, count, problem)
}
