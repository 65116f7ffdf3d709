//! How well triage knows findings of one fault from those of others: of each
//! planted fault so many reduced findings, each from another seed. Each of them
//! is taken out, weights are counted in the others alone, and the others are
//! ranked by similarity: is a finding of the same fault on top, among the first
//! three, among the first five? For comparison the same by the paper's formula, with
//! equal weights, and by chance.
//!
//! Then the groups: of pairs in one group how many are of one fault, and in how
//! many groups each fault is.

use isolde_bench::open;
use isolde_engines::engine::Engine;
use isolde_engines::fault::{Concerns, FAULTS, Fault, Planted, plant};
use isolde_engines::runner::Runner;
use isolde_generator::{Generator, Options};
use isolde_hunt::cause::Verdict;
use isolde_hunt::executor::Executor;
use isolde_hunt::hunter::Hunter;
use isolde_hunt::known::KnownBugs;
use isolde_hunt::tally::Tally;
use isolde_oracles::DEFAULT_ORACLES;
use isolde_triage::{Features, LabelledReport, Weights, groups};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Instant;

/// Cases of one seed that are tried at most.
const CASES_A_SEED: u64 = 90;
/// Seeds that are tried at most for each finding that is wanted.
const SEEDS_A_FINDING: u64 = 4;

struct Found {
    fault: &'static str,
    features: Features,
}

fn main() {
    let mut arguments = std::env::args().skip(1);
    let mut number = |default: u64| arguments.next().map_or(Ok(default), |a| a.parse());
    let (Ok(wanted), Ok(trials)) = (number(30), number(150)) else {
        println!("Usage: bench/triage [FINDINGS [TRIALS [TARGET...]]]");
        return;
    };
    let named: Vec<String> = arguments.collect();
    let all = ["sqlite", "mariadb"].map(String::from);
    for target in if named.is_empty() { &all[..] } else { &named } {
        measure(target, wanted, u32::try_from(trials).unwrap_or(u32::MAX));
    }
}

fn measure(target: &str, wanted: u64, trials: u32) {
    let Some(host) = open(target) else { return };
    let version = host.info().version.clone();
    println!("{target} {version}: {wanted} findings of each fault, {trials} trials a reduction");
    let mut found: Vec<Found> = Vec::new();
    for fault in FAULTS.iter().filter(|f| f.concerns != Concerns::Server) {
        if let Some(why) = fault.unsupported_on(&host.info().engine, host.profile()) {
            println!("  {:24} cannot be planted: {why}", fault.name);
            continue;
        }
        let began = Instant::now();
        let before = found.len();
        collect(target, host.as_ref(), fault, (wanted, trials), &mut found);
        let seconds = began.elapsed().as_secs_f64();
        println!("  {:24} {:3} findings in {seconds:.0} s", fault.name, found.len() - before);
    }
    // A fault with one finding has nothing to be recognised by.
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    found.iter().for_each(|f| *counts.entry(f.fault).or_default() += 1);
    found.retain(|f| counts[f.fault] > 1);
    evaluate(&found);
    group_by_defect(&found);
}

/// Findings of a fault, the first of each seed.
fn collect(
    target: &str,
    host: &dyn Engine,
    fault: &'static Fault,
    (wanted, trials): (u64, u32),
    found: &mut Vec<Found>,
) {
    let at = match host.client() {
        Some(at) => {
            let family = target.split(['@', '+']).next().unwrap_or_default();
            let password = at.password.as_ref().map_or("", |p| p.reveal());
            format!("{family}://{}:{password}@{}:{}/{}", at.user, at.host, at.port, at.database)
        }
        None => target.to_string(),
    };
    let Some(engine) = open(&at) else { return };
    let (info, profile) = (engine.info().clone(), engine.profile().clone());
    let engine = plant(engine, Planted { fault, rate: 1.0, seed: 1 });
    let known = KnownBugs::default();
    let mut executor = Some(Executor::new(Runner::new(engine)));
    let (mut have, mut seed) = (0, 0);
    while have < wanted && seed < wanted * SEEDS_A_FINDING {
        seed += 1;
        let options = Options::new(profile.level_names(), profile.default_level);
        let generator = Generator::new(info.dialect(), seed, options);
        let Some(executor_of_seed) = executor.take() else { return };
        let mut hunter = Hunter {
            executor: executor_of_seed,
            generator: &generator,
            oracles: DEFAULT_ORACLES,
            known: &known,
            stop: &|| false,
            trials,
            similar: BTreeMap::new(),
        };
        let mut tally = Tally::default();
        for number in 0..CASES_A_SEED {
            let Ok(examined) = hunter.examine(&generator.plan(number), &mut tally) else { break };
            let bug = examined.evidence.into_iter().find(|e| e.finding.cause.label == Verdict::Bug);
            if let Some(features) = bug.and_then(|e| e.finding.features) {
                found.push(Found { fault: fault.name, features });
                have += 1;
                break;
            }
        }
        executor = Some(hunter.executor);
    }
}

