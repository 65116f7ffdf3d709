//! Every way in which a statement or a transaction can end, on real engines.

use isolde_model::Level;
use isolde_model::history::TxEnd;
use isolde_testing::cases::{self, TWO_ROWS, error_codes, outcome, run, steps};
use isolde_testing::servers::open;
use std::time::Duration;

const SERVERS: [&str; 7] =
    ["postgres", "mariadb", "mysql@9.7", "mysql@8.0.33", "mysql@5.7", "mariadb@11.8", "tidb"];

const DEADLOCK: &str = "s1> begin;
    s2> begin;
    s1> update t set v = v + 1 where id = 1;
    s2> update t set v = v + 1 where id = 2;
    s1> update t set v = v + 1 where id = 2;
    s2> update t set v = v + 1 where id = 1;
    s1> commit;
    s2> commit;";

#[test]
fn a_deadlock_aborts_one_transaction_and_frees_the_other() {
    for target in SERVERS {
        let Some(mut runner) = open(target) else { continue };
        let history = run(&mut runner, &steps(TWO_ROWS, DEADLOCK), None);
        let endings = [history.ending("s1"), history.ending("s2")];
        assert!(endings.contains(&Some(TxEnd::Committed)), "{target}: {endings:?}");
        assert!(endings.contains(&Some(TxEnd::Aborted)), "{target}: {endings:?}");
        let code = if target == "postgres" { "40P01" } else { "1213" };
        assert!(error_codes(&history).contains(&code.to_string()), "{target}: {history:#?}");
        assert!(outcome(&history, "s1.3").starts_with("waits"), "{target}");
    }
}

#[test]
fn a_blocked_statement_names_the_lock_holder_where_the_server_reports_it() {
    for target in ["postgres", "mysql@9.7", "mysql@8.0.33"] {
        let Some(mut runner) = open(target) else { continue };
        let case = steps(
            TWO_ROWS,
            "s1> begin;
             s1> update t set v = 11 where id = 1;
             s2> begin;
             s2> update t set v = 12 where id = 1;
             s1> commit;
             s2> commit;",
        );
        let history = run(&mut runner, &case, None);
        assert!(outcome(&history, "s2.2").starts_with("waits for s1, then 1 row"), "{target}");
    }
}

#[test]
fn a_lock_timeout_ends_the_statement_only_and_the_transaction_goes_on() {
    for target in ["mariadb", "mysql@9.7", "mysql@5.7", "tidb"] {
        let Some(mut runner) = open(target) else { continue };
        let case = steps(
            TWO_ROWS,
            "s1> begin;
             s2> set innodb_lock_wait_timeout = 1;
             s2> begin;
             s2> update t set v = 22 where id = 2;
             s1> update t set v = 11 where id = 1;
             s2> update t set v = 12 where id = 1;
             s3> select sleep(3.5);
             s2> commit;
             s1> rollback;",
        );
        let history = run(&mut runner, &case, Some(Level::RepeatableRead));
        assert_eq!(error_codes(&history), ["1205"], "{target}");
        assert_eq!(history.ending("s2"), Some(TxEnd::Committed), "{target}");
        let rows = isolde_model::value::show_rows(&history.final_state[0].rows);
        assert_eq!(rows, "(1, 10) (2, 22)", "{target}");
    }
}

#[test]
fn a_lock_timeout_on_postgres_poisons_the_transaction() {
    let Some(mut runner) = open("postgres") else { return };
    let case = steps(
        TWO_ROWS,
        "s1> begin;
         s2> begin;
         s2> set local lock_timeout = '200ms';
         s1> update t set v = 11 where id = 1;
         s2> update t set v = 12 where id = 1;
         s3> select pg_sleep(0.5);
         s2> select * from t;
         s2> commit;
         s1> commit;",
    );
    let history = run(&mut runner, &case, None);
    assert_eq!(error_codes(&history), ["55P03"]);
    assert_eq!(outcome(&history, "s2.4"), "not sent");
    assert_eq!(outcome(&history, "s2.5"), "rolled back", "a COMMIT that is really a rollback");
    assert_eq!(history.ending("s2"), Some(TxEnd::Aborted));
}

