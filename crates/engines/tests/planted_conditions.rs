//! A planted fault strikes only where its condition holds: not at a level without
//! the rule that it breaks, not with locks that were acquired earlier, not in
//! another order of the same statements.

use isolde_engines::fault::find;
use isolde_model::Level;
use isolde_model::transcript::transcript;
use isolde_testing::cases::{TWO_ROWS, run, steps};
use isolde_testing::planted::Bench;

/// Two runs of the same statements, each with its level: one meets the condition
/// of the fault, the other does not.
struct Pair {
    faults: &'static [&'static str],
    strikes: (Option<Level>, &'static str),
    spares: (Option<Level>, &'static str),
}

const WAITED: &str = "s2> begin;
    s2> update t set v = 5 where id = 1;
    s1> begin;
    s1> update t set v = v + 1 where id = 1;
    s2> rollback;
    s1> commit;";

/// A locking read before the write waits for the lock.
const LOCKED_BEFORE: &str = "s2> begin;
    s2> update t set v = 5 where id = 1;
    s1> begin;
    s1> select v from t where id = 1 for update;
    s2> rollback;
    s1> update t set v = v + 1 where id = 1;
    s1> commit;";

/// The other transaction holds another row.
const ANOTHER_ROW: &str = "s2> begin;
    s2> update t set v = 5 where id = 2;
    s1> begin;
    s1> update t set v = v + 1 where id = 1;
    s2> rollback;
    s1> commit;";

const WAITED_FOR: &str = "s1> begin;
    s1> update t set v = 11 where id = 1;
    s2> begin;
    s2> update t set v = 5 where id = 1;
    s1> rollback;
    s2> rollback;";

/// The two transactions end in the other order.
const NOT_WAITED_FOR: &str = "s1> begin;
    s1> update t set v = 11 where id = 1;
    s2> begin;
    s1> rollback;
    s2> update t set v = 5 where id = 1;
    s2> rollback;";

const CHANGED: &str = "s1> begin;
    s2> update t set v = 22 where id = 2;
    s1> update t set v = 11 where id < 2;
    s1> select v from t where id < 2;
    s1> commit;";

const CHANGED_BEFORE: &str = "s2> update t set v = 22 where id = 2;
    s1> begin;
    s1> update t set v = 11 where id < 2;
    s1> select v from t where id < 2;
    s1> commit;";

const UNCOMMITTED: &str = "s2> begin;
    s2> update t set v = 99 where id = 1;
    s1> begin;
    s1> select v from t where id = 1;
    s1> commit;
    s2> rollback;";

const REFUSED: &str = "s1> begin;
    s2> update t set v = 22 where id = 2;
    s1> insert into t values (1, 99);
    s1> rollback;";

const REFUSED_ALONE: &str = "s2> update t set v = 22 where id = 2;
    s1> begin;
    s1> insert into t values (1, 99);
    s1> rollback;";

const RU: Option<Level> = Some(Level::ReadUncommitted);
const RC: Option<Level> = Some(Level::ReadCommitted);
const RR: Option<Level> = Some(Level::RepeatableRead);

const PAIRS: &[Pair] = &[
    Pair {
        faults: &["statement-dropped", "commit-loses-last-write", "early-unlock", "update-twice"],
        strikes: (None, WAITED),
        spares: (None, LOCKED_BEFORE),
    },
    Pair {
        faults: &["statement-dropped", "commit-loses-last-write", "early-unlock", "update-twice"],
        strikes: (None, WAITED),
        spares: (None, ANOTHER_ROW),
    },
    Pair {
        faults: &["rollback-commits"],
        strikes: (None, WAITED_FOR),
        spares: (None, NOT_WAITED_FOR),
    },
    Pair {
        faults: &["write-outside", "nonrepeatable-read"],
        strikes: (RR, CHANGED),
        spares: (RC, CHANGED),
    },
    Pair {
        faults: &["write-outside", "nonrepeatable-read", "update-twice"],
        strikes: (RR, CHANGED),
        spares: (RR, CHANGED_BEFORE),
    },
    Pair {
        faults: &["dirty-read", "weaker-level"],
        strikes: (RC, UNCOMMITTED),
        spares: (RU, UNCOMMITTED),
    },
    Pair {
        faults: &["duplicate-key-accepted", "error-swallowed"],
        strikes: (None, REFUSED),
        spares: (None, REFUSED_ALONE),
    },
];

#[test]
fn a_fault_does_not_strike_without_its_condition() {
    for target in ["postgres", "mariadb"] {
        let Some(bench) = Bench::open(target) else { continue };
        for pair in PAIRS {
            for name in pair.faults {
                let (mut runner, strikes) = bench.faulted(find(name).unwrap(), 1.0, 1);
                let (level, text) = pair.strikes;
                let history = run(&mut runner, &steps(TWO_ROWS, text), level);
                let struck = strikes.count();
                assert!(struck > 0, "{target} {name}:\n{}", transcript(&history));
                let (level, text) = pair.spares;
                let history = run(&mut runner, &steps(TWO_ROWS, text), level);
                assert_eq!(strikes.count(), struck, "{target} {name}:\n{}", transcript(&history));
            }
        }
    }
}
