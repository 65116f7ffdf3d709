//! `isolde spec` where the server matters: a user's server by URL, lock waits that
//! never end, and transactions left open at the end.

use isolde_testing::program::{isolde, stderr, stdout};
use isolde_testing::servers;
use std::path::{Path, PathBuf};

fn file(name: &str, content: &str) -> PathBuf {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    std::fs::write(&path, content).unwrap();
    path
}

/// PostgreSQL's own specs name this database, and their plans depend on
/// autovacuum.
#[test]
fn a_spec_has_the_database_and_settings_of_pg_isolation_regress() {
    let asks = "session s1\nstep a { select current_database() as d, \
                current_setting('autovacuum') as v, current_setting('application_name') as n; }\n";
    let spec = file("asks.spec", asks).display().to_string();
    let Some(mut engine) = servers::open_engine("postgres") else { return };
    let client = engine.client().unwrap();
    let login = format!("{}:{}", client.user, client.password.unwrap().reveal());
    let url = format!("postgres://{login}@{}:{}/postgres", client.host, client.port);
    let private = isolde(&["spec", &spec]);
    let shown = stdout(&private);
    let row = "isolation_regression|on|isolation/asks/s1\n";
    assert!(shown.contains(row), "{shown}{}", stderr(&private));
    let by_url = || stdout(&isolde(&["spec", &spec, "--on", &url]));
    let shown = by_url();
    assert!(shown.contains("isolation_regression|"), "{shown}");

    // The database is dropped again; one of the same name that existed before is not.
    engine.control("create database isolation_regression").unwrap();
    let shown = by_url();
    assert!(shown.contains("isolde_"), "{shown}");
    let names = "select string_agg(datname, ' ' order by datname)::text from pg_database";
    let left = format!("{:?}", engine.control(names).unwrap());
    assert!(left.contains("isolation_regression isolde postgres"), "{left}");
}

/// PostgreSQL releases the locks of a failed transaction; other engines do not.
#[test]
fn a_teardown_does_not_wait_for_a_transaction_left_open() {
    let open = "setup { create table t (v int); insert into t values (1); }\n\
                teardown { drop table t; }\nsession s1\n\
                step a { begin; select v from t; select nothing from nowhere; commit; }\n\
                session s2\nstep b { select v from t; }\n";
    let spec = file("left-open.spec", open).display().to_string();
    for target in servers::available(&["sqlite", "mariadb", "mysql"]) {
        let output = isolde(&["spec", &spec, "--on", target]);
        let (shown, printed) = (stdout(&output), stderr(&output));
        assert_eq!(output.status.code(), Some(0), "{target}: {shown}{printed}");
        assert_eq!(shown.matches("starting permutation").count(), 2, "{target}: {shown}");
        // The message quotes the statement, not the whole step.
        let named = format!("{target} rejected step a (line 4): ERROR:  ");
        assert!(printed.contains(&named), "{target}: {printed}");
        assert!(printed.contains("\n    select nothing from nowhere\n"), "{target}: {printed}");
        assert!(!printed.contains("commit"), "{target}: {printed}");
        if target != "sqlite" {
            assert!(
                printed.contains("the teardown was blocked by transactions"),
                "{target}: {printed}"
            );
        }
    }
}

#[test]
fn an_endless_lock_wait_of_a_step_is_cancelled() {
    let stuck = "setup { create table t (v int); insert into t values (1); }\n\
                 teardown { drop table t; }\nsession s1\nstep a { begin; update t set v = 2; }\n\
                 step c { commit; }\nsession s2\nstep b { update t set v = 3; }\n\
                 step d { select v from t; }\npermutation a b d c\n";
    let spec = file("stuck.spec", stuck).display().to_string();
    if !servers::is_available("mariadb") {
        return;
    }
    let output = isolde(&["spec", &spec, "--on", "mariadb"]);
    let shown = stdout(&output);
    let cancelled = "isolationtester: canceling step b after 5 seconds\n\
                     step b: <... completed>\nERROR:  ";
    assert!(shown.contains(cancelled), "{shown}{}", stderr(&output));
    assert!(shown.ends_with("step c: commit;\n"), "{shown}");
}

/// A spec that kills the server process must not affect the next spec.
#[test]
fn a_spec_that_kills_its_server_does_not_fail_the_next_one() {
    if !servers::is_available("postgres") {
        return;
    }
    let kills = "session s1\nstep a { copy (select 1) to program \
                 'kill -9 $(head -n 1 postmaster.pid)'; select pg_sleep(30); }\n";
    let first = file("kills.spec", kills).display().to_string();
    let second = file("after.spec", "session s1\nstep b { select 17 as n; }\n");
    let output = isolde(&["spec", &first, &second.display().to_string()]);
    let shown = stdout(&output);
    assert!(shown.ends_with("step b: select 17 as n;\n n\n--\n17\n(1 row)\n\n"), "{shown}");
    // Either the step or the query of the lock view reaches the dead server first:
    // the exit code is that of a difference or of an unreachable target.
    let code = output.status.code();
    assert!(matches!(code, Some(1 | 4)), "{code:?} {shown}{}", stderr(&output));
}
