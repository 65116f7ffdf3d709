//! What each transaction was bound to know, of every session its transactions up to one: a
//! clock says which. The clock of a transaction is kept only until the last who reads from it
//! or follows it in its session has taken it over, which is soon for most.

use super::stale::{Between, Stale, Stop, session_of};
use super::{Line, Told};
use crate::joined::Joined;
use crate::registers::INITIAL;

/// Entries of clocks that are kept at a time: 256 MB.
pub(super) const KEPT: usize = 1 << 26;
/// So many entries may all clocks together have.
const MOST: usize = 2_000_000_000;

/// Tells of the writers that readers were bound to know. Clocks of some sessions at a time if
/// those of all do not fit into the room that there is.
pub(super) fn known_by_clocks(
    between: &mut Between<'_, '_>,
    stale: &[Stale],
    kept: usize,
    told: &mut Vec<Told>,
) -> Result<(), Stop> {
    let (joined, line) = (between.joined, between.line);
    let nodes = joined.nodes();
    let sessions = joined.history.session_count();
    if nodes.saturating_mul(sessions) > MOST {
        return Err(Stop::TooMuch);
    }
    let sources = Sources { joined, before: joined.before_in_session() };
    let mut in_session = vec![1_u32; nodes];
    for (node, before) in sources.before.iter().enumerate() {
        // Those of a session are numbered in its order.
        if *before != INITIAL {
            in_session[node] = in_session[*before as usize] + 1;
        }
    }
    let (takers, most) = sources.takers(line);
    let width = (kept / most.max(1)).clamp(8, sessions.max(8)).min(sessions);
    for first in (0..sessions).step_by(width.max(1)) {
        between.begin();
        let width = width.min(sessions - first);
        let mut clocks = Clocks::new(width, takers.clone());
        let mut stale = stale.iter().peekable();
        let column = |node: u32| {
            (session_of(joined, node) as usize).checked_sub(first).filter(|at| *at < width)
        };
        for node in &line.nodes {
            clocks.begin(*node);
            sources.each(*node, |known| clocks.take_over(*node, known));
            let clock = clocks.of(*node);
            if let Some(column) = column(*node) {
                clock[column] = in_session[*node as usize];
            }
            while let Some(stale) = stale.next_if(|stale| stale.reader == *node) {
                between.each(stale, 0, told, |writer| {
                    column(writer).is_some_and(|at| clock[at] >= in_session[writer as usize])
                })?;
            }
            clocks.end(*node);
        }
    }
    Ok(())
}

/// From whom transactions know what they know.
struct Sources<'a, 'h> {
    joined: &'a Joined<'h>,
    before: Vec<u32>,
}

impl Sources<'_, '_> {
    /// One that was read from several times comes so often.
    fn each(&self, node: u32, visit: impl FnMut(u32)) {
        let read = self.joined.reads.of(node).iter().map(|read| read.writer);
        let known = read.chain([self.before[node as usize]]);
        known.filter(|known| *known != INITIAL && *known != node).for_each(visit);
    }

    /// How often the clock of each is taken over, and how many clocks are needed at a time.
    fn takers(&self, line: &Line) -> (Vec<u32>, usize) {
        let mut takers = vec![0_u32; line.nodes.len()];
        for node in &line.nodes {
            self.each(*node, |known| takers[known as usize] += 1);
        }
        let mut left = takers.clone();
        let (mut needed, mut most) = (0_usize, 0);
        for node in &line.nodes {
            needed += 1;
            most = most.max(needed);
            self.each(*node, |known| {
                left[known as usize] -= 1;
                needed -= usize::from(left[known as usize] == 0);
            });
            needed -= usize::from(takers[*node as usize] == 0);
        }
        (takers, most)
    }
}

/// A row for each node whose clock somebody will still take over.
struct Clocks {
    width: usize,
    rows: Vec<u32>,
    row_of: Vec<u32>,
    free: Vec<u32>,
    takers: Vec<u32>,
}

impl Clocks {
    fn new(width: usize, takers: Vec<u32>) -> Clocks {
        Clocks { width, rows: Vec::new(), row_of: vec![0; takers.len()], free: Vec::new(), takers }
    }

    fn begin(&mut self, node: u32) {
        self.row_of[node as usize] = match self.free.pop() {
            Some(row) => {
                self.rows[row as usize * self.width..][..self.width].fill(0);
                row
            }
            None => {
                self.rows.resize(self.rows.len() + self.width, 0);
                (self.rows.len() / self.width) as u32 - 1
            }
        };
    }

    fn of(&mut self, node: u32) -> &mut [u32] {
        &mut self.rows[self.row_of[node as usize] as usize * self.width..][..self.width]
    }

    fn take_over(&mut self, node: u32, known: u32) {
        let (to, from) = (self.row_of[node as usize], self.row_of[known as usize]);
        let (to, from) = (to as usize * self.width, from as usize * self.width);
        let (low, high) = self.rows.split_at_mut(to.max(from));
        let (own, other) = match to < from {
            true => (&mut low[to..to + self.width], &high[..self.width]),
            false => (&mut high[..self.width], &low[from..from + self.width]),
        };
        for (own, other) in own.iter_mut().zip(other) {
            *own = (*own).max(*other);
        }
        self.takers[known as usize] -= 1;
        self.end(known);
    }

    /// Gives up the row of a node that nobody takes over any more.
    fn end(&mut self, node: u32) {
        if self.takers[node as usize] == 0 {
            self.free.push(self.row_of[node as usize]);
        }
    }
}
