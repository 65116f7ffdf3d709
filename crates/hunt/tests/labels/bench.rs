//! An engine on which labelled cases run, and what the rules say of the runs.

use crate::cases::Labelled;
use crate::support;
use isolde_core::inquiry::Inquiry;
use isolde_core::oracle::USUAL;
use isolde_core::semantics::version_tables::VersionTables;
use isolde_core::semantics::{Explanation, Subject, explain};
use isolde_core::sql::{Expr, InsertSource, Literal, Stmt, read};
use isolde_core::{Case, History, transcript};
use isolde_engines::engine::Engine;
use isolde_hunt::cause::{self, Label};
use isolde_hunt::check::{Checked, check};
use isolde_hunt::executor::{Executor, Fixture, VersionFixture};

pub struct Bench {
    pub target: String,
    pub executor: Executor,
}

/// A case that ran, with all that oracles made of it.
pub struct Run {
    pub case: Case,
    pub fixture: Fixture,
    pub history: History,
    pub checked: Checked,
}

/// What the rules say of a run.
#[derive(Debug)]
pub enum Shown {
    /// For each step the rules that explain it.
    Inside(Vec<Vec<&'static str>>),
    /// Without a rule it is the serial order that is missing.
    Outside {
        step: Option<usize>,
        rule: Option<String>,
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
        let runner = support::open(target)?;
        Some(Bench { target: target.into(), executor: Executor::new(runner) })
    }

    pub fn engine(&self) -> &dyn Engine {
        self.executor.runner.engine.as_ref()
    }

    pub fn version(&self) -> &str {
        &self.engine().info().version
    }

    /// None when the case is not for this engine, version or setting.
    pub fn run(&mut self, labelled: &Labelled) -> Option<Run> {
        let info = self.engine().info().clone();
        let case = support::case(&labelled.text());
        let snapshots = info.settings.get("innodb_snapshot_isolation");
        let snapshots = snapshots.is_some_and(|v| v == "1" || v == "ON");
        let other_setting = labelled.snapshot_isolation.is_some_and(|wanted| wanted != snapshots);
        if other_setting || !case.runs_on(&info.engine, &info.version) {
            return None;
        }
        let mut fixture = Fixture::of_case(&case, &info, self.engine().profile().default_level);
        fixture.versions = Some(versions(&fixture, &case));
        let checked = check(&mut self.executor, &fixture, &case, USUAL)
            .unwrap_or_else(|e| panic!("{}: {}: {e}", self.target, labelled.name));
        let history = checked.concurrent.clone();
        Some(Run { case, fixture, history, checked })
    }

    /// The label that a hunt would give it.
    pub fn label(&mut self, run: &Run) -> Label {
        let Run { case, fixture, checked, .. } = run;
        cause::find(&mut self.executor, (fixture, case), checked).unwrap().label
    }

    fn explanation(&mut self, run: &Run, history: &History) -> Explanation {
        let reading = run.fixture.reading.as_deref().unwrap();
        let subject = &Subject { history, reading };
        let inquiry = Inquiry::new(|desk| async move { explain(subject, &desk).await });
        let about = (&run.fixture, &run.case);
        self.executor.inquire(about, inquiry, &mut Vec::new()).unwrap()
    }

    pub fn explain(&mut self, run: &Run, history: &History) -> Shown {
        match self.explanation(run, history) {
            Explanation::Inside { rules, .. } => Shown::Inside(
                rules.iter().map(|rules| rules.iter().map(|r| r.id).collect()).collect(),
            ),
            Explanation::Outside { step, rule, .. } => {
                Shown::Outside { step, rule: rule.map(|r| r.id.into()) }
            }
            Explanation::NotModelled { why, .. } => Shown::NotModelled(why),
        }
    }

    /// What makes the serial order of a run.
    pub fn order_rule(&mut self, run: &Run) -> Option<&'static str> {
        match self.explanation(run, &run.history) {
            Explanation::Inside { order, .. } => order.map(|(_, rule)| rule.id),
            _ => None,
        }
    }
}

/// The first rows as they stand in the setup, so that hundreds of falsified
/// runs do not make the tables anew each time.
fn versions(fixture: &Fixture, case: &Case) -> VersionFixture {
    let reading = fixture.reading.as_deref().unwrap();
    let tables = VersionTables { schema: &reading.schema, dialect: &reading.dialect };
    let family = reading.dialect.family;
    let inserts: Vec<_> = fixture
        .create
        .iter()
        .filter_map(|sql| match read::statement(sql, family) {
            Some(Stmt::Insert(insert)) => Some(insert),
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
