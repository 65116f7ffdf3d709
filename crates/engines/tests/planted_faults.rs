//! Every planted fault on real engines: what it changes, that it changes nothing
//! without a concurrent transaction, and that it strikes the same way twice.

use isolde_engines::fault::{FAULTS, find};
use isolde_model::case::Case;
use isolde_model::history::TxEnd;
use isolde_model::profile::Waiting;
use isolde_model::transcript::transcript;
use isolde_model::{History, Level};
use isolde_testing::cases::{TWO_ROWS, outcome, run, steps};
use isolde_testing::planted::{Bench, observations, rows};

/// A case for a fault, the outcome of one of its steps, and the final rows.
struct Proof {
    fault: &'static str,
    level: Option<Level>,
    steps: &'static str,
    watched: &'static str,
    /// The outcome of the step without the fault and with it.
    says: [&'static str; 2],
    /// The final rows: first without the fault, then the possible ones with it.
    rows: &'static [&'static str],
}

/// s2 locks the row that s1 is about to write.
const HOLD: &str = "update t set v = 5 where id = 1";

const UNTOUCHED: &str = "(1, 10) (2, 20)";

const PROOFS: &[Proof] = &[
    Proof {
        fault: "weaker-level",
        level: Some(Level::RepeatableRead),
        steps: "s2> begin;
            s2> update t set v = 5 where id = 2;
            s1> begin;
            s1> select v from t where id < 2;
            s3> update t set v = 77 where id = 1;
            s1> select v from t where id < 2;
            s1> commit;
            s2> rollback;",
        watched: "s1.3",
        says: ["(10)", "(77)"],
        rows: &["(1, 77) (2, 20)"; 2],
    },
    Proof {
        fault: "rollback-commits",
        level: None,
        steps: "s1> begin;
            s1> update t set v = 11 where id = 1;
            s2> begin;
            s2> update t set v = 5 where id = 1;
            s1> rollback;
            s2> rollback;",
        watched: "s1.3",
        says: ["rolled back"; 2],
        rows: &[UNTOUCHED, "(1, 11) (2, 20)"],
    },
    Proof {
        fault: "commit-loses-last-write",
        level: None,
        steps: "s2> begin;
            s2> update t set v = 5 where id = 1;
            s1> begin;
            s1> update t set v = 11 where id < 2;
            s2> rollback;
            s1> commit;",
        watched: "s1.3",
        says: ["committed"; 2],
        rows: &["(1, 11) (2, 20)", UNTOUCHED],
    },
    Proof {
        fault: "statement-dropped",
        level: None,
        steps: "s2> begin;
            s2> update t set v = 5 where id = 1;
            s1> begin;
            s1> update t set v = 11 where id < 2;
            s2> rollback;
            s1> commit;",
        watched: "s1.3",
        says: ["committed"; 2],
        rows: &["(1, 11) (2, 20)", UNTOUCHED],
    },
    Proof {
        fault: "update-twice",
        level: None,
        steps: "s2> begin;
            s2> update t set v = 5 where id = 1;
            s1> begin;
            s1> update t set v = v + 1 where id < 2;
            s2> rollback;
            s1> commit;",
        watched: "s1.3",
        says: ["committed"; 2],
        rows: &["(1, 11) (2, 20)", "(1, 12) (2, 20)"],
    },
    Proof {
        fault: "row-skipped",
        level: None,
        steps: "s2> begin;
            s2> insert into t values (3, 30);
            s1> begin;
            s1> update t set v = v + 1 where v > 0 or id = 7;
            s2> rollback;
            s1> commit;",
        watched: "s1.3",
        says: ["committed"; 2],
        rows: &["(1, 11) (2, 21)", "(1, 10) (2, 21)", "(1, 11) (2, 20)"],
    },
    Proof {
        fault: "rollback-to-ignored",
        level: None,
        steps: "s2> begin;
            s2> update t set v = 5 where id = 1;
            s1> begin;
            s1> update t set v = 11 where id < 2;
            s2> rollback;
            s2> begin;
            s2> select * from t;
            s1> savepoint a;
            s1> update t set v = 22 where id = 2;
            s1> rollback to savepoint a;
            s2> commit;
            s1> commit;",
        watched: "s1.5",
        says: ["ok"; 2],
        rows: &["(1, 11) (2, 20)", "(1, 11) (2, 22)"],
    },
    Proof {
        fault: "write-outside",
        level: Some(Level::RepeatableRead),
        steps: "s1> begin;
            s2> begin;
            s2> update t set v = 22 where id = 2;
            s2> commit;
            s1> update t set v = 11 where id < 2;
            s1> rollback;",
        watched: "s1.2",
        says: ["1 row"; 2],
        rows: &["(1, 10) (2, 22)", "(1, 11) (2, 22)"],
    },
    Proof {
        fault: "dirty-read",
        level: None,
        steps: "s2> begin;
            s2> update t set v = 99 where id = 1;
            s1> begin;
            s1> select v from t where id = 1;
            s1> commit;
            s2> rollback;",
        watched: "s1.2",
        says: ["(10)", "(99)"],
        rows: &[UNTOUCHED; 2],
    },
    Proof {
        fault: "stale-read",
        level: None,
        steps: "s2> begin;
            s3> update t set v = 77 where id = 1;
            s1> begin;
            s1> select v from t where id = 1;
            s1> commit;
            s2> commit;",
        watched: "s1.2",
        says: ["(77)", "(10)"],
        rows: &["(1, 77) (2, 20)"; 2],
    },
    Proof {
        fault: "nonrepeatable-read",
        level: Some(Level::RepeatableRead),
        steps: "s1> begin;
            s2> begin;
            s2> update t set v = 22 where id = 2;
            s2> commit;
            s1> update t set v = 11 where id = 1;
            s1> select v from t where id < 2;
            s1> commit;",
        watched: "s1.3",
        says: ["(11)", "(10)"],
        rows: &["(1, 11) (2, 22)"; 2],
    },
    Proof {
        fault: "aborted-insert-stays",
        level: None,
        steps: "s1> begin;
            s2> begin;
            s2> update t set v = 22 where id = 2;
            s2> commit;
            s1> insert into t values (3, 30);
            s1> rollback;",
        watched: "s1.3",
        says: ["rolled back"; 2],
        rows: &["(1, 10) (2, 22)", "(1, 10) (2, 22) (3, 30)"],
    },
    Proof {
        fault: "early-unlock",
        level: None,
        steps: "s2> begin;
            s2> update t set v = 5 where id = 1;
            s1> begin;
            s1> update t set v = 11 where id < 2;
            s2> rollback;
            s1> rollback;",
        watched: "s1.3",
        says: ["rolled back"; 2],
        rows: &[UNTOUCHED, "(1, 11) (2, 20)"],
    },
    Proof {
        fault: "duplicate-key-accepted",
        level: None,
        steps: "s1> begin;
            s2> begin;
            s2> update t set v = 22 where id = 2;
            s2> commit;
            s1> insert into t values (1, 99);
            s1> commit;",
        watched: "s1.2",
        says: ["error", "1 row"],
        rows: &["(1, 10) (2, 22)", "(1, 99) (2, 22)"],
    },
    Proof {
        fault: "error-swallowed",
        level: None,
        steps: "s1> begin;
            s2> begin;
            s2> update t set v = 22 where id = 2;
            s2> commit;
            s1> insert into t values (1, 99);
            s1> commit;",
        watched: "s1.2",
        says: ["error", "1 row"],
        rows: &["(1, 10) (2, 22)"; 2],
    },
];

