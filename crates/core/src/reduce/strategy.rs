//! Ways to search for the operations that are needed.
//!
//! *Pisco* (appendix B.2): in rounds, each over the operations that hang on nothing that is
//! still open. They are cut into two halves, the units of each half are taken away on trial,
//! and a half that is needed is cut further. Single operations that are needed are settled,
//! and those behind them come next. Where the needed set is fixed and has with each
//! operation all that it hangs on, this takes no more than 4M + 2M log2(N/M) trials for M
//! needed ones of N: a round over n operations of which m > 0 are needed takes at most
//! 4m + 2m log2(n/m) - 2, because its tree has at most min(2^d, m) nodes to divide at depth
//! d; only the last round can be one in which nothing is needed, and takes 2. Nothing is
//! printed in the paper for M = 0, where the formula means nothing: 2 trials then.
//!
//! *ddmin* (Zeller and Hildebrandt) and *C-Reduce* as the paper adapts it (E.2: whole
//! threads, then whole transactions) are there to be compared with.

use super::{Cut, Graph, Question, Trial};
use crate::inquiry::Desk;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Strategy {
    #[default]
    Pisco,
    Ddmin,
    Creduce,
}

impl Strategy {
    pub const ALL: [Strategy; 3] = [Strategy::Pisco, Strategy::Ddmin, Strategy::Creduce];

    pub fn name(self) -> &'static str {
        match self {
            Strategy::Pisco => "pisco",
            Strategy::Ddmin => "ddmin",
            Strategy::Creduce => "creduce",
        }
    }
}

/// Trials that Pisco takes at most for `m` needed operations of `n`.
pub fn bound(n: usize, m: usize) -> f64 {
    let (n, m) = (n as f64, m as f64);
    if m == 0.0 { 2.0 } else { 4.0 * m + 2.0 * m * (n / m).log2() }
}

/// Which operations are kept: the questions of a strategy.
pub type Asked = Desk<Question<Vec<bool>>, Trial>;

/// What is left, and how many trials it took. The first trial is that of the whole,
/// which somebody else has made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Left {
    pub kept: Vec<bool>,
    pub trials: u32,
    pub cut: bool,
}

struct Search<'g> {
    graph: &'g Graph,
    desk: Asked,
    /// How many questions are known in advance.
    ahead: usize,
    kept: Vec<bool>,
    trials: u32,
}

/// The operations that the strategy keeps.
pub async fn minimal(strategy: Strategy, graph: &Graph, ahead: usize, desk: Asked) -> Left {
    let mut search = Search::new(graph, ahead, desk);
    let ended = match strategy {
        Strategy::Pisco => search.rounds().await,
        Strategy::Ddmin => search.ddmin().await,
        Strategy::Creduce => search.threads_and_transactions().await,
    };
    search.left(ended)
}

/// Tries to spare each operation alone, with what makes no sense without it, until none
/// can be: what is left is 1-minimal.
pub async fn prove(graph: &Graph, ahead: usize, desk: Asked) -> Left {
    let mut search = Search::new(graph, ahead, desk);
    let ended = search.one_by_one().await;
    search.left(ended)
}

