//! Optimistic concurrency control (appendix E.1): the moments that count are begins and
//! commits. A begin decides which versions all statements of its transaction see, a commit
//! makes versions, and fails when another transaction has changed what was accessed.

use super::chains::Chains;
use super::facts::Facts;
use super::reads::Reads;
use super::{Ambiguity, Edges, ProtocolViolation, Rule};
use isolde_model::Level;
use isolde_model::history::{ErrorClass, TxEnd};
use isolde_model::profile::ReadVisibility;
use isolde_model::trace::OperationResult;

pub(super) fn rules(facts: &Facts<'_>, edges: &mut Edges<'_, '_>) {
    // Two committed writers of an item were not concurrent, or the second would have failed:
    // the second began after the first had committed, so its COMMIT was also sent later.
    let key = |at: u32| {
        let commit = facts.commit_of(at).unwrap_or(at);
        facts.operation(commit).start
    };
    let committed = Chains::new(facts, |at| facts.commit_of(at).is_some(), key);
    let all = Chains::new(facts, |_| true, key);
    for item in 0..committed.items() {
        let of = committed.of(item);
        for pair in of.windows(2).filter(|pair| pair[0].transaction != pair[1].transaction) {
            one_after_the_other(pair[0].write, pair[1].write, facts, edges);
        }
    }
    Reads { committed: &committed, all: &all, current: false }.add_edges(facts, edges);
    for number in 0..facts.transactions.len() {
        validation(number, &committed, facts, edges);
    }
}

/// The operation that decides which versions a transaction sees.
fn begin_of(write: u32, facts: &Facts<'_>) -> u32 {
    let of = facts.transaction_of(write);
    let begin = match of.read_visibility {
        ReadVisibility::Latest | ReadVisibility::Committed | ReadVisibility::Locked => None,
        ReadVisibility::Snapshot => of.first_statement,
        ReadVisibility::SnapshotOfFirstRead => of.first_read.or(of.first_statement),
        ReadVisibility::SnapshotOfBegin => of.begin,
    };
    begin.unwrap_or(write)
}

fn one_after_the_other(first: u32, second: u32, facts: &Facts<'_>, edges: &mut Edges<'_, '_>) {
    let Some(commit) = facts.commit_of(first) else { return };
    if !edges.add(commit, begin_of(second, facts), Rule::Validation) {
        edges.violations(ProtocolViolation::NotValidated, second, Some(first));
    }
}

/// Adds the edges that follow from the success or failure of a commit.
fn validation(number: usize, committed: &Chains, facts: &Facts<'_>, edges: &mut Edges<'_, '_>) {
    let of = &facts.transactions[number];
    let Some(end) = of.end else { return };
    let validates_reads = of.level.is_none_or(|level| level == Level::Serializable);
    let failed = of.how == TxEnd::Aborted
        && matches!(
            facts.operation(end).result,
            OperationResult::Error(
                ErrorClass::Serialization | ErrorClass::WriteConflict | ErrorClass::Deadlock
            )
        );
    if of.how != TxEnd::Committed && !failed {
        return;
    }
    // Commits that changed what this one accessed, and may have come before it.
    let mut culprits: Vec<(u32, u32)> = Vec::new();
    for at in facts.operations_of(number) {
        let reads = facts.reads(*at).iter().filter(|_| validates_reads);
        for access in reads {
            let place = committed.find(*access);
            if place.is_none() && access.version != 0 {
                continue;
            }
            let Some(next) = committed.after(access.item, place) else { continue };
            let next = committed.at(next);
            let Some(commit) = facts.commit_of(next.write) else { continue };
            if next.transaction as usize == number {
                continue;
            }
            if failed {
                culprits.push((commit, begin_of(*at, facts)));
            } else if !edges.add(end, commit, Rule::Validation) {
                edges.violations(ProtocolViolation::NotValidated, *at, Some(commit));
            }
        }
        if failed {
            let begin = begin_of(*at, facts);
            for access in facts.writes(*at) {
                let of = committed.of(access.item as usize);
                let commit = |at: usize| facts.commit_of(of[at].write).unwrap_or(of[at].write);
                // Commits are in the order in which they were sent.
                let until = of.partition_point(|made| {
                    let commit = facts.commit_of(made.write).unwrap_or(made.write);
                    facts.operation(commit).start <= facts.operation(end).end
                });
                let started = facts.operation(begin).start;
                for at in (0..until).rev() {
                    if facts.operation(commit(at)).end < started {
                        break;
                    }
                    culprits.push((commit(at), begin));
                }
            }
        }
    }
    culprits.retain(|(commit, begin)| facts.can(*commit, end) && facts.can(*begin, *commit));
    culprits.sort_unstable();
    culprits.dedup_by_key(|(commit, _)| *commit);
    // A commit that certainly came between the begin and the failed commit explains the failure.
    let certain =
        |(commit, begin): &(u32, u32)| facts.must(*begin, *commit) && facts.must(*commit, end);
    if culprits.iter().any(certain) {
        return;
    }
    // Prefer a commit that certainly came after the begin.
    let sooner = |(commit, begin): &&(u32, u32)| {
        (!facts.must(*begin, *commit), facts.operation(*commit).end)
    };
    let first = culprits.iter().min_by_key(sooner);
    let Some((commit, begin)) = first.copied() else { return };
    let rule = if culprits.len() == 1 { Rule::Validation } else { Rule::Chosen };
    if rule == Rule::Chosen {
        edges.open(Ambiguity::WhichCommit, end, Some(commit));
    }
    edges.add(begin, commit, rule);
    edges.add(commit, end, rule);
}
