//! Where cases run: one engine with the tables of the case at hand.
//!
//! Tables are made once for all cases that share a schema, and brought back
//! to their first rows by one batch of DML before each run, because making
//! tables costs ten to a hundred times as much (see ARCHITECTURE.md).

use crate::check::Checked;
use crate::error::HuntError;
use crate::evaluated::{Answered, Asked, Evaluated};
use isolde_core::generate::Plan;
use isolde_core::history::{Death, TargetInfo};
use isolde_core::inquiry::{Answer, Inquiry, Laid, Question};
use isolde_core::oracle::{broken, topological};
use isolde_core::semantics::Reading;
use isolde_core::semantics::version_tables::VersionTables;
use isolde_core::{Case, History, Level};
use isolde_engines::engine::Outcome;
use isolde_engines::runner::{COMES_BACK, RunError, Runner};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// What a run starts from.
#[derive(Clone, Debug)]
pub struct Fixture {
    pub create: Vec<String>,
    pub reset: Vec<String>,
    /// The case changes the schema: the tables are of no use after it.
    pub changes_schema: bool,
    /// Where its statements can be evaluated on rows of one's choice; none
    /// when the tables or rows are not known well enough.
    pub versions: Option<VersionFixture>,
    /// The case as far as it is understood.
    pub reading: Option<Arc<Reading>>,
}

impl PartialEq for Fixture {
    /// Where two runs start from, whatever they then do.
    fn eq(&self, other: &Fixture) -> bool {
        self.create == other.create
            && self.reset == other.reset
            && self.changes_schema == other.changes_schema
    }
}

/// The version tables of a case, and what fills them with its first rows.
#[derive(Clone, Debug, PartialEq)]
pub struct VersionFixture {
    pub create: Vec<String>,
    pub load: Vec<String>,
    /// What makes the tables that hold the first rows, and these rows, where
    /// they are copied from there.
    pub from_setup: Option<Vec<String>>,
}

impl Fixture {
    pub fn of(plan: &Plan) -> Fixture {
        Fixture {
            create: plan.create_sql(),
            reset: plan.reset_sql(),
            changes_schema: plan.changes_schema(),
            versions: Some(VersionFixture::of(plan)),
            reading: Some(Arc::new(Reading::of_plan(plan))),
        }
    }

    /// What a case from a file starts from: its setup, anew for each run,
    /// since nothing says how to bring its rows back.
    pub fn of_case(case: &Case, on: &TargetInfo, default_level: Level) -> Fixture {
        let setup = case.setup_for(&on.engine, &on.version);
        let reading = Reading::of_case(case, on, default_level);
        let preparation = Reading::preparation(case, on);
        let preparation = preparation.into_iter().map(str::to_string).collect();
        Fixture {
            create: setup.iter().map(|s| s.sql.clone()).collect(),
            reset: Vec::new(),
            changes_schema: true,
            versions: Some(VersionFixture::of_setup(&reading, preparation)),
            reading: Some(Arc::new(reading)),
        }
    }
}

impl VersionFixture {
    fn of(plan: &Plan) -> VersionFixture {
        let tables = VersionTables { schema: &plan.schema, dialect: &plan.dialect };
        let load = tables.load_sql(&plan.rows);
        VersionFixture { create: tables.create_sql(), load, from_setup: None }
    }

    fn of_setup(reading: &Reading, preparation: Vec<String>) -> VersionFixture {
        let tables = VersionTables { schema: &reading.schema, dialect: &reading.dialect };
        let (create, load) = (tables.create_sql(), tables.copy_sql());
        VersionFixture { create, load, from_setup: Some(preparation) }
    }
}

/// A run in which the server died or hangs, a session was lost, or the engine
/// said that it is broken inside.
#[derive(Debug)]
pub struct Broke {
    pub fixture: Fixture,
    pub case: Case,
    pub checked: Checked,
    /// What was being done, as the end of a sentence: `in a serial run`.
    pub moment: &'static str,
}

pub struct Executor {
    pub runner: Runner,
    /// What made the tables that stand now.
    made: Option<Vec<String>>,
    /// What made the version tables that stand now.
    made_versions: Option<Vec<String>>,
    evaluated: Evaluated,
    /// Internal errors and lost sessions matter, too, not only lost servers.
    pub heeds_errors: bool,
    /// How the topological oracle works.
    pub topological: topological::Options,
    /// What people should hear of the server.
    pub notices: Notices,
}

/// Sentences for people, from whoever has something to say.
pub type Notices = Arc<Mutex<Vec<String>>>;

