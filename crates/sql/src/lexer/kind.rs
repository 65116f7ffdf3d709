//! The kind of a statement, by its leading words.

use super::{first_word, tokens};

/// The kind of a statement, as the runner distinguishes them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Begin,
    Commit,
    Rollback,
    Savepoint,
    RollbackTo,
    Release,
    Select,
    Write,
    Ddl,
    /// Anything else: SET, PREPARE, CALL, LOCK, EXPLAIN, …
    Other,
}

impl Kind {
    pub fn ends_transaction(self) -> bool {
        matches!(self, Kind::Commit | Kind::Rollback)
    }
}

pub fn kind(sql: &str) -> Kind {
    let mut words = tokens(sql);
    let first = words.next().unwrap_or("");
    let is =
        |word: &str, candidates: &[&str]| candidates.iter().any(|c| word.eq_ignore_ascii_case(c));
    let mut second_is = |word: &str| words.next().is_some_and(|w| is(w, &[word]));
    if is(first, &["select", "values", "table", "show"]) {
        Kind::Select
    } else if is(first, &["insert", "update", "delete", "replace", "merge", "upsert"]) {
        Kind::Write
    } else if is(first, &["begin"]) || (is(first, &["start"]) && second_is("transaction")) {
        Kind::Begin
    } else if is(first, &["commit", "end"]) {
        if second_is("prepared") { Kind::Other } else { Kind::Commit }
    } else if is(first, &["rollback", "abort"]) {
        match tokens(sql).skip(1).take(2).find(|w| is(w, &["prepared", "to"])) {
            Some(word) if is(word, &["to"]) => Kind::RollbackTo,
            Some(_) => Kind::Other,
            None => Kind::Rollback,
        }
    } else if is(first, &["xa"]) {
        match tokens(sql).nth(1) {
            Some(word) if is(word, &["commit"]) => Kind::Commit,
            Some(word) if is(word, &["rollback"]) => Kind::Rollback,
            Some(word) if is(word, &["start", "begin"]) => Kind::Begin,
            _ => Kind::Other,
        }
    } else if is(first, &["savepoint"]) {
        Kind::Savepoint
    } else if is(first, &["release"]) {
        Kind::Release
    } else if is(first, &["with"]) {
        with_kind(sql)
    } else if is(first, &["create", "alter", "drop", "truncate", "rename"]) {
        Kind::Ddl
    } else {
        Kind::Other
    }
}

/// A CTE is a write when a writing keyword opens its body or one of its parts.
fn with_kind(sql: &str) -> Kind {
    let writes = tokens(sql).any(|t| {
        matches!(t.to_ascii_lowercase().as_str(), "insert" | "update" | "delete" | "merge")
    });
    if writes { Kind::Write } else { Kind::Select }
}

/// Whether the statement may end a transaction without the protocol reporting how: two-phase
/// commit, or code that runs in the server.
pub fn hides_its_end(sql: &str) -> bool {
    let first = first_word(sql);
    ["xa", "prepare", "call", "execute", "do"].iter().any(|w| first.eq_ignore_ascii_case(w))
}

/// Two-phase commit, as PostgreSQL spells it, with the name of the transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TwoPhase<'t> {
    Prepare(&'t str),
    Commit(&'t str),
    Rollback(&'t str),
}

/// Reads PREPARE TRANSACTION, COMMIT PREPARED and ROLLBACK PREPARED.
pub fn two_phase(sql: &str) -> Option<TwoPhase<'_>> {
    let pieces = super::pieces(sql);
    let [first, second, name] = pieces.as_slice() else { return None };
    let is = |a: &str, b: &str| first.eq_ignore_ascii_case(a) && second.eq_ignore_ascii_case(b);
    match () {
        () if is("prepare", "transaction") => Some(TwoPhase::Prepare(name)),
        () if is("commit", "prepared") => Some(TwoPhase::Commit(name)),
        () if is("rollback", "prepared") => Some(TwoPhase::Rollback(name)),
        () => None,
    }
}

/// Whether the statement may leave something in the session that outlives its
/// transaction: settings, temporary tables, prepared statements, locks.
pub fn taints_session(sql: &str) -> bool {
    const LEAVERS: [&str; 9] = [
        "get_lock",
        "set_config",
        "nextval",
        "setval",
        "temp",
        "temporary",
        "pg_temp",
        "last_insert_id",
        "changes",
    ];
    let leaves = |word: &str| {
        word.contains('@')
            || LEAVERS.iter().any(|l| word.eq_ignore_ascii_case(l))
            || word.len() > 12 && word.to_ascii_lowercase().contains("advisory")
    };
    match kind(sql) {
        Kind::Other => true,
        Kind::Begin | Kind::Commit | Kind::Rollback => {
            tokens(sql).next().is_some_and(|first| first.eq_ignore_ascii_case("xa"))
        }
        _ => tokens(sql).any(leaves),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kind_follows_from_the_leading_words() {
        for (sql, expected) in [
            ("BEGIN", Kind::Begin),
            ("start transaction read only", Kind::Begin),
            ("/* why */ commit", Kind::Commit),
            ("end", Kind::Commit),
            ("rollback", Kind::Rollback),
            ("rollback to savepoint a", Kind::RollbackTo),
            ("ROLLBACK WORK TO a", Kind::RollbackTo),
            ("release savepoint a", Kind::Release),
            ("with x as (select 1) select * from x", Kind::Select),
            ("with x as (delete from t returning *) select * from x", Kind::Write),
            ("insert into t values ('commit')", Kind::Write),
            ("create index i on t (a)", Kind::Ddl),
            ("set autocommit = 0", Kind::Other),
            ("commit prepared 'x'", Kind::Other),
        ] {
            assert_eq!(kind(sql), expected, "{sql}");
        }
    }

    #[test]
    fn two_phase_commit_names_its_transaction() {
        assert_eq!(two_phase("PREPARE TRANSACTION 'a'"), Some(TwoPhase::Prepare("'a'")));
        assert_eq!(two_phase("commit prepared 'a'"), Some(TwoPhase::Commit("'a'")));
        assert_eq!(two_phase("rollback prepared 'a'"), Some(TwoPhase::Rollback("'a'")));
        assert_eq!(two_phase("prepare p as select 1"), None);
        assert_eq!(two_phase("commit"), None);
    }

    #[test]
    fn statement_whose_effect_outlives_its_transaction_taints_the_session() {
        for sql in [
            "set a = 1",
            "insert into t values (get_lock('x', 1))",
            "xa start 'a'",
            "select 7 as a into temp t2",
            "create temporary table t (a int)",
            "insert into t select pg_try_advisory_lock(5)",
        ] {
            assert!(taints_session(sql), "{sql}");
        }
        for sql in ["select * from t for update", "begin", "update t set a = 'temp'"] {
            assert!(!taints_session(sql), "{sql}");
        }
    }
}
