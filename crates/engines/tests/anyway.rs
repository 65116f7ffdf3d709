//! A client that ignores an abort: its next statement, marked `(anyway)` in a
//! case, is sent to the engine, and its outcome is the engine's own.

use isolde_model::history::TxEnd;
use isolde_model::value::show_rows;
use isolde_testing::cases::{TWO_ROWS, outcome, run, steps};
use isolde_testing::servers::open;

#[test]
fn after_a_deadlock_the_next_update_of_the_victim_autocommits() {
    for target in ["mariadb", "mysql@9.7", "mysql@8.0.33", "mysql@5.7", "tidb"] {
        let Some(mut runner) = open(target) else { continue };
        let case = steps(
            TWO_ROWS,
            "s1> begin;
             s2> begin;
             s1> update t set v = v + 1 where id = 1;
             s2> update t set v = v + 2 where id = 2;
             s1> update t set v = v + 1 where id = 2;
             s2> update t set v = v + 2 where id = 1;
             s1> commit;
             s2(anyway)> update t set v = v + 100 where id = 1;
             s2> update t set v = v + 1000 where id = 1;
             s2(anyway)> rollback;
             s2> update t set v = v + 5 where id = 2;",
        );
        let history = run(&mut runner, &case, None);
        assert_eq!(outcome(&history, "s2.3"), "error 1213", "{target}");
        // It is its own transaction, so the rollback comes too late.
        assert_eq!(outcome(&history, "s2.4"), "1 row", "{target}");
        assert_eq!(outcome(&history, "s2.5"), "not sent", "{target}: it does not say anyway");
        assert_eq!(outcome(&history, "s2.6"), "ok", "{target}");
        assert_eq!(outcome(&history, "s2.7"), "1 row", "{target}: the transaction is over");
        assert_eq!(show_rows(&history.final_state[0].rows), "(1, 111) (2, 26)", "{target}");
        let endings: Vec<(bool, TxEnd)> = history
            .transactions
            .iter()
            .filter(|t| t.session == "s2")
            .map(|t| (t.autocommit, t.how))
            .collect();
        let alone = (true, TxEnd::Committed);
        assert_eq!(endings, [(false, TxEnd::Aborted), alone, alone], "{target}");
    }
}

#[test]
fn a_failed_transaction_of_postgres_refuses_anyway_statements() {
    let Some(mut runner) = open("postgres") else { return };
    let case = steps(
        TWO_ROWS,
        "s1> begin;
         s1> insert into t values (1, 1);
         s1(anyway)> update t set v = 11 where id = 1;
         s1(anyway)> begin;
         s1> update t set v = 12 where id = 1;
         s1> commit;",
    );
    let history = run(&mut runner, &case, None);
    assert_eq!(outcome(&history, "s1.3"), "error 25P02");
    assert_eq!(outcome(&history, "s1.4"), "error 25P02");
    assert_eq!(outcome(&history, "s1.5"), "not sent");
    assert_eq!(outcome(&history, "s1.6"), "rolled back");
    assert_eq!(history.ending("s1"), Some(TxEnd::Aborted));
    assert_eq!(show_rows(&history.final_state[0].rows), "(1, 10) (2, 20)");
}

#[test]
fn after_sqlite_rolls_back_the_next_statement_autocommits() {
    let Some(mut runner) = open("sqlite+wal") else { return };
    // A snapshot that is too old for a write stays so until the transaction ends.
    let case = steps(
        TWO_ROWS,
        "s1> begin;
         s2> begin;
         s2> select v from t where id = 1;
         s1> update t set v = 11 where id = 1;
         s1> commit;
         s2> update t set v = 12 where id = 1;
         s2(anyway)> update t set v = v + 100 where id = 1;
         s2> commit;",
    );
    let history = run(&mut runner, &case, None);
    assert_eq!(history.ending("s2"), Some(TxEnd::Aborted));
    assert_eq!(outcome(&history, "s2.4"), "1 row");
    assert_eq!(outcome(&history, "s2.5"), "not sent");
    assert_eq!(show_rows(&history.final_state[0].rows), "(1, 111) (2, 20)");
}

#[test]
fn a_lost_session_accepts_no_anyway_statement() {
    let Some(mut runner) = open("postgres") else { return };
    let case = steps(
        TWO_ROWS,
        "s1> begin;
         s1> select pg_terminate_backend(pg_backend_pid());
         s1(anyway)> select 1;",
    );
    let history = run(&mut runner, &case, None);
    assert_eq!(outcome(&history, "s1.3"), "not sent");
}
