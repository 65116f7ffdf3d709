//! What is inferred is what happened, in a simulated database whose order is known; and what
//! each rule says, in traces that were written by hand.

mod replay;
mod rules;

use super::simulate::{Shape, Simulated, simulate};
use super::*;
use crate::profile::Sees;
use replay::replay;

const CONFIGURATIONS: [(Protocol, Sees); 8] = [
    (Protocol::Mvcc2pl, Sees::Latest),
    (Protocol::Mvcc2pl, Sees::Committed),
    (Protocol::Mvcc2pl, Sees::Snapshot),
    (Protocol::Mvcc2pl, Sees::SnapshotOfFirstRead),
    (Protocol::Mvcc2pl, Sees::SnapshotOfBegin),
    (Protocol::Mvcc2pl, Sees::Locked),
    (Protocol::Occ, Sees::SnapshotOfBegin),
    (Protocol::TimestampOrdering, Sees::Committed),
];

fn shape(control: Control, seed: u64) -> Shape {
    // From hardly any overlap to more than there is to do.
    let delay = [3, 20, 200][seed as usize % 3];
    Shape { control, sessions: 6, items: 4, transactions: 60, operations: 4, delay, seed }
}

#[test]
fn the_inferred_order_is_the_one_that_was() {
    for (protocol, sees) in CONFIGURATIONS {
        let control = Control { protocol, sees };
        let (mut claimed, mut committed, mut failed) = (0, 0, 0);
        for seed in 0..60 {
            let Simulated { trace, moments, last } = simulate(shape(control, seed));
            let inferred = infer(&trace, None, BUDGET).expect("a trace that is right");
            let place = format!("{control:?}, seed {seed}");
            assert_eq!(inferred.irregular, BTreeMap::new(), "{place}");
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
        let latest = matches!(sees, Sees::Latest | Sees::Committed);
        assert!(failed > 20 || latest, "{control:?}: only {failed} failed");
    }
}