#[test]
fn an_error_poisons_a_transaction_on_postgres_until_rollback_to_a_savepoint() {
    let Some(mut runner) = open("postgres") else { return };
    let case = steps(
        TWO_ROWS,
        "s1> begin;
         s1> update t set v = 11 where id = 1;
         s1> savepoint a;
         s1> insert into t values (1, 1);
         s1> update t set v = 22 where id = 2;
         s1> rollback to savepoint a;
         s1> update t set v = 23 where id = 2;
         s1> commit;",
    );
    let history = run(&mut runner, &case, None);
    assert_eq!(outcome(&history, "s1.4"), "error 23505");
    assert_eq!(outcome(&history, "s1.5"), "not sent");
    assert_eq!(outcome(&history, "s1.7"), "1 row");
    assert_eq!(outcome(&history, "s1.8"), "committed");
}

#[test]
fn an_error_ends_only_its_statement_on_other_engines() {
    for target in ["sqlite", "sqlite+wal", "mariadb", "mysql@9.7", "tidb"] {
        let Some(mut runner) = open(target) else { continue };
        let case = steps(
            TWO_ROWS,
            "s1> begin;
             s1> update t set v = 11 where id = 1;
             s1> insert into t values (1, 1);
             s1> update t set v = 22 where id = 2;
             s1> commit;",
        );
        let history = run(&mut runner, &case, None);
        assert!(outcome(&history, "s1.3").starts_with("error"), "{target}");
        assert_eq!(outcome(&history, "s1.4"), "1 row", "{target}");
        assert_eq!(history.ending("s1"), Some(TxEnd::Committed), "{target}");
    }
}

#[test]
fn a_serialization_failure_aborts_the_transaction_and_nothing_more_is_sent_into_it() {
    let lost_update = "s1> begin;
        s2> begin;
        s1> select * from t where id = 1;
        s2> select * from t where id = 1;
        s1> update t set v = 11 where id = 1;
        s1> commit;
        s2> update t set v = 12 where id = 1;
        s2> update t set v = 99 where id = 2;
        s2> commit;";
    for (target, level, code) in [
        ("postgres", Level::RepeatableRead, "40001"),
        ("sqlite+wal", Level::Serializable, "SQLITE_BUSY_SNAPSHOT"),
        ("mariadb@11.8", Level::RepeatableRead, "1020"),
    ] {
        let Some(mut runner) = open(target) else { continue };
        let history = run(&mut runner, &steps(TWO_ROWS, lost_update), Some(level));
        assert_eq!(outcome(&history, "s2.3"), format!("error {code}"), "{target}");
        assert_eq!(outcome(&history, "s2.4"), "not sent", "{target}");
        assert_eq!(history.ending("s2"), Some(TxEnd::Aborted), "{target}");
        let rows = isolde_model::value::show_rows(&history.final_state[0].rows);
        assert_eq!(rows, "(1, 11) (2, 20)", "{target}");
    }
}

#[test]
fn a_write_conflict_is_an_abort_wherever_the_engine_reports_it() {
    let conflict = "s1> begin;
        s2> begin;
        s1> update t set v = 11 where id = 1;
        s2> update t set v = 12 where id = 1;
        s2> update t set v = 99 where id = 2;
        s1> commit;
        s2> commit;";
    for target in ["tidb+optimistic", "turso+mvcc", "duckdb", "dolt"] {
        let Some(mut runner) = open(target) else { continue };
        let history = run(&mut runner, &steps(TWO_ROWS, conflict), None);
        assert_eq!(history.ending("s1"), Some(TxEnd::Committed), "{target}: {history:#?}");
        assert_eq!(history.ending("s2"), Some(TxEnd::Aborted), "{target}: {history:#?}");
        let rows = isolde_model::value::show_rows(&history.final_state[0].rows);
        assert_eq!(rows, "(1, 11) (2, 20)", "{target}");
    }
}

