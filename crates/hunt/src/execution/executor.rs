//! The executor: one engine with the tables of the current case.
//!
//! Tables are created once for all cases that share a schema, and reset to their first rows by one
//! batch of DML before each run, because creating tables takes ten to a hundred times as long (see
//! ARCHITECTURE.md).

use super::evaluation_cache::{EvaluationCache, EvaluationResult, RequestCounts};
use crate::error::HuntError;
pub use crate::run::fixture::{Fixture, VersionFixture};
use crate::run::{CheckResult, FailedRun};
use isolde_engines::engine::Outcome;
use isolde_engines::runner::{RECOVERY_LIMIT, RunError, Runner};
use isolde_model::history::ServerFailure;
use isolde_model::inquiry::{Inquiry, Request, Response, TableSetup};
use isolde_model::{Case, History};
use isolde_oracles::{OracleOptions, broken};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

pub struct Executor {
    pub runner: Runner,
    /// The statements that created the current tables.
    made: Option<Vec<String>>,
    /// The statements that created the current version tables.
    made_versions: Option<Vec<String>>,
    cache: EvaluationCache,
    /// Reports internal errors and lost sessions, too, not only server failures.
    pub reports_session_errors: bool,
    pub oracle_options: OracleOptions,
    /// Messages about the server for the user.
    pub notices: Notices,
}

/// Messages for the user, from all workers.
pub type Notices = Arc<Mutex<Vec<String>>>;

/// The longest time of a statement: they are small, on small tables, so what takes longer waits for
/// something that the engine's lock view does not show.
const LONGEST_STATEMENT: Duration = Duration::from_secs(3);

impl Executor {
    pub fn new(mut runner: Runner) -> Executor {
        runner.limits.statement = LONGEST_STATEMENT;
        Executor {
            runner,
            made: None,
            made_versions: None,
            cache: EvaluationCache::default(),
            reports_session_errors: true,
            oracle_options: OracleOptions::default(),
            notices: Notices::default(),
        }
    }