impl<'g> Search<'g> {
    fn new(graph: &'g Graph, ahead: usize, desk: Asked) -> Search<'g> {
        Search { graph, desk, ahead, kept: vec![true; graph.len()], trials: 0 }
    }

    fn left(self, ended: Result<(), Cut>) -> Left {
        Left { kept: self.kept, trials: self.trials, cut: ended.is_err() }
    }

    /// Takes the first for good if the rest still fails without it. The others are what is
    /// tried next if not.
    async fn goes(
        &mut self,
        candidates: &[Vec<usize>],
        take: impl Fn(&Graph, &[usize], &mut [bool]),
    ) -> Result<bool, Cut> {
        let graph = self.graph;
        let without = |gone: &Vec<usize>| {
            let mut kept = self.kept.clone();
            take(graph, gone, &mut kept);
            kept
        };
        let Some(first) = candidates.first() else { return Ok(false) };
        let of = without(first);
        let ahead = candidates[1..].iter().take(self.ahead).map(without).collect();
        self.trials += 1;
        match self.desk.ask(Question { of: of.clone(), ahead }).await {
            Trial::Fails => {
                self.kept = of;
                Ok(true)
            }
            Trial::Passes => Ok(false),
            Trial::OutOfTime => Err(Cut),
        }
    }

    async fn rounds(&mut self) -> Result<(), Cut> {
        let mut settled = vec![false; self.graph.len()];
        loop {
            let inputs = self.graph.without_predecessors(&self.kept, &settled);
            if inputs.is_empty() {
                return Ok(());
            }
            let mut parts = if inputs.len() == 1 { vec![inputs] } else { halves(&inputs) };
            while !parts.is_empty() {
                let mut divided = Vec::new();
                for at in 0..parts.len() {
                    if self.goes(&parts[at..], Graph::take_units).await? {
                        continue;
                    }
                    match parts[at][..] {
                        [needed] => settled[needed] = true,
                        _ => divided.extend(halves(&parts[at])),
                    }
                }
                parts = divided;
            }
        }
    }

    /// Keeps a part alone, or all but a part, or cuts finer.
    async fn ddmin(&mut self) -> Result<(), Cut> {
        let mut count = 2;
        loop {
            let all = self.all();
            if all.len() < 2 {
                // One that may be none.
                self.goes(&[all], Graph::take).await?;
                return Ok(());
            }
            let parts = cut(&all, count.min(all.len()));
            let others = |part: &Vec<usize>| -> Vec<usize> {
                all.iter().copied().filter(|n| part.binary_search(n).is_err()).collect()
            };
            let complements: Vec<Vec<usize>> = parts.iter().map(others).collect();
            let mut found = None;
            for at in 0..parts.len() {
                // With two parts, one is the complement of the other.
                if parts.len() > 2 && self.goes(&complements[at..], Graph::take).await? {
                    found = Some(2);
                    break;
                }
            }
            for at in 0..parts.len() {
                if found.is_none() && self.goes(&parts[at..], Graph::take).await? {
                    found = Some((parts.len() - 1).max(2));
                }
            }
            count = match found {
                Some(coarser) => coarser,
                None if parts.len() == all.len() => return Ok(()),
                None => (2 * parts.len()).min(all.len()),
            };
        }
    }

    async fn threads_and_transactions(&mut self) -> Result<(), Cut> {
        for groups in [self.graph.sessions(), self.graph.transactions()] {
            let there = |group: &Vec<usize>| group.iter().any(|n| self.kept[*n]);
            let groups: Vec<Vec<usize>> = groups.into_iter().filter(there).collect();
            for at in 0..groups.len() {
                if groups[at].iter().any(|n| self.kept[*n]) {
                    self.goes(&groups[at..], Graph::take).await?;
                }
            }
        }
        Ok(())
    }

    async fn one_by_one(&mut self) -> Result<(), Cut> {
        loop {
            let singles: Vec<Vec<usize>> = self.all().into_iter().rev().map(|n| vec![n]).collect();
            let mut fewer = false;
            for at in 0..singles.len() {
                if self.kept[singles[at][0]] {
                    fewer |= self.goes(&singles[at..], Graph::take).await?;
                }
            }
            if !fewer {
                return Ok(());
            }
        }
    }

    fn all(&self) -> Vec<usize> {
        (0..self.kept.len()).filter(|n| self.kept[*n]).collect()
    }
}

fn halves(of: &[usize]) -> Vec<Vec<usize>> {
    cut(of, 2)
}

/// Into that many parts, as even as can be.
fn cut(of: &[usize], parts: usize) -> Vec<Vec<usize>> {
    let end = |part: usize| of.len() * part / parts;
    (0..parts).map(|part| of[end(part)..end(part + 1)].to_vec()).collect()
}