/// The case without the session whose transactions make the fault strike.
fn alone(case: &Case) -> Case {
    let mut case = case.clone();
    case.steps.retain(|step| step.session != "s2");
    case
}

fn prove(bench: &mut Bench, proof: &Proof) {
    let fault = find(proof.fault).unwrap();
    let place = format!("{} {}", bench.target, proof.fault);
    if let Some(why) = bench.lacks(fault) {
        println!("{place}: cannot be planted, {why}");
        return;
    }
    let profile = bench.clean.engine.profile();
    // Where statements fail instead of waiting, a statement that would wait for
    // s2 fails; there it is enough that s2 has written to the table.
    let held = match profile.waiting {
        Waiting::Never => "insert into t values (4, 40)",
        _ => HOLD,
    };
    let levels = profile.level_names();
    let level = proof.level.filter(|level| levels.contains(level));
    let case = steps(TWO_ROWS, &proof.steps.replace(HOLD, held));
    let clean = run(&mut bench.clean, &case, level);
    let says = outcome(&clean, proof.watched);
    assert!(says.starts_with(proof.says[0]), "{place} says {says}:\n{}", transcript(&clean));
    assert_eq!(rows(&clean), proof.rows[0], "{place}");

    let (mut faulted, strikes) = bench.faulted(fault, 1.0, 1);
    let info = faulted.engine.info();
    assert_eq!(info.settings.get("planted_fault").map(String::as_str), Some(proof.fault));
    let struck = run(&mut faulted, &case, level);
    let says = outcome(&struck, proof.watched);
    assert!(says.starts_with(proof.says[1]), "{place} says {says}:\n{}", transcript(&struck));
    assert!(proof.rows[1..].contains(&rows(&struck).as_str()), "{place}: {}", rows(&struck));
    assert_eq!(struck.ending("s1"), expected_ending(&clean, &says), "{place}");
    // The same pooled sessions again: the fault must leave no state in them.
    assert_eq!(
        observations(&run(&mut faulted, &case, level)),
        observations(&struck),
        "{place}, again"
    );
    let single = alone(&case);
    let undisturbed = run(&mut bench.clean, &single, level);
    let before = strikes.count();
    assert!(before > 0, "{place}");
    let lonely = run(&mut faulted, &single, level);
    assert_eq!(
        observations(&lonely),
        observations(&undisturbed),
        "{place}: no transaction runs concurrently"
    );
    assert_eq!(strikes.count(), before, "{place}");

    let (mut never, strikes) = bench.faulted(fault, 0.0, 1);
    assert_eq!(
        observations(&run(&mut never, &case, level)),
        observations(&clean),
        "{place} at rate 0"
    );
    assert_eq!(strikes.count(), 0, "{place} at rate 0");
}

/// An insert that is accepted does not poison PostgreSQL's transaction.
fn expected_ending(clean: &History, says: &str) -> Option<TxEnd> {
    match clean.ending("s1") {
        Some(TxEnd::Aborted) if says == "1 row" => Some(TxEnd::Committed),
        other => other,
    }
}

fn prove_all(targets: &[&'static str]) {
    for target in targets {
        let Some(mut bench) = Bench::open(target) else { continue };
        for proof in PROOFS {
            prove(&mut bench, proof);
        }
    }
}

#[test]
fn every_fault_but_the_crash_has_a_proof() {
    for fault in FAULTS {
        let proven = PROOFS.iter().any(|p| p.fault == fault.name);
        assert!(proven || fault.name == "crash", "{}", fault.name);
    }
}

#[test]
fn each_fault_shows_on_sqlite() {
    prove_all(&["sqlite", "sqlite+wal"]);
}

#[test]
fn each_fault_shows_on_postgres() {
    prove_all(&["postgres"]);
}

#[test]
fn each_fault_shows_on_mariadb() {
    prove_all(&["mariadb"]);
}

#[test]
fn each_fault_shows_on_fetched_engines() {
    prove_all(&["mysql@9.7", "tidb", "dolt", "turso", "duckdb"]);
}