/// How often the right fault was among the first 1, 3 and 5.
#[derive(Clone, Copy, Default)]
struct Hits([f64; 3]);

const FIRST: [usize; 3] = [1, 3, 5];

impl Hits {
    fn line(self, name: &str, of: usize) {
        let share = |n: usize| format!("{:6.1}%", 100.0 * self.0[n] / of.max(1) as f64);
        println!("  {name:28} {:>9} {:>9} {:>9}", share(0), share(1), share(2));
    }

    /// The right fault stands at these places of a ranking.
    fn add(&mut self, right: &[bool]) {
        for (n, first) in FIRST.iter().enumerate() {
            self.0[n] += f64::from(u8::from(right.iter().take(*first).any(|r| *r)));
        }
    }

    /// What a ranking by chance would do: `right` of `others` are.
    fn add_chance(&mut self, right: usize, others: usize) {
        for (n, first) in FIRST.iter().enumerate() {
            let mut missed = 1.0;
            for drawn in 0..(*first).min(others) {
                missed *= (others - right).saturating_sub(drawn) as f64 / (others - drawn) as f64;
            }
            self.0[n] += 1.0 - missed;
        }
    }
}

fn evaluate(found: &[Found]) {
    let faults: BTreeSet<&str> = found.iter().map(|f| f.fault).collect();
    println!("  {} findings of {} faults", found.len(), faults.len());
    println!("  ranked by                       on top     top 3     top 5");
    let [mut counted, mut paper, mut equal, mut chance] = [Hits::default(); 4];
    let mut by_fault: BTreeMap<&str, Hits> = BTreeMap::new();
    let mut misled: BTreeMap<(&str, &str), usize> = BTreeMap::new();
    for (n, finding) in found.iter().enumerate() {
        let others: Vec<&Found> =
            found.iter().enumerate().filter(|(m, _)| *m != n).map(|(_, f)| f).collect();
        let labelled: Vec<LabelledReport<'_>> =
            others.iter().map(|f| LabelledReport { features: &f.features, bug: f.fault }).collect();
        let ranked = |weights: &Weights| -> Vec<&Found> {
            let mut all: Vec<(f64, usize)> = others
                .iter()
                .enumerate()
                .map(|(m, f)| (weights.similarity(&finding.features, &f.features), m))
                .collect();
            all.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
            all.into_iter().map(|(_, m)| others[m]).collect()
        };
        let right = |ranking: &[&Found]| -> Vec<bool> {
            ranking.iter().take(5).map(|f| f.fault == finding.fault).collect()
        };
        let by_information = ranked(&Weights::counted(&labelled));
        counted.add(&right(&by_information));
        by_fault.entry(finding.fault).or_default().add(&right(&by_information));
        if let Some(top) = by_information.first().filter(|top| top.fault != finding.fault) {
            *misled.entry((finding.fault, top.fault)).or_default() += 1;
        }
        paper.add(&right(&ranked(&Weights::of_the_paper(&labelled))));
        equal.add(&right(&ranked(&Weights::equal())));
        let same = others.iter().filter(|f| f.fault == finding.fault).count();
        chance.add_chance(same, others.len());
    }
    counted.line("mutual information", found.len());
    paper.line("formula (3) of the paper", found.len());
    equal.line("equal weights", found.len());
    chance.line("chance", found.len());
    for (fault, hits) in &by_fault {
        let of = found.iter().filter(|f| f.fault == *fault).count();
        hits.line(&format!("  {fault} ({of})"), of);
    }
    for ((fault, taken_for), times) in misled.iter().filter(|(_, times)| **times > 1) {
        println!("    {times} of {fault} taken for {taken_for}");
    }
}

fn group_by_defect(found: &[Found]) {
    let features: Vec<(String, &Features)> =
        found.iter().map(|f| (f.features.key(), &f.features)).collect();
    let groups = groups(&features);
    let (mut together, mut right) = (0usize, 0usize);
    let mut spread: BTreeMap<&str, usize> = BTreeMap::new();
    for group in &groups {
        let faults: BTreeSet<&str> = group.members.iter().map(|m| found[*m].fault).collect();
        faults.iter().for_each(|f| *spread.entry(f).or_default() += 1);
        for (n, a) in group.members.iter().enumerate() {
            for b in &group.members[n + 1..] {
                together += 1;
                right += usize::from(found[*a].fault == found[*b].fault);
            }
        }
    }
    let share = 100.0 * right as f64 / together.max(1) as f64;
    println!("  {} groups; of pairs in one group {share:.1}% are of one fault", groups.len());
    for (fault, count) in &spread {
        println!("    {fault} is in {count} groups");
    }
    for group in &groups {
        let mut of: BTreeMap<&str, usize> = BTreeMap::new();
        group.members.iter().for_each(|m| *of.entry(found[*m].fault).or_default() += 1);
        println!("    {of:?}: {}", group.reason);
    }
}
