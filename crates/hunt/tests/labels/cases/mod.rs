//! Cases with the rules that explain them, each named by the behaviour it shows.

pub mod dolt;
pub mod duckdb;
pub mod innodb;
pub mod postgres;
pub mod shared_cache;
pub mod sqlite;
pub mod tidb;

use crate::falsify::Change;

pub struct Labelled {
    /// The behaviour, as a sentence.
    pub name: &'static str,
    pub engines: &'static str,
    pub level: &'static str,
    /// The rules that the run shows, and where.
    pub shows: &'static [(&'static str, Where)],
    pub setup: &'static str,
    pub steps: &'static str,
    /// Rules whose breach shows at another statement: the rule, that statement,
    /// and the change that must be rejected.
    pub breaks: &'static [(&'static str, Where, Change)],
    /// Falsified runs that the rules allow: the step, the change, the reason.
    pub open: &'static [(Option<&'static str>, Change, &'static str)],
    /// Whether MariaDB's innodb_snapshot_isolation must be on or off.
    pub snapshot_isolation: Option<bool>,
}

#[derive(Clone, Copy, Debug)]
pub enum Where {
    Step(&'static str),
    /// The engine chooses the step.
    SomeStep,
    /// The rule determines the serial order of the whole run.
    Order,
}

pub const TWO_ROWS: &str = "create table t (id int primary key, v int);
    insert into t values (1, 10), (2, 20);";

impl Labelled {
    /// The case in the notation of case files.
    pub fn text(&self) -> String {
        let setup: String = self.setup.lines().map(|l| format!("  {}\n", l.trim())).collect();
        let steps: String = self.steps.lines().map(|l| format!("{}\n", l.trim())).collect();
        let id: String =
            self.name.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).collect();
        let Labelled { engines, level, .. } = self;
        format!("case: {id}\nengines: {engines}\nlevel: {level}\nsetup:\n{setup}\n{steps}")
    }
}

/// Defaults that most cases share.
pub const PLAIN: Labelled = Labelled {
    name: "",
    engines: "",
    level: "",
    shows: &[],
    setup: TWO_ROWS,
    steps: "",
    breaks: &[],
    open: &[],
    snapshot_isolation: None,
};
