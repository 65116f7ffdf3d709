//! `isolde spec` where the server matters: a user's server by URL, locks that
//! nobody gives up, and what is left open at the end.

mod program;

use isolde_engines::engine::Engine;
use isolde_engines::fetch::install::Cache;
use isolde_engines::target::{self, Target};
use program::isolde;
use std::path::{Path, PathBuf};

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn file(name: &str, content: &str) -> PathBuf {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    std::fs::write(&path, content).unwrap();
    path
}

fn server(target: &str) -> Option<Box<dyn Engine>> {
    if std::env::var_os("ISOLDE_TEST_QUICK").is_some() {
        eprintln!("skipped: ISOLDE_TEST_QUICK is set");
        return None;
    }
    let options = target::Options { cache: Cache::open(), via: None };
    Target::parse(target)
        .unwrap()
        .open(&options)
        .inspect_err(|error| eprintln!("skipped: no {target}: {error}"))
        .ok()
}

/// Specs of PostgreSQL's name this database, and plans depend on autovacuum.
#[test]
fn a_spec_finds_the_database_and_the_settings_of_postgresqls_own_driver() {
    let asks = "session s1\nstep a { select current_database() as d, \
                current_setting('autovacuum') as v, current_setting('application_name') as n; }\n";
    let spec = file("asks.spec", asks).display().to_string();
    let Some(mut engine) = server("postgres") else { return };
    let client = engine.client().unwrap();
    let login = format!("{}:{}", client.user, client.password.unwrap().reveal());
    let url = format!("postgres://{login}@{}:{}/postgres", client.host, client.port);
    let private = isolde(&["spec", &spec]);
    let shown = text(&private.stdout);
    let row = "isolation_regression|on|isolation/asks/s1\n";
    assert!(shown.contains(row), "{shown}{}", text(&private.stderr));
    let by_url = || text(&isolde(&["spec", &spec, "--on", &url]).stdout);
    let shown = by_url();
    assert!(shown.contains("isolation_regression|"), "{shown}");

    // It is gone again; and one that somebody else made is left alone.
    engine.control("create database isolation_regression").unwrap();
    let shown = by_url();
    assert!(shown.contains("isolde_"), "{shown}");
    let names = "select string_agg(datname, ' ' order by datname)::text from pg_database";
    let left = format!("{:?}", engine.control(names).unwrap());
    assert!(left.contains("isolation_regression isolde postgres"), "{left}");
}

/// On PostgreSQL the failed step's transaction would have lost its locks.
#[test]
fn a_teardown_does_not_wait_for_what_a_failed_step_left_open() {
    let open = "setup { create table t (v int); insert into t values (1); }\n\
                teardown { drop table t; }\nsession s1\n\
                step a { begin; select v from t; select nothing from nowhere; commit; }\n\
                session s2\nstep b { select v from t; }\n";
    let spec = file("left-open.spec", open).display().to_string();
    for target in ["sqlite", "mariadb", "mysql"] {
        if target != "sqlite" && server(target).is_none() {
            continue;
        }
        let output = isolde(&["spec", &spec, "--on", target]);
        let (shown, said) = (text(&output.stdout), text(&output.stderr));
        assert_eq!(output.status.code(), Some(0), "{target}: {shown}{said}");
        assert_eq!(shown.matches("starting permutation").count(), 2, "{target}: {shown}");
        // Only the statement, not the whole step.
        let named = format!("{target} rejected step a (line 4): ERROR:  ");
        assert!(said.contains(&named), "{target}: {said}");
        assert!(said.contains("\n    select nothing from nowhere\n"), "{target}: {said}");
        assert!(!said.contains("commit"), "{target}: {said}");
        if target != "sqlite" {
            assert!(said.contains("the teardown waited for transactions"), "{target}: {said}");
        }
    }
}

#[test]
fn a_wait_that_nobody_can_end_is_cut_short_on_engines_that_would_wait_on() {
    let stuck = "setup { create table t (v int); insert into t values (1); }\n\
                 teardown { drop table t; }\nsession s1\nstep a { begin; update t set v = 2; }\n\
                 step c { commit; }\nsession s2\nstep b { update t set v = 3; }\n\
                 step d { select v from t; }\npermutation a b d c\n";
    let spec = file("stuck.spec", stuck).display().to_string();
    if server("mariadb").is_none() {
        return;
    }
    let output = isolde(&["spec", &spec, "--on", "mariadb"]);
    let shown = text(&output.stdout);
    let cancelled = "isolationtester: canceling step b after 5 seconds\n\
                     step b: <... completed>\nERROR:  ";
    assert!(shown.contains(cancelled), "{shown}{}", text(&output.stderr));
    assert!(shown.ends_with("step c: commit;\n"), "{shown}");
}

/// The server's own process is the one thing that a spec can take from the next.
#[test]
fn a_spec_that_kills_its_server_does_not_take_the_next_one_with_it() {
    if server("postgres").is_none() {
        return;
    }
    let kills = "session s1\nstep a { copy (select 1) to program \
                 'kill -9 $(head -n 1 postmaster.pid)'; select pg_sleep(30); }\n";
    let first = file("kills.spec", kills).display().to_string();
    let second = file("after.spec", "session s1\nstep b { select 17 as n; }\n");
    let output = isolde(&["spec", &first, &second.display().to_string()]);
    let shown = text(&output.stdout);
    assert!(shown.ends_with("step b: select 17 as n;\n n\n--\n17\n(1 row)\n\n"), "{shown}");
    // Whether the step or the question who waits meets the dead server first
    // is a race: a difference, or a target that is gone.
    let code = output.status.code();
    assert!(matches!(code, Some(1 | 4)), "{code:?} {shown}{}", text(&output.stderr));
}
