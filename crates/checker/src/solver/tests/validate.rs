//! Validates a cycle: each step is in the history, or its reverse is refuted by steps that are.

use super::super::problem::{Dependency, Goal, Justification, Problem, Step};
use crate::types::{INITIAL, RequiredOrders};

/// An assumption: one run of versions of an item precedes another.
struct Assumption {
    item: u32,
    earlier: Vec<u32>,
    later: Vec<u32>,
}

struct Validator<'a> {
    problem: &'a Problem,
    goal: Goal,
    required: RequiredOrders,
    assumed: Vec<Assumption>,
}

pub fn cycle(
    problem: &Problem,
    goal: Goal,
    required: RequiredOrders,
    steps: &[Step],
) -> Result<(), String> {
    let mut validator = Validator { problem, goal, required, assumed: Vec::new() };
    validator.justified(steps)?;
    match validator.closes(steps, None) {
        true => Ok(()),
        false => Err("the steps do not close a cycle".into()),
    }
}

impl Validator<'_> {
    fn reads(&self, txn: u32, item: u32, writer: u32) -> bool {
        self.problem.reads.of(txn).contains(&(item, writer))
    }

    fn writes(&self, txn: u32, item: u32) -> bool {
        self.problem.writes.of(txn).contains(&item)
    }

    /// Whether one step may follow another: under snapshot isolation two anti-dependencies must not
    /// be adjacent.
    fn follows(&self, one: &Step, next: &Step) -> bool {
        let anti = |step: &Step| matches!(step.dependency, Dependency::Rw { .. });
        one.to == next.from && (self.goal == Goal::Serializable || !(anti(one) && anti(next)))
    }

    fn closes(&self, steps: &[Step], opposite: Option<&Assumption>) -> bool {
        if steps.is_empty() || !steps.windows(2).all(|two| self.follows(&two[0], &two[1])) {
            return false;
        }
        let (first, last) = (&steps[0], &steps[steps.len() - 1]);
        let closing = |dependency| Step {
            from: last.to,
            to: first.from,
            dependency,
            justification: Justification::Assumed,
        };
        let closes_by = |dependency| {
            let step = closing(dependency);
            self.follows(last, &step) && self.follows(&step, first)
        };
        if self.follows(last, first) {
            return true;
        }
        opposite.is_some_and(|opposite| {
            let item = opposite.item;
            let earlier = &opposite.earlier;
            opposite.later.contains(&first.from)
                && (earlier.contains(&last.to) && closes_by(Dependency::Ww { item })
                    || last.to != first.from
                        && earlier.iter().any(|writer| {
                            self.reads(last.to, item, *writer)
                                && closes_by(Dependency::Rw { item, writer: *writer })
                        }))
        })
    }

    fn justified(&mut self, steps: &[Step]) -> Result<(), String> {
        for step in steps {
            let (from, to) = (step.from, step.to);
            let problem = self.problem;
            let seen = match step.dependency {
                Dependency::Session => {
                    self.required.sessions
                        && problem.session_of[from as usize] == problem.session_of[to as usize]
                        && from < to
                }
                Dependency::RealTime => {
                    self.required.times
                        && problem.times[from as usize][1] < problem.times[to as usize][0]
                }
                Dependency::Wr { item } => self.writes(from, item) && self.reads(to, item, from),
                Dependency::Ww { item } => {
                    self.writes(from, item)
                        && self.writes(to, item)
                        && self.versions_ordered(step, item, from)?
                }
                Dependency::Rw { item, writer } => {
                    self.reads(from, item, writer)
                        && self.writes(to, item)
                        && from != to
                        && self.versions_ordered(step, item, writer)?
                }
            };
            let of_versions =
                matches!(step.dependency, Dependency::Ww { .. } | Dependency::Rw { .. });
            if !seen || !of_versions && step.justification != Justification::Observed {
                return Err(format!("not justified: {step:?}"));
            }
        }
        Ok(())
    }

    /// Whether the version of `earlier` is certain to precede that of the step's end.
    fn versions_ordered(&mut self, step: &Step, item: u32, earlier: u32) -> Result<bool, String> {
        let later = step.to;
        match &step.justification {
            Justification::Observed => Ok(self.observed(item, earlier, later)),
            Justification::Assumed => Ok(self.assumed.iter().any(|assumed| {
                assumed.item == item
                    && assumed.earlier.contains(&earlier)
                    && assumed.later.contains(&later)
            })),
            Justification::Inferred(steps) => {
                let opposite = Assumption {
                    item,
                    earlier: self.whole_run(item, later),
                    later: self.whole_run(item, earlier),
                };
                self.assumed.push(opposite);
                self.justified(steps)?;
                let opposite = self.assumed.pop();
                Ok(self.closes(steps, opposite.as_ref()))
            }
            Justification::Search => Err("a small history needs no search".into()),
        }
    }

    fn observed(&self, item: u32, earlier: u32, later: u32) -> bool {
        if earlier == INITIAL || self.reads(later, item, earlier) {
            return true;
        }
        let known = self.problem.known_order.of(item);
        let position = |txn: u32| known.iter().position(|other| *other == txn);
        match (position(earlier), position(later)) {
            (Some(earlier), Some(later)) => earlier < later,
            (Some(_), None) => true,
            (None, Some(_)) => false,
            // A run that continues the known version order precedes all others.
            (None, None) => {
                let run = self.run(item, earlier, |other, here| {
                    other != later && self.reads(here, item, other)
                });
                let begins = |txn: &u32| known.contains(txn) || self.reads(*txn, item, INITIAL);
                run.iter().any(begins)
            }
        }
    }

    /// All writers whose versions must be adjacent to that of this one, directly or transitively.
    fn whole_run(&self, item: u32, writer: u32) -> Vec<u32> {
        self.run(item, writer, |other, here| {
            self.reads(other, item, here) || self.reads(here, item, other)
        })
    }

    /// The writers of versions that this one is linked to, directly or transitively.
    fn run(&self, item: u32, writer: u32, linked: impl Fn(u32, u32) -> bool) -> Vec<u32> {
        let mut run = vec![writer];
        let mut at = 0;
        while at < run.len() {
            let here = run[at];
            at += 1;
            for other in 0..self.problem.session_of.len() as u32 {
                let both_write = self.writes(other, item) && self.writes(here, item);
                if both_write && linked(other, here) && !run.contains(&other) {
                    run.push(other);
                }
            }
        }
        run
    }
}
