//! A server that dies or hangs in mid-run: the run ends there, and its history
//! says so. Before anything else is run, the server is brought back.

use super::run::Run;
use super::settle::Finished;
use super::{RunError, Runner};
use crate::engine::{EngineError, Outcome, Reply, TxStatus};
use isolde_core::history::{DbError, Death, Fall, History};
use std::time::{Duration, Instant};

/// How long a user's server may take to come back.
pub const COMES_BACK: Duration = Duration::from_secs(60);
/// How often a private server is started before it is given up.
const STARTS: u32 = 3;
/// The pause between two attempts.
const PAUSE: Duration = Duration::from_millis(200);
/// How long its process may take to end once its connections have broken.
const LAST_BREATH: Duration = Duration::from_secs(2);
/// How long the connections of a server that died may take to notice: each
/// may bring its last words.
pub(crate) const LAST_WORDS: Duration = Duration::from_millis(100);

impl Runner {
    /// Whether the server has to be brought back before anything is run.
    pub fn is_down(&self) -> bool {
        self.down
    }

    /// Brings the server back if it is down. A private one is started anew; a
    /// user's gets a minute, and no longer than [`Runner::deadline`].
    pub fn bring_back(&mut self) -> Result<(), RunError> {
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
                true => since.elapsed() < COMES_BACK && in_time,
                false => starts < STARTS,
            };
            if !again {
                return Err(RunError::NotBack(error));
            }
            std::thread::sleep(PAUSE);
        }
    }

    /// What became of the server, if this error means that it is no more; the
    /// error itself if not.
    pub fn death_by(&mut self, error: RunError) -> Result<Death, RunError> {
        let error = match error {
            RunError::Engine(EngineError::Unreachable(why)) => match self.gone() {
                Some(EngineError::Hangs(_)) => EngineError::Hangs(why),
                Some(_) => EngineError::Lost(why),
                None => return Err(EngineError::Unreachable(why).into()),
            },
            RunError::Engine(error) if error.fall().is_some() => error,
            other => return Err(other),
        };
        let how = error.fall().unwrap_or(Fall::Died);
        Ok(self.mourn(Death { how, why: error.why().into(), log: None }))
    }

    /// Whether somebody new can log in: a server may go on serving those that
    /// are there and let nobody in.
    pub fn look_after(&mut self) -> Result<Option<Death>, RunError> {
        if self.down {
            return Ok(None);
        }
        match self.engine.open() {
            Ok(_) => Ok(None),
            Err(error) => self.death_by(error.into()).map(Some),
        }
    }

    /// What a run that never began on a dead server has to show.
    pub fn not_run(
        &self,
        case: &isolde_core::Case,
        level: Option<isolde_core::Level>,
        death: Death,
    ) -> History {
        let mut history = super::empty_history(case, level);
        history.on = self.engine.info().clone();
        history.death = Some(death);
        history
    }

    /// Looks whether the server has outlived the run.
    pub(super) fn notice_death(&mut self, history: &mut History) {
        history.death = match history.death.take() {
            Some(death) => Some(self.mourn(death)),
            None => self.look_for_death(history.lost_server()),
        };
    }

    /// What became of the server, if it is no more. One that goes down answers
    /// some connections a little longer than others: where one was lost, it is
    /// looked at more than once.
    pub(crate) fn look_for_death(&mut self, lost: bool) -> Option<Death> {
        let death = match self.engine.server_ended(Duration::ZERO) {
            Some(why) => Death { how: Fall::Died, why, log: None },
            None if lost => {
                let error = self.gone()?;
                let how = error.fall().unwrap_or(Fall::Died);
                Death { how, why: error.why().into(), log: None }
            }
            None => return None,
        };
        Some(self.mourn(death))
    }

    /// Why nobody can be asked any more; none when the server answers.
    fn gone(&mut self) -> Option<EngineError> {
        (0..5).find_map(|look| {
            std::thread::sleep(Duration::from_millis(if look == 0 { 0 } else { 50 }));
            if let Some(why) = self.engine.server_ended(Duration::ZERO) {
                return Some(EngineError::Lost(why));
            }
            self.engine.control("select 1").err()
        })
    }

    /// Nothing that was connected to the server is of use any more.
    fn mourn(&mut self, mut death: Death) -> Death {
        self.pool.clear();
        self.preparer = None;
        self.down = true;
        if death.how == Fall::Died
            && let Some(ended) = self.engine.server_ended(LAST_BREATH)
            && !death.why.contains(&ended)
        {
            death.why = format!("{}; {ended}", death.why);
        }
        death.log = self.engine.log_tail();
        death
    }
}

impl Run<'_> {
    /// Takes note of the end of the server, if this error means that; any
    /// other is an error of the run.
    pub(super) fn fall(&mut self, error: EngineError) -> Result<(), RunError> {
        let Some(how) = error.fall() else { return Err(error.into()) };
        if self.history.death.is_none() {
            self.history.death = Some(Death { how, why: error.why().into(), log: None });
        }
        Ok(())
    }

    /// Once the server is gone: what those that are still out had to say at
    /// the end, or that they are lost. False while it lives.
    pub(super) fn bury(&mut self, finished: &mut Vec<Finished>) -> bool {
        let Some(death) = &self.history.death else { return false };
        let (text, patience) = match death.how {
            Fall::Died => (death.to_string(), LAST_WORDS),
            Fall::Hangs => (death.to_string(), Duration::ZERO),
        };
        for who in self.outstanding(finished) {
            let lost = || Reply::new(Outcome::Error(DbError::lost(&text)), Some(TxStatus::Idle));
            let reply = self.lives[who].session.reply(patience).unwrap_or_else(lost);
            self.accept(who, reply, finished);
        }
        true
    }

    /// A statement that was told to end and does not: the server hangs, since
    /// what the statement holds can be freed in no other way.
    pub(super) fn does_not_end(&mut self, who: usize) -> Result<(), RunError> {
        let sql = self.lives[who].in_flight.as_ref().map_or("", |f| f.sql.as_str());
        let limit = self.limits.cancel;
        self.fall(EngineError::Hangs(format!(
            "a statement was cancelled and has not ended {limit:?} later: {sql}"
        )))
    }
}
