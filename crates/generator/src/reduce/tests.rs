//! Tests strategies on artificial cases whose needed operations are known.

use super::strategy::KeptOperations;
use super::*;
use isolde_model::inquiry::Inquiry;
use isolde_model::random::Random;

/// A random graph: each operation depends on up to three earlier ones.
fn random_graph(random: &mut Random, n: usize, roots: usize) -> (OperationGraph, Vec<Vec<usize>>) {
    let sessions = random.between(1, 5);
    let place = |k: usize| Owner { session: k / 4 % sessions, transaction: k / 4 };
    let mut graph = OperationGraph::new((0..n).map(place).collect());
    let mut dependencies = vec![Vec::new(); n];
    for (later, dependencies) in dependencies.iter_mut().enumerate().skip(roots.max(1)) {
        for _ in 0..random.between(0, 3) {
            let earlier = random.below(later);
            if random.chance(50) {
                graph.add_requirement(earlier, later);
            } else {
                graph.add_data_dependency(earlier, later);
            }
            dependencies.push(earlier);
        }
    }
    (graph, dependencies)
}

/// Some operations with all that they depend on.
fn closed(random: &mut Random, dependencies: &[Vec<usize>], seeds: usize) -> Vec<bool> {
    let mut needed = vec![false; dependencies.len()];
    let mut next: Vec<usize> = (0..seeds).map(|_| random.below(dependencies.len())).collect();
    while let Some(n) = next.pop() {
        if !std::mem::replace(&mut needed[n], true) {
            next.extend(&dependencies[n]);
        }
    }
    needed
}

fn count(of: &[bool]) -> usize {
    of.iter().filter(|is| **is).count()
}

fn searched(
    strategy: Strategy,
    graph: &OperationGraph,
    ahead: usize,
    mut fails: impl FnMut(&[bool]) -> bool,
) -> KeptOperations {
    let trial = |fails| if fails { Trial::Fails } else { Trial::Passes };
    Inquiry::new(|channel| minimize(strategy, graph, ahead, channel))
        .answered_by(|request: TrialRequest<Vec<bool>>| Ok::<_, ()>(trial(fails(&request.subject))))
        .unwrap()
}

fn holds(needed: &[bool]) -> impl Fn(&[bool]) -> bool {
    move |kept| needed.iter().zip(kept).all(|(needed, kept)| *kept || !needed)
}

#[test]
fn pisco_finds_the_needed_set_within_its_bound() {
    let mut closest: f64 = 0.0;
    for round in 0..3000 {
        let mut random = Random::stream(11, "pisco", round);
        let most = *random.pick(&[4, 20, 100, 700]);
        let n = 1 + random.below(most);
        let roots = random.between(1, n);
        let (graph, dependencies) = random_graph(&mut random, n, roots);
        let most = *random.pick(&[2, 4, 1 + n]);
        let seeds = random.below(most);
        let needed = closed(&mut random, &dependencies, seeds);
        let m = count(&needed);
        let left = searched(Strategy::Pisco, &graph, 0, holds(&needed));
        assert_eq!(left.kept, needed, "round {round}: {m} of {n}");
        let most = bound(n, m);
        assert!(f64::from(left.trials) <= most, "{}: {} > {most} ({m} of {n})", round, left.trials);
        if m > 0 {
            closest = closest.max(f64::from(left.trials) / most);
        }
    }
    assert!(closest > 0.8, "the bound is close: {closest}");
}

#[test]
fn pisco_stays_within_its_bound_in_every_small_case() {
    // Every needed set of up to ten independent operations, and of a chain.
    for n in 1..=10usize {
        let places = vec![Owner::default(); n];
        let (flat, mut chain) = (OperationGraph::new(places.clone()), OperationGraph::new(places));
        (1..n).for_each(|later| chain.add_data_dependency(later - 1, later));
        for set in 0..1u32 << n {
            let needed: Vec<bool> = (0..n).map(|k| set >> k & 1 == 1).collect();
            let left = searched(Strategy::Pisco, &flat, 0, holds(&needed));
            let most = bound(n, count(&needed));
            assert_eq!(left.kept, needed);
            assert!(f64::from(left.trials) <= most, "{needed:?}: {} > {most}", left.trials);
        }
        for m in 0..=n {
            let needed: Vec<bool> = (0..n).map(|k| k < m).collect();
            let left = searched(Strategy::Pisco, &chain, 0, holds(&needed));
            assert_eq!(left.kept, needed);
            assert!(f64::from(left.trials) <= bound(n, m), "chain: {m} of {n}");
        }
    }
}

#[test]
fn bound_of_pisco_is_tight() {
    // With all of a power of two needed, the rounds take 2M - 2 + 2M log2(N/M) trials: the
    // bound is off by a constant times M at most.
    let graph = OperationGraph::new(vec![Owner::default(); 64]);
    for m in [1usize, 2, 4, 8, 16, 32, 64] {
        let needed: Vec<bool> = (0..64).map(|k| k % (64 / m) == 0).collect();
        let left = searched(Strategy::Pisco, &graph, 0, holds(&needed));
        let least = 2.0 * m as f64 * (64.0 / m as f64).log2() + 2.0 * m as f64 - 2.0;
        assert_eq!(f64::from(left.trials), least, "{m} of 64");
    }
}

