//! Functions that know the session or take locks of their own. A query of nothing else reads no
//! row, so that its result is not about isolation; in the condition of another statement, only
//! those that take an advisory lock and return nothing are understood.

use isolde_sql::dialect::Family;
use isolde_sql::{Expr, Function, Literal, Schema, Stmt};

/// In alphabetical order. Their calls change no row, whatever they return.
const POSTGRES: &[&str] = &[
    "clock_timestamp",
    "current_database",
    "current_setting",
    "now",
    "pg_advisory_lock",
    "pg_advisory_lock_shared",
    "pg_advisory_unlock",
    "pg_advisory_unlock_all",
    "pg_advisory_unlock_shared",
    "pg_advisory_xact_lock",
    "pg_advisory_xact_lock_shared",
    "pg_backend_pid",
    "pg_current_xact_id",
    "pg_notify",
    "pg_sleep",
    "pg_try_advisory_lock",
    "pg_try_advisory_lock_shared",
    "pg_try_advisory_xact_lock",
    "pg_try_advisory_xact_lock_shared",
    "txid_current",
    "version",
];

const MYSQL: &[&str] = &[
    "connection_id",
    "current_user",
    "database",
    "get_lock",
    "is_free_lock",
    "is_used_lock",
    "now",
    "release_all_locks",
    "release_lock",
    "sleep",
    "user",
    "version",
];

/// Functions that wait for an advisory lock and return nothing.
const VOID_LOCKS: [&str; 4] = [
    "pg_advisory_lock",
    "pg_advisory_lock_shared",
    "pg_advisory_xact_lock",
    "pg_advisory_xact_lock_shared",
];

fn is_session_function(name: &str, family: Family) -> bool {
    match family {
        Family::Postgres => POSTGRES.contains(&name),
        Family::Mysql => MYSQL.contains(&name),
        Family::Sqlite | Family::Duckdb | Family::Other => false,
    }
}

/// Whether a function takes or releases an advisory lock.
fn is_advisory(name: &str) -> bool {
    name.contains("advisory") || matches!(name, "get_lock" | "release_lock" | "release_all_locks")
}

fn calls(statement: &Stmt) -> Vec<&str> {
    let mut names = Vec::new();
    statement.visit(&mut |e| {
        if let Expr::Call(Function::Named(name), _) = e {
            names.push(name.as_str());
        }
    });
    names
}

/// Whether a statement may wait for an advisory lock or hold one.
pub fn uses_advisory_locks(statement: &Stmt) -> bool {
    calls(statement).into_iter().any(is_advisory)
}

/// Whether a statement reads no table and calls a function of the session; all its other
/// functions must satisfy `is_pure`.
pub fn asks_session(statement: &Stmt, family: Family, is_pure: impl Fn(&str) -> bool) -> bool {
    let names = calls(statement);
    let of_session = |name: &&str| is_session_function(name, family);
    matches!(statement, Stmt::Select(_))
        && statement.tables().is_empty()
        && names.iter().any(of_session)
        && names.iter().all(|name| of_session(name) || is_pure(name))
}

/// Whether a query reads nothing but PostgreSQL's own catalogs, which are not modelled; its
/// functions must satisfy `is_pure` or ask the session.
pub fn reads_catalogs(
    statement: &Stmt,
    family: Family,
    schema: &Schema,
    is_pure: impl Fn(&str) -> bool,
) -> bool {
    let Stmt::Select(select) = statement else { return false };
    let sources = select.sources();
    let of_catalog = |name: &&str| name.starts_with("pg_") && schema.table(name).is_none();
    family == Family::Postgres
        && select.locking.is_none()
        && !sources.is_empty()
        && sources.iter().all(of_catalog)
        && calls(statement)
            .iter()
            .all(|name| !is_advisory(name) && (is_session_function(name, family) || is_pure(name)))
}

/// The statement with calls that wait for an advisory lock replaced by what they return: nothing,
/// which is not null.
pub fn without_advisory_locks(statement: &Stmt) -> Stmt {
    let mut statement = statement.clone();
    statement.visit_mut(&mut |e| {
        let locks = match e {
            Expr::Call(Function::Named(name), arguments) => {
                VOID_LOCKS.contains(&name.as_str())
                    && arguments.iter().all(|a| matches!(a, Expr::Literal(Literal::Int(_))))
            }
            _ => false,
        };
        if locks {
            *e = Expr::Literal(Literal::text(""));
        }
    });
    statement
}
