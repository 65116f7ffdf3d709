//! Cases for tests: built from text, run, and their histories read.

use isolde_engines::runner::Runner;
use isolde_model::case;
use isolde_model::case::Case;
use isolde_model::history::EventKind;
use isolde_model::{History, Level};

/// Parses a case.
pub fn case(text: &str) -> Case {
    case::parse(text).unwrap_or_else(|e| panic!("{e}\n{text}"))
}

/// Builds a case from its setup and its steps.
pub fn steps(setup: &str, steps: &str) -> Case {
    let indent: String = setup.lines().map(|l| format!("  {}\n", l.trim())).collect();
    let steps: String = steps.lines().map(|l| format!("{}\n", l.trim())).collect();
    case(&format!("case: test\nsetup:\n{indent}\n{steps}"))
}

/// The setup of a table `t` with two rows, one statement per line.
pub const TWO_ROWS: &str = "create table t (id int primary key, v int);
     insert into t values (1, 10), (2, 20);";

/// Runs a case that must run to its end.
pub fn run(runner: &mut Runner, case: &Case, level: Option<Level>) -> History {
    runner.run(case, level).unwrap_or_else(|e| panic!("{}: {e}", runner.engine.info().target))
}

/// The outcome of the step with this label (such as `s2.3`), in one line.
pub fn outcome(history: &History, label: &str) -> String {
    let step = history.steps.iter().position(|s| s.label == label).expect("a step of the case");
    isolde_model::transcript::summary(history, step)
}

/// The codes of all errors of a run, in order.
pub fn error_codes(history: &History) -> Vec<String> {
    let code = |what: &EventKind| what.error().map(|e| e.code.clone());
    history.events.iter().filter_map(|e| code(&e.what)).collect()
}

/// A random number generator that gives the same numbers on every machine
/// (SplitMix64).
pub struct Dice(pub u64);

impl Dice {
    /// A number from 0 up to, but not including, `n`.
    pub fn below(&mut self, n: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % n
    }
}

/// Builds a case of sessions `s1`, `s2`, … from one script per session. The
/// dice choose how the scripts interleave.
pub fn interleaved(dice: &mut Dice, setup: &[&str], scripts: Vec<Vec<String>>) -> Case {
    let mut text = String::from("case: interleaved\nsetup:\n");
    setup.iter().for_each(|sql| text.push_str(&format!("  {sql};\n")));
    let mut left: Vec<_> = scripts.into_iter().map(Vec::into_iter).collect();
    while left.iter().any(|script| script.len() > 0) {
        let session = dice.below(left.len() as u64) as usize;
        if let Some(sql) = left[session].next() {
            text.push_str(&format!("s{}> {sql};\n", session + 1));
        }
    }
    case(&text)
}

/// The setup of a table `t` with three rows.
pub const THREE_ROWS: [&str; 2] =
    ["create table t (id int primary key, v int)", "insert into t values (1, 1), (2, 2), (3, 3)"];

/// How often a test repeats its work: the value of the environment variable,
/// which measurements set, or `usual` in a run of the test suite.
pub fn repeats(variable: &str, usual: usize) -> usize {
    std::env::var(variable).ok().and_then(|v| v.parse().ok()).unwrap_or(usual)
}
