//! Tests what is removed together, which numbers stay, and that no plan is built without being
//! tried.

use super::*;
use crate::plan::{End, Start, number_operations};
use crate::reduce::{Reducible, Reduction, Strategy, Trial, TrialRequest, bound, reduce};
use crate::{Generator, Options, PlannedStatement, TxPlan};
use isolde_model::Level;
use isolde_model::inquiry::Inquiry;
use isolde_sql::{BeginForm, Dialect};
use isolde_sql::{
    Binary, Conflict, Control, Ddl, Delete, Expr, Index, Insert, InsertSource, Stmt, Write,
};
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
    let mut template = plan.transactions[0].clone();
    (template.start, template.end) = (Start::Explicit(BeginForm::Plain), End::Commit);
    plan.transactions = sessions
        .iter()
        .map(|(session, statements)| {
            let planned = |s: &Stmt| PlannedStatement { id: OpId(0), statement: s.clone() };
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

/// How many statements each transaction has without an operation.
fn left(plan: &Plan, gone: OpId) -> Vec<usize> {
    without(plan, gone).transactions.iter().map(|tx| tx.statements.len()).collect()
}

fn without(plan: &Plan, gone: OpId) -> Plan {
    let of = |tx: &TxPlan| [vec![tx.start_id], tx.statements.iter().map(|p| p.id).collect()];
    let nodes: Vec<OpId> = plan.transactions.iter().flat_map(of).flatten().collect();
    let mut kept = vec![true; nodes.len()];
    plan.graph().remove(&[nodes.iter().position(|id| *id == gone).unwrap()], &mut kept);
    plan.keeping(&kept)
}

fn id_of(plan: &Plan, tx: usize, statement: usize) -> OpId {
    plan.transactions[tx].statements[statement].id
}

#[test]
fn savepoint_is_removed_with_its_rollback_only() {
    let other = write(&generated(0));
    let there_and_back = vec![
        other.clone(),
        Stmt::Control(Control::Savepoint("p".into())),
        other.clone(),
        Stmt::Control(Control::RollbackTo("p".into())),
    ];
    let alone = vec![
        Stmt::Control(Control::Savepoint("p".into())),
        other,
        Stmt::Control(Control::Release("p".into())),
    ];
    let plan = plan_of(&[("s1", there_and_back), ("s2", alone)]);
    assert_eq!(left(&plan, id_of(&plan, 0, 1)), vec![2, 3], "another has its own p");
    assert_eq!(left(&plan, id_of(&plan, 0, 3)), vec![3, 3], "nothing needs it");
    assert_eq!(left(&plan, id_of(&plan, 0, 2)), vec![3, 3]);
}

#[test]
fn prepared_statement_is_removed_with_its_executions_in_later_transactions() {
    let other = write(&generated(0));
    let prepare = Stmt::Prepare { name: "e".into(), statement: Box::new(other.clone()) };
    let execute = || Stmt::Execute("e".into());
    let first = vec![other.clone(), prepare.clone()];
    let second = vec![execute(), other.clone()];
    let stranger = vec![prepare, execute()];
    let plan = plan_of(&[("s1", first), ("s1", second), ("s2", stranger)]);
    assert_eq!(left(&plan, id_of(&plan, 0, 1)), vec![1, 1, 2]);
    let first = plan.transactions[0].start_id;
    assert_eq!(left(&plan, first), vec![1, 2], "its execution goes with it");
    assert_eq!(left(&plan, id_of(&plan, 2, 0)), vec![2, 2], "nothing to do is left");
    let sent =
        plan.simplify(&Simplification::Parts(plan.transactions[0].statements[1].id), 0).unwrap();
    assert_eq!(sent.transactions[1].statements[0].statement, other, "sent where it was executed");
    assert_eq!(sent.transactions[0].statements.len(), 1);
}

#[test]
fn index_is_removed_with_its_drop_in_another_transaction() {
    let other = write(&generated(0));
    let table = other.written_table().unwrap().to_string();
    let index = Index { name: "fresh".into(), ..generated_index() };
    let create = Stmt::Ddl(Ddl::CreateIndex { table: table.clone(), index });
    let drop = Stmt::Ddl(Ddl::DropIndex { table: Some(table), index: "fresh".into() });
    let plan = plan_of(&[("s1", vec![create, other.clone()]), ("s2", vec![drop, other])]);
    assert_eq!(left(&plan, id_of(&plan, 0, 0)), vec![1, 1]);
    assert_eq!(left(&plan, id_of(&plan, 1, 0)), vec![2, 1]);
}

fn generated_index() -> Index {
    let indexes = |n| generated(n).schema.tables.into_iter().flat_map(|t| t.indexes).next();
    (0..).step_by(30).find_map(indexes).expect("some schema has an index")
}

#[test]
fn session_runs_its_transactions_in_order_each_at_its_level() {
    let other = write(&generated(0));
    let sessions = [("s1", vec![other.clone()]), ("s1", vec![other.clone()]), ("s2", vec![other])];
    let mut plan = plan_of(&sessions);
    let form = isolde_sql::BeginForm::Plain;
    for tx in &mut plan.transactions {
        tx.start = crate::Start::Explicit(form);
        tx.end = crate::End::Commit;
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
    let text = isolde_model::case::format(&case);
    assert_eq!(isolde_model::case::parse(&text).unwrap(), case);
}

fn trial(fails: bool) -> Trial {
    if fails { Trial::Fails } else { Trial::Passes }
}

fn reduced(plan: &Plan, mut fails: impl FnMut(&Plan) -> bool) -> Option<Reduction<Plan>> {
    Inquiry::new(|channel| reduce(plan, Strategy::Pisco, 0, channel))
        .answered_by(|request: TrialRequest<Plan>| Ok::<_, ()>(trial(fails(&request.subject))))
        .unwrap()
}

fn writes(plan: &Plan) -> usize {
    plan.statements()
        .filter(|s| matches!(s, Stmt::Write(Write::Update(_) | Write::Delete(_))))
        .count()
}

#[test]
fn operation_keeps_its_number_when_others_are_removed() {
    for number in 0..40 {
        let plan = generated(number);
        let all = |plan: &Plan| -> BTreeMap<OpId, Stmt> {
            let planned = plan.transactions.iter().flat_map(|tx| &tx.statements);
            planned.map(|p| (p.id, p.statement.clone())).collect()
        };
        let before = all(&plan);
        let n = plan.graph().len();
        for gone in 0..n {
            let mut kept = vec![true; n];
            plan.graph().remove(&[gone], &mut kept);
            let after = all(&plan.keeping(&kept));
            assert!(after.len() < before.len());
            assert!(after.iter().all(|(id, statement)| before[id] == *statement));
        }
    }
}

#[test]
fn reduced_plan_fails_and_no_smaller_one_does() {
    for plan in (0..200).step_by(23).map(generated) {
        let fails = |plan: &Plan| writes(plan) >= 2;
        let Some(found) = reduced(&plan, fails) else {
            assert!(!fails(&plan), "what fails is reduced");
            continue;
        };
        assert_eq!((writes(&found.subject), found.cut), (2, false));
        assert_eq!(found.subject.statements().count(), 2, "{:?}", found.subject.to_case());
        for pass in Pass::ALL {
            let mut candidates = Candidates::of(&found.subject, pass);
            while let Some(smaller) = candidates.next(&found.subject) {
                assert!(!fails(&smaller), "{pass:?}: {:?}", smaller.to_case());
            }
        }
    }
}

#[test]
fn reduced_plan_has_simple_names_and_no_rows() {
    let plan = (0..).map(generated).find(|p| writes(p) >= 2 && p.transactions.len() > 1).unwrap();
    let found = reduced(&plan, |plan| writes(plan) >= 2).unwrap();
    let names: Vec<&str> = found.subject.schema.tables.iter().map(|t| t.name.as_str()).collect();
    assert_eq!(names[0], "t");
    assert_eq!(found.subject.schema.tables[0].columns[0].name, "a");
    let text = isolde_model::case::format(&found.subject.to_case());
    assert!(isolde_model::case::parse(&text).is_ok());
    assert!(found.subject.rows.iter().all(Vec::is_empty), "no row is needed: {text}");
}

#[test]
fn reduced_schedule_has_no_unneeded_switches() {
    let other = write(&generated(0));
    let two = || vec![other.clone(), other.clone()];
    let mut plan = plan_of(&[("s1", two()), ("s2", two())]);
    let (one, two) = (plan.schedule[..4].to_vec(), plan.schedule[4..].to_vec());
    plan.schedule = one.iter().zip(&two).flat_map(|(a, b)| [*a, *b]).collect();
    let switches = |plan: &Plan| {
        let steps = plan.steps();
        steps.windows(2).filter(|pair| pair[0].0 != pair[1].0).count()
    };
    assert_eq!(switches(&plan), 7);
    // The second session begins after the first has, and ends before it does.
    let at = |plan: &Plan, id: &OpId| plan.schedule.iter().position(|s| s == id);
    let fails = |plan: &Plan| {
        let [s1, s2] = [&one, &two].map(|t| (at(plan, &t[0]), at(plan, &t[3])));
        s1.0 < s2.0 && s2.1 < s1.1 && plan.statements().count() == 4
    };
    assert!(!fails(&plan));
    plan.schedule.swap(6, 7);
    let found = reduced(&plan, fails).unwrap();
    assert_eq!(switches(&found.subject), 2);
}

#[test]
fn search_by_key_depends_on_the_insert_of_the_row() {
    let mut plan = plan_of(&[("s1", vec![write(&generated(0))])]);
    let table = plan.schema.tables.iter().find(|t| t.primary_key.len() == 1).unwrap().clone();
    let key = table.primary_key[0].clone();
    let insert = |n| {
        let values = InsertSource::Values(vec![vec![Expr::int(n)]]);
        Stmt::Write(Write::Insert(Insert {
            table: table.name.clone(),
            alias: None,
            columns: vec![key.clone()],
            source: values,
            conflict: Conflict::Fail,
            returning: Vec::new(),
        }))
    };
    let delete = |n| {
        let filter = Expr::binary(Binary::Equal, Expr::column(&key), Expr::int(n));
        Stmt::Write(Write::Delete(Delete { filter: Some(filter), ..Delete::from(&table.name) }))
    };
    let (schema, rows) = (plan.schema.clone(), plan.rows.clone());
    plan = plan_of(&[("s1", vec![insert(901), insert(902)]), ("s2", vec![delete(901)])]);
    (plan.schema, plan.rows) = (schema, rows);
    let graph = plan.graph();
    let unit = |of: usize| {
        let mut kept = vec![true; graph.len()];
        graph.remove_units(&[of], &mut kept);
        kept.iter().filter(|kept| !**kept).count()
    };
    assert_eq!([unit(0), unit(1), unit(2), unit(3), unit(4)], [4, 2, 1, 2, 1]);
    let mut alone = vec![true; graph.len()];
    graph.remove(&[1], &mut alone);
    assert_eq!(alone.iter().filter(|kept| !**kept).count(), 1, "it can be sent without the row");
}

#[test]
#[allow(clippy::disallowed_macros)]
fn plans_built_per_trial_do_not_grow_with_the_case() {
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
        let before = COPIES.get();
        let found = reduced(&plan, |plan| plan.planned(kept).is_some()).unwrap();
        let (built, trials) = (COPIES.get() - before, u64::from(found.spent.trials()));
        println!("{} operations, {trials} trials, {built} plans built", found.spent.operations);
        // One each, and some that turned out to be needed.
        assert!(built < 2 * trials + 10, "{built} plans in {trials} trials");
        assert_eq!(found.subject.transactions.len(), 1);
        let most = bound(found.spent.operations, found.spent.needed);
        assert!(f64::from(found.spent.strategy) <= most);
    }
}
