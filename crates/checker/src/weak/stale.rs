//! What readers tell against a line of all transactions. Only who read an item that another
//! wrote later in the line, but before the reader, can tell such a thing.

use super::{Line, Rule};
use crate::joined::{Joined, Read};
use crate::registers::{INITIAL, Rows};

/// So many reads and writers are looked at, for each read on average, before it is given up.
const PATIENCE: usize = 32;
/// Entries of clocks that are kept at a time: 256 MB.
pub(super) const KEPT: usize = 1 << 26;
/// So many entries may all clocks together have.
const MOST: usize = 2_000_000_000;

/// A read that is not of the last version before its reader.
struct Stale {
    reader: u32,
    read: Read,
}

/// The edges from earlier to later versions that readers tell and that lead backwards in the
/// line. None if it is too much to find them, or if one of them leads to the version that
/// was there in the beginning. Of clocks so many entries are kept at a time.
pub(super) fn told_against(
    joined: &Joined<'_>,
    rule: Rule,
    sessions: bool,
    line: &Line,
    kept: usize,
) -> Option<Vec<(u32, u32)>> {
    let stale = stale_reads(joined, line);
    if stale.is_empty() {
        return Some(Vec::new());
    }
    let mut between = Between { joined, line, writers: writers_in_line(joined, line), patience: 0 };
    between.begin();
    let mut told = Vec::new();
    if rule == Rule::Causal {
        known_by_clocks(&mut between, &stale, kept, &mut told)?;
    } else {
        for stale in &stale {
            let Stale { reader, read } = stale;
            let reads = joined.reads.of(*reader);
            let upto = match rule {
                Rule::Monotonic => reads.partition_point(|other| other.op < read.op),
                _ => reads.len(),
            };
            let session = session_of(joined, *reader);
            let by_session = sessions && rule == Rule::Atomic;
            between.each(stale, upto, &mut told, |writer| {
                by_session && session_of(joined, writer) == session
                    || reads[..upto].iter().any(|other| other.writer == writer)
            })?;
        }
    }
    told.sort_unstable();
    told.dedup();
    Some(told)
}

fn stale_reads(joined: &Joined<'_>, line: &Line) -> Vec<Stale> {
    let mut last_writer = vec![INITIAL; joined.history.item_count()];
    let mut stale = Vec::new();
    for node in &line.nodes {
        for read in joined.reads.of(*node) {
            if last_writer[read.item as usize] != read.writer {
                stale.push(Stale { reader: *node, read: *read });
            }
        }
        for write in joined.writes.of(*node) {
            last_writer[write.item as usize] = *node;
        }
    }
    stale
}

/// For each item its writers, in the order of the line.
fn writers_in_line(joined: &Joined<'_>, line: &Line) -> Rows<u32> {
    let items = joined.history.item_count();
    let mut starts = vec![0_u32; items + 1];
    for write in &joined.writes.all {
        starts[write.item as usize + 1] += 1;
    }
    for item in 0..items {
        starts[item + 1] += starts[item];
    }
    let (mut next, mut all) = (starts.clone(), vec![0; joined.writes.all.len()]);
    for node in &line.nodes {
        for write in joined.writes.of(*node) {
            all[next[write.item as usize] as usize] = *node;
            next[write.item as usize] += 1;
        }
    }
    Rows { starts, all }
}

/// Finds the writers that stand between what was read and the reader.
struct Between<'a, 'h> {
    joined: &'a Joined<'h>,
    line: &'a Line,
    writers: Rows<u32>,
    patience: usize,
}

impl Between<'_, '_> {
    /// Begins a walk over all that is stale.
    fn begin(&mut self) {
        self.patience = PATIENCE * self.joined.reads.all.len();
    }

    /// Tells of those between that the reader knows, which costs a look at so many reads.
    fn each(
        &mut self,
        Stale { reader, read }: &Stale,
        cost: usize,
        told: &mut Vec<(u32, u32)>,
        knows: impl Fn(u32) -> bool,
    ) -> Option<()> {
        let place = |node: u32| self.line.place[node as usize];
        let writers = self.writers.of(read.item);
        let end = writers.partition_point(|writer| place(*writer) < place(*reader));
        for writer in writers[..end].iter().rev() {
            if read.writer != INITIAL && place(*writer) <= place(read.writer) {
                break;
            }
            self.patience = self.patience.checked_sub(1 + cost)?;
            if knows(*writer) {
                if read.writer == INITIAL {
                    return None;
                }
                told.push((*writer, read.writer));
            }
        }
        Some(())
    }
}

fn session_of(joined: &Joined<'_>, node: u32) -> u32 {
    joined.history.session_of(joined.txns[node as usize]).0
}

/// What each transaction was bound to know, of every session its transactions up to one: a
/// clock says which. Clocks of some sessions at a time, so that they take no more than their
/// room.
fn known_by_clocks(
    between: &mut Between<'_, '_>,
    stale: &[Stale],
    kept: usize,
    told: &mut Vec<(u32, u32)>,
) -> Option<()> {
    let (joined, line) = (between.joined, between.line);
    let nodes = joined.nodes();
    let sessions = joined.history.session_count();
    if nodes.saturating_mul(sessions) > MOST {
        return None;
    }
    let mut in_session = vec![0_u32; nodes];
    let mut counts = vec![0_u32; sessions];
    for node in 0..nodes as u32 {
        let count = &mut counts[session_of(joined, node) as usize];
        *count += 1;
        in_session[node as usize] = *count;
    }
    let width = (kept / nodes.max(1)).clamp(8, sessions.max(8)).min(sessions);
    for first in (0..sessions).step_by(width) {
        between.begin();
        let width = width.min(sessions - first);
        let mut clocks = Clocks { width, rows: vec![0; nodes * width] };
        let mut last = vec![INITIAL; sessions];
        let mut stale = stale.iter().peekable();
        let column = |node: u32| {
            (session_of(joined, node) as usize).checked_sub(first).filter(|at| *at < width)
        };
        for node in &line.nodes {
            let before = std::mem::replace(&mut last[session_of(joined, *node) as usize], *node);
            let read = joined.reads.of(*node).iter().map(|read| read.writer);
            for known in read.chain([before]).filter(|known| *known != INITIAL && known != node) {
                clocks.join(*node, known);
            }
            if let Some(column) = column(*node) {
                clocks.rows[*node as usize * width + column] = in_session[*node as usize];
            }
            let clock = &clocks.rows[*node as usize * width..][..width];
            while let Some(stale) = stale.next_if(|stale| stale.reader == *node) {
                between.each(stale, 0, told, |writer| {
                    column(writer).is_some_and(|at| clock[at] >= in_session[writer as usize])
                })?;
            }
        }
    }
    Some(())
}

/// A row for each node.
struct Clocks {
    width: usize,
    rows: Vec<u32>,
}

impl Clocks {
    fn join(&mut self, node: u32, known: u32) {
        let (to, from) = (node as usize * self.width, known as usize * self.width);
        let (low, high) = self.rows.split_at_mut(to.max(from));
        let (own, other) = match to < from {
            true => (&mut low[to..to + self.width], &high[..self.width]),
            false => (&mut high[..self.width], &low[from..from + self.width]),
        };
        for (own, other) in own.iter_mut().zip(other) {
            *own = (*own).max(*other);
        }
    }
}