#[test]
fn nothing_is_sent_into_a_transaction_that_a_deadlock_has_ended() {
    for target in ["mariadb", "mysql@9.7", "tidb"] {
        let Some(mut runner) = open(target) else { continue };
        let more = format!("{DEADLOCK}\ns1> select 1;\ns2> select 1;");
        let inside = more.replace(
            "s1> commit;",
            "s1> update t set v = 100 where id = 1;\ns2> update t set v = 200 where id = 2;\ns1> commit;",
        );
        let history = run(&mut runner, &steps(TWO_ROWS, &inside), None);
        let victim = if history.ending("s1") == Some(TxEnd::Aborted) { "s1" } else { "s2" };
        let label = |n: usize| format!("{victim}.{n}");
        assert_eq!(outcome(&history, &label(4)), "not sent", "{target}: the naive trap");
        assert_eq!(outcome(&history, &label(5)), "not sent", "{target}: its COMMIT");
        assert_eq!(
            outcome(&history, &label(6)),
            "(1)",
            "{target}: after its end the session works"
        );
    }
}

#[test]
fn ddl_commits_implicitly_on_mysql_and_is_transactional_on_postgres_and_sqlite() {
    let ddl = "s1> begin;
        s1> update t set v = 11 where id = 1;
        s1> create table u (a int);
        s1> rollback;";
    for (target, ending, rows) in [
        ("mariadb", TxEnd::Committed, "(1, 11) (2, 20)"),
        ("mysql@9.7", TxEnd::Committed, "(1, 11) (2, 20)"),
        ("postgres", TxEnd::RolledBack, "(1, 10) (2, 20)"),
        ("sqlite", TxEnd::RolledBack, "(1, 10) (2, 20)"),
    ] {
        let Some(mut runner) = open(target) else { continue };
        let history = run(&mut runner, &steps(TWO_ROWS, ddl), None);
        assert_eq!(history.ending("s1"), Some(ending), "{target}");
        let found = isolde_model::value::show_rows(&history.final_state[0].rows);
        assert_eq!(found, rows, "{target}");
    }
}

#[test]
fn a_metadata_lock_wait_is_detected() {
    for target in ["mariadb", "mysql@9.7", "mysql@5.7"] {
        let Some(mut runner) = open(target) else { continue };
        let case = steps(
            TWO_ROWS,
            "s1> begin;
             s1> select * from t where id = 1;
             s2> alter table t add column w int;
             s1> commit;
             s2> select * from t where id = 1;",
        );
        let history = run(&mut runner, &case, None);
        assert_eq!(outcome(&history, "s2.1"), "waits, then ok", "{target}");
        assert_eq!(outcome(&history, "s2.2"), "(1, 10, null)", "{target}");
    }
}

#[test]
fn a_case_with_open_and_blocked_transactions_still_ends() {
    for target in ["sqlite", "postgres", "mariadb", "mysql@9.7"] {
        let Some(mut runner) = open(target) else { continue };
        let case = steps(
            TWO_ROWS,
            "s1> begin;
             s2> begin;
             s1> update t set v = 11 where id = 1;
             s2> update t set v = 12 where id = 1;",
        );
        let history = run(&mut runner, &case, None);
        assert_eq!(history.ending("s1"), Some(TxEnd::RolledBack), "{target}");
        assert!(outcome(&history, "s2.2").starts_with("waits"), "{target}");
        assert!(outcome(&history, "s2.2").ends_with("then 1 row"), "{target}");
        let again = run(&mut runner, &case, None);
        assert_eq!(history, again, "{target}: the sessions were clean");
    }
}

