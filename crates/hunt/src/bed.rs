//! Where cases run: one engine with the tables of the case at hand.
//!
//! Tables are made once for all cases that share a schema, and brought back
//! to their first rows by one batch of DML before each run, because making
//! tables costs ten to a hundred times as much (see ARCHITECTURE.md).

use crate::check::Checked;
use isolde_core::generate::Plan;
use isolde_core::history::DbError;
use isolde_core::oracle::broken;
use isolde_core::{Case, History};
use isolde_engines::engine::{EngineError, Outcome};
use isolde_engines::runner::{COMES_BACK, RunError, Runner};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// What a run starts from.
#[derive(Clone, Debug, PartialEq)]
pub struct Ground {
    pub create: Vec<String>,
    pub reset: Vec<String>,
    /// The case changes the schema: the tables are of no use after it.
    pub changes_schema: bool,
}

impl Ground {
    pub fn of(plan: &Plan) -> Ground {
        Ground {
            create: plan.create_sql(),
            reset: plan.reset_sql(),
            changes_schema: plan.changes_schema(),
        }
    }

    /// What a case from a file starts from: its setup, anew for each run,
    /// since nothing says how to bring its rows back.
    pub fn of_case(case: &Case, engine: &str, version: &str) -> Ground {
        let setup = case.setup_for(engine, version);
        Ground {
            create: setup.iter().map(|s| s.sql.clone()).collect(),
            reset: Vec::new(),
            changes_schema: true,
        }
    }
}

#[derive(Debug, thiserror::Error)]
pub enum BedError {
    #[error(transparent)]
    Run(#[from] RunError),
    /// The engine does not take the schema or the rows of this case.
    #[error("{error}\n  {sql}")]
    Ground { sql: String, error: DbError },
    /// The engine broke in a run that was about something else.
    #[error("the engine broke {}", .0.moment)]
    Broke(Box<Broke>),
}

/// A run in which the server died or hangs, a session was lost, or the engine
/// said that it is broken inside.
#[derive(Debug)]
pub struct Broke {
    pub ground: Ground,
    pub case: Case,
    pub checked: Checked,
    /// What was being done, as the end of a sentence: `in a serial run`.
    pub moment: &'static str,
}

impl From<EngineError> for BedError {
    fn from(error: EngineError) -> BedError {
        BedError::Run(RunError::Engine(error))
    }
}

pub struct Bed {
    pub runner: Runner,
    /// What made the tables that stand now.
    made: Option<Vec<String>>,
    /// Internal errors and lost sessions matter, too, not only lost servers.
    pub heeds_errors: bool,
    /// What people should hear of the server.
    pub notices: Notices,
}

/// Sentences for people, from whoever has something to say.
pub type Notices = Arc<Mutex<Vec<String>>>;

/// Small statements on small tables: what takes longer waits for something
/// that the engine's view does not show.
const LONGEST_STATEMENT: Duration = Duration::from_secs(3);

impl Bed {
    pub fn new(mut runner: Runner) -> Bed {
        runner.limits.statement = LONGEST_STATEMENT;
        Bed { runner, made: None, heeds_errors: true, notices: Notices::default() }
    }

    /// Runs a case from the first rows. A server that does not live to see
    /// the end of it is in the history, whenever it fell.
    pub fn run(&mut self, ground: &Ground, case: &Case) -> Result<History, BedError> {
        self.bring_server_back()?;
        if let Err(error) = self.lay(ground) {
            let BedError::Run(error) = error else { return Err(error) };
            let death = self.runner.death_by(error)?;
            return Ok(self.runner.not_run(case, None, death));
        }
        let history = self.runner.run_steps(case, None);
        let usable = history.as_ref().is_ok_and(|h| !h.lost_server());
        if ground.changes_schema || !usable {
            self.made = None;
        }
        Ok(history?)
    }

    /// The same for a run from which only the rows are wanted.
    pub fn run_unbroken(
        &mut self,
        ground: &Ground,
        case: &Case,
        moment: &'static str,
    ) -> Result<History, BedError> {
        let history = self.run(ground, case)?;
        let differences = broken(case, &history);
        if differences.is_empty() || history.death.is_none() && !self.heeds_errors {
            return Ok(history);
        }
        let checked = Checked::crash(history, differences);
        let (ground, case) = (ground.clone(), case.clone());
        Err(BedError::Broke(Box::new(Broke { ground, case, checked, moment })))
    }

    fn bring_server_back(&mut self) -> Result<(), BedError> {
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

    fn lay(&mut self, ground: &Ground) -> Result<(), BedError> {
        if self.made.as_ref() != Some(&ground.create) {
            self.make_tables(ground)?;
        }
        self.batch(&ground.reset)
    }

    /// The next run makes its tables anew.
    pub fn forget_tables(&mut self) {
        self.made = None;
    }

    fn make_tables(&mut self, ground: &Ground) -> Result<(), BedError> {
        self.made = None;
        self.runner.engine.clear()?;
        self.batch(&ground.create)?;
        self.made = Some(ground.create.clone());
        Ok(())
    }

    fn batch(&mut self, statements: &[String]) -> Result<(), BedError> {
        if statements.is_empty() {
            return Ok(());
        }
        match self.runner.engine.batch(statements) {
            Ok(Outcome::Error(error)) => {
                self.made = None;
                Err(BedError::Ground { sql: statements.join(";\n  "), error })
            }
            Ok(_) => Ok(()),
            Err(error) => {
                self.made = None;
                Err(error.into())
            }
        }
    }
}
