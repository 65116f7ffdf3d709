//! When planted faults strike, how they affect locks and sessions, and that a run
//! with a fault always ends.

use isolde_engines::fault::{FAULTS, Planted, find, plant};
use isolde_engines::runner::Runner;
use isolde_model::Level;
use isolde_model::case::Case;
use isolde_model::history::TxEnd;
use isolde_model::transcript::transcript;
use isolde_testing::cases::{
    Dice, THREE_ROWS, TWO_ROWS, interleaved, outcome, repeats, run, steps,
};
use isolde_testing::planted::{Bench, observations, rows};
use isolde_testing::servers::open;

const SERVERS: [&str; 2] = ["postgres", "mariadb"];

/// Transactions that meet the conditions of all faults, without statements whose
/// outcome varies on a sound engine: whether a deleted row can still be locked
/// depends on InnoDB's purge, and of two scans that wait for one transaction
/// either may resume first.
fn random_case(seed: u64) -> Case {
    let mut dice = Dice(seed);
    let mut scripts: Vec<Vec<String>> = Vec::new();
    for session in 0..3 {
        let mut script = vec!["begin".to_string()];
        let marks = dice.below(2) == 0;
        if marks {
            script.push("savepoint p".into());
        }
        for _ in 0..2 + dice.below(3) {
            let row = 1 + dice.below(4);
            script.push(match dice.below(7) {
                0 => "select * from t order by id".into(),
                1 => format!("select v from t where id = {row}"),
                2 => format!("update t set v = {session} where id = {row}"),
                3 => format!("insert into t values ({}, {session})", 3 + dice.below(4)),
                4 if marks => "rollback to savepoint p".into(),
                5 => format!("update t set v = v + {session} where id = {row}"),
                _ => format!("update t set v = v * 10 + {session} where id = {row}"),
            });
        }
        script.push(if dice.below(2) == 0 { "rollback" } else { "commit" }.into());
        scripts.push(script);
    }
    interleaved(&mut dice, &THREE_ROWS, scripts)
}

/// Two runs of many cases with lock waits and deadlocks.
fn strikes_the_same(target: &'static str, level: Option<Level>) {
    let Some(bench) = Bench::open(target) else { return };
    let cases = repeats("ISOLDE_FAULT_CASES", 48) as u64;
    for fault in FAULTS.iter().filter(|f| bench.lacks(f).is_none() && f.name != "crash") {
        let (mut runner, strikes) = bench.faulted(fault, 0.8, 7);
        let mut counts = Vec::new();
        for seed in 0..cases {
            let case = random_case(seed);
            let mut histories = (0..2).map(|_| {
                let before = strikes.count();
                let history = run(&mut runner, &case, level);
                counts.push(strikes.count() - before);
                history
            });
            let (first, second) = (histories.next().unwrap(), histories.next().unwrap());
            let place = format!("{target} {} case {seed}", fault.name);
            assert!(
                observations(&first) == observations(&second),
                "{place}:\n{}\nthen\n{}",
                transcript(&first),
                transcript(&second)
            );
        }
        let all: u64 = counts.iter().sum();
        println!("{target} {}: {all} strikes in {} runs", fault.name, counts.len());
        assert!(counts.chunks(2).all(|pair| pair[0] == pair[1]), "{}: {counts:?}", fault.name);
        assert!(all > 0 || cases < 48, "{target} {}: it never struck", fault.name);
    }
}

#[test]
fn the_same_seed_strikes_the_same_statements_on_sqlite() {
    strikes_the_same("sqlite", None);
    strikes_the_same("sqlite+wal", None);
    strikes_the_same("sqlite+shared-cache", None);
}

#[test]
fn the_same_seed_strikes_the_same_statements_on_postgres() {
    strikes_the_same("postgres", Some(Level::Serializable));
}

#[test]
fn the_same_seed_strikes_the_same_statements_on_mariadb() {
    strikes_the_same("mariadb", Some(Level::RepeatableRead));
}