/// Small statements on small tables: what takes longer waits for something
/// that the engine's view does not show.
const LONGEST_STATEMENT: Duration = Duration::from_secs(3);

impl Executor {
    pub fn new(mut runner: Runner) -> Executor {
        runner.limits.statement = LONGEST_STATEMENT;
        Executor {
            runner,
            made: None,
            made_versions: None,
            evaluated: Evaluated::default(),
            heeds_errors: true,
            topological: topological::Options::default(),
            notices: Notices::default(),
        }
    }

    /// Runs a case from the first rows. A server that does not live to see
    /// the end of it is in the history, whenever it fell.
    pub fn run(&mut self, fixture: &Fixture, case: &Case) -> Result<History, HuntError> {
        self.bring_server_back()?;
        if let Err(error) = self.lay(fixture) {
            let HuntError::Run(error) = error else { return Err(error) };
            let death = self.runner.death_by(error)?;
            return Ok(self.runner.not_run(case, None, death));
        }
        let history = self.runner.run_steps(case, None);
        let usable = history.as_ref().is_ok_and(|h| !h.lost_server());
        if !usable {
            self.forget_versions();
        }
        if fixture.changes_schema || !usable {
            self.made = None;
        }
        Ok(history?)
    }

    /// The same for a run from which only the rows are wanted.
    pub fn run_unbroken(
        &mut self,
        fixture: &Fixture,
        case: &Case,
        moment: &'static str,
    ) -> Result<History, HuntError> {
        let history = self.run(fixture, case)?;
        let differences = broken(case, &history);
        if differences.is_empty() || history.death.is_none() && !self.heeds_errors {
            return Ok(history);
        }
        let checked = Checked::crash(history, differences);
        let (fixture, case) = (fixture.clone(), case.clone());
        Err(HuntError::Broke(Box::new(Broke { fixture, case, checked, moment })))
    }

    /// Answers an inquiry about a case until it ends. What was run before is
    /// not run again.
    pub fn inquire<T>(
        &mut self,
        (fixture, about): (&Fixture, &Case),
        inquiry: Inquiry<'_, T>,
        known: &mut Vec<(Case, History)>,
    ) -> Result<T, HuntError> {
        let mut asked = Asked::default();
        inquiry.answered_by(|question| match question {
            Question::Run(case) => {
                if let Some((_, history)) = known.iter().find(|(c, _)| *c == *case) {
                    return Ok(Answer::Ran(Box::new(history.clone())));
                }
                let history = self.run_unbroken(fixture, &case, "in a serial run");
                let history = history.map_err(|error| self.told_of(fixture, about, error))?;
                known.push((*case, history.clone()));
                Ok(Answer::Ran(Box::new(history)))
            }
            Question::RunOn(laid, case) => {
                let Laid { create, reset } = *laid;
                let changes_schema = reset.is_empty();
                let own = Fixture { create, reset, changes_schema, versions: None, reading: None };
                let history = self.run_unbroken(&own, &case, "on tables that tell versions");
                let history = history.map_err(|error| self.told_of(fixture, about, error))?;
                Ok(Answer::Ran(Box::new(history)))
            }
            Question::Evaluate(statements) => {
                match self.evaluate(fixture, statements, &mut asked) {
                    Ok(answer) => Ok(Answer::Evaluated(answer)),
                    Err(HuntError::Run(error)) => Err(self.broke(fixture, about, error)),
                    // Tables of somebody's own that cannot be had twice: then
                    // nothing is evaluated.
                    Err(HuntError::Fixture { error, .. })
                        if fixture.versions.as_ref().is_some_and(|v| v.from_setup.is_some()) =>
                    {
                        Ok(Answer::Evaluated(Err(error)))
                    }
                    Err(other) => Err(other),
                }
            }
        })
    }

    /// The server fell while statements were evaluated.
    fn broke(&mut self, fixture: &Fixture, case: &Case, error: RunError) -> HuntError {
        let death = match self.runner.death_by(error) {
            Ok(death) => death,
            Err(error) => return HuntError::Run(error),
        };
        self.made = None;
        self.forget_versions();
        self.fell(fixture, case, death, "while statements were evaluated")
    }

    /// Nobody can read or repeat a case without a statement, such as the serial run of a
    /// case in which nobody committed: what broke there is told of the case in question.
    fn told_of(&self, fixture: &Fixture, about: &Case, error: HuntError) -> HuntError {
        match error {
            HuntError::Broke(broke) if broke.case.steps.is_empty() => {
                match broke.checked.concurrent.death {
                    Some(death) => self.fell(fixture, about, death, broke.moment),
                    None => HuntError::Broke(broke),
                }
            }
            other => other,
        }
    }

