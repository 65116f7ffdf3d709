//! An engine that notes how long each of its services took, so that a
//! benchmark can say where the time went.

use isolde_engines::engine::{
    Engine, EngineResult, Outcome, ServerControl, Session, SessionId, VersionTables, WaitState,
};
use isolde_model::history::TargetInfo;
use isolde_model::{Level, Profile};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Time and calls by service.
#[derive(Clone, Default)]
pub struct Spent(Arc<Mutex<BTreeMap<&'static str, (Duration, u32)>>>);

impl Spent {
    fn note(&self, what: &'static str, since: Instant) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let entry = all.entry(what).or_default();
        entry.0 += since.elapsed();
        entry.1 += 1;
    }

    /// `probes 12% (0.4 ms each), …` of a whole; the rest is the statements
    /// themselves and Isolde's own work.
    pub fn shares(&self, whole: Duration) -> String {
        let all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let parts: Vec<String> = all
            .iter()
            .map(|(what, (time, calls))| {
                let share = 100.0 * time.as_secs_f64() / whole.as_secs_f64();
                let each = time.as_secs_f64() * 1000.0 / f64::from(*calls);
                format!("{what} {share:.0}% ({calls} of {each:.2} ms)")
            })
            .collect();
        parts.join(", ")
    }
}

pub struct Timed {
    inner: Box<dyn Engine>,
    spent: Spent,
}

impl Timed {
    pub fn new(inner: Box<dyn Engine>) -> (Timed, Spent) {
        let spent = Spent::default();
        (Timed { inner, spent: spent.clone() }, spent)
    }

    fn timed<T>(&mut self, what: &'static str, work: impl FnOnce(&mut dyn Engine) -> T) -> T {
        let since = Instant::now();
        let done = work(self.inner.as_mut());
        self.spent.note(what, since);
        done
    }
}

impl Engine for Timed {
    fn info(&self) -> &TargetInfo {
        self.inner.info()
    }

    fn profile(&self) -> &Profile {
        self.inner.profile()
    }

    fn open(&mut self) -> EngineResult<Box<dyn Session>> {
        self.timed("sessions", |e| e.open())
    }

    fn level_sql(&self, level: Level) -> Vec<String> {
        self.inner.level_sql(level)
    }

    fn begin_at_sql(&self, begin: &str, level: Level) -> Vec<String> {
        self.inner.begin_at_sql(begin, level)
    }

    fn waiting(&mut self, sessions: &[SessionId]) -> EngineResult<Vec<WaitState>> {
        self.timed("probes", |e| e.waiting(sessions))
    }

    fn breaks_deadlocks_within(&self) -> Option<Duration> {
        self.inner.breaks_deadlocks_within()
    }

    fn can_cancel(&self) -> bool {
        self.inner.can_cancel()
    }

    fn server_control(&mut self) -> Option<&mut dyn ServerControl> {
        self.inner.server_control()
    }

    fn version_tables(&mut self) -> Option<&mut dyn VersionTables> {
        let separate = self.inner.has_separate_version_tables();
        separate.then_some(self as &mut dyn VersionTables)
    }

    fn cancel(&mut self, session: SessionId) -> EngineResult<()> {
        self.timed("cancels", |e| e.cancel(session))
    }

    fn control(&mut self, sql: &str) -> EngineResult<Outcome> {
        self.timed("final reads and evaluation", |e| e.control(sql))
    }

    fn batch(&mut self, statements: &[String]) -> EngineResult<Outcome> {
        let tables = statements.first().is_some_and(|s| s.starts_with("create"));
        let what = if tables { "creating tables" } else { "resets" };
        self.timed(what, |e| e.batch(statements))
    }

    fn clear(&mut self) -> EngineResult<()> {
        self.timed("dropping tables", |e| e.clear())
    }

    fn tables(&mut self) -> EngineResult<Vec<String>> {
        self.inner.tables()
    }
}

impl VersionTables for Timed {
    fn create(&mut self, statements: &[String]) -> EngineResult<Outcome> {
        self.timed("creating tables", |e| e.create_version_tables(statements))
    }

    fn evaluate(&mut self, sql: &str) -> EngineResult<Outcome> {
        self.timed("evaluating", |e| e.evaluate(sql))
    }
}