#[test]
fn another_seed_strikes_other_statements() {
    let bench = Bench::open("sqlite").unwrap();
    let fault = find("statement-dropped").unwrap();
    let results: Vec<String> = (0..6)
        .map(|seed| {
            let (mut runner, _) = bench.faulted(fault, 0.5, seed);
            (0..12).map(|n| rows(&run(&mut runner, &random_case(n), None))).collect()
        })
        .collect();
    assert!(results.iter().any(|r| *r != results[0]), "{results:?}");
}

#[test]
fn a_transaction_that_lost_its_locks_blocks_no_statement() {
    let contested = steps(
        TWO_ROWS,
        "s3> begin;
         s3> update t set v = 5 where id = 1;
         s1> begin;
         s1> update t set v = 11 where id = 1;
         s3> rollback;
         s2> begin;
         s2> update t set v = v + 1 where id = 1;
         s1> commit;
         s2> commit;",
    );
    for target in ["sqlite", "postgres", "mariadb"] {
        let Some(mut bench) = Bench::open(target) else { continue };
        let clean = run(&mut bench.clean, &contested, None);
        assert!(outcome(&clean, "s2.2").starts_with("waits"), "{target}");
        let (mut runner, _) = bench.faulted(find("early-unlock").unwrap(), 1.0, 1);
        let struck = run(&mut runner, &contested, None);
        assert_eq!(outcome(&struck, "s2.2"), "1 row", "{target}");
        assert_eq!(rows(&struck), "(1, 12) (2, 20)", "{target}");
    }
}

#[test]
fn a_write_that_would_block_outside_is_done_in_its_transaction() {
    let locked = steps(
        TWO_ROWS,
        "s2> begin;
         s1> begin;
         s3> update t set v = 20 where id = 2;
         s2> select * from t where id = 1 for update;
         s1> update t set v = 11 where id < 2;
         s2> commit;
         s1> rollback;",
    );
    for target in SERVERS {
        let Some(bench) = Bench::open(target) else { continue };
        let (mut runner, strikes) = bench.faulted(find("write-outside").unwrap(), 1.0, 1);
        let history = run(&mut runner, &locked, Some(Level::RepeatableRead));
        assert!(outcome(&history, "s1.2").starts_with("waits"), "{target}");
        assert_eq!(rows(&history), "(1, 10) (2, 20)", "{target}");
        assert_eq!(strikes.count(), 0, "{target}");
    }
}

#[test]
fn a_failing_second_update_does_not_abort_the_transaction() {
    let once_only = steps(
        "create table t (id int primary key, v int check (v < 12));
         insert into t values (1, 10), (2, 5);",
        "s1> begin;
         s2> update t set v = v;
         s1> update t set v = v + 1 where id = 1;
         s1> update t set v = v + 1 where id = 2;
         s1> commit;",
    );
    for target in ["sqlite", "postgres", "mariadb"] {
        let Some(bench) = Bench::open(target) else { continue };
        let (mut runner, _) = bench.faulted(find("update-twice").unwrap(), 1.0, 1);
        let history = run(&mut runner, &once_only, None);
        assert_eq!(rows(&history), "(1, 11) (2, 7)", "{target}");
        assert_eq!(history.ending("s1"), Some(TxEnd::Committed), "{target}");
    }
}

#[test]
fn a_duplicate_key_is_accepted_where_the_row_can_be_replaced() {
    let setup = "create table t (id int primary key, v int default 5, w int);
         create unique index only_w on t (w);
         insert into t values (1, 10, 7);";
    let named = "s1> begin;
         s2> update t set v = v;
         s1> insert into t (w, id) values (8, 1), (9, 2);
         s1> commit;";
    for (target, expected) in [
        ("sqlite", "(1, 5, 8) (2, 5, 9)"),
        ("mariadb", "(1, 5, 8) (2, 5, 9)"),
        ("postgres", "(1, 10, 8) (2, 5, 9)"),
    ] {
        let Some(bench) = Bench::open(target) else { continue };
        let (mut runner, _) = bench.faulted(find("duplicate-key-accepted").unwrap(), 1.0, 1);
        let history = run(&mut runner, &steps(setup, named), None);
        assert_eq!(
            (outcome(&history, "s1.2").as_str(), rows(&history).as_str()),
            ("2 rows", expected)
        );
        if target == "postgres" {
            let by_index = named.replace("(8, 1), (9, 2)", "(7, 3)");
            let history = run(&mut runner, &steps(setup, &by_index), None);
            assert_eq!(outcome(&history, "s1.2"), "error 23505");
            assert_eq!(history.ending("s1"), Some(TxEnd::Aborted));
        }
    }
}

