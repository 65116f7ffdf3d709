//! Each rule, where it decides and where it must not.

use crate::*;
use isolde_model::Level;
use isolde_model::history::{ErrorClass, TargetInfo, TxEnd};
use isolde_model::profile::ReadVisibility;
use isolde_model::trace::{Access, Accesses, Lock, Operation, OperationResult, Recorder};

/// A trace by hand: a line an operation, `session transaction start-end what`, where what is
/// `begin`, `commit`, `rollback`, `r0=1` (item 0 in version 1), `w0=1`, `l0=1` (a locking read),
/// `fail`. A transaction that ends in nothing was lost.
fn trace(control: ConcurrencyControl, text: &str) -> Trace {
    let level = Some(Level::Serializable);
    let sessions = vec!["s1".into(), "s2".into(), "s3".into()];
    let mut recorder = Recorder::new(TargetInfo::default(), level, sessions);
    recorder.controlled(control);
    let mut known: BTreeMap<String, u32> = BTreeMap::new();
    for item in ["x", "y"] {
        recorder.item(item);
    }
    for line in text.lines().map(str::trim).filter(|line| !line.is_empty()) {
        let words: Vec<&str> = line.split_whitespace().collect();
        let [session, transaction, times, what] = words[..] else { panic!("{line}") };
        let session: u32 = session.parse().unwrap();
        let begun = known.get(transaction).copied();
        let number = begun.unwrap_or_else(|| recorder.begin(session, None));
        known.insert(transaction.into(), number);
        let (start, end) = times.split_once('-').unwrap();
        let mut accesses = Accesses::default();
        let access = || {
            let (item, version) = what[1..].split_once('=').unwrap();
            Access { item: item.parse().unwrap(), version: version.parse().unwrap() }
        };
        let (sql, result) = match what.as_bytes()[0] {
            b'b' => ("begin", OperationResult::Done),
            b'c' => ("commit", OperationResult::Done),
            b'f' => ("update", OperationResult::Error(ErrorClass::Deadlock)),
            b'F' => ("commit", OperationResult::Error(ErrorClass::Serialization)),
            b'w' => {
                accesses.writes.push(access());
                ("update", OperationResult::Affected(1))
            }
            b'l' => {
                accesses.reads.push(access());
                accesses.lock = Some(Lock::Exclusive);
                ("select for update", OperationResult::Rows(1))
            }
            _ if what == "rollback" => ("rollback", OperationResult::Done),
            _ => {
                accesses.reads.push(access());
                ("select", OperationResult::Rows(1))
            }
        };
        match sql {
            "commit" if what == "Fail" => recorder.end(number, TxEnd::Aborted),
            "commit" => recorder.end(number, TxEnd::Committed),
            "rollback" => recorder.end(number, TxEnd::RolledBack),
            _ => {}
        }
        let statement = recorder.statement(sql);
        recorder.operation(Operation {
            session,
            transaction: number,
            statement,
            start: start.parse().unwrap(),
            end: end.parse().unwrap(),
            result,
            accesses: Some(Box::new(accesses)),
        });
    }
    recorder.finish(None)
}

fn mvcc(read_visibility: ReadVisibility) -> ConcurrencyControl {
    ConcurrencyControl { protocol: Protocol::Mvcc2pl, read_visibility }
}

/// What is inferred; operations are named by their line.
fn infer_text(control: ConcurrencyControl, text: &str) -> Inferred {
    infer(&trace(control, text), None, BUDGET).unwrap()
}

fn says(inferred: &Inferred, before: u32, after: u32, rule: Rule) -> bool {
    inferred.edges.contains(&Edge { before, after, rule })
}

#[test]
fn first_write_to_return_held_the_lock_until_its_transaction_ended() {
    // The second was sent first.
    let text = "
        0 a 5-10 w0=1
        1 b 1-40 w0=2
        0 a 15-35 commit
        1 b 41-42 commit";
    let inferred = infer_text(mvcc(ReadVisibility::Committed), text);
    assert!(says(&inferred, 2, 1, Rule::Lock), "{:?}", inferred.edges);
    assert_eq!(inferred.order, [0, 2, 1, 3]);
    assert_eq!(inferred.violation_count(), 0);
    // A write that did not wait for the end of the other had no lock to wait for.
    let broken = text.replace("15-35 commit", "45-50 commit").replace("41-42", "43-44");
    let broken = infer_text(mvcc(ReadVisibility::Committed), &broken);
    assert_eq!(broken.violations[&ProtocolViolation::LockNotHeld].count, 1);
    assert!(!broken.edges.iter().any(|edge| edge.rule == Rule::Lock));
}

