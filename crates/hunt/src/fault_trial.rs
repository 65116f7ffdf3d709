//! Tries the oracles on a planted fault: which of them sees it, and how soon.

use crate::error::HuntError;
use crate::execution::check::check;
use crate::execution::executor::Executor;
use crate::output::tally::Tally;
use crate::run::Fixture;
use crate::worker::hunter::Hunter;
use crate::worker::known::KnownBugs;
use isolde_engines::engine::Engine;
use isolde_engines::runner::{RunError, Runner};
use isolde_generator::Generator;
use isolde_model::Verdict;
use isolde_oracles::Oracle;
use serde::Serialize;
use std::collections::BTreeMap;
use std::time::Instant;

/// When an oracle first reported something that the engine's documentation
/// does not explain.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Detection {
    pub oracle: &'static str,
    pub label: Verdict,
    /// How many cases it took, and how long.
    pub cases: u64,
    pub seconds: f64,
}

pub struct FaultTrial<'a> {
    pub generator: &'a Generator,
    pub oracles: &'a [Oracle],
    /// Cases at most.
    pub cases: u64,
    /// Once an oracle has reported something, the others get this many cases
    /// more.
    pub more: u64,
    pub interrupted: fn() -> bool,
}

/// Hunts until every oracle has reported something, or had its chance. What
/// the engine does without the fault, too, is not the fault's.
pub fn run(
    trial: &FaultTrial<'_>,
    faulty: Box<dyn Engine>,
    sound: Box<dyn Engine>,
) -> Result<Vec<Detection>, HuntError> {
    let executor = |engine| {
        let mut runner = Runner::new(engine);
        runner.interrupted = trial.interrupted;
        Executor::new(runner)
    };
    let mut sound = executor(sound);
    let known = KnownBugs::default();
    let mut hunter = Hunter {
        executor: executor(faulty),
        generator: trial.generator,
        oracles: trial.oracles,
        known: &known,
        stop: &|| (trial.interrupted)(),
        trials: 0,
        similar: BTreeMap::new(),
    };
    let began = Instant::now();
    let mut tally = Tally::default();
    let mut sightings: Vec<Detection> = Vec::new();
    for number in 0..trial.cases {
        if sightings.first().is_some_and(|s| number >= s.cases + trial.more) {
            break;
        }
        if (trial.interrupted)() {
            return Err(RunError::Interrupted.into());
        }
        let plan = trial.generator.plan(number);
        let examined = match hunter.examine(&plan, &mut tally) {
            Ok(examined) => examined,
            Err(HuntError::Fixture { .. }) => continue,
            Err(error) => return Err(error),
        };
        for evidence in &examined.evidence {
            let finding = &evidence.finding;
            if finding.cause.label == Verdict::Documented {
                continue;
            }
            let without = check(&mut sound, &Fixture::of(&plan), &evidence.original, trial.oracles);
            if !without.is_ok_and(|checked| checked.consistent()) {
                continue;
            }
            for oracle in trial.oracles {
                let reported = finding.oracles.iter().any(|o| o == oracle.name());
                if reported && sightings.iter().all(|s| s.oracle != oracle.name()) {
                    sightings.push(Detection {
                        oracle: oracle.name(),
                        label: finding.cause.label,
                        cases: number + 1,
                        seconds: began.elapsed().as_secs_f64(),
                    });
                }
            }
        }
        if let Some(error) = examined.ended {
            return Err(error);
        }
        if sightings.len() == trial.oracles.len() {
            break;
        }
    }
    Ok(sightings)
}
