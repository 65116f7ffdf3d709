//! Every level against its definition, on small histories for which all version orders and all
//! orders of transactions can be tried.

#![allow(clippy::disallowed_macros)]

mod brute;
mod random;

use brute::Brute;
use isolde_checker::{
    Anomaly, Class, Edge, EdgeKind, Level, Options, Verdict, Witness, check, check_with,
};
use random::Random;

const HISTORIES: usize = 100_000;

#[test]
fn every_verdict_agrees_with_the_definition_of_the_level() {
    let mut random = Random(0x1501de);
    let mut both = [[0_usize; 2]; Level::ALL.len()];
    let mut unknown = [0_usize; Level::ALL.len()];
    for number in 0..HISTORIES {
        let history = random::history(&mut random);
        let report = check(&history);
        let brute = Brute::of(&history);
        for level in Level::ALL {
            let expected = brute.holds(level);
            match report.verdict(level) {
                Verdict::Holds => assert!(expected, "{number}: {level} does not hold:\n{history}"),
                Verdict::Violated => assert!(!expected, "{number}: {level} holds:\n{history}"),
                Verdict::Unknown => unknown[level as usize] += 1,
                Verdict::NotApplicable => {
                    assert!(level.requires_real_time() && !history.has_times());
                    continue;
                }
                Verdict::NotAsked => panic!("{number}: {level} was asked for"),
            }
            both[level as usize][usize::from(expected)] += 1;
        }
        for anomaly in &report.anomalies {
            let level = weakest_violated_level(anomaly);
            let name = anomaly.name();
            let verdict = report.verdict(level);
            assert_eq!(verdict, Verdict::Violated, "{number}: {name}, but {level}:\n{history}");
        }
        let violated = Level::ALL.iter().any(|level| report.verdict(*level) == Verdict::Violated);
        assert_eq!(
            violated,
            !report.anomalies.is_empty(),
            "{number}: a violation without a witness:\n{history}{report:?}"
        );
    }
    for level in Level::ALL {
        let [no, yes] = both[level as usize];
        println!("{level}: {yes} hold, {no} do not, {} unknown", unknown[level as usize]);
        assert!(
            yes > 1000 && (no > 1000 || level == Level::ReadUncommitted),
            "{level} is hardly tried"
        );
        let may_be_open = matches!(level, Level::ConsistentView | Level::CursorStability);
        assert!(unknown[level as usize] == 0 || may_be_open, "{level} is unknown");
    }
}

#[test]
fn a_level_requested_alone_has_the_same_verdict_and_a_witness() {
    let mut random = Random(7);
    for _ in 0..5_000 {
        let history = random::history(&mut random);
        let all = check(&history);
        for level in Level::ALL {
            let options = Options { levels: vec![level], ..Options::default() };
            let alone = check_with(&history, &options);
            // The search for a stronger level may have shown more.
            let less = matches!(level, Level::ConsistentView | Level::CursorStability)
                && alone.verdict(level) == Verdict::Unknown;
            assert!(less || alone.verdict(level) == all.verdict(level), "{level}:\n{history}");
            let cycles = alone.anomalies.iter().all(|anomaly| match &anomaly.witness {
                Witness::Cycle(edges) => closes(edges),
                Witness::Operation { .. } => true,
            });
            assert!(cycles, "{level}: not a cycle:\n{history}{alone:?}");
            let violated = alone.verdict(level) == Verdict::Violated;
            assert!(!violated || !alone.anomalies.is_empty(), "{level}:\n{history}{alone:?}");
        }
    }
}

fn closes(edges: &[Edge]) -> bool {
    let next = edges.iter().cycle().skip(1);
    !edges.is_empty() && edges.iter().zip(next).all(|(edge, next)| edge.to == next.from)
}

/// The weakest level that an anomaly violates, according to `docs/anomalies.md`.
fn weakest_violated_level(anomaly: &Anomaly) -> Level {
    let (plain, of_sessions, of_time) = match anomaly.class {
        Class::DuplicateVersions | Class::IncompatibleOrders | Class::G0 => {
            (Level::ReadUncommitted, Level::StrongSessionSnapshotIsolation, None)
        }
        Class::ThinAirRead
        | Class::FutureRead
        | Class::Internal
        | Class::G1a
        | Class::G1b
        | Class::DirtyUpdate
        | Class::G1c => (Level::ReadCommitted, Level::StrongSessionSnapshotIsolation, None),
        Class::GCursor | Class::LostUpdate => (Level::CursorStability, Level::Serializable, None),
        Class::NonRepeatableRead | Class::ReadSkew => {
            (Level::ReadAtomic, Level::Serializable, None)
        }
        Class::ReadWriteSkew | Class::GSingle => {
            (Level::ConsistentView, Level::StrongSessionSnapshotIsolation, None)
        }
        Class::GNonadjacent => {
            (Level::SnapshotIsolation, Level::StrongSessionSnapshotIsolation, None)
        }
        Class::GSIa | Class::GSIb => {
            (Level::StrongSnapshotIsolation, Level::StrongSnapshotIsolation, None)
        }
        Class::WriteSkew | Class::G2Item => (
            Level::RepeatableRead,
            Level::StrongSessionSerializable,
            Some(Level::StrictSerializable),
        ),
        Class::G2 => {
            (Level::Serializable, Level::StrongSessionSerializable, Some(Level::StrictSerializable))
        }
    };
    match anomaly.through {
        None => plain,
        Some(EdgeKind::Session) => of_sessions,
        Some(_) => of_time.unwrap_or(Level::StrongSnapshotIsolation),
    }
}
