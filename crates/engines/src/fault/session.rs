//! A session with a planted fault: drives the chain of steps of a struck
//! statement, and keeps the shared state of open transactions up to date.

use super::access::accesses;
use super::condition::any_row;
use super::link::{Link, lock};
use super::moment::{Done, Moment, Next, Note, Then};
use super::rewrite;
use super::traffic::{Answer, Watch};
use super::world::World;
use crate::engine::*;
use isolde_model::Level;
use isolde_model::history::{DbError, ErrorClass};
use isolde_sql as sql;
use isolde_sql::Control;
use isolde_sql::{Kind, SetScope, Stmt, read};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// After this long a statement on another connection is checked for a lock
/// wait.
const FIRST_LOOK: Duration = Duration::from_millis(5);
/// A statement on another connection that takes longer than this is cancelled,
/// and the client's statement runs on its own connection.
const LONGEST_OUTSIDE: Duration = Duration::from_secs(1);
/// How long a cancelled statement may take to end.
const CANCEL_LIMIT: Duration = Duration::from_secs(5);

pub(super) struct FaultySession {
    world: Arc<World>,
    me: u64,
    own: Link,
    note: Note,
    /// The statement that set the session's level, and that level.
    level: Option<(String, Level)>,
    /// `set transaction …`, which applies to the next transaction only.
    prelude: Option<String>,
    current: Option<Current>,
    /// The statement that the engine answered with busy, to be repeated.
    busy: Option<(String, bool)>,
}

/// The client's statement and its progress.
struct Current {
    sql: String,
    kind: Kind,
    /// The fault was chosen to strike it.
    decided: bool,
    /// And it could be carried out.
    struck: bool,
    watch: Watch,
    at: At,
}

enum At {
    Running { on: Link, then: Option<Then>, since: Instant, cancelled: bool },
    Answered(Reply),
}

impl FaultySession {
    pub fn new(world: Arc<World>, session: Box<dyn Session>) -> FaultySession {
        let own: Link = Arc::new(std::sync::Mutex::new(session));
        let me = world.join(&own);
        let note = Note::default();
        FaultySession {
            world,
            me,
            own,
            note,
            level: None,
            prelude: None,
            current: None,
            busy: None,
        }
    }

    /// Sends the next statement, or returns the answer.
    fn go(&self, next: Next, sql: &str) -> At {
        let (on, text, then) = match next {
            Next::Answer(reply) | Next::Innocent(reply) => return At::Answered(reply),
            Next::Go | Next::Plain => (Arc::clone(&self.own), sql.to_string(), None),
            Next::Run { on, sql, then } => (on, sql, Some(then)),
        };
        lock(&on).start(&text);
        At::Running { on, then, since: Instant::now(), cancelled: false }
    }

    /// A statement on another connection must not wait for a lock that the
    /// client itself may hold: no deadlock detection would see the cycle.
    fn watch(&self, on: &Link, since: Instant, cancelled: &mut bool) -> Option<Reply> {
        let late = since.elapsed();
        let id = lock(on).id();
        if !*cancelled && (late > LONGEST_OUTSIDE || late > FIRST_LOOK && self.world.waits(id)) {
            *cancelled = true;
            self.world.cancel(id);
        }
        (late > LONGEST_OUTSIDE + CANCEL_LIMIT).then(|| lost("it was cancelled and did not answer"))
    }

    /// Records the effect of the reply on the transaction.
    fn finish(&mut self, current: Current, reply: Reply) -> Reply {
        let Current { sql, kind, decided, struck, watch, .. } = current;
        let before = self.world.slot(self.me, |s| s.status).unwrap_or(TxStatus::Idle);
        let status = reply.status_after(kind, before, self.world.ddl);
        let error = reply.error();
        let is_busy = error.is_some_and(|e| e.class == ErrorClass::Busy);
        let worked = error.is_none();
        if struck && !is_busy && (self.world.planted.fault.harms)(kind) {
            self.world.strikes.add();
        }
        if is_busy {
            self.busy = Some((sql.clone(), decided));
        } else if status == TxStatus::Idle {
            self.note = Note::default();
        } else if kind == Kind::Begin && worked {
            let begin = self.prelude.take().into_iter().chain([sql.clone()]).collect();
            self.note = Note::begun_by(begin);
        } else if kind.ends_transaction() && worked {
            // AND CHAIN: the next transaction began implicitly.
            self.note = Note::default();
        } else {
            self.note.add(&sql, kind, Done { worked, struck, waited: watch.waited() });
        }
        if kind == Kind::Other && before == TxStatus::Idle && worked {
            self.remember_setting(&sql);
        }
        self.world.slot(self.me, |slot| {
            slot.out = false;
            slot.status = status;
        });
        if !is_busy {
            let ended = kind.ends_transaction() && worked;
            // Any other statement that ends a transaction without an error has
            // committed it.
            let committed = worked && kind != Kind::Rollback && !reply.commit_rolled_back;
            let answer = Answer { after: status, worked, committed, ended };
            self.world.traffic(|traffic| traffic.answered(self.me, answer));
        }
        if status == TxStatus::Idle {
            self.world.end_snapshot_if_quiet();
        }
        reply
    }