/// Whether taking any one operation away, with what makes no sense without it, passes.
fn is_minimal(graph: &OperationGraph, kept: &[bool], fails: impl Fn(&[bool]) -> bool) -> bool {
    fails(kept)
        && (0..kept.len()).filter(|n| kept[*n]).all(|n| {
            let mut fewer = kept.to_vec();
            graph.remove(&[n], &mut fewer);
            !fails(&fewer)
        })
}

fn proved(
    graph: &OperationGraph,
    kept: &[bool],
    fails: impl Fn(&[bool]) -> bool,
) -> KeptOperations {
    // The graph of what is left: the numbers stay, what is gone stays gone.
    let trial = |fails| if fails { Trial::Fails } else { Trial::Passes };
    Inquiry::new(|channel| prove(graph, 0, channel))
        .answered_by(|request: TrialRequest<Vec<bool>>| {
            let both: Vec<bool> = request.subject.iter().zip(kept).map(|(a, b)| *a && *b).collect();
            Ok::<_, ()>(trial(fails(&both)))
        })
        .map(|left| KeptOperations {
            kept: left.kept.iter().zip(kept).map(|(a, b)| *a && *b).collect(),
            ..left
        })
        .unwrap()
}

#[test]
fn proof_leaves_a_minimal_set_for_every_strategy_and_predicate() {
    for round in 0..400 {
        let mut random = Random::stream(12, "proof", round);
        let n = 2 + random.below(40);
        let (graph, _) = random_graph(&mut random, n, n / 2);
        // One of several sets is enough, and they need not be closed: data that was met
        // may be of no use.
        let sets: Vec<Vec<usize>> = (0..random.between(1, 3))
            .map(|_| (0..random.between(1, 5)).map(|_| random.below(n)).collect())
            .collect();
        let fails =
            |kept: &[bool]| sets.iter().any(|set: &Vec<usize>| set.iter().all(|n| kept[*n]));
        for strategy in Strategy::ALL {
            let left = searched(strategy, &graph, 0, fails);
            assert!(fails(&left.kept), "{strategy:?} keeps the failure");
            let proof = proved(&graph, &left.kept, fails);
            assert!(is_minimal(&graph, &proof.kept, fails), "{strategy:?} in round {round}");
        }
    }
}

#[test]
fn ddmin_is_one_minimal_and_creduce_takes_one_trial_per_group() {
    for round in 0..300 {
        let mut random = Random::stream(13, "baselines", round);
        let n = 1 + random.below(60);
        let (graph, dependencies) = random_graph(&mut random, n, n);
        let seeds = random.below(4);
        let needed = closed(&mut random, &dependencies, seeds);
        let fails = holds(&needed);
        let left = searched(Strategy::Ddmin, &graph, 0, &fails);
        assert_eq!(left.kept, needed);
        let left = searched(Strategy::Creduce, &graph, 0, &fails);
        let groups = graph.sessions().len() + graph.transactions().len();
        assert!(left.trials as usize <= groups);
        for transaction in graph.transactions() {
            let kept = transaction.iter().filter(|n| left.kept[**n]).count();
            assert!(kept == 0 || kept == transaction.len(), "a transaction stays or goes whole");
            assert_eq!(kept > 0, transaction.iter().any(|n| needed[*n]));
        }
    }
}

#[test]
fn lookahead_lists_the_next_requests_while_trials_pass() {
    for strategy in Strategy::ALL {
        let mut random = Random::stream(14, "ahead", 0);
        let (graph, dependencies) = random_graph(&mut random, 50, 20);
        let needed = closed(&mut random, &dependencies, 3);
        let fails = holds(&needed);
        let mut announced: Vec<Vec<bool>> = Vec::new();
        let (mut met, mut total) = (0, 0);
        let inquiry = Inquiry::new(|channel| minimize(strategy, &graph, 3, channel));
        let left = inquiry
            .answered_by(|request: TrialRequest<Vec<bool>>| {
                if let Some(next) = announced.first() {
                    total += 1;
                    met += usize::from(*next == request.subject);
                }
                let fails = fails(&request.subject);
                announced = if fails { Vec::new() } else { request.ahead };
                Ok::<_, ()>(if fails { Trial::Fails } else { Trial::Passes })
            })
            .unwrap();
        assert!(met == total || strategy == Strategy::Ddmin, "{strategy:?}: {met} of {total}");
        let alone = searched(strategy, &graph, 0, &fails);
        assert_eq!(left, alone, "{strategy:?}: looking ahead changes nothing");
    }
}

#[test]
fn strategy_without_time_returns_the_best_so_far() {
    let graph = OperationGraph::new(vec![Owner::default(); 32]);
    for strategy in Strategy::ALL {
        let mut asked = 0;
        let left = Inquiry::new(|channel| minimize(strategy, &graph, 0, channel))
            .answered_by(|request: TrialRequest<Vec<bool>>| {
                asked += 1;
                let trial = if request.subject[31] { Trial::Fails } else { Trial::Passes };
                Ok::<_, ()>(if asked > 2 { Trial::OutOfTime } else { trial })
            })
            .unwrap();
        assert!(left.kept[31]);
        assert!(left.cut || strategy == Strategy::Creduce, "{strategy:?}");
    }
}
