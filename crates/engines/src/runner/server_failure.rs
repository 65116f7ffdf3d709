//! Server failures during a run: the run ends there, and its history records
//! the failure. The server is restored before anything else is run.

use super::run::Run;
use super::settle::Completion;
use super::{RunError, Runner};
use crate::engine::{EngineError, Outcome, Reply, TxStatus};
use isolde_model::history::{DbError, FailureKind, History, ServerFailure};
use std::time::{Duration, Instant};

/// How long a user's server may take to come back.
pub const RECOVERY_LIMIT: Duration = Duration::from_secs(60);
/// How often starting a private server is tried.
const STARTS: u32 = 3;
/// The pause between two attempts.
const PAUSE: Duration = Duration::from_millis(200);
/// How long the process may take to exit once its connections have broken.
const EXIT_LIMIT: Duration = Duration::from_secs(2);
/// How long to wait on each connection of a crashed server for a final reply or
/// the end of the connection.
pub(crate) const FINAL_REPLY_LIMIT: Duration = Duration::from_millis(100);

impl Runner {
    /// Whether the server must be restored before anything can run.
    pub fn is_down(&self) -> bool {
        self.down
    }

    /// Restores the server if it is down. A private server is started again;
    /// for a user's server this waits for a minute at most, and not beyond
    /// [`Runner::deadline`].
    pub fn restore_server(&mut self) -> Result<(), RunError> {
        if !self.down {
            return Ok(());
        }
        let since = Instant::now();
        let mut starts = 0;
        loop {
            if (self.interrupted)() {
                return Err(RunError::Interrupted);
            }
            starts += 1;
            let error = match self.engine.revive() {
                Ok(()) => {
                    self.down = false;
                    return Ok(());
                }
                Err(error) => error,
            };
            let in_time = self.deadline.is_none_or(|end| Instant::now() < end);
            let again = match self.engine.is_users() {
                true => since.elapsed() < RECOVERY_LIMIT && in_time,
                false => starts < STARTS,
            };
            if !again {
                return Err(RunError::NotRestored(error));
            }
            std::thread::sleep(PAUSE);
        }
    }

    /// The server failure that this error reports; the error itself if it is
    /// none.
    pub fn server_failure(&mut self, error: RunError) -> Result<ServerFailure, RunError> {
        let error = match error {
            RunError::Engine(EngineError::Unreachable(why)) => match self.gone() {
                Some(EngineError::Hangs(_)) => EngineError::Hangs(why),
                Some(_) => EngineError::Lost(why),
                None => return Err(EngineError::Unreachable(why).into()),
            },
            RunError::Engine(error) if error.server_failure().is_some() => error,
            other => return Err(other),
        };
        let how = error.server_failure().unwrap_or(FailureKind::Died);
        Ok(self.drop_connections(ServerFailure { how, why: error.reason().into(), log: None }))
    }

    /// Checks that a new session can log in: a failing server may go on serving
    /// open connections and accept no new ones.
    pub fn check_new_login(&mut self) -> Result<Option<ServerFailure>, RunError> {
        if self.down {
            return Ok(None);
        }
        match self.engine.open() {
            Ok(_) => Ok(None),
            Err(error) => self.server_failure(error.into()).map(Some),
        }
    }

    /// The history of a run that could not start because the server had failed.
    pub fn not_run(
        &self,
        case: &isolde_model::Case,
        level: Option<isolde_model::Level>,
        death: ServerFailure,
    ) -> History {
        let mut history = super::empty_history(case, level);
        history.on = self.engine.info().clone();
        history.death = Some(death);
        history
    }

    /// Checks whether the server has survived the run.
    pub(super) fn record_server_failure(&mut self, history: &mut History) {
        history.death = match history.death.take() {
            Some(death) => Some(self.drop_connections(death)),
            None => self.check_server(history.lost_server()),
        };
    }

    /// The server's failure, if it has failed. A server that shuts down answers
    /// some connections a little longer than others: after a lost connection it
    /// is checked more than once.
    pub(crate) fn check_server(&mut self, lost: bool) -> Option<ServerFailure> {
        let death = match self.engine.exit_status(Duration::ZERO) {
            Some(why) => ServerFailure { how: FailureKind::Died, why, log: None },
            None if lost => {
                let error = self.gone()?;
                let how = error.server_failure().unwrap_or(FailureKind::Died);
                ServerFailure { how, why: error.reason().into(), log: None }
            }
            None => return None,
        };
        Some(self.drop_connections(death))
    }

    /// Why the server does not answer; none when it does.
    fn gone(&mut self) -> Option<EngineError> {
        (0..5).find_map(|poll_replies| {
            std::thread::sleep(Duration::from_millis(if poll_replies == 0 { 0 } else { 50 }));
            if let Some(why) = self.engine.exit_status(Duration::ZERO) {
                return Some(EngineError::Lost(why));
            }
            self.engine.control("select 1").err()
        })
    }

    /// Discards all connections to the failed server and completes the report.
    fn drop_connections(&mut self, mut death: ServerFailure) -> ServerFailure {
        self.pool.clear();
        self.setup_session = None;
        self.down = true;
        if death.how == FailureKind::Died
            && let Some(ended) = self.engine.exit_status(EXIT_LIMIT)
            && !death.why.contains(&ended)
        {
            death.why = format!("{}; {ended}", death.why);
        }
        death.log = self.engine.log_tail();
        death
    }
}

impl Run<'_> {
    /// Records the server failure that this error reports; any other error is
    /// an error of the run.
    pub(super) fn record_failure(&mut self, error: EngineError) -> Result<(), RunError> {
        let Some(how) = error.server_failure() else { return Err(error.into()) };
        if self.history.death.is_none() {
            self.history.death = Some(ServerFailure { how, why: error.reason().into(), log: None });
        }
        Ok(())
    }

    /// After a server failure: takes the final replies of outstanding
    /// statements, or records them as lost. False if there is no failure.
    pub(super) fn finish_lost_statements(&mut self, finished: &mut Vec<Completion>) -> bool {
        let Some(death) = &self.history.death else { return false };
        let (text, patience) = match death.how {
            FailureKind::Died => (death.to_string(), FINAL_REPLY_LIMIT),
            FailureKind::Hangs => (death.to_string(), Duration::ZERO),
        };
        for index in self.outstanding(finished) {
            let lost = || Reply::new(Outcome::Error(DbError::lost(&text)), Some(TxStatus::Idle));
            let reply = self.sessions[index].session.reply(patience).unwrap_or_else(lost);
            self.accept(index, reply, finished);
        }
        true
    }

    /// Reports that the server hangs: a cancelled statement did not end, and
    /// its locks can be released in no other way.
    pub(super) fn report_uncancellable(&mut self, index: usize) -> Result<(), RunError> {
        let sql = self.sessions[index].in_flight.as_ref().map_or("", |f| f.sql.as_str());
        let limit = self.limits.cancel;
        self.record_failure(EngineError::Hangs(format!(
            "a statement was cancelled and has not ended {limit:?} later: {sql}"
        )))
    }
}