    /// Runs a case from its first rows. A server failure at any time is part of the history.
    pub fn run(&mut self, fixture: &Fixture, case: &Case) -> Result<History, HuntError> {
        self.bring_server_back()?;
        if let Err(error) = self.set_up(fixture) {
            let HuntError::Run(error) = error else { return Err(error) };
            let death = self.runner.server_failure(error)?;
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

    /// Runs a case that is expected to succeed: a server failure is an error.
    pub fn run_unbroken(
        &mut self,
        fixture: &Fixture,
        case: &Case,
        moment: &'static str,
    ) -> Result<History, HuntError> {
        let history = self.run(fixture, case)?;
        let differences = broken(case, &history);
        if differences.is_empty() || history.death.is_none() && !self.reports_session_errors {
            return Ok(history);
        }
        let checked = CheckResult::crash(history, differences);
        let (fixture, case) = (fixture.clone(), case.clone());
        Err(HuntError::ServerFailure(Box::new(FailedRun { fixture, case, checked, moment })))
    }

    /// Answers the requests of an inquiry about a case until it ends. A case that is in `known` is
    /// not run again.
    pub fn inquire<T>(
        &mut self,
        (fixture, about): (&Fixture, &Case),
        inquiry: Inquiry<'_, T>,
        known: &mut Vec<(Case, History)>,
    ) -> Result<T, HuntError> {
        let mut counts = RequestCounts::default();
        inquiry.answered_by(|question| match question {
            Request::Run(case) => {
                if let Some((_, history)) = known.iter().find(|(c, _)| *c == *case) {
                    return Ok(Response::Ran(Box::new(history.clone())));
                }
                let history = self.run_unbroken(fixture, &case, "in a serial run");
                let history = history.map_err(|error| self.attribute(fixture, about, error))?;
                known.push((*case, history.clone()));
                Ok(Response::Ran(Box::new(history)))
            }
            Request::RunOnFixture(tables, case) => {
                let TableSetup { create, reset } = *tables;
                let changes_schema = reset.is_empty();
                let own = Fixture { create, reset, changes_schema, versions: None, reading: None };
                let history = self.run_unbroken(&own, &case, "on instrumented tables");
                let history = history.map_err(|error| self.attribute(fixture, about, error))?;
                Ok(Response::Ran(Box::new(history)))
            }
            Request::Evaluate(statements) => {
                match self.evaluate(fixture, statements, &mut counts) {
                    Ok(answer) => Ok(Response::Evaluated(answer)),
                    Err(HuntError::Run(error)) => {
                        Err(self.evaluation_failure(fixture, about, error))
                    }
                    // The tables of a user's case cannot be created twice here, so nothing can be
                    // evaluated on them.
                    Err(HuntError::Fixture { error, .. })
                        if fixture.versions.as_ref().is_some_and(|v| v.from_setup.is_some()) =>
                    {
                        Ok(Response::Evaluated(Err(error)))
                    }
                    Err(other) => Err(other),
                }
            }
        })
    }

    /// A server failure during an evaluation.
    fn evaluation_failure(&mut self, fixture: &Fixture, case: &Case, error: RunError) -> HuntError {
        let death = match self.runner.server_failure(error) {
            Ok(death) => death,
            Err(error) => return HuntError::Run(error),
        };
        self.made = None;
        self.forget_versions();
        self.failed_run(fixture, case, death, "while statements were evaluated")
    }

    /// Attributes the failure of a run without statements to the case in question. The serial run of
    /// a case in which no transaction committed is such a run, and cannot be repeated.
    fn attribute(&self, fixture: &Fixture, about: &Case, error: HuntError) -> HuntError {
        match error {
            HuntError::ServerFailure(run) if run.case.steps.is_empty() => {
                match run.checked.concurrent.death {
                    Some(death) => self.failed_run(fixture, about, death, run.moment),
                    None => HuntError::ServerFailure(run),
                }
            }
            other => other,
        }
    }

    fn failed_run(
        &self,
        fixture: &Fixture,
        case: &Case,
        death: ServerFailure,
        moment: &'static str,
    ) -> HuntError {
        let history = self.runner.not_run(case, None, death);
        let differences = broken(case, &history);
        let checked = CheckResult::crash(history, differences);
        let (fixture, case) = (fixture.clone(), case.clone());
        HuntError::ServerFailure(Box::new(FailedRun { fixture, case, checked, moment }))
    }

    fn forget_versions(&mut self) {
        self.made_versions = None;
        self.cache.forget();
    }

    fn load_versions(&mut self, fixture: &Fixture) -> Result<(), HuntError> {
        let Some(versions) = &fixture.versions else { return Ok(()) };
        self.bring_server_back()?;
        if self.made_versions.is_some() && self.cache.is_of(versions) {
            return Ok(());
        }
        self.cache.forget();
        let mut create = versions.create.clone();
        if let Some(preparation) = &versions.from_setup {
            if self.runner.engine.has_separate_version_tables() {
                create.splice(0..0, preparation.iter().cloned());
            } else {
                // The run has changed its first rows.
                self.make_tables(preparation)?;
                self.made = None;
            }
        }
        if self.made_versions.as_ref() != Some(&create) {
            if self.made_versions.take().is_some() {
                self.made = None;
                self.runner.engine.clear()?;
            }
            if let Outcome::Error(error) = self.runner.engine.create_version_tables(&create)? {
                return Err(HuntError::Fixture { sql: create.join(";\n  "), error });
            }
            self.made_versions = Some(create);
        }
        for sql in &versions.load {
            if let Outcome::Error(error) = self.runner.engine.evaluate(sql)? {
                return Err(HuntError::Fixture { sql: sql.clone(), error });
            }
        }
        self.cache.begin(versions);
        Ok(())
    }

    /// The rows of the last statement, or the error of the first that fails.
    fn evaluate(
        &mut self,
        fixture: &Fixture,
        statements: Vec<String>,
        counts: &mut RequestCounts,
    ) -> Result<EvaluationResult, HuntError> {
        self.load_versions(fixture)?;
        let engine = &mut self.runner.engine;
        self.cache.answer(statements, counts, |statements| {
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
            let limit = RECOVERY_LIMIT.as_secs();
            self.notify(format!("the server does not answer; it has {limit} seconds to come back"));
        }
        self.runner.restore_server()?;
        if self.runner.engine.is_users() {
            self.notify("the server is back".into());
        }
        Ok(())
    }

    fn notify(&self, text: String) {
        self.notices.lock().unwrap_or_else(PoisonError::into_inner).push(text);
    }

    fn set_up(&mut self, fixture: &Fixture) -> Result<(), HuntError> {
        if self.made.as_ref() != Some(&fixture.create) {
            self.make_tables(&fixture.create)?;
        }
        self.batch(&fixture.reset)
    }

    /// Drops all knowledge of the tables in the database: the next run creates its own, and the
    /// next evaluation its version tables. Needed after the engine was used in another way.
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
