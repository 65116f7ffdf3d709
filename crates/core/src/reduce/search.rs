//! The whole search: operations by a strategy, proof, and the inside, to a fixpoint.

use super::strategy::{Asked, Left, minimal, prove};
use super::{Graph, Question, Strategy, Trial};
use crate::inquiry::{Desk, Inquiry, Progress};

/// What can be made smaller.
pub trait Subject: Clone + PartialEq {
    /// Hands out smaller subjects, one at a time, each made from the best so far.
    type Inside: Clone;

    fn graph(&self) -> Graph;

    /// With these operations of its graph alone; what hangs on others is not among them.
    fn keeping(&self, kept: &[bool]) -> Self;

    /// The nth pass over what is not an operation; none where there are no more.
    fn inside(&self, pass: usize) -> Option<Self::Inside>;

    /// The next of a pass. The one before was not taken, unless `taken` was called.
    fn next(inside: &mut Self::Inside, best: &Self) -> Option<Self>;

    fn taken(inside: &mut Self::Inside);
}

/// The smallest subject that was found.
#[derive(Clone, Debug, PartialEq)]
pub struct Smallest<S> {
    pub of: S,
    pub spent: Spent,
    /// It was told to stop before it had tried everything.
    pub cut: bool,
}

/// What a search asked, by what it was asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Spent {
    /// Operations of the whole.
    pub operations: usize,
    /// Of these, those that the strategy left.
    pub needed: usize,
    /// Trials of the strategy.
    pub strategy: u32,
    /// Trials of single operations, for the proof that none can go.
    pub proof: u32,
    /// Trials of all else.
    pub inside: u32,
}

impl Spent {
    /// With the first one, that of the whole.
    pub fn trials(&self) -> u32 {
        1 + self.strategy + self.proof + self.inside
    }
}

type Whole<S> = Desk<Question<S>, Trial>;

/// None when the subject does not fail as it is, or there was no time to see it.
/// `ahead` questions are named in advance.
pub async fn reduce<S: Subject>(
    subject: &S,
    strategy: Strategy,
    ahead: usize,
    desk: Whole<S>,
) -> Option<Smallest<S>> {
    let whole = Question { of: subject.clone(), ahead: Vec::new() };
    if desk.ask(whole).await != Trial::Fails {
        return None;
    }
    let graph = subject.graph();
    let mut best = Smallest { of: subject.clone(), spent: Spent::default(), cut: false };
    let left = best.settle(&desk, |asked| minimal(strategy, &graph, ahead, asked)).await;
    let needed = left.kept.iter().filter(|kept| **kept).count();
    best.spent =
        Spent { operations: graph.len(), needed, strategy: left.trials, ..Spent::default() };
    while !best.cut {
        let before = best.of.clone();
        let graph = best.of.graph();
        let proof = best.settle(&desk, |asked| prove(&graph, ahead, asked)).await;
        best.spent.proof += proof.trials;
        for pass in 0.. {
            let Some(inside) = best.of.inside(pass) else { break };
            best.descend(inside, ahead, &desk).await;
        }
        if best.of == before {
            break;
        }
    }
    Some(best)
}

impl<S: Subject> Smallest<S> {
    /// A search over the operations of the best so far.
    async fn settle<'g, F: Future<Output = Left> + 'g>(
        &mut self,
        desk: &Whole<S>,
        search: impl FnOnce(Asked) -> F,
    ) -> Left {
        let of = self.of.clone();
        let mut inquiry: Inquiry<'_, Left, Question<Vec<bool>>, Trial> = Inquiry::new(search);
        let mut answer = None;
        let left = loop {
            match inquiry.resume(answer) {
                Progress::Done(left) => break left,
                Progress::Asks(Question { of: kept, ahead }) => {
                    let ahead = ahead.iter().map(|kept| of.keeping(kept)).collect();
                    answer = Some(desk.ask(Question { of: of.keeping(&kept), ahead }).await);
                }
            }
        };
        self.cut |= left.cut;
        self.of = of.keeping(&left.kept);
        left
    }

    /// Takes smaller subjects as long as one of them still fails; each is built when it is
    /// to be tried.
    async fn descend(&mut self, mut inside: S::Inside, ahead: usize, desk: &Whole<S>) {
        while !self.cut {
            let Some(smaller) = S::next(&mut inside, &self.of) else { return };
            let mut later = inside.clone();
            let ahead = (0..ahead).map_while(|_| S::next(&mut later, &self.of)).collect();
            self.spent.inside += 1;
            match desk.ask(Question { of: smaller.clone(), ahead }).await {
                Trial::Fails => {
                    self.of = smaller;
                    S::taken(&mut inside);
                }
                Trial::Passes => {}
                Trial::OutOfTime => self.cut = true,
            }
        }
    }
}