    fn remember_setting(&mut self, sql: &str) {
        if let Some(known) = self.world.level_texts.iter().find(|(text, _)| text == sql) {
            self.level = Some(known.clone());
        } else if let Some(Stmt::Control(Control::SetTransaction(set))) = read::control(sql)
            && set.scope == SetScope::Transaction
        {
            self.prelude = Some(sql.into());
        }
    }

    /// The level of the transaction: its own, the session's or the engine's.
    fn level(&self) -> Level {
        let own = self.note.begin.iter().rev().find_map(|sql| rewrite::requested_level(sql));
        let session = || self.level.as_ref().map(|(_, level)| *level);
        own.or_else(session).unwrap_or(self.world.default_level)
    }
}

pub(super) fn lost(why: &str) -> Reply {
    Reply::new(Outcome::Error(DbError::lost(why)), Some(TxStatus::Idle))
}

impl Session for FaultySession {
    fn id(&self) -> SessionId {
        lock(&self.own).id()
    }

    fn start(&mut self, sql: &str) {
        let kind = sql::kind(sql);
        let (status, dead) =
            self.world.slot(self.me, |s| (s.status, s.dead)).unwrap_or((TxStatus::Idle, true));
        let decided = self.busy.take().filter(|(text, _)| text == sql).map(|(_, yes)| yes);
        if kind == Kind::Begin && status == TxStatus::Idle && !dead {
            self.world.take_snapshot();
        }
        let again = decided.is_some();
        let statement = read::statement(sql, self.world.family);
        let accesses = accesses(statement.as_ref());
        let mut watch = self.world.traffic(|traffic| traffic.sent(self.me, &accesses, again));
        if self.world.never_waits && kind == Kind::Write {
            let tables = any_row(&accesses);
            watch.sure = self.world.traffic(|traffic| traffic.others_hold(self.me, &tables));
        }
        let level_sql: Vec<String> = self.level.iter().map(|(sql, _)| sql.clone()).collect();
        let moment = Moment {
            world: &self.world,
            me: self.me,
            own: &self.own,
            sql,
            statement: statement.as_ref(),
            kind,
            status,
            note: &self.note,
            accesses: &accesses,
            level: self.level(),
            level_sql: &level_sql,
            watch: &watch,
            decided,
        };
        let next = match dead {
            true => Some(Next::Innocent(lost("the server has crashed"))),
            false => (self.world.planted.fault.behaviour)(&moment),
        };
        let decided = next.is_some();
        let struck = decided && !matches!(next, Some(Next::Innocent(_)));
        self.world.slot(self.me, |slot| slot.out = true);
        let at = self.go(next.unwrap_or(Next::Plain), sql);
        self.current = Some(Current { sql: sql.into(), kind, decided, struck, watch, at });
    }

    fn reply(&mut self, patience: Duration) -> Option<Reply> {
        let deadline = Instant::now() + patience;
        loop {
            let mut current = self.current.take()?;
            let (on, then, since, mut cancelled) = match current.at {
                At::Answered(reply) => {
                    current.at = At::Answered(reply.clone());
                    return Some(self.finish(current, reply));
                }
                At::Running { on, then, since, cancelled } => (on, then, since, cancelled),
            };
            let outside = !Arc::ptr_eq(&on, &self.own);
            let left = deadline.saturating_duration_since(Instant::now());
            let left = if outside { left.min(FIRST_LOOK) } else { left };
            let mut reply = lock(&on).reply(left);
            if reply.is_none() && outside {
                reply = self.watch(&on, since, &mut cancelled);
            }
            match (reply, then) {
                (Some(reply), Some(then)) => {
                    let next = then(reply);
                    current.struck &= !matches!(next, Next::Plain | Next::Innocent(_));
                    current.at = self.go(next, &current.sql);
                }
                (Some(reply), None) => current.at = At::Answered(reply),
                (None, then) => {
                    current.at = At::Running { on, then, since, cancelled };
                    self.current = Some(current);
                    if Instant::now() >= deadline {
                        return None;
                    }
                    continue;
                }
            }
            self.current = Some(current);
        }
    }

    fn is_alive(&self) -> bool {
        let dead = self.world.slot(self.me, |slot| slot.dead).unwrap_or(true);
        !dead && lock(&self.own).is_alive()
    }

    fn forget_tables(&mut self) {
        lock(&self.own).forget_tables();
    }

    fn confirms_wait(&self) -> Option<bool> {
        lock(&self.own).confirms_wait()
    }
}

impl Drop for FaultySession {
    fn drop(&mut self) {
        self.world.leave(self.me);
    }
}
