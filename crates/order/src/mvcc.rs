//! Multi-version concurrency control with two-phase locking (appendix D): reads are ordered
//! by their versions, writes by their locks.
//!
//! Property 1: of two operations that held the same lock, the one that returned first had it
//! first. The lock could only be released by a statement that was sent after it had returned,
//! and before that the other cannot have returned. So the locks of an item were taken in the
//! order in which their operations ended, and each only after the previous one was released.

use super::chains::Chains;
use super::facts::Facts;
use super::reads::Reads;
use super::{Edges, ProtocolViolation, Rule};
use isolde_model::history::TxEnd;
use isolde_model::profile::ReadVisibility;
use isolde_model::trace::Lock;

pub(super) fn rules(facts: &Facts<'_>, edges: &mut Edges<'_, '_>) {
    let end = |at: u32| facts.operation(at).end;
    let committed = Chains::new(facts, |at| facts.commit_of(at).is_some(), end);
    let all = Chains::new(facts, |_| true, end);
    locks(facts, edges);
    first_updater_wins(facts, edges);
    Reads { committed: &committed, all: &all, current: true }.add_edges(facts, edges);
}

/// Where writes use the snapshot as well, a write to an item fails if another transaction has
/// committed a write to it since: a write that did not fail has the last commit in its snapshot.
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
                && of.read_visibility == ReadVisibility::Snapshot
                && !alone
            {
                let locks = !facts.writes(snapshot).is_empty() || facts.is_locking(snapshot);
                if !edges.add_seen(commit, snapshot, locks, Rule::Validation) {
                    edges.violations(ProtocolViolation::NotValidated, *at, other);
                }
            }
            if facts.commit_of(*at).is_some() {
                *before = Some(*at);
            }
        }
    }
}

/// The lock holders of an item, by their operations.
#[derive(Clone, Default)]
struct Held {
    exclusive: Option<u32>,
    /// Shared locks taken since the last exclusive one.
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
            let locked = facts.transaction_of(*at).read_visibility == ReadVisibility::Locked;
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

/// Orders the release of a lock before the operation that acquired it next.
fn wait(holder: u32, by: u32, facts: &Facts<'_>, edges: &mut Edges<'_, '_>) {
    let undone = facts.undone.get(&holder).copied();
    // Whether a savepoint gives back its locks is the engine's choice.
    let release = undone.unwrap_or_else(|| facts.release_of(holder));
    if !edges.add(release, by, Rule::Lock) {
        edges.violations(ProtocolViolation::LockNotHeld, by, Some(holder));
        edges.add(holder, by, Rule::Chosen);
    }
}