#[test]
fn locking_read_holds_its_locks() {
    let text = "
        0 a 1-10 l0=0
        1 b 2-40 w0=2
        0 a 15-35 commit
        1 b 41-42 commit";
    assert!(says(&infer_text(mvcc(ReadVisibility::Committed), text), 2, 1, Rule::Lock));
    let plain = text.replace("l0=0", "r0=0");
    assert!(
        !infer_text(mvcc(ReadVisibility::Committed), &plain)
            .edges
            .iter()
            .any(|e| e.rule == Rule::Lock)
    );
    // Where plain reads lock, too.
    assert!(says(&infer_text(mvcc(ReadVisibility::Locked), &plain), 2, 1, Rule::Lock));
}

#[test]
fn failed_write_takes_no_lock_and_releases_others() {
    let text = "
        0 a 1-3 w1=1
        0 a 4-20 fail
        1 b 5-30 w1=2
        0 a 31-40 rollback
        1 b 41-42 commit";
    let inferred = infer_text(mvcc(ReadVisibility::Committed), text);
    assert!(says(&inferred, 1, 2, Rule::Lock), "{:?}", inferred.edges);
    assert_eq!(inferred.open[&Ambiguity::Failed].count, 1);
}

#[test]
fn read_is_ordered_between_the_seen_and_the_next_commit() {
    let text = "
        0 a 1-2 w0=1
        1 b 3-30 r0=1
        0 a 5-31 commit
        2 c 32-33 w0=2
        2 c 34-36 commit
        1 b 37-38 commit";
    let inferred = infer_text(mvcc(ReadVisibility::Committed), text);
    assert!(says(&inferred, 2, 1, Rule::ReadsFrom));
    assert!(says(&inferred, 1, 4, Rule::Overwritten));
    assert!(inferred.decided[&Rule::Times] > 0);
}

#[test]
fn snapshot_read_may_be_stale_and_statement_read_may_not() {
    let text = "
        0 a 1-2 r1=0
        1 b 3-4 w0=1
        1 b 5-6 commit
        0 a 7-8 r0=0
        0 a 9-10 commit";
    let inferred = infer_text(mvcc(ReadVisibility::Snapshot), text);
    assert_eq!(inferred.violation_count(), 0);
    assert!(says(&inferred, 0, 2, Rule::Overwritten));
    assert_eq!(
        infer_text(mvcc(ReadVisibility::Committed), text).violations[&ProtocolViolation::StaleRead]
            .count,
        1
    );
}

#[test]
fn protocol_violations_are_counted_and_still_ordered() {
    let dirty = "
        0 a 1-2 w0=1
        1 b 3-10 r0=1
        1 b 11-12 commit
        0 a 13-14 rollback";
    let inferred = infer_text(mvcc(ReadVisibility::Committed), dirty);
    assert_eq!(inferred.violations[&ProtocolViolation::DirtyRead].count, 1);
    assert!(says(&inferred, 0, 1, Rule::ReadsFrom) && says(&inferred, 1, 3, Rule::Overwritten));
    assert_eq!(infer_text(mvcc(ReadVisibility::Latest), dirty).violation_count(), 0);
    // One snapshot cannot have both.
    let torn = "
        0 a 1-30 r0=0
        1 b 2-3 w0=1
        1 b 4-35 commit
        0 a 36-40 r0=1
        0 a 41-42 commit";
    let inferred = infer_text(mvcc(ReadVisibility::Snapshot), torn);
    assert_eq!(inferred.violations[&ProtocolViolation::TornSnapshot].count, 1);
    assert!(says(&inferred, 0, 2, Rule::Overwritten) && says(&inferred, 2, 3, Rule::ReadsFrom));
}

#[test]
fn read_concurrent_with_an_undone_write_is_ambiguous() {
    let text = "
        0 a 1-20 w0=1
        1 b 2-30 r0=0
        0 a 21-29 rollback
        1 b 31-32 commit";
    let inferred = infer_text(mvcc(ReadVisibility::Latest), text);
    assert_eq!(inferred.open[&Ambiguity::ConcurrentWithUndone].count, 1);
    assert!(inferred.edges.is_empty());
    let decided = text.replace("2-30 r0=0", "22-30 r0=0");
    let inferred = infer_text(mvcc(ReadVisibility::Latest), &decided);
    assert!(!inferred.open.contains_key(&Ambiguity::ConcurrentWithUndone));
    assert!(says(&inferred, 2, 1, Rule::Overwritten));
}

