//! How much of what is generated the rules of an engine predict: the share of
//! cases that is modelled whole, what is not, and every statement outside.
//!
//! Usage: `semantics [TARGET [CASES [SEED [SHOWN [FIRST]]]]]`. It begins with
//! the case number FIRST, so that a few cases of a long run can be had again.

use isolde_bench::open;
use isolde_core::Level;
use isolde_core::generate::{Generator, Options};
use isolde_core::inquiry::Inquiry;
use isolde_core::semantics::{Prediction, Reading, SerialOrder, Subject, predict, serial_order};
use isolde_core::transcript;
use isolde_engines::runner::Runner;
use isolde_hunt::HuntError;
use isolde_hunt::executor::{Executor, Fixture};
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

#[derive(Default)]
struct Count {
    cases: u64,
    inside: u64,
    outside: u64,
    serial: u64,
    not_serial: u64,
    not_modelled: BTreeMap<String, u64>,
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let target = arguments.first().map_or("sqlite", String::as_str);
    let number = |place: usize, default: u64| {
        arguments.get(place).and_then(|a| a.parse().ok()).unwrap_or(default)
    };
    let (cases, seed, shown) = (number(1, 1000), number(2, 1), number(3, 5));
    let first = number(4, 0);
    let Some(engine) = open(target) else { return };
    let info = engine.info().clone();
    let profile = engine.profile().clone();
    let options = Options::new(profile.level_names(), profile.default_level);
    let dialect = info.dialect();
    let generator = Generator::new(dialect, seed, options);
    let mut executor = Executor::new(Runner::new(engine));
    let mut counts: BTreeMap<Level, Count> = BTreeMap::new();
    let (mut running, mut predicting) = (Duration::ZERO, Duration::ZERO);
    let mut left = shown;
    for number in first..first + cases {
        let plan = generator.plan(number);
        let (fixture, case) = (Fixture::of(&plan), plan.to_case());
        let count = counts.entry(plan.level.unwrap_or(profile.default_level)).or_default();
        let began = Instant::now();
        let history = match executor.run(&fixture, &case) {
            Ok(history) => history,
            Err(HuntError::Fixture { .. }) => continue,
            Err(error) => panic!("case {number}: {error}"),
        };
        running += began.elapsed();
        count.cases += 1;
        let began = Instant::now();
        let reading = Reading::of_plan(&plan);
        let subject = Subject { history: &history, reading: &reading };
        let inquiry = Inquiry::new(|desk| predict(&subject, desk));
        let prediction = executor
            .inquire((&fixture, &case), inquiry, &mut Vec::new())
            .unwrap_or_else(|e| panic!("case {number}: {e}"));
        if subject.promises_serial_order() {
            let inquiry = Inquiry::new(|desk| serial_order(&subject, desk));
            let order = executor
                .inquire((&fixture, &case), inquiry, &mut Vec::new())
                .unwrap_or_else(|e| panic!("case {number}: {e}"));
            if let SerialOrder::Found(_) = order {
                count.serial += 1;
            } else {
                count.not_serial += 1;
                println!("case {number}: {order:?}");
                println!("{}", transcript::transcript(&history));
            }
        }
        predicting += began.elapsed();
        match prediction {
            Prediction::Inside { .. } => count.inside += 1,
            Prediction::NotModelled { step, why } => {
                let of_engine = why.starts_with("it cannot") || why.starts_with("an error");
                if let (Some(step), true, true) = (step, of_engine, left > 0) {
                    left -= 1;
                    let sql = &history.steps[step].sql;
                    let error = history.outcome(step).reply.and_then(|r| r.error());
                    let said = error.map_or("", |e| e.message.as_str());
                    println!("case {number}: {why}: {sql} -- {said}");
                }
                *count.not_modelled.entry(why).or_default() += 1;
            }
            Prediction::Outside { step, rule, why } => {
                count.outside += 1;
                if left > 0 {
                    left -= 1;
                    let label = step.map_or("", |s| history.steps[s].label.as_str());
                    println!("case {number}: {label}: {why} [{}: {}]", rule.id, rule.about);
                    println!("{}", isolde_core::case::format(&case));
                    println!("{}", transcript::transcript(&history));
                }
            }
        }
    }
    println!("{target} {}: {cases} cases, seed {seed}", info.version);
    for (level, count) in counts {
        println!(
            "  {level:16} {:6} cases, {:6} inside, {:4} outside, {:5.1}% modelled",
            count.cases,
            count.inside,
            count.outside,
            100.0 * (count.inside + count.outside) as f64 / count.cases.max(1) as f64
        );
        println!("      {} with a serial order, {} without", count.serial, count.not_serial);
        for (why, n) in count.not_modelled {
            println!("      {n:5} {why}");
        }
    }
    println!("  runs {running:.1?}, predictions {predicting:.1?}");
}
