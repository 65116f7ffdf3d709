//! What is cut together, what keeps its number, and that nothing is built that
//! nobody tries.

use super::*;
use crate::Level;
use crate::generate::plan::number_operations;
use crate::generate::{Dialect, Generator, Options, Planned};
use crate::sql::{Index, Stmt};
use std::cell::Cell;
use std::collections::BTreeMap;

thread_local! {
    /// Plans that were built.
    pub(in super::super) static COPIES: Cell<u64> = const { Cell::new(0) };
}

fn generated(number: u64) -> Plan {
    let levels = vec![Level::ReadCommitted, Level::Serializable];
    let mut options = Options::new(levels, Level::ReadCommitted);
    (options.ddl, options.prepared) = (true, true);
    Generator::new(Dialect::for_engine("postgres", "15.18"), 3, options).plan(number)
}

/// A plan whose transactions send these, one transaction after the other.
fn plan_of(sessions: &[(&str, Vec<Stmt>)]) -> Plan {
    let mut plan = (0..).map(generated).find(|p| !p.statements().any(Stmt::is_ddl)).unwrap();
    let template = plan.transactions[0].clone();
    plan.transactions = sessions
        .iter()
        .map(|(session, statements)| {
            let planned = |s: &Stmt| Planned { id: OpId(0), statement: s.clone() };
            let mut tx = template.clone();
            tx.session = session.to_string();
            tx.statements = statements.iter().map(planned).collect();
            tx
        })
        .collect();
    number_operations(&mut plan.transactions);
    plan.schedule =
        plan.transactions.iter().flat_map(|tx| tx.sequence()).map(|(id, _)| id).collect();
    plan
}

fn write(plan: &Plan) -> Stmt {
    plan.statements().find(|s| s.written_table().is_some()).cloned().expect("every plan writes")
}

/// How many statements each transaction has after a cut.
fn left(plan: &Plan, cut: &Cut) -> Option<Vec<usize>> {
    plan.cut(cut, 0).map(|p| p.transactions.iter().map(|tx| tx.statements.len()).collect())
}

fn cut_of(plan: &Plan, tx: usize, statement: usize) -> Cut {
    Cut::Operation(plan.transactions[tx].statements[statement].id)
}

#[test]
fn a_savepoint_goes_with_the_way_back_to_it_and_with_no_others() {
    let other = write(&generated(0));
    let there_and_back = vec![
        other.clone(),
        Stmt::Savepoint("p".into()),
        other.clone(),
        Stmt::RollbackTo("p".into()),
    ];
    let alone = vec![Stmt::Savepoint("p".into()), other, Stmt::Release("p".into())];
    let plan = plan_of(&[("s1", there_and_back), ("s2", alone)]);
    assert_eq!(left(&plan, &cut_of(&plan, 0, 1)), Some(vec![2, 3]), "another has its own p");
    assert_eq!(left(&plan, &cut_of(&plan, 0, 3)), Some(vec![3, 3]), "nothing needs it");
    assert_eq!(left(&plan, &cut_of(&plan, 0, 2)), Some(vec![3, 3]));
}

#[test]
fn what_is_prepared_is_known_to_later_transactions_of_its_session() {
    let other = write(&generated(0));
    let prepare = Stmt::Prepare { name: "e".into(), statement: Box::new(other.clone()) };
    let execute = || Stmt::Execute("e".into());
    let first = vec![other.clone(), prepare.clone()];
    let second = vec![execute(), other.clone()];
    let stranger = vec![prepare, execute()];
    let plan = plan_of(&[("s1", first), ("s1", second), ("s2", stranger)]);
    assert_eq!(left(&plan, &cut_of(&plan, 0, 1)), Some(vec![1, 1, 2]));
    let first_gone = Cut::Transaction(plan.transactions[0].start_id);
    assert_eq!(left(&plan, &first_gone), Some(vec![1, 2]), "its execution goes with it");
    let both = Cut::Operation(plan.transactions[2].statements[0].id);
    assert_eq!(left(&plan, &both), None, "its transaction would have nothing to do");
    let sent = plan.cut(&Cut::Parts(plan.transactions[0].statements[1].id), 0).unwrap();
    assert_eq!(sent.transactions[1].statements[0].statement, other, "sent where it was executed");
    assert_eq!(sent.transactions[0].statements.len(), 1);
}

