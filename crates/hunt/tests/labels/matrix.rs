//! A confusion matrix: the expected label of each run against the assigned one.

use std::collections::BTreeMap;
use std::fmt::{Display, Formatter, Result};

#[derive(Default)]
pub struct Matrix {
    cells: BTreeMap<(&'static str, &'static str), usize>,
    open: BTreeMap<&'static str, usize>,
}

impl Matrix {
    pub fn add(&mut self, expected: &'static str, given: &'static str) {
        *self.cells.entry((expected, given)).or_default() += 1;
    }

    /// A falsified run that the rules allow, for the reason given.
    pub fn left_open(&mut self, why: &'static str) {
        *self.open.entry(why).or_default() += 1;
    }
}

const LABELS: [&str; 5] = ["bug", "locking", "documented", "consistent", "undecided"];

impl Display for Matrix {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        let columns = |cells: [String; 5]| cells.map(|cell| format!("{cell:>10}")).join(" ");
        writeln!(f, "  expected \\ given   {}", columns(LABELS.map(String::from)))?;
        for expected in ["documented", "bug", "planted fault"] {
            let cell = |given| self.cells.get(&(expected, given)).copied().unwrap_or_default();
            let cells = LABELS.map(|given| cell(given).to_string());
            writeln!(f, "  {expected:18} {}", columns(cells))?;
        }
        for (why, n) in &self.open {
            writeln!(f, "  {n:5} falsified runs are left open: {why}")?;
        }
        Ok(())
    }
}
