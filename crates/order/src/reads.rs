//! Edges from reads: the writer of the version that each read saw came before it, the
//! writer of the next version after it.

use super::chains::Chains;
use super::facts::{Facts, Transaction};
use super::{Ambiguity, Edges, ProtocolViolation, Rule};
use isolde_model::profile::ReadVisibility;

/// How the reads of a protocol are interpreted.
pub(super) struct Reads<'c> {
    /// The committed versions, in version order.
    pub committed: &'c Chains,
    /// All versions that a read may see, committed or not.
    pub all: &'c Chains,
    /// Writes and locking reads see what is current, where the level's snapshot is for
    /// plain reads only.
    pub current: bool,
}

/// A version of another transaction that was read.
struct VersionRead {
    read: u32,
    item: u32,
    /// The write that made it; none for a version of the setup.
    from: Option<u32>,
    /// Its index in the chain of all versions.
    place: Option<u32>,
    /// The write of the next version, which was not seen.
    next: Option<u32>,
    /// The statement at which it was visible.
    moment: u32,
}

impl Reads<'_> {
    pub fn add_edges(&self, facts: &Facts<'_>, edges: &mut Edges<'_, '_>) {
        let mut seen = Vec::new();
        for number in 0..facts.transactions.len() {
            let of = &facts.transactions[number];
            seen.clear();
            for read in facts.operations_of(number) {
                self.collect(facts, *read, &mut seen);
            }
            if of.read_visibility == ReadVisibility::Latest {
                seen.iter().for_each(|seen| self.latest(facts, seen, edges));
                continue;
            }
            if self.is_torn(facts, &seen) {
                let first = &seen[0];
                edges.violations(ProtocolViolation::TornSnapshot, first.read, None);
                seen.iter_mut().for_each(|seen| seen.moment = seen.read);
            }
            seen.iter().for_each(|seen| self.committed(facts, seen, edges));
        }
    }

    fn collect(&self, facts: &Facts<'_>, read: u32, seen: &mut Vec<VersionRead>) {
        let own = facts.operation(read).transaction;
        for access in facts.reads(read) {
            let place = self.all.find(*access);
            let written = place.map(|at| *self.all.at(at));
            if written.is_some_and(|made| made.transaction == own) {
                continue;
            }
            let from = written.map(|made| made.write);
            let lasting = self.committed.find(*access);
            // A version that was never committed has no successor in the committed order.
            let after = match (from, lasting) {
                (Some(_), None) => None,
                _ => self.committed.after(access.item, lasting),
            };
            let next = after.map(|at| *self.committed.at(at));
            let next = next.filter(|made| made.transaction != own).map(|made| made.write);
            let moment = self.moment(facts, facts.transaction_of(read), read);
            seen.push(VersionRead { read, item: access.item, from, place, next, moment });
        }
    }

    /// The statement that took the snapshot of a read.
    fn moment(&self, facts: &Facts<'_>, of: &Transaction, read: u32) -> u32 {
        let changes = !facts.writes(read).is_empty() || facts.is_locking(read);
        let snapshot = match of.read_visibility {
            ReadVisibility::Latest | ReadVisibility::Committed | ReadVisibility::Locked => None,
            // A statement outside of a transaction block is its own transaction.
            _ if of.end.is_none() && of.how == isolde_model::history::TxEnd::Committed => None,
            ReadVisibility::Snapshot => of.first_statement,
            ReadVisibility::SnapshotOfFirstRead if changes && self.current => None,
            ReadVisibility::SnapshotOfFirstRead => of.first_read,
            ReadVisibility::SnapshotOfBegin if changes && self.current => None,
            ReadVisibility::SnapshotOfBegin => of.begin,
        };
        snapshot.unwrap_or(read)
    }

    /// Whether no moment lies after the commits of all versions that were seen and before
    /// those of all versions that were not.
    fn is_torn(&self, facts: &Facts<'_>, seen: &[VersionRead]) -> bool {
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

    /// Adds the edges of a read that sees what was committed at its moment.
    fn committed(&self, facts: &Facts<'_>, seen: &VersionRead, edges: &mut Edges<'_, '_>) {
        let VersionRead { read, moment, .. } = *seen;
        // A statement that waits for a lock took its snapshot before the wait.
        let locks = !facts.writes(moment).is_empty() || facts.is_locking(moment);
        let waits = locks && moment != read;
        if let Some(write) = seen.from {
            let commit = facts.commit_of(write).filter(|commit| facts.can(*commit, read));
            match commit {
                Some(commit) if edges.add_seen(commit, moment, waits, Rule::ReadsFrom) => {}
                Some(commit) => {
                    edges.violations(ProtocolViolation::BeyondSnapshot, read, Some(write));
                    edges.add(commit, read, Rule::ReadsFrom);
                }
                None => {
                    edges.violations(ProtocolViolation::DirtyRead, read, Some(write));
                    self.dirty(facts, seen, write, edges);
                    return;
                }
            }
        }
        let next = seen.next.and_then(|next| facts.commit_of(next));
        let Some(commit) = next else { return };
        let possible = edges.add_unseen(moment, commit, waits, Rule::Overwritten);
        if !possible {
            edges.violations(ProtocolViolation::StaleRead, read, Some(commit));
        }
    }

    /// Adds the edges of a read whose version was not committed yet, or never was.
    fn dirty(&self, facts: &Facts<'_>, seen: &VersionRead, write: u32, edges: &mut Edges<'_, '_>) {
        edges.add(write, seen.read, Rule::ReadsFrom);
        edges.add(seen.read, facts.release_of(write), Rule::Overwritten);
        if let Some(next) = seen.next {
            edges.add(seen.read, next, Rule::Overwritten);
        }
    }

    /// Adds the edges of a read of the newest version, committed or not. The next write
    /// came later, unless it was rolled back before the read.
    fn latest(&self, facts: &Facts<'_>, seen: &VersionRead, edges: &mut Edges<'_, '_>) {
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
                    edges.violations(ProtocolViolation::StaleRead, read, Some(next.write));
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
                    edges.open(Ambiguity::ConcurrentWithUndone, read, Some(next.write));
                    if facts.operation(read).end <= facts.operation(next.write).end {
                        edges.add(read, next.write, Rule::Chosen);
                        return;
                    }
                    edges.add(back, read, Rule::Chosen);
                }
                (false, false) => {
                    edges.violations(ProtocolViolation::StaleRead, read, Some(next.write));
                    return;
                }
            }
        }
    }
}
