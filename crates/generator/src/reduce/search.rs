//! The whole reduction: a strategy over operations, the proof, and simplifications, to a fixpoint.

use super::strategy::{KeptOperations, StrategyChannel, minimize, prove};
use super::{OperationGraph, Strategy, Trial, TrialRequest};
use isolde_model::inquiry::{Channel, Inquiry, Progress};

/// A subject that can be reduced.
pub trait Reducible: Clone + PartialEq {
    /// A pass over simplifications: returns smaller subjects one by one, each made from the best
    /// so far.
    type Simplifications: Clone;

    fn graph(&self) -> OperationGraph;

    /// The subject with these operations of its graph only. None of them depends on one that is
    /// removed.
    fn keeping(&self, kept: &[bool]) -> Self;

    /// The nth pass over everything but operations; none if there are no more passes.
    fn simplifications(&self, pass: usize) -> Option<Self::Simplifications>;

    /// The next candidate of a pass. The one before was rejected unless `accept` was called.
    fn next(simplifications: &mut Self::Simplifications, best: &Self) -> Option<Self>;

    fn accept(simplifications: &mut Self::Simplifications);
}

/// The result of a reduction: the smallest subject that fails.
#[derive(Clone, Debug, PartialEq)]
pub struct Reduction<S> {
    pub subject: S,
    pub spent: TrialCounts,
    /// The search ran out of time before it had tried everything.
    pub cut: bool,
}

/// The number of trials of a reduction, by purpose.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TrialCounts {
    /// Operations of the whole subject.
    pub operations: usize,
    /// The operations that the strategy kept.
    pub needed: usize,
    /// Trials of the strategy.
    pub strategy: u32,
    /// Trials of single operations, which prove that none can be removed.
    pub proof: u32,
    /// Trials of simplifications.
    pub inside: u32,
}

impl TrialCounts {
    /// All trials, including the first one, of the whole subject.
    pub fn trials(&self) -> u32 {
        1 + self.strategy + self.proof + self.inside
    }
}

type TrialChannel<S> = Channel<TrialRequest<S>, Trial>;

/// Reduces a subject. None if it does not fail as it is, or there was no time to try it. Each
/// request lists up to `ahead` later ones in advance.
pub async fn reduce<S: Reducible>(
    subject: &S,
    strategy: Strategy,
    ahead: usize,
    channel: TrialChannel<S>,
) -> Option<Reduction<S>> {
    let whole = TrialRequest { subject: subject.clone(), ahead: Vec::new() };
    if channel.ask(whole).await != Trial::Fails {
        return None;
    }
    let graph = subject.graph();
    let mut best =
        Reduction { subject: subject.clone(), spent: TrialCounts::default(), cut: false };
    let left = best.settle(&channel, |asked| minimize(strategy, &graph, ahead, asked)).await;
    let needed = left.kept.iter().filter(|kept| **kept).count();
    best.spent = TrialCounts {
        operations: graph.len(),
        needed,
        strategy: left.trials,
        ..TrialCounts::default()
    };
    while !best.cut {
        let before = best.subject.clone();
        let graph = best.subject.graph();
        let proof = best.settle(&channel, |asked| prove(&graph, ahead, asked)).await;
        best.spent.proof += proof.trials;
        for pass in 0.. {
            let Some(simplifications) = best.subject.simplifications(pass) else { break };
            best.descend(simplifications, ahead, &channel).await;
        }
        if best.subject == before {
            break;
        }
    }
    Some(best)
}

impl<S: Reducible> Reduction<S> {
    /// Runs a search over the operations of the best subject so far.
    async fn settle<'g, F: Future<Output = KeptOperations> + 'g>(
        &mut self,
        channel: &TrialChannel<S>,
        search: impl FnOnce(StrategyChannel) -> F,
    ) -> KeptOperations {
        let subject = self.subject.clone();
        let mut inquiry: Inquiry<'_, KeptOperations, TrialRequest<Vec<bool>>, Trial> =
            Inquiry::new(search);
        let mut answer = None;
        let left = loop {
            match inquiry.resume(answer) {
                Progress::Done(left) => break left,
                Progress::Asks(TrialRequest { subject: kept, ahead }) => {
                    let ahead = ahead.iter().map(|kept| subject.keeping(kept)).collect();
                    answer = Some(
                        channel.ask(TrialRequest { subject: subject.keeping(&kept), ahead }).await,
                    );
                }
            }
        };
        self.cut |= left.cut;
        self.subject = subject.keeping(&left.kept);
        left
    }

    /// Accepts smaller subjects of one pass as long as they fail. Each is built only when it is
    /// tried.
    async fn descend(
        &mut self,
        mut simplifications: S::Simplifications,
        ahead: usize,
        channel: &TrialChannel<S>,
    ) {
        while !self.cut {
            let Some(smaller) = S::next(&mut simplifications, &self.subject) else { return };
            let mut later = simplifications.clone();
            let ahead = (0..ahead).map_while(|_| S::next(&mut later, &self.subject)).collect();
            self.spent.inside += 1;
            match channel.ask(TrialRequest { subject: smaller.clone(), ahead }).await {
                Trial::Fails => {
                    self.subject = smaller;
                    S::accept(&mut simplifications);
                }
                Trial::Passes => {}
                Trial::OutOfTime => self.cut = true,
            }
        }
    }
}
