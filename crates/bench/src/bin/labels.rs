//! What the rules make of planted faults: of the violations that a fault has
//! caused, how many are labelled a bug, documented, or undecided, level by
//! level.
//!
//! A violation is the fault's if the fault has struck, clients saw something
//! else than on the sound engine, and what they saw there violates nothing.
//! What is labelled documented is printed in full: it is a hole in a rule, or
//! a fault that does nothing wrong there. Of what no oracle rejects, the first
//! statement that came to something else is printed.

use isolde_bench::open;
use isolde_engines::engine::Engine;
use isolde_engines::fault::{Concerns, FAULTS, Fault, Planted, Strikes, plant_counted};
use isolde_engines::runner::Runner;
use isolde_generator::{Generator, Options};
use isolde_hunt::HuntError;
use isolde_hunt::cause::{self, Verdict};
use isolde_hunt::check::{CheckResult, check_any};
use isolde_hunt::executor::{Executor, Fixture};
use isolde_model::{History, Level, transcript};
use isolde_oracles::DEFAULT_ORACLES;
use std::collections::BTreeMap;

#[derive(Clone, Default)]
struct Count {
    cases: u64,
    /// Cases in which it struck.
    struck: u64,
    /// Those of them in which clients saw something else than without it.
    changed: u64,
    /// Those of them that no oracle rejects, though the sound run is clean.
    missed: u64,
    /// Those whose run without the fault violates something, too.
    preexisting: u64,
    labels: BTreeMap<&'static str, u64>,
    undecided: BTreeMap<String, u64>,
}

impl Count {
    fn of(&self, label: Verdict) -> u64 {
        self.labels.get(label.name()).copied().unwrap_or_default()
    }

    fn add(&mut self, other: &Count) {
        self.cases += other.cases;
        self.struck += other.struck;
        self.changed += other.changed;
        self.missed += other.missed;
        self.preexisting += other.preexisting;
        for (label, n) in &other.labels {
            *self.labels.entry(label).or_default() += n;
        }
        for (why, n) in &other.undecided {
            *self.undecided.entry(why.clone()).or_default() += n;
        }
    }

    fn line(&self, name: &str, level: &str) {
        let caused: u64 = self.labels.values().sum();
        println!(
            "  {name:24} {level:17} {:6} {:6} {:7} {:6} {:6} {caused:8} {:6} {:10} {:9}",
            self.cases,
            self.struck,
            self.changed,
            self.preexisting,
            self.missed,
            self.of(Verdict::Bug),
            self.of(Verdict::Documented),
            self.of(Verdict::Undecided)
        );
    }
}

fn main() {
    let mut arguments = std::env::args().skip(1);
    let mut number = |default: u64| arguments.next().map_or(Ok(default), |a| a.parse());
    let (Ok(cases), Ok(seed)) = (number(60), number(1)) else {
        println!("Usage: bench/labels [CASES [SEED [TARGET...]]]");
        return;
    };
    let named: Vec<String> = arguments.collect();
    let all = ["sqlite", "sqlite+wal", "postgres", "mariadb"].map(String::from);
    for target in if named.is_empty() { &all[..] } else { &named } {
        measure(target, cases, seed);
    }
}

/// One engine for sound runs, and a server of its own for the faulty ones.
struct Bench {
    target: String,
    sound: Executor,
    host: Box<dyn Engine>,
    /// The runs of the sound engine.
    known: BTreeMap<(Level, u64), Option<CheckResult>>,
}

impl Bench {
    fn faulted(&self, fault: &'static Fault) -> Option<(Executor, Strikes)> {
        let target = match self.host.client() {
            Some(at) => {
                let family = self.target.split(['@', '+']).next().unwrap_or_default();
                let password = at.password.as_ref().map_or("", |p| p.reveal());
                let login = format!("{}:{password}", at.user);
                format!("{family}://{login}@{}:{}/{}", at.host, at.port, at.database)
            }
            None => self.target.clone(),
        };
        let (engine, strikes) =
            plant_counted(open(&target)?, Planted { fault, rate: 1.0, seed: 1 });
        Some((Executor::new(Runner::new(engine)), strikes))
    }

    fn sound(&mut self, generator: &Generator, level: Level, number: u64) -> Option<&CheckResult> {
        let sound = &mut self.sound;
        let known = self.known.entry((level, number)).or_insert_with(|| {
            let plan = generator.plan(number);
            check_any(sound, &Fixture::of(&plan), &plan.to_case(), DEFAULT_ORACLES).ok()
        });
        known.as_ref()
    }
}

