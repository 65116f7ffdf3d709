//! The state that the sessions of one faulty engine share: open transactions,
//! the random decision, and additional connections.

use super::access::Access;
use super::link::{Link, lock};
use super::traffic::Traffic;
use super::{Planted, Side, Strikes, needs};
use crate::engine::*;
use isolde_model::Level;
use isolde_model::profile::{Ddl, Waiting};
use isolde_sql::{Dialect, Family};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// Time limit for statements that no lock can block.
const QUIET: Duration = Duration::from_secs(5);

pub(super) struct Slot {
    pub link: Link,
    pub status: TxStatus,
    /// Its connection has a statement in flight.
    pub out: bool,
    /// The planted crash has ended it.
    pub dead: bool,
}

#[derive(Default)]
struct Shared {
    slots: BTreeMap<u64, Slot>,
    traffic: Traffic,
    opened: u64,
    side: Option<Link>,
    /// `side` has an open transaction that keeps the snapshot.
    has_snapshot: bool,
}

pub(super) struct World {
    pub planted: Planted,
    pub strikes: Strikes,
    pub family: Family,
    pub dialect: Dialect,
    /// The first statements on an additional connection.
    pub greeting: &'static [&'static str],
    pub engine: Mutex<Box<dyn Engine>>,
    /// Every statement that sets the level of a session.
    pub level_texts: Vec<(String, Level)>,
    pub default_level: Level,
    pub weakest: Option<Level>,
    /// The engine never blocks: lock waits are inferred from writers of the
    /// same rows.
    pub never_waits: bool,
    pub ddl: Ddl,
    shared: Mutex<Shared>,
}

impl World {
    pub fn new(engine: Box<dyn Engine>, planted: Planted) -> World {
        let levels = engine.profile().level_names();
        let weakest = levels.iter().min().copied().filter(|_| levels.len() > 1);
        let name = &engine.info().engine;
        World {
            greeting: needs::greeting(name, planted.fault.side),
            planted,
            strikes: Strikes::default(),
            family: engine.info().family(),
            dialect: engine.info().dialect(),
            level_texts: levels
                .iter()
                .flat_map(|l| engine.level_sql(*l).into_iter().map(|sql| (sql, *l)))
                .collect(),
            default_level: engine.profile().default_level,
            ddl: engine.profile().ddl,
            never_waits: engine.profile().waiting == Waiting::Never,
            weakest,
            engine: Mutex::new(engine),
            shared: Mutex::default(),
        }
    }

    pub fn join(&self, link: &Link) -> u64 {
        let mut shared = lock(&self.shared);
        shared.opened += 1;
        let me = shared.opened;
        let link = Arc::clone(link);
        let status = TxStatus::Idle;
        shared.slots.insert(me, Slot { link, status, out: false, dead: false });
        me
    }

    pub fn leave(&self, me: u64) {
        let mut shared = lock(&self.shared);
        shared.slots.remove(&me);
        shared.traffic.left(me);
        drop(shared);
        self.end_snapshot_if_quiet();
    }

    pub fn slot<T>(&self, me: u64, f: impl FnOnce(&mut Slot) -> T) -> Option<T> {
        lock(&self.shared).slots.get_mut(&me).map(f)
    }

    pub fn others_open(&self, me: u64) -> bool {
        let shared = lock(&self.shared);
        shared.slots.iter().any(|(id, slot)| *id != me && slot.status != TxStatus::Idle)
    }

    pub fn traffic<T>(&self, f: impl FnOnce(&mut Traffic) -> T) -> T {
        f(&mut lock(&self.shared).traffic)
    }

    /// Another idle session that has written such rows and not committed them.
    pub fn dirty_writer(&self, me: u64, rows: &[Access]) -> Option<Link> {
        let shared = lock(&self.shared);
        let fits = |(id, s): &(&u64, &Slot)| {
            **id != me
                && s.status == TxStatus::Open
                && !s.out
                && !s.dead
                && shared.traffic.has_written(**id, rows)
        };
        shared.slots.iter().find(fits).map(|(_, slot)| Arc::clone(&slot.link))
    }

