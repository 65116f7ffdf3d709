//! What is inferred is what happened, in a simulated database whose order is known; and what
//! each rule says, in traces that were written by hand.

mod replay;
mod rules;

use super::simulate::{Shape, Simulated, simulate};
use super::*;
use isolde_model::profile::ReadVisibility;
use replay::replay;

const CONFIGURATIONS: [(Protocol, ReadVisibility); 8] = [
    (Protocol::Mvcc2pl, ReadVisibility::Latest),
    (Protocol::Mvcc2pl, ReadVisibility::Committed),
    (Protocol::Mvcc2pl, ReadVisibility::Snapshot),
    (Protocol::Mvcc2pl, ReadVisibility::SnapshotOfFirstRead),
    (Protocol::Mvcc2pl, ReadVisibility::SnapshotOfBegin),
    (Protocol::Mvcc2pl, ReadVisibility::Locked),
    (Protocol::Occ, ReadVisibility::SnapshotOfBegin),
    (Protocol::TimestampOrdering, ReadVisibility::Committed),
];

fn shape(control: ConcurrencyControl, seed: u64) -> Shape {
    // From hardly any overlap to more than there is to do.
    let delay = [3, 20, 200][seed as usize % 3];
    Shape { control, sessions: 6, items: 4, transactions: 60, operations: 4, delay, seed }
}

#[test]
fn inferred_order_equals_the_simulated_order() {
    for (protocol, read_visibility) in CONFIGURATIONS {
        let control = ConcurrencyControl { protocol, read_visibility };
        let (mut claimed, mut committed, mut failed) = (0, 0, 0);
        for seed in 0..60 {
            let Simulated { trace, moments, last } = simulate(shape(control, seed));
            let inferred = infer(&trace, None, BUDGET).expect("a trace that is right");
            let place = format!("{control:?}, seed {seed}");
            assert_eq!(inferred.violations, BTreeMap::new(), "{place}");
            let names = Names::new(&trace);
            for edge in &inferred.edges {
                let (before, after) = (edge.before as usize, edge.after as usize);
                assert!(
                    moments[before] < moments[after],
                    "{place}: {:?} says {} before {}",
                    edge.rule,
                    names.operation(edge.before),
                    names.operation(edge.after)
                );
            }
            claimed += inferred.edges.len();
            committed += trace.ends().committed;
            failed += trace.ends().aborted;
            replay(&trace, &inferred, &last, &place);
        }
        assert!(claimed > 1000 && committed > 1000, "{control:?}: {claimed}, {committed}");
        let latest = matches!(read_visibility, ReadVisibility::Latest | ReadVisibility::Committed);
        assert!(failed > 20 || latest, "{control:?}: only {failed} failed");
    }
}
