//! The simulated database satisfies its level, and planted anomalies are found.

use isolde_bench::simulate::{Isolation, Plan, Planted, simulate};
use isolde_checker::{Class, Level, Verdict, check};

/// Few items, so that transactions conflict.
fn plan(seed: u64, lists: bool, isolation: Isolation) -> Plan {
    Plan { seed, transactions: 300, sessions: 8, items: 30, lists, isolation, ..Plan::default() }
}

#[test]
fn serializable_histories_are_strict_serializable() {
    for (seed, lists, skewed) in [(1, false, false), (2, true, false), (3, true, true)] {
        let history = simulate(&Plan { skewed, ..plan(seed, lists, Isolation::Serializable) });
        let report = check(&history);
        assert_eq!(history.len(), 300);
        assert!(report.committed > 50 && report.committed < 300, "{}", report.committed);
        assert_eq!(report.verdict(Level::StrictSerializable), Verdict::Holds, "{seed}");
    }
}

#[test]
fn snapshot_histories_have_write_skew_and_no_more() {
    for lists in [false, true] {
        let report = check(&simulate(&plan(4, lists, Isolation::Snapshot)));
        assert_eq!(report.verdict(Level::StrongSnapshotIsolation), Verdict::Holds);
        assert_eq!(report.verdict(Level::Serializable), Verdict::Violated);
    }
}

#[test]
fn planted_anomalies_are_found_and_violate_no_weaker_level() {
    for lists in [false, true] {
        for planted in Planted::ALL {
            let (class, weakest, below) = match planted {
                Planted::AbortedRead => (Class::G1a, Level::ReadCommitted, Level::ReadUncommitted),
                Planted::IntermediateRead => {
                    (Class::G1b, Level::ReadCommitted, Level::ReadUncommitted)
                }
                Planted::LostUpdate => {
                    (Class::LostUpdate, Level::SnapshotIsolation, Level::ReadAtomic)
                }
                Planted::ReadSkew => (Class::ReadSkew, Level::ReadAtomic, Level::ReadCommitted),
                Planted::WriteSkew => {
                    (Class::WriteSkew, Level::Serializable, Level::SnapshotIsolation)
                }
                Planted::LongFork => (Class::GNonadjacent, Level::SnapshotIsolation, Level::Causal),
            };
            let plan = plan(5, lists, Isolation::Serializable);
            let report = check(&simulate(&Plan { planted: Some(planted), ..plan }));
            let classes: Vec<Class> = report.anomalies.iter().map(|found| found.class).collect();
            assert!(classes.contains(&class), "{planted:?} {lists}: {classes:?}");
            assert_eq!(report.verdict(weakest), Verdict::Violated, "{planted:?} {lists}");
            assert_eq!(report.verdict(below), Verdict::Holds, "{planted:?} {lists}");
        }
    }
}

#[test]
fn the_same_seed_gives_the_same_history() {
    let text_of = |seed| {
        let mut text = Vec::new();
        let history = simulate(&plan(seed, true, Isolation::Snapshot));
        isolde_histories::write_own(&history, &mut text).unwrap();
        text
    };
    assert!(text_of(6) == text_of(6) && text_of(6) != text_of(7));
}
