//! Executes an inferred order, one operation after the other, on versions and locks, and
//! compares with what the trace has.

use crate::{Ambiguity, Inferred};
use isolde_model::Trace;
use isolde_model::history::TxEnd;
use isolde_model::profile::{Protocol, ReadVisibility};
use isolde_model::trace::OperationResult;
use isolde_sql::{Kind, kind};
use std::collections::HashMap;

struct Version {
    version: u64,
    by: u32,
    committed: Option<usize>,
}

/// Panics where a read sees something else, a lock is not free, a commit should have come to
/// another end, or the last versions are others.
pub(super) fn replay(trace: &Trace, inferred: &Inferred, last: &[u64], place: &str) {
    let protocol = inferred.control.protocol;
    let read_visibility = inferred.control.read_visibility;
    let mut items: Vec<Vec<Version>> = trace.items.iter().map(|_| Vec::new()).collect();
    let mut shared: HashMap<u32, Vec<u32>> = HashMap::new();
    let mut snapshots: HashMap<u32, usize> = HashMap::new();
    let mut sent: HashMap<u32, u64> = HashMap::new();
    assert_eq!(inferred.order.len(), trace.operations.len(), "{place}");
    for (now, at) in inferred.order.iter().enumerate() {
        for (early, _) in inferred.early.iter().filter(|(_, place)| *place as usize == now) {
            let transaction = trace.operations[*early as usize].transaction;
            // Before this place and behind the one before.
            snapshots.entry(transaction).or_insert(now.saturating_sub(1));
        }
        let op = &trace.operations[*at as usize];
        let tx = op.transaction;
        let what = || format!("{place}: {}", super::Names::new(trace).operation(*at));
        let before = sent.insert(op.session, op.start);
        assert!(before.is_none_or(|before| before <= op.start), "{}", what());
        let kind = kind(&trace.statements[op.statement as usize]);
        let failed = matches!(op.result, OperationResult::Error(_));
        let takes_snapshot = match kind {
            Kind::Begin => read_visibility == ReadVisibility::SnapshotOfBegin,
            Kind::Select => true,
            Kind::Write => read_visibility == ReadVisibility::Snapshot,
            _ => false,
        };
        if takes_snapshot && !failed {
            snapshots.entry(tx).or_insert(now);
        }
        let snapshot = snapshots.get(&tx).copied();
        let accesses = op.accesses.clone().unwrap_or_default();
        for read in accesses.reads.iter().filter(|_| kind == Kind::Select) {
            let own = |v: &&Version| v.by == tx;
            let seen = |v: &&Version| match (protocol, read_visibility, v.committed) {
                (_, ReadVisibility::Latest, _) => true,
                (_, _, None) => false,
                (Protocol::TimestampOrdering, ..)
                | (_, ReadVisibility::Committed | ReadVisibility::Locked, _) => true,
                (_, _, Some(at)) => snapshot.is_some_and(|snapshot| at <= snapshot),
            };
            let versions = &items[read.item as usize];
            let found = versions.iter().rev().find(own);
            let found = found.or_else(|| versions.iter().rev().find(seen));
            assert_eq!(found.map_or(0, |v| v.version), read.version, "{}", what());
            if read_visibility == ReadVisibility::Locked {
                shared.entry(read.item).or_default().push(tx);
                let other = versions.iter().any(|v| v.committed.is_none() && v.by != tx);
                assert!(!other, "{}: not free", what());
            }
        }
        for write in &accesses.writes {
            let versions = &mut items[write.item as usize];
            let other = versions.iter().any(|v| v.committed.is_none() && v.by != tx);
            let read = shared.get(&write.item).is_some_and(|by| by.iter().any(|by| *by != tx));
            let locks = protocol == Protocol::Mvcc2pl;
            let taken = other || read && read_visibility == ReadVisibility::Locked;
            assert!(!(locks && taken), "{}: not free", what());
            versions.push(Version { version: write.version, by: tx, committed: None });
        }
        let valid = || {
            let of = trace.operations.iter().filter(|o| o.transaction == tx);
            let mut touched =
                of.flat_map(|o| o.accesses.iter().flat_map(|a| a.reads.iter().chain(&a.writes)));
            !touched.any(|a| {
                items[a.item as usize].iter().any(|v| v.by != tx && v.committed > snapshot)
            })
        };
        let how = trace.transactions[tx as usize].how;
        if kind == Kind::Commit && protocol == Protocol::Occ {
            // Which of several commits made it fail may be open, and then one was chosen.
            let chosen = failed && inferred.open.contains_key(&Ambiguity::WhichCommit);
            assert!(chosen || valid() != failed, "{}: validation", what());
        }
        let commits = kind == Kind::Commit && !failed && how == TxEnd::Committed;
        if commits {
            for versions in &mut items {
                // Versions are in the order in which they were made, or in commit order
                // where they are invisible before the commit.
                if protocol == Protocol::Occ {
                    let of = versions.iter().position(|v| v.by == tx);
                    if of.is_some() {
                        let (own, rest) =
                            std::mem::take(versions).into_iter().partition(|v| v.by == tx);
                        let own: Vec<Version> = own;
                        *versions = rest;
                        versions.extend(own);
                    }
                }
                versions.iter_mut().filter(|v| v.by == tx).for_each(|v| v.committed = Some(now));
            }
        } else if failed || kind == Kind::Rollback {
            items.iter_mut().for_each(|v| v.retain(|v| v.by != tx || v.committed.is_some()));
        }
        if commits || failed || kind == Kind::Rollback {
            shared.values_mut().for_each(|by| by.retain(|by| *by != tx));
        }
    }
    let newest: Vec<u64> =
        items.iter().map(|versions| versions.last().map_or(0, |v| v.version)).collect();
    assert_eq!(newest, last, "{place}: the end");
}
