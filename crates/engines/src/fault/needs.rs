//! What faults need of an engine, and which engines have it.

use isolde_catalog::{
    BeginForm, ConcurrencyModel, Family, Feature, Level, Profile, SnapshotAt, TargetInfo,
    concurrency_model,
};

/// The kind of additional connection that a fault answers from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Side {
    Plain,
    /// One that sees uncommitted rows, where the engine has such a level.
    Dirty,
    /// One that keeps a snapshot from before the first transaction.
    Snapshot,
}

/// What the catalogue says about the newest version of an engine.
fn facts(engine: &str) -> TargetInfo {
    TargetInfo { engine: engine.into(), version: NEWEST.into(), ..TargetInfo::default() }
}

/// Later than any version of any engine.
const NEWEST: &str = "99999";

fn model(engine: &str, level: Level) -> Option<ConcurrencyModel> {
    concurrency_model(&facts(engine), level, Some(BeginForm::Plain))
}

/// Whether an error aborts the transaction unless there is a savepoint.
pub(super) fn poisons(family: Family) -> bool {
    family == Family::Postgres
}

/// The first statements on the additional connection.
pub(super) fn greeting(engine: &str, side: Side) -> &'static [&'static str] {
    let family = Family::of(engine);
    // Others of the family accept the level and do not read uncommitted rows.
    let reads_dirty = model(engine, Level::ReadUncommitted)
        .is_some_and(|model| model.snapshot.taken == SnapshotAt::Dirty);
    match side {
        Side::Dirty if reads_dirty && family == Family::Mysql => {
            &["set session transaction isolation level read uncommitted"]
        }
        Side::Snapshot if family == Family::Mysql => {
            &["set session transaction isolation level repeatable read"]
        }
        _ => &[],
    }
}

/// Statements that take a snapshot at once; a bare BEGIN leaves it to the first
/// read.
pub(super) fn snapshot(family: Family) -> &'static [&'static str] {
    match family {
        Family::Mysql => &["start transaction with consistent snapshot"],
        Family::Postgres => &["begin isolation level repeatable read", "select 1"],
        Family::Sqlite => &["begin", "select count(*) from sqlite_master"],
        // The query must read from the database; a constant does not.
        Family::Duckdb | Family::Other => {
            &["begin", "select count(*) from information_schema.tables"]
        }
    }
}

/// What an engine lacks for a fault, if anything.
pub(super) type Lack = fn(&str, &Profile) -> Option<&'static str>;

pub(super) fn nothing(_: &str, _: &Profile) -> Option<&'static str> {
    None
}

pub(super) fn one_level(engine: &str, profile: &Profile) -> Option<&'static str> {
    let mut models = profile.level_names().into_iter().map(|level| model(engine, level));
    let first = models.next();
    if profile.levels.len() < 2 {
        Some("it has one level only")
    } else if first.as_ref().is_some_and(Option::is_some)
        && models.all(|m| Some(&m) == first.as_ref())
    {
        Some("all its levels are the same")
    } else {
        None
    }
}

pub(super) fn savepoints(engine: &str, _: &Profile) -> Option<&'static str> {
    match facts(engine).dialect() {
        dialect if dialect.has(Feature::Savepoint) => None,
        dialect if dialect.family == Family::Other => Some("unknown whether it has savepoints"),
        _ => Some("it has no savepoints"),
    }
}

/// A column with a row's physical place, or a LIMIT on changes.
pub(super) fn row_places(engine: &str, _: &Profile) -> Option<&'static str> {
    match facts(engine).capabilities() {
        capabilities if capabilities.addresses_rows => None,
        capabilities if capabilities.family == Family::Other => {
            Some("unknown how it identifies the place of a row")
        }
        _ => Some("it has no column for the place of a row"),
    }
}

/// A reader that keeps its snapshot and blocks no other session.
pub(super) fn snapshots(engine: &str, profile: &Profile) -> Option<&'static str> {
    let readers_block = model(engine, profile.default_level).is_some_and(|model| {
        model.commit.waits_for_readers.is_some() || model.locking.table_locks.is_some()
    });
    readers_block.then_some("its readers keep writers from committing")
}

/// A write that is refused must leave the transaction as it was.
pub(super) fn undone_alone(engine: &str, profile: &Profile) -> Option<&'static str> {
    let errors_abort =
        model(engine, profile.default_level).is_some_and(|m| m.error_aborts_transaction());
    let lacks_savepoints = !facts(engine).dialect().has(Feature::Savepoint);
    (errors_abort && lacks_savepoints)
        .then_some("an error ends its transaction, and it has no savepoints")
}

/// An INSERT that replaces.
pub(super) fn replacing(engine: &str, profile: &Profile) -> Option<&'static str> {
    match Family::of(engine) {
        Family::Other => Some("unknown how it replaces a row on insert"),
        _ => undone_alone(engine, profile),
    }
}
