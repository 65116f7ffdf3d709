//! What faults need of an engine, and which engines have it.

use isolde_model::Profile;
use isolde_sql::Family;

/// The kind of additional connection that a fault answers from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Side {
    Plain,
    /// One that sees uncommitted rows, where the engine has such a level.
    Dirty,
    /// One that keeps a snapshot from before the first transaction.
    Snapshot,
}

/// The engine's name without its mode.
fn base(engine: &str) -> &str {
    engine.split('+').next().unwrap_or(engine)
}

/// Whether an error aborts the transaction unless there is a savepoint.
pub(super) fn poisons(family: Family) -> bool {
    family == Family::Postgres
}

/// The first statements on the additional connection.
pub(super) fn greeting(engine: &str, side: Side) -> &'static [&'static str] {
    // Others of the family accept the level and do not read uncommitted rows.
    let reads_dirty = matches!(base(engine), "mysql" | "mariadb");
    match side {
        Side::Dirty if reads_dirty => &["set session transaction isolation level read uncommitted"],
        Side::Snapshot if Family::of(engine) == Family::Mysql => {
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
    match base(engine) {
        "dolt" => Some("all its levels are the same"),
        _ if profile.levels.len() < 2 => Some("it has one level only"),
        _ => None,
    }
}

pub(super) fn savepoints(engine: &str, _: &Profile) -> Option<&'static str> {
    match base(engine) {
        "duckdb" => Some("it has no savepoints"),
        _ if Family::of(engine) == Family::Other => Some("unknown whether it has savepoints"),
        _ => None,
    }
}

/// A column with a row's physical place, or a LIMIT on changes.
pub(super) fn row_places(engine: &str, _: &Profile) -> Option<&'static str> {
    match base(engine) {
        "cockroach" => Some("it has no column for the place of a row"),
        _ if Family::of(engine) == Family::Other => {
            Some("unknown how it identifies the place of a row")
        }
        _ => None,
    }
}

/// A reader that keeps its snapshot and blocks no other session.
pub(super) fn snapshots(engine: &str, _: &Profile) -> Option<&'static str> {
    match engine {
        "sqlite" | "sqlite+shared-cache" => Some("its readers keep writers from committing"),
        _ => None,
    }
}

/// A write that is refused must leave the transaction as it was.
pub(super) fn undone_alone(engine: &str, _: &Profile) -> Option<&'static str> {
    match base(engine) {
        "duckdb" => Some("an error ends its transaction, and it has no savepoints"),
        _ => None,
    }
}

/// An INSERT that replaces.
pub(super) fn replacing(engine: &str, profile: &Profile) -> Option<&'static str> {
    match Family::of(engine) {
        Family::Other => Some("unknown how it replaces a row on insert"),
        _ => undone_alone(engine, profile),
    }
}