#[test]
fn a_hung_statement_is_cancelled_at_the_limit_and_the_session_survives() {
    for (target, hang) in [
        ("postgres", "select pg_sleep(60)"),
        ("mariadb", "select sleep(60)"),
        ("mysql@9.7", "select benchmark(100000000000, 1 + 1)"),
    ] {
        let Some(mut runner) = open(target) else { continue };
        runner.limits.statement = Duration::from_millis(300);
        let case = steps(TWO_ROWS, &format!("s1> {hang};\ns1> select 7;"));
        let history = run(&mut runner, &case, None);
        let first = history.outcome(0);
        let cancelled = first.reply.is_some_and(|r| match r.error() {
            Some(e) => e.class == isolde_model::history::ErrorClass::Cancelled,
            // MariaDB's and MySQL's sleep() returns 1 when it is killed.
            None => r.rows().is_some(),
        });
        assert!(cancelled, "{target}: {first:?}");
        assert_eq!(outcome(&history, "s1.2"), "(7)", "{target}");
    }
}

#[test]
fn a_killed_session_loses_its_transaction_and_the_others_go_on() {
    for (target, kill) in [
        (
            "postgres",
            "s2> select pg_terminate_backend(pid) from pg_stat_activity where state = 'idle in transaction';",
        ),
        // KILL accepts no subquery, so the victim ends its own session.
        ("mariadb", "s1> kill connection_id();"),
    ] {
        let Some(mut runner) = open(target) else { continue };
        let script = format!(
            "s1> begin;
             s1> update t set v = 11 where id = 1;
             {kill}
             s1> select 1;
             s1> commit;
             s2> update t set v = 12 where id = 1;"
        );
        let history = run(&mut runner, &steps(TWO_ROWS, &script), None);
        assert_eq!(history.ending("s1"), Some(TxEnd::Lost), "{target}");
        assert!(error_codes(&history).contains(&"lost".to_string()), "{target}");
        let rows = isolde_model::value::show_rows(&history.final_state[0].rows);
        assert_eq!(rows, "(1, 12) (2, 20)", "{target}");
        // The next run gets a new session in place of the dead one.
        let clean = run(&mut runner, &steps(TWO_ROWS, "s1> begin;\ns1> commit;"), None);
        assert_eq!(clean.ending("s1"), Some(TxEnd::Committed), "{target}");
    }
}

#[test]
fn a_server_killed_in_mid_run_is_an_outcome_and_the_next_run_has_a_new_one() {
    for (target, shutdown) in [
        ("postgres", "select pg_terminate_backend(pg_backend_pid())"),
        ("mariadb", "shutdown"),
        ("mysql@9.7", "shutdown"),
    ] {
        let Some(mut runner) = open(target) else { continue };
        let script = format!(
            "s1> begin;
             s1> update t set v = 11 where id = 1;
             s2> {shutdown};
             s1> select sleep(20);
             s1> commit;"
        );
        if target == "postgres" {
            // PostgreSQL has no statement that ends the server: it is killed
            // between two runs, and the second run gets a new one.
            runner.engine.kill_server().unwrap();
            // Its child processes notice its end a little later.
            let answers = |_: &usize| {
                std::thread::sleep(Duration::from_millis(10));
                runner.engine.control("select 1").is_ok()
            };
            assert!((0..1000).take_while(answers).count() < 1000, "nothing answers any more");
        } else {
            let history = run(&mut runner, &steps(TWO_ROWS, &script), None);
            assert_eq!(history.ending("s1"), Some(TxEnd::Lost), "{target}: {history:#?}");
            let death = history.death.as_ref().unwrap();
            assert!(death.log.is_some(), "{target}: the end of the log is kept");
        }
        let after = run(&mut runner, &steps(TWO_ROWS, "s1> select 7;"), None);
        assert_eq!(outcome(&after, "s1.1"), "(7)", "{target}");
    }
}

