//! An engine that runs labelled cases, and the verdict of the rules on each run.

use crate::cases::Labelled;
use isolde_engines::engine::Engine;
use isolde_hunt::cause::{self, Verdict};
use isolde_hunt::check::{CheckResult, check};
use isolde_hunt::executor::{Executor, Fixture, VersionFixture};
use isolde_model::inquiry::Inquiry;
use isolde_model::{Case, History, transcript};
use isolde_oracles::DEFAULT_ORACLES;
use isolde_reference::version_tables::VersionTables;
use isolde_reference::{Conclusion, SerialSearch, Subject, analyse};
use isolde_sql::{Expr, InsertSource, Literal, Stmt, Write, read};
use isolde_testing::{cases, servers};

pub struct Bench {
    pub target: String,
    pub executor: Executor,
}

/// A run of a case with the results of the oracles.
pub struct Run {
    pub case: Case,
    pub fixture: Fixture,
    pub history: History,
    pub checked: CheckResult,
}

/// The verdict of the rules on a run.
#[derive(Debug)]
pub enum Shown {
    /// The rules that explain each step.
    Inside(Vec<Vec<&'static str>>),
    /// Without a rule, the run has no serial order.
    Outside {
        step: Option<usize>,
        rule: Option<String>,
    },
    /// Only the locking differs from the rules.
    Locking {
        step: usize,
        rule: String,
    },
    NotModelled(String),
}

impl Run {
    pub fn step(&self, label: &str) -> usize {
        let found = self.history.steps.iter().position(|s| s.label == label);
        found.unwrap_or_else(|| panic!("{}: no step {label}", self.case.id))
    }

    pub fn transcript(&self) -> String {
        transcript::transcript(&self.history)
    }
}

impl Bench {
    pub fn open(target: &str) -> Option<Bench> {
        let runner = servers::open(target)?;
        Some(Bench { target: target.into(), executor: Executor::new(runner) })
    }

    pub fn engine(&self) -> &dyn Engine {
        self.executor.runner.engine.as_ref()
    }

    pub fn version(&self) -> &str {
        &self.engine().info().version
    }

    /// Runs a case. `None` when it is not for this engine, version or setting.
    pub fn run(&mut self, labelled: &Labelled) -> Option<Run> {
        let info = self.engine().info().clone();
        let case = cases::case(&labelled.text());
        let snapshots = info.settings.get("innodb_snapshot_isolation");
        let snapshots = snapshots.is_some_and(|v| v == "1" || v == "ON");
        let other_setting = labelled.snapshot_isolation.is_some_and(|wanted| wanted != snapshots);
        if other_setting || !case.runs_on(&info.engine, &info.version) {
            return None;
        }
        let mut fixture = Fixture::of_case(&case, &info, self.engine().profile().default_level);
        fixture.versions = Some(versions(&fixture, &case));
        let checked = check(&mut self.executor, &fixture, &case, DEFAULT_ORACLES)
            .unwrap_or_else(|e| panic!("{}: {}: {e}", self.target, labelled.name));
        let history = checked.concurrent.clone();
        Some(Run { case, fixture, history, checked })
    }

    /// The label that a hunt gives the run.
    pub fn label(&mut self, run: &Run) -> Verdict {
        let Run { case, fixture, checked, .. } = run;
        cause::find(&mut self.executor, (fixture, case), checked).unwrap().label
    }

    fn explanation(&mut self, run: &Run, history: &History) -> Conclusion {
        let reading = run.fixture.reading.as_deref().unwrap();
        let subject = &Subject::new(history, reading);
        let inquiry = Inquiry::new(|channel| async move {
            analyse(subject, &channel, SerialSearch::WherePromised).await.conclusion
        });
        let about = (&run.fixture, &run.case);
        self.executor.inquire(about, inquiry, &mut Vec::new()).unwrap()
    }

    pub fn explain(&mut self, run: &Run, history: &History) -> Shown {
        match self.explanation(run, history) {
            Conclusion::Allowed { rules, .. } => Shown::Inside(
                rules.iter().map(|rules| rules.iter().map(|r| r.id).collect()).collect(),
            ),
            Conclusion::Broken { step, rule, .. } => {
                Shown::Outside { step, rule: rule.map(|r| r.id.into()) }
            }
            Conclusion::LockingDiffers { step, rule, .. } => {
                Shown::Locking { step, rule: rule.id.into() }
            }
            Conclusion::NotModelled { why, .. } => Shown::NotModelled(why),
        }
    }

    /// The rule that determines the serial order of a run.
    pub fn order_rule(&mut self, run: &Run) -> Option<&'static str> {
        match self.explanation(run, &run.history) {
            Conclusion::Allowed { order, .. } => order.map(|(_, rule)| rule.id),
            _ => None,
        }
    }
}

/// Version tables with the initial rows of the setup, so that hundreds of
/// falsified runs need not create them anew.
fn versions(fixture: &Fixture, case: &Case) -> VersionFixture {
    let reading = fixture.reading.as_deref().unwrap();
    let tables = VersionTables { schema: &reading.schema, dialect: &reading.dialect };
    let family = reading.dialect.family;
    let inserts: Vec<_> = fixture
        .create
        .iter()
        .filter_map(|sql| match read::statement(sql, family) {
            Some(Stmt::Write(Write::Insert(insert))) => Some(insert),
            _ => None,
        })
        .collect();
    let literal = |e: &Expr| match e {
        Expr::Literal(literal) => literal.clone(),
        other => panic!("{}: {other:?} in the setup", case.id),
    };
    let rows: Vec<Vec<Vec<Literal>>> = reading
        .schema
        .tables
        .iter()
        .map(|table| {
            let of_table = inserts.iter().filter(|i| i.table == table.name);
            of_table
                .flat_map(|insert| match &insert.source {
                    InsertSource::Values(rows) => rows.clone(),
                    other => panic!("{}: {other:?} in the setup", case.id),
                })
                .map(|row| row.iter().map(literal).collect())
                .collect()
        })
        .collect();
    VersionFixture { create: tables.create_sql(), load: tables.load_sql(&rows), from_setup: None }
}
