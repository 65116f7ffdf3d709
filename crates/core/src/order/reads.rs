//! What reads tell: whose version they saw, and which one they did not see yet.

use super::chains::Chains;
use super::facts::{Facts, Transaction};
use super::{Edges, Irregular, Open, Rule};
use crate::profile::Sees;

/// How the reads of a protocol are understood.
pub(super) struct Reads<'c> {
    /// What was committed, in the order of its versions.
    pub committed: &'c Chains,
    /// All that was written, committed or not, where somebody may see it.
    pub all: &'c Chains,
    /// Writes and locking reads see what is current, where the level's snapshot is for
    /// plain reads only.
    pub current: bool,
}

/// A version of another transaction that was read.
struct Seen {
    read: u32,
    item: u32,
    /// Whoever wrote it; none for what the setup left.
    from: Option<u32>,
    /// Its place among all that was written.
    place: Option<u32>,
    /// The write that comes after it and was not seen.
    next: Option<u32>,
    /// The statement at which it was visible.
    moment: u32,
}

impl Reads<'_> {
    pub fn tell(&self, facts: &Facts<'_>, edges: &mut Edges<'_, '_>) {
        let mut seen = Vec::new();
        for number in 0..facts.transactions.len() {
            let of = &facts.transactions[number];
            seen.clear();
            for read in facts.operations_of(number) {
                self.collect(facts, *read, &mut seen);
            }
            if of.sees == Sees::Latest {
                seen.iter().for_each(|seen| self.latest(facts, seen, edges));
                continue;
            }
            if self.is_torn(facts, &seen) {
                let first = &seen[0];
                edges.irregular(Irregular::TornSnapshot, first.read, None);
                seen.iter_mut().for_each(|seen| seen.moment = seen.read);
            }
            seen.iter().for_each(|seen| self.committed(facts, seen, edges));
        }
    }

    fn collect(&self, facts: &Facts<'_>, read: u32, seen: &mut Vec<Seen>) {
        let own = facts.operation(read).transaction;
        for access in facts.reads(read) {
            let place = self.all.find(*access);
            let written = place.map(|at| *self.all.at(at));
            if written.is_some_and(|made| made.transaction == own) {
                continue;
            }
            let from = written.map(|made| made.write);
            let lasting = self.committed.find(*access);
            // What was never committed has no place in the order.
            let after = match (from, lasting) {
                (Some(_), None) => None,
                _ => self.committed.after(access.item, lasting),
            };
            let next = after.map(|at| *self.committed.at(at));
            let next = next.filter(|made| made.transaction != own).map(|made| made.write);
            let moment = self.moment(facts, facts.transaction_of(read), read);
            seen.push(Seen { read, item: access.item, from, place, next, moment });
        }
    }

    /// The statement that took the snapshot in which a read looks.
    fn moment(&self, facts: &Facts<'_>, of: &Transaction, read: u32) -> u32 {
        let changes = !facts.writes(read).is_empty() || facts.is_locking(read);
        let snapshot = match of.sees {
            Sees::Latest | Sees::Committed | Sees::Locked => None,
            // A statement that stands alone is its own transaction.
            _ if of.end.is_none() && of.how == crate::history::TxEnd::Committed => None,
            Sees::Snapshot => of.first_statement,
            Sees::SnapshotOfFirstRead if changes && self.current => None,
            Sees::SnapshotOfFirstRead => of.first_read,
            Sees::SnapshotOfBegin if changes && self.current => None,
            Sees::SnapshotOfBegin => of.begin,
        };
        snapshot.unwrap_or(read)
    }

    /// Whether no moment is behind all that was seen and before all that was not.
    fn is_torn(&self, facts: &Facts<'_>, seen: &[Seen]) -> bool {
        let snapshot = seen.iter().find(|seen| seen.moment != seen.read).map(|seen| seen.moment);
        let snapshots = || seen.iter().filter(|seen| Some(seen.moment) == snapshot);
        if snapshots().nth(1).is_none() {
            return false;
        }
        let commit = |write: &u32| facts.commit_of(*write);
        let from: Vec<u32> = snapshots().filter_map(|s| s.from.as_ref().and_then(commit)).collect();
        let mut next: Vec<u32> =
            snapshots().filter_map(|s| s.next.as_ref().and_then(commit)).collect();
        let latest = from.iter().map(|at| facts.operation(*at).start).max();
        let earliest = next.iter().map(|at| facts.operation(*at).end).min();
        if latest.zip(earliest).is_some_and(|(latest, earliest)| latest > earliest) {
            return true;
        }
        next.sort_unstable();
        from.iter().any(|at| next.binary_search(at).is_ok())
    }

    /// A read of what was committed at its moment.
    fn committed(&self, facts: &Facts<'_>, seen: &Seen, edges: &mut Edges<'_, '_>) {
        let Seen { read, moment, .. } = *seen;
        // Who takes a snapshot and then waits for a lock has taken it before.
        let locks = !facts.writes(moment).is_empty() || facts.is_locking(moment);
        let waits = locks && moment != read;
        if let Some(write) = seen.from {
            let commit = facts.commit_of(write).filter(|commit| facts.can(*commit, read));
            match commit {
                Some(commit) if edges.add_seen(commit, moment, waits, Rule::ReadsFrom) => {}
                Some(commit) => {
                    edges.irregular(Irregular::BeyondSnapshot, read, Some(write));
                    edges.add(commit, read, Rule::ReadsFrom);
                }
                None => {
                    edges.irregular(Irregular::DirtyRead, read, Some(write));
                    self.dirty(facts, seen, write, edges);
                    return;
                }
            }
        }
        let next = seen.next.and_then(|next| facts.commit_of(next));
        let Some(commit) = next else { return };
        let said = edges.add_unseen(moment, commit, waits, Rule::Overwritten);
        if !said {
            edges.irregular(Irregular::StaleRead, read, Some(commit));
        }
    }

    /// A read of what somebody had not committed yet, or never did.
    fn dirty(&self, facts: &Facts<'_>, seen: &Seen, write: u32, edges: &mut Edges<'_, '_>) {
        edges.add(write, seen.read, Rule::ReadsFrom);
        edges.add(seen.read, facts.release_of(write), Rule::Overwritten);
        if let Some(next) = seen.next {
            edges.add(seen.read, next, Rule::Overwritten);
        }
    }

    /// A read of whatever is there. Who wrote next did so later, unless it was taken back
    /// before.
    fn latest(&self, facts: &Facts<'_>, seen: &Seen, edges: &mut Edges<'_, '_>) {
        let read = seen.read;
        if let Some(write) = seen.from {
            edges.add(write, read, Rule::ReadsFrom);
            if facts.commit_of(write).is_none() {
                let back = facts.undone.get(&write).copied();
                let back = back.unwrap_or_else(|| facts.release_of(write));
                edges.add(read, back, Rule::Overwritten);
            }
        }
        let own = facts.operation(read).transaction;
        let mut at = self.all.behind(seen.item, seen.place);
        while let Some(place) = at {
            let next = *self.all.at(place);
            at = self.all.behind(seen.item, Some(place));
            if next.transaction == own || facts.must(read, next.write) {
                return;
            }
            let taken_back = facts.undone.get(&next.write).copied();
            let lasts = facts.commit_of(next.write).is_some();
            if lasts {
                if !edges.add(read, next.write, Rule::Overwritten) {
                    edges.irregular(Irregular::StaleRead, read, Some(next.write));
                }
                return;
            }
            let back = taken_back.unwrap_or_else(|| facts.release_of(next.write));
            match (facts.can(read, next.write), facts.can(back, read)) {
                (true, false) => {
                    edges.add(read, next.write, Rule::Overwritten);
                    return;
                }
                (false, true) => {
                    edges.add(back, read, Rule::Overwritten);
                }
                (true, true) => {
                    edges.open(Open::BesideTakenBack, read, Some(next.write));
                    if facts.operation(read).end <= facts.operation(next.write).end {
                        edges.add(read, next.write, Rule::Chosen);
                        return;
                    }
                    edges.add(back, read, Rule::Chosen);
                }
                (false, false) => {
                    edges.irregular(Irregular::StaleRead, read, Some(next.write));
                    return;
                }
            }
        }
    }
}
