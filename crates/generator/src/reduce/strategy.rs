//! Strategies that search for the needed operations.
//!
//! *Pisco* (appendix B.2) works in rounds, each over the operations that depend on no other open
//! one. They are split into halves, the units of each half are removed on trial, and a needed half
//! is split further. Single needed operations are settled, and their dependents come next. If the
//! needed set is fixed and contains with each operation all that it depends on, this takes at most
//! 4M + 2M log2(N/M) trials for M needed operations of N: a round over n operations of which m > 0
//! are needed takes at most 4m + 2m log2(n/m) - 2, because its tree has at most min(2^d, m) nodes
//! to split at depth d; only the last round can be one in which nothing is needed, and takes 2.
//! The paper gives no bound for M = 0, where the formula is undefined: 2 trials.
//!
//! *ddmin* (Zeller and Hildebrandt) and *C-Reduce* as the paper adapts it (E.2: whole threads,
//! then whole transactions) are implemented for comparison.

use super::{OperationGraph, OutOfTime, Trial, TrialRequest};
use isolde_model::inquiry::Channel;

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

/// The maximum number of trials of Pisco for `m` needed operations of `n`.
pub fn bound(n: usize, m: usize) -> f64 {
    let (n, m) = (n as f64, m as f64);
    if m == 0.0 { 2.0 } else { 4.0 * m + 2.0 * m * (n / m).log2() }
}

/// The channel of a strategy, whose requests are the operations to keep.
pub type StrategyChannel = Channel<TrialRequest<Vec<bool>>, Trial>;

/// The result of a strategy: the kept operations and the number of trials, without the first one,
/// of the whole subject, which the caller has made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeptOperations {
    pub kept: Vec<bool>,
    pub trials: u32,
    pub cut: bool,
}

struct Search<'g> {
    graph: &'g OperationGraph,
    channel: StrategyChannel,
    /// The number of later requests that each request lists.
    ahead: usize,
    kept: Vec<bool>,
    trials: u32,
}

/// Searches with a strategy for a small set of operations that still fails.
pub async fn minimize(
    strategy: Strategy,
    graph: &OperationGraph,
    ahead: usize,
    channel: StrategyChannel,
) -> KeptOperations {
    let mut search = Search::new(graph, ahead, channel);
    let ended = match strategy {
        Strategy::Pisco => search.pisco().await,
        Strategy::Ddmin => search.ddmin().await,
        Strategy::Creduce => search.threads_and_transactions().await,
    };
    search.left(ended)
}

/// Tries to spare each operation alone, with what makes no sense without it, until none
/// can be: what is left is 1-minimal.
pub async fn prove(
    graph: &OperationGraph,
    ahead: usize,
    channel: StrategyChannel,
) -> KeptOperations {
    let mut search = Search::new(graph, ahead, channel);
    let ended = search.one_by_one().await;
    search.left(ended)
}

impl<'g> Search<'g> {
    fn new(graph: &'g OperationGraph, ahead: usize, channel: StrategyChannel) -> Search<'g> {
        Search { graph, channel, ahead, kept: vec![true; graph.len()], trials: 0 }
    }

    fn left(self, ended: Result<(), OutOfTime>) -> KeptOperations {
        KeptOperations { kept: self.kept, trials: self.trials, cut: ended.is_err() }
    }

    /// Removes the first candidate for good if the rest still fails without it. The other
    /// candidates are tried next if it does not.
    async fn try_without(
        &mut self,
        candidates: &[Vec<usize>],
        take: impl Fn(&OperationGraph, &[usize], &mut [bool]),
    ) -> Result<bool, OutOfTime> {
        let graph = self.graph;
        let without = |gone: &Vec<usize>| {
            let mut kept = self.kept.clone();
            take(graph, gone, &mut kept);
            kept
        };
        let Some(first) = candidates.first() else { return Ok(false) };
        let remaining = without(first);
        let ahead = candidates[1..].iter().take(self.ahead).map(without).collect();
        self.trials += 1;
        match self.channel.ask(TrialRequest { subject: remaining.clone(), ahead }).await {
            Trial::Fails => {
                self.kept = remaining;
                Ok(true)
            }
            Trial::Passes => Ok(false),
            Trial::OutOfTime => Err(OutOfTime),
        }
    }

    async fn pisco(&mut self) -> Result<(), OutOfTime> {
        let mut settled = vec![false; self.graph.len()];
        loop {
            let inputs = self.graph.roots(&self.kept, &settled);
            if inputs.is_empty() {
                return Ok(());
            }
            let mut parts = if inputs.len() == 1 { vec![inputs] } else { halves(&inputs) };
            while !parts.is_empty() {
                let mut divided = Vec::new();
                for at in 0..parts.len() {
                    if self.try_without(&parts[at..], OperationGraph::remove_units).await? {
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

    /// Keeps one part, or all but one part, or partitions finer.
    async fn ddmin(&mut self) -> Result<(), OutOfTime> {
        let mut count = 2;
        loop {
            let all = self.all();
            if all.len() < 2 {
                // The last operation may be unneeded, too.
                self.try_without(&[all], OperationGraph::remove).await?;
                return Ok(());
            }
            let parts = partition(&all, count.min(all.len()));
            let others = |part: &Vec<usize>| -> Vec<usize> {
                all.iter().copied().filter(|n| part.binary_search(n).is_err()).collect()
            };
            let complements: Vec<Vec<usize>> = parts.iter().map(others).collect();
            let mut found = None;
            for at in 0..parts.len() {
                // With two parts, one is the complement of the other.
                if parts.len() > 2
                    && self.try_without(&complements[at..], OperationGraph::remove).await?
                {
                    found = Some(2);
                    break;
                }
            }
            for at in 0..parts.len() {
                if found.is_none() && self.try_without(&parts[at..], OperationGraph::remove).await?
                {
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

    async fn threads_and_transactions(&mut self) -> Result<(), OutOfTime> {
        for groups in [self.graph.sessions(), self.graph.transactions()] {
            let there = |group: &Vec<usize>| group.iter().any(|n| self.kept[*n]);
            let groups: Vec<Vec<usize>> = groups.into_iter().filter(there).collect();
            for at in 0..groups.len() {
                if groups[at].iter().any(|n| self.kept[*n]) {
                    self.try_without(&groups[at..], OperationGraph::remove).await?;
                }
            }
        }
        Ok(())
    }

    async fn one_by_one(&mut self) -> Result<(), OutOfTime> {
        loop {
            let singles: Vec<Vec<usize>> = self.all().into_iter().rev().map(|n| vec![n]).collect();
            let mut fewer = false;
            for at in 0..singles.len() {
                if self.kept[singles[at][0]] {
                    fewer |= self.try_without(&singles[at..], OperationGraph::remove).await?;
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
    partition(of, 2)
}

/// Splits a list into that many parts of about equal length.
fn partition(of: &[usize], parts: usize) -> Vec<Vec<usize>> {
    let end = |part: usize| of.len() * part / parts;
    (0..parts).map(|part| of[end(part)..end(part + 1)].to_vec()).collect()
}
