//! What readers tell against a line of all transactions. Only who read an item that another
//! wrote later in the line, but before the reader, can tell such a thing.

use super::{Line, Rule, Told, clocks};
use crate::joined::{Joined, Read};
use crate::registers::{INITIAL, Rows};

/// So many reads and writers are looked at, for each read on average, before it is given up.
const PATIENCE: usize = 32;

/// A read that is not of the last version before its reader.
pub(super) struct Stale {
    pub reader: u32,
    read: Read,
}

/// What stale reads tell against a line.
#[derive(PartialEq, Eq, Debug)]
pub(super) enum Against {
    /// That these versions, which stand the other way round in it, came before others.
    Told(Vec<Told>),
    /// That a version came before the one that was there in the beginning: no line is right.
    Broken(Told),
    /// It takes too long to find out.
    TooMuch,
}

/// Why a walk over what is stale ends early.
pub(super) enum Stop {
    Broken(Told),
    TooMuch,
}

/// What readers tell that leads backwards in the line: each two versions once. Of clocks so
/// many entries are kept at a time.
pub(super) fn told_against(
    joined: &Joined<'_>,
    rule: Rule,
    sessions: bool,
    line: &Line,
    kept: usize,
) -> Against {
    let mut told = Vec::new();
    match walk(joined, rule, sessions, line, kept, &mut told) {
        Ok(()) => {}
        Err(Stop::Broken(told)) => return Against::Broken(told),
        Err(Stop::TooMuch) => return Against::TooMuch,
    }
    told.sort_unstable_by_key(|told| (told.earlier, told.later, told.reader, told.item));
    told.dedup_by_key(|told| (told.earlier, told.later));
    Against::Told(told)
}

fn walk(
    joined: &Joined<'_>,
    rule: Rule,
    sessions: bool,
    line: &Line,
    kept: usize,
    told: &mut Vec<Told>,
) -> Result<(), Stop> {
    let stale = stale_reads(joined, line);
    if stale.is_empty() {
        return Ok(());
    }
    let mut between = Between { joined, line, writers: writers_in_line(joined, line), patience: 0 };
    between.begin();
    if rule == Rule::Causal {
        return clocks::known_by_clocks(&mut between, &stale, kept, told);
    }
    for stale in &stale {
        let Stale { reader, read } = stale;
        let reads = joined.reads.of(*reader);
        let upto = match rule {
            Rule::Monotonic => reads.partition_point(|other| other.op < read.op),
            _ => reads.len(),
        };
        let session = session_of(joined, *reader);
        let by_session = sessions && rule == Rule::Atomic;
        between.each(stale, upto, told, |writer| {
            by_session && session_of(joined, writer) == session
                || reads[..upto].iter().any(|other| other.writer == writer)
        })?;
    }
    Ok(())
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
pub(super) struct Between<'a, 'h> {
    pub joined: &'a Joined<'h>,
    pub line: &'a Line,
    writers: Rows<u32>,
    patience: usize,
}

impl Between<'_, '_> {
    /// Begins a walk over all that is stale.
    pub(super) fn begin(&mut self) {
        self.patience = PATIENCE * self.joined.reads.all.len();
    }

    /// Tells of those between that the reader knows, which costs a look at so many reads.
    pub(super) fn each(
        &mut self,
        Stale { reader, read }: &Stale,
        cost: usize,
        told: &mut Vec<Told>,
        knows: impl Fn(u32) -> bool,
    ) -> Result<(), Stop> {
        let place = |node: u32| self.line.place[node as usize];
        let writers = self.writers.of(read.item);
        let end = writers.partition_point(|writer| place(*writer) < place(*reader));
        for writer in writers[..end].iter().rev() {
            if read.writer != INITIAL && place(*writer) <= place(read.writer) {
                break;
            }
            self.patience = self.patience.checked_sub(1 + cost).ok_or(Stop::TooMuch)?;
            if knows(*writer) {
                let (earlier, later) = (*writer, read.writer);
                let new = Told { earlier, later, item: read.item, reader: *reader };
                if later == INITIAL {
                    return Err(Stop::Broken(new));
                }
                told.push(new);
            }
        }
        Ok(())
    }
}

pub(super) fn session_of(joined: &Joined<'_>, node: u32) -> u32 {
    joined.history.session_of(joined.txns[node as usize]).0
}
