//! Transactions in one line that keeps all that is known, as close to the order of the
//! history as that allows. Databases answer about in the order in which they commit, so what
//! readers tell agrees with such a line nearly always, and only what does not need be looked
//! at.

use super::{Listed, Told, known_orders};
use crate::joined::Joined;
use crate::registers::INITIAL;

/// Where more than one in so many reads saw a transaction that comes later in the history, its
/// order says nothing: it may be that of the sessions, one after the other.
const FEW: usize = 16;

pub(crate) struct Line {
    pub nodes: Vec<u32>,
    /// The place of each node among them.
    pub place: Vec<u32>,
}

impl Line {
    /// A line that keeps reads, known orders of versions, and sessions if they count. None
    /// if they have a cycle.
    pub(crate) fn of(joined: &Joined<'_>, sessions: bool) -> Option<Line> {
        let of_history = Line::through((0..joined.nodes() as u32).collect());
        let against = reads_against(joined);
        if against == 0 && orders_lead_upwards(joined) {
            return Some(of_history);
        }
        let before = Before::of(joined, sessions, &[]);
        let line = Line::through(before.sorted(&of_history).ok()?);
        match against > joined.reads.all.len() / FEW {
            true => Some(Line::through(before.by_depth(&line))),
            false => Some(line),
        }
    }

    /// The same that also keeps what is told. If that closes a cycle, its nodes, from each to
    /// one right before it.
    pub(super) fn keeping(
        &self,
        joined: &Joined<'_>,
        sessions: bool,
        told: &[Told],
    ) -> Result<Line, Vec<u32>> {
        Before::of(joined, sessions, told).sorted(self).map(Line::through)
    }

    fn through(nodes: Vec<u32>) -> Line {
        let mut place = vec![0; nodes.len()];
        for (at, node) in nodes.iter().enumerate() {
            place[*node as usize] = at as u32;
        }
        Line { nodes, place }
    }
}

/// How many reads saw what comes later in the history.
fn reads_against(joined: &Joined<'_>) -> usize {
    let against = |node: u32| {
        let later = |writer: u32| writer != INITIAL && writer > node;
        joined.reads.of(node).iter().filter(|read| later(read.writer)).count()
    };
    (0..joined.nodes() as u32).map(against).sum()
}

fn orders_lead_upwards(joined: &Joined<'_>) -> bool {
    let mut upwards = true;
    known_orders(joined, |from, to, _| upwards &= from < to);
    upwards
}

/// Who comes right before each node.
struct Before<'a, 'h> {
    joined: &'a Joined<'h>,
    /// The one before in the session, or [`INITIAL`]; empty if sessions do not count.
    in_session: Vec<u32>,
    others: Listed,
}

impl<'a, 'h> Before<'a, 'h> {
    fn of(joined: &'a Joined<'h>, sessions: bool, told: &[Told]) -> Before<'a, 'h> {
        let in_session = if sessions { joined.before_in_session() } else { Vec::new() };
        let mut others: Vec<(u32, u32)> =
            told.iter().map(|told| (told.later, told.earlier)).collect();
        known_orders(joined, |from, to, _| others.push((to, from)));
        Before { joined, in_session, others: Listed::of(joined.nodes(), others) }
    }

    /// The predecessor of this number, [`INITIAL`] if that is none; none after the last.
    fn nth(&self, node: u32, number: usize) -> Option<u32> {
        let reads = self.joined.reads.of(node);
        if let Some(read) = reads.get(number) {
            return Some(if read.writer == node { INITIAL } else { read.writer });
        }
        match number - reads.len() {
            0 => Some(self.in_session.get(node as usize).copied().unwrap_or(INITIAL)),
            number => self.others.from(node).get(number - 1).copied(),
        }
    }

    fn each(&self, node: u32, mut visit: impl FnMut(u32)) {
        let all = (0..).map_while(|number| self.nth(node, number));
        all.filter(|before| *before != INITIAL).for_each(&mut visit);
    }

    /// Nodes in the order of the line, each after its predecessors; or those of a cycle, from
    /// each to a predecessor.
    fn sorted(&self, line: &Line) -> Result<Vec<u32>, Vec<u32>> {
        #[derive(Clone, Copy, PartialEq)]
        enum State {
            New,
            Waiting,
            Placed,
        }
        let mut state = vec![State::New; line.nodes.len()];
        let mut sorted = Vec::with_capacity(line.nodes.len());
        let mut path: Vec<(u32, usize)> = Vec::new();
        for root in &line.nodes {
            if state[*root as usize] == State::New {
                state[*root as usize] = State::Waiting;
                path.push((*root, 0));
            }
            while let Some((node, number)) = path.last_mut() {
                match self.nth(*node, *number) {
                    Some(before) => {
                        *number += 1;
                        if before == INITIAL {
                            continue;
                        }
                        match state[before as usize] {
                            State::Placed => {}
                            State::Waiting => {
                                let begins = path.iter().position(|(on, _)| *on == before);
                                let cycle = path[begins.unwrap_or(0)..].iter();
                                return Err(cycle.map(|(node, _)| *node).collect());
                            }
                            State::New => {
                                state[before as usize] = State::Waiting;
                                path.push((before, 0));
                            }
                        }
                    }
                    None => {
                        state[*node as usize] = State::Placed;
                        sorted.push(*node);
                        path.pop();
                    }
                }
            }
        }
        Ok(sorted)
    }

    /// Nodes by how much comes before them and how little after. That keeps what the line
    /// keeps, and is close to the time at which they ran.
    fn by_depth(&self, line: &Line) -> Vec<u32> {
        let mut depth = vec![0_u32; line.nodes.len()];
        for node in &line.nodes {
            let mut deepest = 0;
            self.each(*node, |before| deepest = deepest.max(depth[before as usize] + 1));
            depth[*node as usize] = deepest;
        }
        let mut after = vec![0_u32; line.nodes.len()];
        for node in line.nodes.iter().rev() {
            let behind = after[*node as usize] + 1;
            self.each(*node, |before| {
                after[before as usize] = after[before as usize].max(behind);
            });
        }
        let longest = after.iter().copied().max().unwrap_or(0);
        let mut nodes = line.nodes.clone();
        nodes.sort_by_key(|node| depth[*node as usize] + longest - after[*node as usize]);
        nodes
    }
}