#[test]
fn returned_values_are_typed_and_null_is_not_text() {
    for (target, setup, expected) in [
        (
            "sqlite",
            "create table t (a int, b text, c real, d blob); insert into t values (1, 'null', 1.5, x'00ff'), (null, null, null, null);",
            "(null, null, null, null) (1, 'null', 1.5, x'00ff')",
        ),
        (
            "postgres",
            "create table t (a int, b text, c float8, d bytea, e numeric, f bool); insert into t values (1, 'null', 1.5, '\\x00ff', 1.50, true), (null, null, null, null, null, null);",
            "(null, null, null, null, null, null) (1, 'null', 1.5, x'00ff', 1.50, true)",
        ),
        (
            "mariadb",
            "create table t (a int, b text, c double, d blob, e decimal(5,2)); insert into t values (1, 'null', 1.5, x'00ff', 1.50), (null, null, null, null, null);",
            "(null, null, null, null, null) (1, 'null', 1.5, x'00ff', 1.50)",
        ),
    ] {
        let Some(mut runner) = open(target) else { continue };
        let history = run(&mut runner, &steps(setup, "s1> select * from t;"), None);
        let found = isolde_model::value::show_rows(&history.final_state[0].rows);
        assert_eq!(found, expected, "{target}");
    }
}

#[test]
fn a_level_belongs_to_its_session_and_a_transaction_may_have_its_own() {
    for (target, show) in [
        ("postgres", "select current_setting('transaction_isolation')"),
        ("mariadb", "select @@session.tx_isolation"),
    ] {
        let Some(mut runner) = open(target) else { continue };
        let text = format!(
            "case: levels\nlevel s2: serializable\nsetup:\n  create table t (a int);\ns1> {show};\ns2> {show};\n"
        );
        let history = run(&mut runner, &cases::case(&text), Some(Level::ReadCommitted));
        let (one, two) =
            (outcome(&history, "s1.1").to_lowercase(), outcome(&history, "s2.1").to_lowercase());
        assert!(one.contains("read") && one.contains("committed"), "{target}: {one}");
        assert!(two.contains("serializable"), "{target}: {two}");
        let skew = cases::case(
            "case: own\nsetup:\n  create table t (a int);\ns1(repeatable read)> begin;\ns1> select * from t;\ns2> insert into t values (1);\ns1> select * from t;\ns1> commit;\ns1> begin;\ns1> select * from t;\ns2> insert into t values (2);\ns1> select * from t;\ns1> commit;\n",
        );
        let history = run(&mut runner, &skew, Some(Level::ReadCommitted));
        assert_eq!(
            outcome(&history, "s1.3"),
            "no rows",
            "{target}: a snapshot for this transaction"
        );
        assert_eq!(outcome(&history, "s1.7"), "(1) (2)", "{target}: and none for the next");
    }
}

#[test]
fn a_statement_that_fails_after_its_implicit_commit_has_committed() {
    for target in ["mariadb", "mysql@9.7", "mysql@5.7"] {
        let Some(mut runner) = open(target) else { continue };
        let case = steps(
            TWO_ROWS,
            "s1> begin;
             s1> update t set v = 11 where id = 1;
             s1> create table t (a int);
             s1> rollback;",
        );
        let history = run(&mut runner, &case, None);
        assert_eq!(outcome(&history, "s1.3"), "error 1050", "{target}");
        assert_eq!(history.ending("s1"), Some(TxEnd::Committed), "{target}");
        let rows = isolde_model::value::show_rows(&history.final_state[0].rows);
        assert_eq!(rows, "(1, 11) (2, 20)", "{target}");
    }
}

#[test]
fn a_chained_commit_ends_one_transaction_and_begins_another() {
    for target in ["postgres", "mariadb", "mysql@9.7"] {
        let Some(mut runner) = open(target) else { continue };
        let case = steps(
            TWO_ROWS,
            "s1> begin;
             s1> update t set v = 11 where id = 1;
             s1> commit and chain;
             s1> update t set v = 22 where id = 2;
             s1> rollback;",
        );
        let history = run(&mut runner, &case, None);
        let endings: Vec<TxEnd> = history.transactions.iter().map(|t| t.how).collect();
        assert_eq!(endings, [TxEnd::Committed, TxEnd::RolledBack], "{target}");
    }
}

