//! An engine whose sessions have a planted fault; all else is the engine's.

use super::moment::lock;
use super::session::FaultySession;
use super::world::World;
use super::{Planted, Strikes};
use crate::engine::*;
use crate::spec::PgLinks;
use isolde_core::history::TargetInfo;
use isolde_core::{Level, Profile};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

pub(super) struct Faulty {
    world: Arc<World>,
    /// Copies of what the trait hands out by reference.
    info: TargetInfo,
    profile: Profile,
    file: Option<PathBuf>,
}

impl Faulty {
    pub fn new(engine: Box<dyn Engine>, planted: Planted) -> Faulty {
        let (info, profile) = (told(engine.info(), &planted), engine.profile().clone());
        let file = engine.database_file().map(Path::to_path_buf);
        Faulty { world: Arc::new(World::new(engine, planted)), info, profile, file }
    }

    pub fn strikes(&self) -> Strikes {
        self.world.strikes.clone()
    }
}

/// Whoever reads a history must see that the engine is not to blame.
fn told(info: &TargetInfo, planted: &Planted) -> TargetInfo {
    let mut info = info.clone();
    info.settings.insert("planted_fault".into(), planted.fault.name.into());
    info.settings.insert("planted_rate".into(), planted.rate.to_string());
    info.settings.insert("planted_seed".into(), planted.seed.to_string());
    info
}

impl Engine for Faulty {
    fn info(&self) -> &TargetInfo {
        &self.info
    }

    fn profile(&self) -> &Profile {
        &self.profile
    }

    fn open(&mut self) -> EngineResult<Box<dyn Session>> {
        let session = lock(&self.world.engine).open()?;
        Ok(Box::new(FaultySession::new(Arc::clone(&self.world), session)))
    }

    fn level_sql(&self, level: Level) -> Vec<String> {
        lock(&self.world.engine).level_sql(level)
    }

    fn begin_at_sql(&self, begin: &str, level: Level) -> Vec<String> {
        lock(&self.world.engine).begin_at_sql(begin, level)
    }

    fn waiting(&mut self, sessions: &[SessionId]) -> EngineResult<Vec<WaitState>> {
        lock(&self.world.engine).waiting(sessions)
    }

    fn breaks_deadlocks_within(&self) -> Option<Duration> {
        lock(&self.world.engine).breaks_deadlocks_within()
    }

    fn cancel(&mut self, session: SessionId) -> EngineResult<()> {
        lock(&self.world.engine).cancel(session)
    }

    fn can_cancel(&self) -> bool {
        lock(&self.world.engine).can_cancel()
    }

    fn control(&mut self, sql: &str) -> EngineResult<Outcome> {
        lock(&self.world.engine).control(sql)
    }

    fn make_version_tables(&mut self, create: &[String]) -> EngineResult<Outcome> {
        lock(&self.world.engine).make_version_tables(create)
    }

    fn evaluates_apart(&self) -> bool {
        lock(&self.world.engine).evaluates_apart()
    }

    fn evaluate(&mut self, sql: &str) -> EngineResult<Outcome> {
        lock(&self.world.engine).evaluate(sql)
    }

    fn clear(&mut self) -> EngineResult<()> {
        lock(&self.world.engine).clear()
    }

    fn tables(&mut self) -> EngineResult<Vec<String>> {
        lock(&self.world.engine).tables()
    }

    fn revive(&mut self) -> EngineResult<()> {
        self.world.forget_connections();
        let mut engine = lock(&self.world.engine);
        engine.revive()?;
        self.info = told(engine.info(), &self.world.planted);
        self.profile = engine.profile().clone();
        Ok(())
    }

    fn server_ended(&mut self, patience: Duration) -> Option<String> {
        lock(&self.world.engine).server_ended(patience)
    }

    fn is_users(&self) -> bool {
        lock(&self.world.engine).is_users()
    }

    fn client(&self) -> Option<ClientInfo> {
        lock(&self.world.engine).client()
    }

    fn database_file(&self) -> Option<&Path> {
        self.file.as_deref()
    }

    fn spec_links(&mut self, test: &str, sessions: &[String]) -> EngineResult<Option<PgLinks>> {
        lock(&self.world.engine).spec_links(test, sessions)
    }

    fn log_tail(&self) -> Option<String> {
        lock(&self.world.engine).log_tail()
    }

    fn kill_server(&mut self) -> EngineResult<()> {
        lock(&self.world.engine).kill_server()
    }
}
