//! The search for a small plan that still fails: greedy, large pieces first.
//!
//! It asks of one smaller plan after the other whether that fails, too, and
//! goes on from whichever does. Who drives it knows what failing means, and
//! may end it at any time with what it has.

use super::{Candidates, Pass};
use crate::generate::Plan;
use crate::inquiry::Desk;

/// What a trial of a plan came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trial {
    Fails,
    Passes,
    /// There is no time for more.
    OutOfTime,
}

/// The smallest plan that was found.
#[derive(Clone, Debug, PartialEq)]
pub struct Smallest {
    pub plan: Plan,
    /// Plans that were tried, the first one included.
    pub trials: u32,
    /// It was told to stop before it had tried everything.
    pub cut: bool,
}

/// None when the plan does not fail as it is, or there was no time to see it.
/// At most `most` plans are tried.
pub async fn reduce(plan: &Plan, most: u32, desk: Desk<Plan, Trial>) -> Option<Smallest> {
    if desk.ask(plan.clone()).await != Trial::Fails {
        return None;
    }
    let mut best = Smallest { plan: plan.clone(), trials: 1, cut: false };
    loop {
        let before = size(&best.plan);
        // Each pass is over what the pass before has left.
        for pass in Pass::ALL {
            best.descend(pass, most, &desk).await;
        }
        if size(&best.plan) == before || best.cut || best.trials >= most {
            return Some(best);
        }
    }
}

impl Smallest {
    /// Takes smaller plans as long as one of them still fails; each is built
    /// when it is to be tried.
    async fn descend(&mut self, pass: Pass, most: u32, desk: &Desk<Plan, Trial>) {
        let mut candidates = Candidates::of(&self.plan, pass);
        while !self.cut && self.trials < most {
            let Some(smaller) = candidates.next(&self.plan) else { return };
            self.trials += 1;
            match desk.ask(smaller.clone()).await {
                Trial::Fails => {
                    self.plan = smaller;
                    candidates.taken();
                }
                Trial::Passes => {}
                Trial::OutOfTime => self.cut = true,
            }
        }
    }
}

/// A measure that every step of the search makes smaller.
fn size(plan: &Plan) -> usize {
    let case = plan.to_case();
    let setup: usize = case.setups.iter().flat_map(|s| &s.statements).map(|s| s.sql.len()).sum();
    setup + case.steps.iter().map(|s| s.sql.len() + 10).sum::<usize>()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Level;
    use crate::generate::{Dialect, Generator, Options};
    use crate::inquiry::Inquiry;
    use crate::sql::Stmt;

    fn plans() -> impl Iterator<Item = Plan> {
        let options = Options::new(vec![Level::Serializable], Level::Serializable);
        let generator = Generator::new(Dialect::for_engine("postgres", "15.1"), 5, options);
        (0..400).step_by(23).map(move |number| generator.plan(number))
    }

    fn reduced(plan: &Plan, most: u32, mut trial: impl FnMut(&Plan) -> Trial) -> Option<Smallest> {
        let inquiry = Inquiry::new(|desk| reduce(plan, most, desk));
        inquiry.answered_by(|plan| Ok::<_, ()>(trial(&plan))).unwrap()
    }

    fn writes(plan: &Plan) -> usize {
        plan.statements().filter(|s| matches!(s, Stmt::Update(_) | Stmt::Delete(_))).count()
    }

    #[test]
    fn what_is_left_fails_and_nothing_smaller_does() {
        for plan in plans() {
            let fails = |plan: &Plan| writes(plan) >= 2;
            let trial = |plan: &Plan| if fails(plan) { Trial::Fails } else { Trial::Passes };
            let Some(found) = reduced(&plan, u32::MAX, trial) else {
                assert!(!fails(&plan), "what fails is reduced");
                continue;
            };
            assert_eq!((writes(&found.plan), found.cut), (2, false));
            for pass in Pass::ALL {
                let mut candidates = Candidates::of(&found.plan, pass);
                while let Some(smaller) = candidates.next(&found.plan) {
                    assert!(!fails(&smaller) || size(&smaller) >= size(&found.plan));
                }
            }
        }
    }

    #[test]
    fn what_does_not_fail_again_is_not_reduced() {
        let plan = plans().next().unwrap();
        assert_eq!(reduced(&plan, 100, |_| Trial::Passes), None);
        assert_eq!(reduced(&plan, 100, |_| Trial::OutOfTime), None);
    }

    #[test]
    fn it_ends_with_what_it_has_when_told_to_and_when_all_trials_are_used() {
        let plan = plans().find(|p| writes(p) >= 3).unwrap();
        let mut trials = 0;
        let cut = reduced(&plan, 100, |_| {
            trials += 1;
            if trials < 4 { Trial::Fails } else { Trial::OutOfTime }
        });
        let cut = cut.unwrap();
        assert!(cut.cut && cut.trials == 4 && size(&cut.plan) < size(&plan));
        let used = reduced(&plan, 3, |_| Trial::Fails).unwrap();
        assert!(!used.cut && used.trials == 3 && size(&used.plan) < size(&plan));
    }
}