    /// True at the given rate, and always the same for the same words.
    pub fn dice(&self, words: &[&str], again: usize) -> bool {
        // FNV-1a: the hashes of the standard library may change between
        // versions.
        let mut hash = 0xcbf2_9ce4_8422_2325_u64;
        let mut eat = |bytes: &[u8]| {
            for byte in bytes.iter().chain(&[0xff]) {
                hash = (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
            }
        };
        eat(&self.planted.seed.to_le_bytes());
        eat(self.planted.fault.name.as_bytes());
        eat(&again.to_le_bytes());
        words.iter().for_each(|word| eat(word.as_bytes()));
        // Its high bits are poor for short texts; SplitMix64 spreads them.
        let mut z = hash.wrapping_add(0x9e37_79b9_7f4a_7c15);
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^= z >> 31;
        ((z >> 11) as f64) / ((1u64 << 53) as f64) < self.planted.rate
    }

    /// The statements that begin a transaction at the weakest level, and
    /// whether the session keeps that level afterwards.
    pub fn begin_weaker(&self, begin: &str) -> Option<(Vec<String>, bool)> {
        let weakest = self.weakest?;
        let engine = lock(&self.engine);
        let sql = engine.begin_at_sql(begin, weakest);
        let kept = engine.level_sql(weakest).iter().any(|s| sql.contains(s));
        Some((sql, kept))
    }

    /// A connection that belongs to no session of the case. The kept one is
    /// reused unless it is in use, which its reference count shows.
    pub fn side(&self) -> Option<Link> {
        if let Some(side) = &lock(&self.shared).side
            && Arc::strong_count(side) == 1
            && lock(side).is_alive()
        {
            return Some(Arc::clone(side));
        }
        let mut session = lock(&self.engine).open().ok()?;
        for sql in self.greeting {
            run_to_end(session.as_mut(), sql, QUIET).ok()?;
        }
        let side: Link = Arc::new(Mutex::new(session));
        lock(&self.shared).side = Some(Arc::clone(&side));
        Some(side)
    }

    /// Takes the snapshot that stale reads will use, before the first
    /// transaction of a run.
    pub fn take_snapshot(&self) {
        let wanted = self.planted.fault.side == Side::Snapshot && self.planted.rate > 0.0;
        if !wanted || self.others_open(0) || lock(&self.shared).has_snapshot {
            return;
        }
        let Some(side) = self.side() else { return };
        let taken = needs::snapshot(self.family).iter().all(|sql| {
            let outcome = run_to_end(lock(&side).as_mut(), sql, QUIET);
            matches!(outcome, Ok(o) if !matches!(o, Outcome::Error(_)))
        });
        lock(&self.shared).has_snapshot = taken;
        if !taken {
            lock(&self.shared).side = None;
        }
    }

    pub fn snapshot(&self) -> Option<Link> {
        let shared = lock(&self.shared);
        shared.side.as_ref().filter(|_| shared.has_snapshot).map(Arc::clone)
    }

    /// Ends a snapshot that is not needed any more; it would keep tables from
    /// being dropped.
    pub fn end_snapshot_if_quiet(&self) {
        if self.others_open(0) {
            return;
        }
        let mut shared = lock(&self.shared);
        if std::mem::take(&mut shared.has_snapshot)
            && let Some(side) = shared.side.take()
        {
            drop(shared);
            if run_to_end(lock(&side).as_mut(), "rollback", QUIET).is_ok() {
                lock(&self.shared).side = Some(side);
            }
        }
    }

    /// Discards all connections to a server that has ended.
    pub fn forget_connections(&self) {
        let mut shared = lock(&self.shared);
        shared.side = None;
        shared.has_snapshot = false;
    }

    /// Kills the server. Where there is none to kill, all transactions are
    /// rolled back as recovery would, and no session answers any more.
    pub fn crash(&self) {
        let killed = lock(&self.engine).kill_server().is_ok();
        self.forget_connections();
        let mut shared = lock(&self.shared);
        for slot in shared.slots.values_mut() {
            if !killed && slot.status != TxStatus::Idle && !slot.out {
                let _ = run_to_end(lock(&slot.link).as_mut(), "rollback", QUIET);
            }
            slot.dead = true;
            slot.status = TxStatus::Idle;
        }
    }

    pub fn waits(&self, id: SessionId) -> bool {
        let states = lock(&self.engine).waiting(&[id]);
        matches!(states, Ok(states) if matches!(states.first(), Some(WaitState::Waiting(_))))
    }

    pub fn cancel(&self, id: SessionId) {
        // If it cannot be cancelled, its statement runs into its limit.
        let _ = lock(&self.engine).cancel(id);
    }
}