#[test]
fn nothing_is_sent_after_a_begin_that_failed() {
    let Some(mut runner) = open("postgres") else { return };
    let case = steps(
        TWO_ROWS,
        "s1> begin nonsense;
         s1> update t set v = 11 where id = 1;
         s1> commit;
         s1> update t set v = 12 where id = 1;",
    );
    let history = run(&mut runner, &case, None);
    assert_eq!(outcome(&history, "s1.2"), "not sent", "it would have committed by itself");
    assert_eq!(outcome(&history, "s1.4"), "1 row", "after its COMMIT the session is its own again");
}

#[test]
fn session_state_of_a_case_does_not_leak_into_the_next() {
    for (target, leaver, look, clean) in [
        ("mariadb", "s1> set autocommit = 0;", "s1> select @@autocommit;", "(1)"),
        ("mysql@9.7", "s1> select get_lock('x', 0);", "s2> select is_free_lock('x');", "(1)"),
        (
            "postgres",
            "s1> select 7 as a into temp left_over;",
            "s1> select count(*) from pg_class where relname = 'left_over';",
            "(0)",
        ),
        ("sqlite", "s1> pragma journal_mode = wal;", "s1> pragma journal_mode;", "('delete')"),
    ] {
        let Some(mut runner) = open(target) else { continue };
        run(&mut runner, &steps(TWO_ROWS, leaver), None);
        let history = run(&mut runner, &steps(TWO_ROWS, look), None);
        let label = format!("{}.1", &look[..2]);
        assert_eq!(outcome(&history, &label), clean, "{target}");
    }
    let Some(mut runner) = open("mariadb") else { return };
    let setup = format!("set autocommit = 0;\n{TWO_ROWS}\ncommit;\ncreate procedure p() select 1;");
    run(&mut runner, &steps(&setup, "s1> select 1;"), None);
    let again = run(&mut runner, &steps(&setup, "s1> call p();"), None);
    assert_eq!(outcome(&again, "s1.1"), "(1)", "the procedure was gone in between");
}

#[test]
fn a_prepared_transaction_has_no_known_end_and_is_removed() {
    for (target, prepare) in [
        (
            "postgres",
            "s1> begin;\ns1> update t set v = 11 where id = 1;\ns1> prepare transaction 'p';",
        ),
        (
            "mysql@9.7",
            "s1> xa start 'p';\ns1> update t set v = 11 where id = 1;\ns1> xa end 'p';\ns1> xa prepare 'p';",
        ),
    ] {
        let Some(mut runner) = open(target) else { continue };
        let history = run(&mut runner, &steps(TWO_ROWS, prepare), None);
        assert_eq!(history.ending("s1"), Some(TxEnd::Unknown), "{target}");
        let next =
            run(&mut runner, &steps(TWO_ROWS, "s1> update t set v = 12 where id = 1;"), None);
        assert_eq!(outcome(&next, "s1.1"), "1 row", "{target}: its locks are gone");
    }
}

#[test]
fn blocked_ddl_on_tidb_is_detected() {
    let Some(mut runner) = open("tidb") else { return };
    let case = steps(
        TWO_ROWS,
        "s1> begin;
         s1> select * from t where id = 1;
         s2> alter table t add column w int;
         s1> commit;",
    );
    let history = run(&mut runner, &case, None);
    assert_eq!(outcome(&history, "s2.1"), "waits for s1, then ok");
}

#[test]
fn the_statement_limit_does_not_count_lock_waits() {
    let Some(mut runner) = open("mariadb") else { return };
    runner.limits.statement = std::time::Duration::from_millis(1500);
    let case = steps(
        TWO_ROWS,
        "s1> begin;
         s1> update t set v = 0 where id = 1;
         s2> update t set v = v + 1 + sleep(0.7) where id = 1;
         s1> select sleep(0.7);
         s1> select sleep(0.7);
         s1> select sleep(0.7);
         s1> commit;",
    );
    let history = run(&mut runner, &case, None);
    assert!(!history.was_cancelled(), "{}", isolde_model::transcript::transcript(&history));
    assert_eq!(outcome(&history, "s2.1"), "waits, then 1 row");
}
