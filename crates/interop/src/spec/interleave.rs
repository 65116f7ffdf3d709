//! All interleavings of a spec's sessions, one at a time: there may be more of
//! them than memory holds.

use super::{Spec, StepId};

pub struct Interleavings<'a> {
    spec: &'a Spec,
    /// The sessions in the order of the next interleaving; none at the end.
    order: Option<Vec<usize>>,
}

impl<'a> Interleavings<'a> {
    pub(super) fn new(spec: &'a Spec) -> Interleavings<'a> {
        let steps = |(i, s): (usize, &super::SpecSession)| vec![i; s.steps.len()];
        let order = spec.sessions.iter().enumerate().flat_map(steps).collect();
        Interleavings { spec, order: Some(order) }
    }
}

impl Iterator for Interleavings<'_> {
    type Item = Vec<StepId>;

    fn next(&mut self) -> Option<Vec<StepId>> {
        let order = self.order.take()?;
        let mut taken = vec![0; self.spec.sessions.len()];
        let steps = order
            .iter()
            .map(|session| {
                let step = taken[*session];
                taken[*session] += 1;
                StepId { session: *session, step }
            })
            .collect();
        self.order = successor(order);
        Some(steps)
    }
}

/// The next arrangement in dictionary order, equal elements being one.
fn successor(mut order: Vec<usize>) -> Option<Vec<usize>> {
    let pivot = (1..order.len()).rev().find(|i| order[i - 1] < order[*i])? - 1;
    let swap = (pivot + 1..order.len()).rev().find(|i| order[*i] > order[pivot])?;
    order.swap(pivot, swap);
    order[pivot + 1..].reverse();
    Some(order)
}

#[cfg(test)]
mod tests {
    use crate::spec::parse;

    #[test]
    fn every_order_comes_once_with_the_first_session_first() {
        let text = "session a step a1 {x} step a2 {x} session b step b1 {x}";
        let spec = parse(text).unwrap();
        let named: Vec<Vec<&str>> = spec
            .interleavings()
            .map(|p| p.into_iter().map(|id| spec.step(id).name.as_str()).collect())
            .collect();
        assert_eq!(named, [["a1", "a2", "b1"], ["a1", "b1", "a2"], ["b1", "a1", "a2"]]);
    }
}
