//! Makes transactions, and the order in which their statements are sent.

use super::Maker;
use crate::generate::plan::{BeginForm, End, OpId, Planned, Start, TxPlan, number_operations};
use crate::random::Random;
use crate::sql::Stmt;
use crate::sql::feature::Feature;

/// The transactions of a case, at least one of which writes.
pub fn transactions(maker: &mut Maker) -> Vec<TxPlan> {
    // Reported bugs: 22% one transaction, 54% two, 18% three, 5% four, 1%
    // five. One alone meets nobody, so it is rare here.
    let count = 1 + maker.random.weighted(&[4, 56, 27, 9, 4]);
    let mut all: Vec<TxPlan> = (1..=count).map(|n| transaction(maker, n)).collect();
    let writes = |tx: &TxPlan| tx.statements.iter().any(|s| s.statement.written_table().is_some());
    if !all.iter().any(writes) {
        all[0].start = Start::Explicit(BeginForm::Plain);
        let update = maker.update().expect("every table can be updated");
        all[0].statements.push(planned(update));
    }
    number_operations(&mut all);
    all
}

/// Numbered when all operations are known.
fn planned(statement: Stmt) -> Planned {
    Planned { id: OpId(0), statement }
}

/// Short ones that come and go while a long one is under way.
const LENGTHS_IN_ROUNDS: [usize; 8] = [22, 22, 14, 8, 8, 8, 9, 9];

/// One transaction; its operations have no numbers yet.
pub fn transaction(maker: &mut Maker, number: usize) -> TxPlan {
    let start = start(maker);
    let read_only = start == Start::Explicit(BeginForm::ReadOnly);
    let count = match start {
        _ if maker.options.for_rounds => 1 + maker.random.weighted(&LENGTHS_IN_ROUNDS),
        Start::Autocommit => 1 + maker.random.weighted(&[68, 23, 9]),
        _ => 1 + maker.random.weighted(&[27, 35, 22, 10, 6]),
    };
    let mut statements = Vec::new();
    for _ in 0..count {
        // A write there must be refused, which is worth a look now and then.
        let reads_only = read_only && maker.random.chance(90);
        let statement = maker.statement(reads_only);
        add_perhaps_prepared(maker, &mut statements, statement);
    }
    if maker.options.ddl && maker.random.chance(8) {
        let place = maker.random.between(0, statements.len());
        if let Some(ddl) = maker.ddl() {
            statements.insert(place, ddl);
        }
    }
    if start != Start::Autocommit && maker.has(Feature::Savepoint) && maker.random.chance(12) {
        add_savepoint(maker, &mut statements);
    }
    let levels = &maker.options.levels;
    let own_level = maker.options.own_levels && levels.len() > 1 && maker.random.chance(8);
    let end = match start {
        Start::Autocommit => End::None,
        _ if maker.random.chance(15) => End::Rollback,
        _ => End::Commit,
    };
    TxPlan {
        session: format!("s{number}"),
        level: own_level.then(|| *maker.random.pick(levels)),
        start_id: OpId(0),
        start,
        statements: statements.into_iter().map(planned).collect(),
        end_id: OpId(0),
        end,
    }
}

fn start(maker: &mut Maker) -> Start {
    let off = if maker.has(Feature::AutocommitOff) { 6 } else { 0 };
    match maker.random.weighted(&[68, 26, off]) {
        0 => Start::Explicit(begin_form(maker)),
        1 => Start::Autocommit,
        _ => Start::AutocommitOff,
    }
}

fn begin_form(maker: &mut Maker) -> BeginForm {
    let modes = maker.options.mixed_modes;
    let weights: Vec<usize> = BeginForm::ALL
        .iter()
        .map(|form| match form.feature() {
            None => 85,
            Some(f) if !maker.has(f) => 0,
            Some(Feature::Pessimistic | Feature::Optimistic) => {
                if modes {
                    12
                } else {
                    0
                }
            }
            Some(Feature::Immediate) => 20,
            Some(_) => 5,
        })
        .collect();
    BeginForm::ALL[maker.random.weighted(&weights)]
}

fn add_perhaps_prepared(maker: &mut Maker, statements: &mut Vec<Stmt>, statement: Stmt) {
    let prepared = maker.options.prepared && maker.has(Feature::Prepared);
    if !prepared || !maker.random.chance(20) {
        statements.push(statement);
        return;
    }
    let name = maker.fresh_name("e");
    statements.push(Stmt::Prepare { name: name.clone(), statement: Box::new(statement) });
    statements.push(Stmt::Execute(name));
}

/// A savepoint, and behind it a way back or its release.
fn add_savepoint(maker: &mut Maker, statements: &mut Vec<Stmt>) {
    let name = maker.fresh_name("p");
    let from = maker.random.between(0, statements.len());
    statements.insert(from, Stmt::Savepoint(name.clone()));
    let to = maker.random.between(from + 1, statements.len());
    let release = maker.random.chance(30);
    let after = if release { Stmt::Release(name) } else { Stmt::RollbackTo(name) };
    statements.insert(to, after);
}

/// The operations of all transactions, each transaction's in its own order.
pub fn schedule(random: &mut Random, transactions: &[TxPlan]) -> Vec<OpId> {
    let turns = |(n, tx): (usize, &TxPlan)| std::iter::repeat_n(n, tx.operations());
    let mut order: Vec<usize> = transactions.iter().enumerate().flat_map(turns).collect();
    random.shuffle(&mut order);
    let mut left: Vec<_> = transactions.iter().map(|tx| tx.sequence().into_iter()).collect();
    let next = |tx: usize| left[tx].next().map(|(id, _)| id);
    order.into_iter().filter_map(next).collect()
}
