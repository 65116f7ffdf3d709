//! What the tests on real engines share.

#![allow(dead_code)]

use isolde_core::case::{self, Case};
use isolde_core::history::What;
use isolde_core::{History, Level};
use isolde_engines::fetch::install::{self, Cache};
use isolde_engines::runner::Runner;
use isolde_engines::target::{Options, Target};

/// Servers with locks that are tested when they are in the cache.
pub const FETCHED: [&str; 7] = [
    "mysql@9.7",
    "mysql@8.0.33",
    "mysql@5.7",
    "mariadb@11.8",
    "mariadb@10.2",
    "postgres@18",
    "postgres@12.3",
];

/// Opens a target, or says by name why the test does not run on it. Targets
/// that every full run of the tests must have are never skipped.
pub fn open(target: &str) -> Option<Runner> {
    let parsed = Target::parse(target).unwrap();
    if let Target::Named(named) = &parsed {
        let servers_off = std::env::var_os("ISOLDE_TEST_QUICK").is_some();
        if named.engine != "sqlite" {
            if servers_off {
                skip(&format!("{target} (quick run)"));
                return None;
            }
            let found = install::find(&named.engine, named.version.as_deref(), &Cache::open());
            let must_have = ["postgres", "mariadb"].contains(&target);
            if found.is_err() && !must_have {
                skip(&format!("{target} is not in the cache; `isolde fetch {target}` brings it"));
                return None;
            }
        }
    }
    let options = Options { cache: Cache::open(), via: None };
    let engine = parsed.open(&options).unwrap_or_else(|e| panic!("{target}: {e}"));
    Some(Runner::new(engine))
}

/// Says by name what does not run: on the screen, and in the list that
/// `./test` prints at its end.
pub fn skip(what: &str) {
    println!("skipped: {what}");
    if let Some(path) = std::env::var_os("ISOLDE_TEST_SKIPPED") {
        let mut list = std::fs::OpenOptions::new().append(true).create(true).open(path).unwrap();
        std::io::Write::write_all(&mut list, format!("{what}\n").as_bytes()).unwrap();
    }
}

pub fn case(text: &str) -> Case {
    case::parse(text).unwrap_or_else(|e| panic!("{e}\n{text}"))
}

/// A case from its setup and steps.
pub fn steps(setup: &str, steps: &str) -> Case {
    let indent: String = setup.lines().map(|l| format!("  {}\n", l.trim())).collect();
    let steps: String = steps.lines().map(|l| format!("{}\n", l.trim())).collect();
    case(&format!("case: test\nsetup:\n{indent}\n{steps}"))
}

pub const TWO_ROWS: &str = "create table t (id int primary key, v int);
     insert into t values (1, 10), (2, 20);";

pub fn run(runner: &mut Runner, case: &Case, level: Option<Level>) -> History {
    runner.run(case, level).unwrap_or_else(|e| panic!("{}: {e}", runner.engine.info().target))
}

/// What became of the step with this label: `s2.3`.
pub fn told(history: &History, label: &str) -> String {
    let step = history.steps.iter().position(|s| s.label == label).expect("a step of the case");
    isolde_core::transcript::summary(history, step)
}

pub fn error_codes(history: &History) -> Vec<String> {
    let code = |what: &What| what.error().map(|e| e.code.clone());
    history.events.iter().filter_map(|e| code(&e.what)).collect()
}

/// Numbers that are the same on every machine (SplitMix64).
pub struct Dice(pub u64);

impl Dice {
    pub fn below(&mut self, n: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % n
    }
}

/// A case of sessions `s1`, `s2`, … that each work through a script of their
/// own, in an order that the dice choose.
pub fn interleaved(dice: &mut Dice, setup: &[&str], scripts: Vec<Vec<String>>) -> Case {
    let mut text = String::from("case: interleaved\nsetup:\n");
    setup.iter().for_each(|sql| text.push_str(&format!("  {sql};\n")));
    let mut left: Vec<_> = scripts.into_iter().map(Vec::into_iter).collect();
    while left.iter().any(|script| script.len() > 0) {
        let who = dice.below(left.len() as u64) as usize;
        if let Some(sql) = left[who].next() {
            text.push_str(&format!("s{}> {sql};\n", who + 1));
        }
    }
    case(&text)
}

pub const THREE_ROWS: [&str; 2] =
    ["create table t (id int primary key, v int)", "insert into t values (1, 1), (2, 2), (3, 3)"];

/// How often something is repeated: a few times in the test suite, as often as
/// the variable says when it is measured in earnest.
pub fn repeats(variable: &str, usual: usize) -> usize {
    std::env::var(variable).ok().and_then(|v| v.parse().ok()).unwrap_or(usual)
}
