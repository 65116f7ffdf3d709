//! An engine whose sessions have a planted fault; everything else is delegated
//! to the real engine.

use super::link::lock;
use super::session::FaultySession;
use super::world::World;
use super::{Planted, Strikes};
use crate::engine::*;
use isolde_model::history::TargetInfo;
use isolde_model::{Level, Profile};
use std::sync::Arc;
use std::time::Duration;

pub(super) struct Faulty {
    world: Arc<World>,
    /// Copies of what the trait returns by reference.
    info: TargetInfo,
    profile: Profile,
}

impl Faulty {
    pub fn new(engine: Box<dyn Engine>, planted: Planted) -> Faulty {
        let (info, profile) = (marked_info(engine.info(), &planted), engine.profile().clone());
        Faulty { world: Arc::new(World::new(engine, planted)), info, profile }
    }

    pub fn strikes(&self) -> Strikes {
        self.world.strikes.clone()
    }
}

/// Marks the target's description, so that a history shows that the engine is
/// not to blame.
fn marked_info(info: &TargetInfo, planted: &Planted) -> TargetInfo {
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

    fn batch(&mut self, statements: &[String]) -> EngineResult<Outcome> {
        lock(&self.world.engine).batch(statements)
    }

    fn clear(&mut self) -> EngineResult<()> {
        lock(&self.world.engine).clear()
    }

    fn tables(&mut self) -> EngineResult<Vec<String>> {
        lock(&self.world.engine).tables()
    }

    fn client_address(&self) -> Option<ClientAddress> {
        lock(&self.world.engine).client_address()
    }

    fn server_control(&mut self) -> Option<&mut dyn ServerControl> {
        Some(self)
    }

    fn version_tables(&mut self) -> Option<&mut dyn VersionTables> {
        let separate = lock(&self.world.engine).has_separate_version_tables();
        separate.then_some(self as &mut dyn VersionTables)
    }

    fn spec_connections(&mut self) -> Option<&mut dyn SpecConnections> {
        let offered = lock(&self.world.engine).spec_connections().is_some();
        offered.then_some(self as &mut dyn SpecConnections)
    }
}

impl ServerControl for Faulty {
    fn revive(&mut self) -> EngineResult<()> {
        self.world.forget_connections();
        let mut engine = lock(&self.world.engine);
        engine.revive()?;
        self.info = marked_info(engine.info(), &self.world.planted);
        self.profile = engine.profile().clone();
        Ok(())
    }

    fn exit_status(&mut self, patience: Duration) -> Option<String> {
        lock(&self.world.engine).exit_status(patience)
    }

    fn is_users(&self) -> bool {
        lock(&self.world.engine).is_users()
    }

    fn log_tail(&self) -> Option<String> {
        lock(&self.world.engine).log_tail()
    }

    fn kill(&mut self) -> EngineResult<()> {
        lock(&self.world.engine).kill_server()
    }
}

impl VersionTables for Faulty {
    fn create(&mut self, statements: &[String]) -> EngineResult<Outcome> {
        lock(&self.world.engine).create_version_tables(statements)
    }

    fn evaluate(&mut self, sql: &str) -> EngineResult<Outcome> {
        lock(&self.world.engine).evaluate(sql)
    }
}

impl SpecConnections for Faulty {
    fn open_links(
        &mut self,
        test: &str,
        sessions: &[String],
        interrupted: fn() -> bool,
    ) -> EngineResult<Box<dyn SpecLinks>> {
        match lock(&self.world.engine).spec_connections() {
            Some(connections) => connections.open_links(test, sessions, interrupted),
            None => Err(EngineError::Refused("this engine has no spec connections".into())),
        }
    }
}
