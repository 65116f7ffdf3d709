//! A prepared transaction belongs to no session, and ends when another statement names it.

use isolde_model::executed_transactions::executed_transactions;
use isolde_model::history::TxEnd;
use isolde_testing::cases::{TWO_ROWS, outcome, run, steps};
use isolde_testing::servers::open;

#[test]
fn prepared_transaction_ends_where_it_is_committed() {
    let Some(mut runner) = open("postgres") else { return };
    for (ends, how, left) in [
        ("commit prepared", TxEnd::Committed, "(11)"),
        ("rollback prepared", TxEnd::RolledBack, "(10)"),
    ] {
        let case = steps(
            TWO_ROWS,
            &format!(
                "s1> begin;
                 s1> update t set v = 11 where id = 1;
                 s1> prepare transaction 'isolde-test';
                 s1> select v from t where id = 1;
                 s2> {ends} 'isolde-test';
                 s2> select v from t where id = 1;"
            ),
        );
        let history = run(&mut runner, &case, None);
        if outcome(&history, "s1.3") == "error 55000" {
            // The server has no room for prepared transactions.
            return;
        }
        assert_eq!(outcome(&history, "s1.4"), "(10)", "{ends}");
        assert_eq!(outcome(&history, "s2.2"), left, "{ends}");
        assert_eq!(history.transactions[0].how, how, "{ends}");
        let executed = executed_transactions(&history);
        let steps: Vec<Vec<usize>> = executed.iter().map(|t| t.steps.clone()).collect();
        assert_eq!(steps, [vec![3], vec![0, 1, 2], vec![5]], "{ends}");
    }
}
