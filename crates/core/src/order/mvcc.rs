//! Versions and two-phase locking (appendix D): reads are decided by their versions, writes
//! by their locks.
//!
//! Property 1: of two that held the same lock, the one that returned first had it first. It
//! could only let go with what it sent after it had returned, and by then the other cannot
//! have returned. So the locks of an item were taken in the order in which their operations
//! ended, and the next one was had only when the last had let go.

use super::chains::Chains;
use super::facts::Facts;
use super::reads::Reads;
use super::{Edges, Irregular, Rule};
use crate::history::TxEnd;
use crate::profile::Sees;
use crate::trace::Lock;

pub(super) fn rules(facts: &Facts<'_>, edges: &mut Edges<'_, '_>) {
    let end = |at: u32| facts.operation(at).end;
    let committed = Chains::new(facts, |at| facts.commit_of(at).is_some(), end);
    let all = Chains::new(facts, |_| true, end);
    locks(facts, edges);
    first_updater_wins(facts, edges);
    Reads { committed: &committed, all: &all, current: true }.tell(facts, edges);
}

/// Where writes see the snapshot, too, a write of what somebody has committed since fails: one
/// that did not fail has seen the last commit.
fn first_updater_wins(facts: &Facts<'_>, edges: &mut Edges<'_, '_>) {
    let mut last: Vec<Option<u32>> = vec![None; facts.trace.items.len()];
    for at in &facts.by_end {
        for access in facts.writes(*at) {
            let before = &mut last[access.item as usize];
            let other = before.filter(|other| {
                facts.operation(*other).transaction != facts.operation(*at).transaction
            });
            let of = facts.transaction_of(*at);
            let alone = of.end.is_none() && of.how == TxEnd::Committed;
            if let Some(commit) = other.and_then(|other| facts.commit_of(other))
                && let Some(snapshot) = of.first_statement
                && of.sees == Sees::Snapshot
                && !alone
            {
                let locks = !facts.writes(snapshot).is_empty() || facts.is_locking(snapshot);
                if !edges.add_seen(commit, snapshot, locks, Rule::Validation) {
                    edges.irregular(Irregular::NotValidated, *at, other);
                }
            }
            if facts.commit_of(*at).is_some() {
                *before = Some(*at);
            }
        }
    }
}

/// Who holds an item.
#[derive(Clone, Default)]
struct Held {
    exclusive: Option<u32>,
    /// Since then.
    shared: Vec<u32>,
}

fn locks(facts: &Facts<'_>, edges: &mut Edges<'_, '_>) {
    let mut items = vec![Held::default(); facts.trace.items.len()];
    for at in &facts.by_end {
        let Some(accesses) = facts.accesses(*at).filter(|_| facts.is_done(*at)) else { continue };
        for access in &accesses.writes {
            items[access.item as usize].take(*at, Lock::Exclusive, facts, edges);
        }
        let plain = || {
            let locked = facts.transaction_of(*at).sees == Sees::Locked;
            locked.then_some(Lock::Shared)
        };
        let Some(lock) = accesses.lock.or_else(plain) else { continue };
        for access in &accesses.reads {
            items[access.item as usize].take(*at, lock, facts, edges);
        }
    }
}

impl Held {
    fn take(&mut self, by: u32, lock: Lock, facts: &Facts<'_>, edges: &mut Edges<'_, '_>) {
        let transaction = |at: u32| facts.operation(at).transaction;
        let own = |at: &u32| transaction(*at) == transaction(by);
        match lock {
            Lock::Shared => {
                if self.exclusive.as_ref().is_some_and(own) || self.shared.last().is_some_and(own) {
                    return;
                }
                self.exclusive.iter().for_each(|holder| wait(*holder, by, facts, edges));
                self.shared.push(by);
            }
            Lock::Exclusive => {
                if self.shared.is_empty() {
                    if self.exclusive.as_ref().is_some_and(own) {
                        return;
                    }
                    self.exclusive.iter().for_each(|holder| wait(*holder, by, facts, edges));
                }
                let others = self.shared.iter().filter(|holder| !own(holder));
                others.for_each(|holder| wait(*holder, by, facts, edges));
                self.shared.clear();
                self.exclusive = Some(by);
            }
        }
    }
}

/// The second got the lock when the first let go of it.
fn wait(holder: u32, by: u32, facts: &Facts<'_>, edges: &mut Edges<'_, '_>) {
    let undone = facts.undone.get(&holder).copied();
    // Whether a savepoint gives back its locks is the engine's choice.
    let release = undone.unwrap_or_else(|| facts.release_of(holder));
    if !edges.add(release, by, Rule::Lock) {
        edges.irregular(Irregular::LockNotHeld, by, Some(holder));
        edges.add(holder, by, Rule::Chosen);
    }
}