fn measure(target: &str, cases: u64, seed: u64) {
    let (Some(sound), Some(host)) = (open(target), open(target)) else { return };
    let info = sound.info().clone();
    let profile = sound.profile().clone();
    let sound = Executor::new(Runner::new(sound));
    let mut bench = Bench { target: target.into(), sound, host, known: BTreeMap::new() };
    println!("{target} {}: {cases} cases per level, seed {seed}", info.version);
    println!(
        "  fault                    level              cases struck changed   also missed violated    bug documented undecided"
    );
    let dialect = info.dialect();
    let mut sums: [(&str, Count); 2] = ["writes", "reads"].map(|name| (name, Count::default()));
    for fault in FAULTS.iter().filter(|f| f.concerns != Concerns::Server) {
        if let Some(why) = fault.unsupported_on(&info.engine, &profile) {
            println!("  {:24} cannot be planted: {why}", fault.name);
            continue;
        }
        for level in profile.level_names() {
            let mut options = Options::new(vec![level], level);
            options.own_levels = false;
            let generator = Generator::new(dialect, seed, options);
            let Some((mut faulty, strikes)) = bench.faulted(fault) else { return };
            let mut count = Count::default();
            for number in 0..cases {
                let planted = (fault, &mut faulty, &strikes);
                one(&mut bench, planted, &generator, (level, number), &mut count);
            }
            count.line(fault.name, &level.to_string());
            sums[usize::from(fault.concerns == Concerns::Reads)].1.add(&count);
        }
    }
    for (name, sum) in &sums {
        sum.line(name, "all levels");
        for (why, n) in &sum.undecided {
            println!("      {n:5} undecided: {why}");
        }
    }
}

fn one(
    bench: &mut Bench,
    (fault, faulty, strikes): (&Fault, &mut Executor, &Strikes),
    generator: &Generator,
    (level, number): (Level, u64),
    count: &mut Count,
) {
    let plan = generator.plan(number);
    let (fixture, case) = (Fixture::of(&plan), plan.to_case());
    let before = strikes.count();
    let checked = match check_any(faulty, &fixture, &case, DEFAULT_ORACLES) {
        Ok(checked) => checked,
        Err(HuntError::Fixture { .. }) => return,
        Err(error) => panic!("{error}"),
    };
    count.cases += 1;
    if strikes.count() == before {
        return;
    }
    count.struck += 1;
    let Some(sound) = bench.sound(generator, level, number) else { return };
    let (one, other) = (&sound.concurrent, &checked.concurrent);
    if one.events == other.events && one.final_state == other.final_state {
        return;
    }
    count.changed += 1;
    if !sound.consistent() {
        count.preexisting += 1;
        return;
    }
    if !checked.violated() {
        count.missed += 1;
        let differs = |step: &usize| seen(one, *step) != seen(other, *step);
        let step = (0..one.steps.len()).find(differs);
        let texts = step.map(|s| (one.steps[s].sql.as_str(), seen(one, s), seen(other, s)));
        let modelled = &checked.model_coverage;
        println!("missed: {} in case {number} at {level}: {modelled:?}: {texts:?}", fault.name);
        return;
    }
    let found = cause::find(faulty, (&fixture, &case), &checked);
    let cause = found.unwrap_or_else(|e| panic!("{e}"));
    *count.labels.entry(cause.label.name()).or_default() += 1;
    match cause.label {
        // A planted fault that changes a lock and no result is a lead.
        Verdict::Bug | Verdict::Locking => {}
        Verdict::Undecided => {
            let why = cause.evidence.last().map_or("", |e| e.split_once(": ").map_or("", |e| e.1));
            *count.undecided.entry(why.into()).or_default() += 1;
        }
        Verdict::Documented | Verdict::Consistent => {
            show(fault, &checked, &cause.evidence, (level, number))
        }
    }
}

/// What became of a step, in words.
fn seen(history: &History, step: usize) -> String {
    transcript::summary(history, step)
}

fn show(fault: &Fault, checked: &CheckResult, evidence: &[String], (level, number): (Level, u64)) {
    println!("documented: {} in case {number} at {level}", fault.name);
    evidence.iter().for_each(|e| println!("    {e}"));
    for violation in &checked.violations {
        println!("    {}: {:?}", violation.oracle.name(), violation.differences);
    }
    println!("{}", transcript::transcript(&checked.concurrent));
}