#[test]
fn a_weakened_session_level_is_restored_after_the_transaction() {
    let bench = Bench::open("sqlite+shared-cache").unwrap();
    let (mut runner, strikes) = bench.faulted(find("weaker-level").unwrap(), 1.0, 1);
    let dirty = "s2> begin;
         s2> update t set v = 99 where id = 1;
         s1> begin;
         s1> select v from t where id = 1;
         s1> commit;";
    let both = format!("{dirty}\ns1> select v from t where id = 2;\ns2> rollback;");
    let history = run(&mut runner, &steps(TWO_ROWS, &both), Some(Level::Serializable));
    assert_eq!(outcome(&history, "s1.2"), "(99)");
    assert!(outcome(&history, "s1.4").starts_with("waits"), "{}", transcript(&history));
    assert_eq!(strikes.count(), 1);
}

#[test]
fn a_transaction_with_its_own_level_is_weakened_too() {
    let own_level = steps(
        TWO_ROWS,
        "s2> begin;
         s2> update t set v = 5 where id = 2;
         s1(repeatable read)> begin;
         s1> select v from t where id < 2;
         s3> update t set v = 77 where id = 1;
         s1> select v from t where id < 2;
         s1> commit;
         s1> begin;
         s1> select v from t where id < 2;
         s1> commit;
         s2> commit;",
    );
    for target in SERVERS {
        let Some(mut bench) = Bench::open(target) else { continue };
        let clean = run(&mut bench.clean, &own_level, None);
        assert_eq!(outcome(&clean, "s1.3"), "(10)", "{target}");
        let (mut runner, strikes) = bench.faulted(find("weaker-level").unwrap(), 1.0, 1);
        let struck = run(&mut runner, &own_level, None);
        assert_eq!(outcome(&struck, "s1.3"), "(77)", "{target}");
        assert_eq!(strikes.count(), 2, "{target}");
    }
}

#[test]
fn a_planted_crash_loses_every_session_and_the_next_run_is_sound() {
    let case = steps(
        TWO_ROWS,
        "s2> begin;
         s2> update t set v = 5 where id = 1;
         s3> update t set v = 6 where id = 1;
         s1> begin;
         s1> update t set v = 11 where id = 2;
         s2> select * from t;
         s1> commit;
         s2> commit;",
    );
    for target in ["sqlite", "postgres", "mariadb", "duckdb"] {
        let Some(clean) = open(target) else { continue };
        let fault = find("crash").unwrap();
        let engine = plant(clean.engine, Planted { fault, rate: 1.0, seed: 1 });
        let mut runner = Runner::new(engine);
        for _ in 0..2 {
            let history = run(&mut runner, &case, None);
            assert!(history.lost_server(), "{target}: {}", transcript(&history));
            assert!(outcome(&history, "s1.2").starts_with("error lost"), "{target}");
            let last = outcome(&history, "s2.3");
            let gone = last.contains("lost") || last.starts_with("not sent");
            assert!(gone, "{target}: {}", transcript(&history));
            assert_eq!(history.ending("s1"), Some(TxEnd::Lost), "{target}");
        }
        let calm = steps(TWO_ROWS, "s1> begin;\ns1> update t set v = 11;\ns1> commit;");
        assert_eq!(rows(&run(&mut runner, &calm, None)), "(1, 11) (2, 11)", "{target}");
    }
}