#[test]
fn an_index_goes_with_what_drops_it_wherever_that_is() {
    let other = write(&generated(0));
    let table = other.written_table().unwrap().to_string();
    let index = Index { name: "fresh".into(), ..generated_index() };
    let create = Stmt::CreateIndex { table: table.clone(), index };
    let drop = Stmt::DropIndex { table: Some(table), index: "fresh".into() };
    let plan = plan_of(&[("s1", vec![create, other.clone()]), ("s2", vec![drop, other])]);
    assert_eq!(left(&plan, &cut_of(&plan, 0, 0)), Some(vec![1, 1]));
    assert_eq!(left(&plan, &cut_of(&plan, 1, 0)), Some(vec![2, 1]));
}

fn generated_index() -> Index {
    let indexes = |n| generated(n).schema.tables.into_iter().flat_map(|t| t.indexes).next();
    (0..).step_by(30).find_map(indexes).expect("some schema has an index")
}

#[test]
fn a_session_runs_its_transactions_one_after_the_other_each_at_its_level() {
    let other = write(&generated(0));
    let sessions = [("s1", vec![other.clone()]), ("s1", vec![other.clone()]), ("s2", vec![other])];
    let mut plan = plan_of(&sessions);
    let form = crate::generate::BeginForm::Plain;
    for tx in &mut plan.transactions {
        tx.start = crate::generate::Start::Explicit(form);
        tx.end = crate::generate::End::Commit;
    }
    plan.level = Some(Level::ReadCommitted);
    plan.transactions[0].level = None;
    plan.transactions[1].level = Some(Level::Serializable);
    plan.transactions[2].level = Some(Level::Serializable);
    plan.schedule =
        plan.transactions.iter().flat_map(|tx| tx.sequence()).map(|(id, _)| id).collect();
    let case = plan.to_case();
    let prompts: Vec<String> = case.steps.iter().map(|s| s.prompt()).collect();
    let own = "s1(serializable)>";
    assert_eq!(prompts, ["s1>", "s1>", "s1>", own, "s1>", "s1>", "s2>", "s2>", "s2>"]);
    assert_eq!(case.session_levels, [("s2".to_string(), Level::Serializable)]);
    let text = crate::case::format(&case);
    assert_eq!(crate::case::parse(&text).unwrap(), case);
}

#[test]
fn an_operation_keeps_its_number_whatever_goes() {
    for number in 0..40 {
        let mut plan = generated(number);
        let all = |plan: &Plan| -> BTreeMap<OpId, Stmt> {
            let planned = plan.transactions.iter().flat_map(|tx| &tx.statements);
            planned.map(|p| (p.id, p.statement.clone())).collect()
        };
        let before = all(&plan);
        for pass in [Pass::Transactions, Pass::Operations] {
            let mut candidates = Candidates::of(&plan, pass);
            while let Some(smaller) = candidates.next(&plan) {
                let after = all(&smaller);
                assert!(after.len() < all(&plan).len());
                assert!(after.iter().all(|(id, statement)| before[id] == *statement));
                plan = smaller;
                candidates.taken();
            }
        }
    }
}

/// Reduces while the operation is there; answers how many trials it took.
fn reduce_to(plan: &mut Plan, kept: OpId) -> u64 {
    let mut trials = 0;
    loop {
        let before = plan.clone();
        for pass in Pass::ALL {
            let mut candidates = Candidates::of(plan, pass);
            while let Some(smaller) = candidates.next(plan) {
                trials += 1;
                if smaller.planned(kept).is_some() {
                    *plan = smaller;
                    candidates.taken();
                }
            }
        }
        if *plan == before {
            return trials;
        }
    }
}

#[test]
fn what_is_built_for_a_trial_does_not_grow_with_the_case() {
    let one = (0..).map(generated).find(|p| p.transactions.len() == 3).unwrap();
    for copies in [1, 4, 16, 64] {
        let all: Vec<(&str, Vec<Stmt>)> = (0..copies)
            .flat_map(|_| &one.transactions)
            .map(|tx| {
                let statements = tx.statements.iter().map(|p| p.statement.clone());
                (tx.session.as_str(), statements.collect())
            })
            .collect();
        let mut plan = plan_of(&all);
        (plan.schema, plan.rows) = (one.schema.clone(), one.rows.clone());
        let kept = plan.transactions[plan.transactions.len() / 2].statements[0].id;
        let cuts: usize = Pass::ALL.iter().map(|pass| plan.cuts(*pass).len()).sum();
        let before = COPIES.get();
        let trials = reduce_to(&mut plan, kept);
        let built = COPIES.get() - before;
        println!("{cuts} cuts, {trials} trials, {built} plans built");
        assert!(cuts > 10 * copies, "{cuts}: it is a case with so much to cut");
        // One each, and some that turned out to be needed.
        assert!(built < 2 * trials, "{built} plans in {trials} trials");
        assert_eq!(plan.transactions.len(), 1);
    }
}