/// Figure 2a of the paper: three transactions and one item.
#[test]
fn optimistic_begins_and_commits_are_ordered_by_versions_and_failures() {
    let control = ConcurrencyControl {
        protocol: Protocol::Occ,
        read_visibility: ReadVisibility::SnapshotOfBegin,
    };
    let text = "
        0 one 1-2 begin
        0 one 3-4 w0=1
        1 two 6-11 begin
        0 one 5-12 commit
        1 two 13-14 r0=1
        2 three 13-15 begin
        2 three 16-17 w0=3
        2 three 20-30 commit
        1 two 21-31 Fail";
    let inferred = infer_text(control, text);
    assert!(says(&inferred, 3, 2, Rule::ReadsFrom), "{:?}", inferred.edges);
    assert!(says(&inferred, 7, 8, Rule::Validation), "{:?}", inferred.edges);
    assert_eq!(inferred.violation_count(), 0);
}

/// Figure 2b: one pair of operations determines the order of the timestamps, and with it the others.
#[test]
fn one_read_determines_the_timestamps_of_two_transactions() {
    let control = ConcurrencyControl {
        protocol: Protocol::TimestampOrdering,
        read_visibility: ReadVisibility::Committed,
    };
    let text = "
        0 one 1-5 begin
        1 two 2-6 begin
        0 one 7-20 w0=1
        1 two 8-21 w0=2
        0 one 22-40 w1=3
        0 one 41-50 commit
        1 two 23-60 r1=3
        1 two 61-62 commit";
    let inferred = infer_text(control, text);
    assert!(says(&inferred, 2, 3, Rule::Timestamp), "{:?}", inferred.edges);
    assert!(says(&inferred, 5, 6, Rule::ReadsFrom));
    // Without the read nothing determines the order.
    let open = text.replace("23-60 r1=3", "23-60 w1=4");
    let inferred = infer_text(control, &open);
    assert!(inferred.open[&Ambiguity::TimestampsOpen].count > 0);
    assert!(!inferred.edges.iter().any(|edge| edge.rule == Rule::Timestamp));
    // Without a budget no order is tried.
    let trace = trace(control, &open);
    assert!(infer(&trace, None, 0).unwrap().is_cut_off());
}

#[test]
fn batches_have_no_conflicts() {
    let text = "
        0 a 1-2 w0=1
        1 b 1-3 w1=2
        2 c 3-9 r0=0
        0 a 10-11 commit
        1 b 10-12 commit
        2 c 13-14 commit";
    let inferred = infer_text(mvcc(ReadVisibility::Committed), text);
    let batches: Vec<Vec<u32>> = inferred.batches().map(<[u32]>::to_vec).collect();
    assert_eq!(batches, [vec![0, 1], vec![2], vec![3, 4, 5]]);
}

#[test]
fn inconsistent_trace_is_refused_with_its_operation() {
    let text = "
        0 a 1-2 w0=1
        1 b 3-4 r0=1
        0 a 5-6 commit
        1 b 7-8 commit";
    let control = mvcc(ReadVisibility::Committed);
    assert!(infer(&trace(control, text), None, BUDGET).is_ok());
    for (from, to, place, why) in [
        ("3-4 r0=1", "4-3 r0=1", 1, "ends before it starts"),
        ("r0=1", "r0=9", 1, "no operation wrote"),
        ("w0=1", "w0=0", 0, "the setup's"),
        ("1 b 7-8 commit", "1 b 2-8 commit", 1, "sends it at"),
        ("1 b 3-4 r0=1", "1 b 3-4 w0=1", 1, "written twice"),
        ("0 a 1-2 w0=1", "0 a 5-5 w0=1", 1, "only sent to be written"),
        ("1 b 3-4 r0=1", "0 b 3-4 r0=1", 3, "is of session 0"),
    ] {
        let changed = text.replacen(from, to, 1);
        assert_ne!(changed, text);
        let wrong = infer(&trace(control, &changed), None, BUDGET).unwrap_err();
        assert!(wrong.why.contains(why), "{from}: {wrong}");
        assert_eq!(wrong.operation, place, "{from}: {wrong}");
    }
    let mixed = text.replace("1 b", "0 b");
    let wrong = infer(&trace(control, &mixed), None, BUDGET).unwrap_err();
    assert!(wrong.operation == 2 && wrong.why.contains("goes on after"), "{wrong}");
}