    fn fell(
        &self,
        fixture: &Fixture,
        case: &Case,
        death: Death,
        moment: &'static str,
    ) -> HuntError {
        let history = self.runner.not_run(case, None, death);
        let differences = broken(case, &history);
        let checked = Checked::crash(history, differences);
        let (fixture, case) = (fixture.clone(), case.clone());
        HuntError::Broke(Box::new(Broke { fixture, case, checked, moment }))
    }

    fn forget_versions(&mut self) {
        self.made_versions = None;
        self.evaluated.forget();
    }

    fn load_versions(&mut self, fixture: &Fixture) -> Result<(), HuntError> {
        let Some(versions) = &fixture.versions else { return Ok(()) };
        self.bring_server_back()?;
        if self.made_versions.is_some() && self.evaluated.is_of(versions) {
            return Ok(());
        }
        self.evaluated.forget();
        let mut create = versions.create.clone();
        if let Some(preparation) = &versions.from_setup {
            if self.runner.engine.evaluates_apart() {
                create.splice(0..0, preparation.iter().cloned());
            } else {
                // The run has changed the rows that it began with.
                self.make_tables(preparation)?;
                self.made = None;
            }
        }
        if self.made_versions.as_ref() != Some(&create) {
            if self.made_versions.take().is_some() {
                self.made = None;
                self.runner.engine.clear()?;
            }
            if let Outcome::Error(error) = self.runner.engine.make_version_tables(&create)? {
                return Err(HuntError::Fixture { sql: create.join(";\n  "), error });
            }
            self.made_versions = Some(create);
        }
        for sql in &versions.load {
            if let Outcome::Error(error) = self.runner.engine.evaluate(sql)? {
                return Err(HuntError::Fixture { sql: sql.clone(), error });
            }
        }
        self.evaluated.begin(versions);
        Ok(())
    }

    /// The rows of the last statement, or what the first that fails says.
    fn evaluate(
        &mut self,
        fixture: &Fixture,
        statements: Vec<String>,
        asked: &mut Asked,
    ) -> Result<Answered, HuntError> {
        self.load_versions(fixture)?;
        let engine = &mut self.runner.engine;
        self.evaluated.answer(statements, asked, |statements| {
            let mut last = Vec::new();
            for sql in statements {
                match engine.evaluate(sql)? {
                    Outcome::Error(error) => return Ok(Err(error)),
                    Outcome::Rows { rows, .. } => last = rows,
                    Outcome::Affected(_) | Outcome::Done => last.clear(),
                }
            }
            Ok(Ok(last))
        })
    }

    fn bring_server_back(&mut self) -> Result<(), HuntError> {
        if !self.runner.is_down() {
            return Ok(());
        }
        if self.runner.engine.is_users() {
            let limit = COMES_BACK.as_secs();
            self.say(format!("the server does not answer; it has {limit} seconds to come back"));
        }
        self.runner.bring_back()?;
        if self.runner.engine.is_users() {
            self.say("the server is back".into());
        }
        Ok(())
    }

    fn say(&self, text: String) {
        self.notices.lock().unwrap_or_else(PoisonError::into_inner).push(text);
    }

    fn lay(&mut self, fixture: &Fixture) -> Result<(), HuntError> {
        if self.made.as_ref() != Some(&fixture.create) {
            self.make_tables(&fixture.create)?;
        }
        self.batch(&fixture.reset)
    }

    /// Somebody else has used the engine: the next run makes its tables anew,
    /// and versions are loaded anew.
    pub fn forget_tables(&mut self) {
        self.made = None;
        self.forget_versions();
    }

    fn make_tables(&mut self, create: &[String]) -> Result<(), HuntError> {
        self.made = None;
        self.forget_versions();
        self.runner.engine.clear()?;
        self.batch(create)?;
        self.made = Some(create.to_vec());
        Ok(())
    }

    fn batch(&mut self, statements: &[String]) -> Result<(), HuntError> {
        if statements.is_empty() {
            return Ok(());
        }
        match self.runner.engine.batch(statements) {
            Ok(Outcome::Error(error)) => {
                self.made = None;
                Err(HuntError::Fixture { sql: statements.join(";\n  "), error })
            }
            Ok(_) => Ok(()),
            Err(error) => {
                self.made = None;
                Err(error.into())
            }
        }
    }
}
