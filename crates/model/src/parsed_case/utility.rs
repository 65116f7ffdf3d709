//! Statements that neither read nor change rows: settings of the planner, LISTEN, VACUUM, LOCK
//! TABLE. What they may do to others is to block them.

use isolde_sql::dialect::Family;
use isolde_sql::lexer;

/// A statement that neither reads nor changes rows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Utility {
    /// It takes the snapshot of its transaction, where a statement without a table does.
    pub takes_snapshot: bool,
    pub locks: TableLocks,
}

/// The tables that a utility statement locks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TableLocks {
    None,
    /// LOCK TABLE.
    Named(Vec<String>),
    /// Maintenance: VACUUM and the like.
    Any,
    /// No table, but a lock that only applications know the meaning of.
    Advisory,
}

impl Utility {
    /// Whether it may block statements on a table, or be blocked by them.
    pub fn may_lock(&self, tables: &[&str]) -> bool {
        match &self.locks {
            TableLocks::None | TableLocks::Advisory => false,
            TableLocks::Named(names) => names.iter().any(|name| tables.contains(&name.as_str())),
            TableLocks::Any => true,
        }
    }

    pub fn locks_tables(&self) -> bool {
        self.locks != TableLocks::None
    }

    /// Reads a utility statement; none if it is another statement, or one that may change
    /// results.
    pub fn read(text: &str, family: Family) -> Option<Utility> {
        let pieces = lexer::pieces(text);
        let lower: Vec<String> = pieces.iter().map(|p| p.to_ascii_lowercase()).collect();
        let lower: Vec<&str> = lower.iter().map(String::as_str).collect();
        let setting = Utility { takes_snapshot: false, locks: TableLocks::None };
        if text.contains("/*!") {
            return None;
        }
        match (lower.as_slice(), family) {
            // Roles decide only what is refused.
            (["set", "role", _] | ["set", "session", "authorization", _], Family::Postgres)
            | (["reset", "role"] | ["reset", "session", "authorization"], Family::Postgres) => {
                Some(setting)
            }
            (["set", "session" | "local", rest @ ..] | ["set", rest @ ..], _)
            | (["reset", rest @ ..], Family::Postgres) => {
                let (name, value) = rest.split_first()?;
                let plain = value.len() <= 4 || *name == "optimizer_switch";
                (plain && is_harmless(name, family)).then_some(setting)
            }
            (["show", ..], Family::Postgres) => Some(setting),
            (["show", "variables" | "warnings" | "status", ..], Family::Mysql) => Some(setting),
            (["listen" | "unlisten" | "notify" | "checkpoint", ..], Family::Postgres) => {
                Some(setting)
            }
            (["explain", rest @ ..], Family::Postgres) => {
                let executes = rest.iter().any(|word| word.starts_with("analy"));
                (!executes).then_some(Utility { takes_snapshot: true, ..setting })
            }
            (["vacuum" | "analyze" | "reindex" | "cluster", ..], Family::Postgres) => {
                Some(Utility { takes_snapshot: true, locks: TableLocks::Any })
            }
            // Two-phase commit: what the transaction holds is not known to be that of a session.
            (["prepare", "transaction", _], Family::Postgres)
            | (["commit" | "rollback", "prepared", _], Family::Postgres) => {
                Some(Utility { locks: TableLocks::Advisory, ..setting })
            }
            (["lock", rest @ ..], Family::Postgres) => {
                Some(Utility { locks: TableLocks::Named(locked_tables(rest)?), ..setting })
            }
            _ => None,
        }
    }
}

/// The tables of `lock [table] a, b [in … mode] [nowait]`.
fn locked_tables(rest: &[&str]) -> Option<Vec<String>> {
    let rest = match rest {
        ["table", rest @ ..] => rest,
        rest => rest,
    };
    let rest = rest.strip_suffix(&["nowait"][..]).unwrap_or(rest);
    let rest = match rest {
        [rest @ .., "mode"] => {
            let at = rest.iter().position(|word| *word == "in")?;
            &rest[..at]
        }
        rest => rest,
    };
    let is_name = |name: &str| name.chars().all(|c| c.is_alphanumeric() || c == '_');
    rest.split(|piece| *piece == ",")
        .map(|name| match name {
            [name] | ["only", name] | [_, ".", name] if is_name(name) => Some((*name).to_string()),
            _ => None,
        })
        .collect()
}

/// Whether a setting changes no result: it chooses among plans, or decides how long to wait, what
/// is logged, how much memory is used.
fn is_harmless(name: &str, family: Family) -> bool {
    const PREFIXES: [&str; 9] = [
        "enable_",
        "cpu_",
        "parallel_",
        "min_parallel_",
        "max_parallel_",
        "log_",
        "vacuum_",
        "track_",
        "geqo",
    ];
    const NAMES: [&str; 18] = [
        "application_name",
        "client_min_messages",
        "constraint_exclusion",
        "cursor_tuple_fraction",
        "deadlock_timeout",
        "debug_parallel_query",
        "default_statistics_target",
        "effective_cache_size",
        "force_parallel_mode",
        "from_collapse_limit",
        "jit",
        "join_collapse_limit",
        "lock_timeout",
        "maintenance_work_mem",
        "plan_cache_mode",
        "random_page_cost",
        "seq_page_cost",
        "work_mem",
    ];
    match family {
        Family::Postgres => {
            NAMES.contains(&name) || PREFIXES.iter().any(|prefix| name.starts_with(prefix))
        }
        Family::Mysql => {
            matches!(name, "innodb_lock_wait_timeout" | "lock_wait_timeout" | "optimizer_switch")
        }
        Family::Sqlite | Family::Duckdb | Family::Other => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(sql: &str) -> Option<Utility> {
        Utility::read(sql, Family::Postgres)
    }

    #[test]
    fn settings_of_the_planner_lock_nothing() {
        for sql in [
            "SET enable_seqscan = off",
            "set local random_page_cost to 0.1",
            "SET deadlock_timeout = '10ms'",
            "reset work_mem",
            "show server_version",
            "LISTEN c1",
            "set role nobody",
            "set local seq_page_cost = 0.1",
            "notify c2, 'payload'",
        ] {
            let utility = read(sql).expect(sql);
            assert!(!utility.locks_tables() && !utility.takes_snapshot, "{sql}");
        }
        assert!(read("explain (costs off) select 1").is_some_and(|u| u.takes_snapshot));
    }

    #[test]
    fn statements_that_change_results_are_not_read() {
        for sql in [
            "set search_path = other",
            "set timezone = 'UTC'",
            "set session_replication_role = replica",
            "explain analyze delete from t",
            "explain (analyze) delete from t",
            "select 1",
        ] {
            assert_eq!(read(sql), None, "{sql}");
        }
        assert_eq!(Utility::read("set enable_x = 1", Family::Sqlite), None);
    }

    #[test]
    fn lock_table_names_its_tables() {
        let named = |sql: &str| match read(sql).map(|u| u.locks) {
            Some(TableLocks::Named(names)) => names,
            other => panic!("{sql}: {other:?}"),
        };
        assert_eq!(named("LOCK TABLE a1 IN ACCESS SHARE MODE"), ["a1"]);
        assert_eq!(named("lock t, only u in share row exclusive mode nowait"), ["t", "u"]);
        assert_eq!(named("lock t"), ["t"]);
        assert_eq!(read("vacuum t").unwrap().locks, TableLocks::Any);
    }
}
