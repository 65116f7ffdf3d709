//! Draws transactions and schedules.

use super::Sampler;
use super::shapes::add_shapes;
use crate::plan::{End, OpId, PlannedStatement, Start, TxPlan, number_operations};
use isolde_model::random::Random;
use isolde_sql::BeginForm;
use isolde_sql::Feature;
use isolde_sql::{Control, Stmt};

/// Draws the transactions of a case, at least one of which writes.
pub fn transactions(sampler: &mut Sampler) -> Vec<TxPlan> {
    // Reported bugs have one transaction in 22% of the reports, two in 54%, three in 18%, four in
    // 5%, five in 1%. A single transaction conflicts with no other, so it is rare here.
    let count = 1 + sampler.random.weighted(&[4, 56, 27, 9, 4]);
    let mut all: Vec<TxPlan> = (1..=count).map(|n| transaction(sampler, n)).collect();
    let writes = |tx: &TxPlan| tx.statements.iter().any(|s| s.statement.written_table().is_some());
    if !all.iter().any(writes) {
        all[0].start = Start::Explicit(BeginForm::Plain);
        let update = sampler.update().expect("every table can be updated");
        all[0].statements.push(update.into());
    }
    if sampler.depth > 0 {
        add_shapes(sampler, &mut all);
        share_sessions(sampler, &mut all);
    }
    number_operations(&mut all);
    all
}

/// Lets some transactions run in the session of an earlier one, after its end. `autocommit = 0`
/// would apply to them, too, so such sessions have one transaction.
fn share_sessions(sampler: &mut Sampler, all: &mut [TxPlan]) {
    for place in 1..all.len() {
        let fits = |tx: &TxPlan| tx.start != Start::AutocommitOff;
        let (before, rest) = all.split_at_mut(place);
        let tx = &mut rest[0];
        if before.len() > 1 && fits(tx) && sampler.random.chance(22) {
            let earlier: Vec<&TxPlan> = before.iter().filter(|t| fits(t)).collect();
            if let Some(first) = sampler.random.pick_any(&earlier) {
                tx.session = first.session.clone();
                // Only BEGIN can set another level than that of the session.
                tx.level = first.level;
            }
        }
    }
}

/// The weights of transaction lengths in rounds: many short ones, which run during a long one.
const LENGTHS_IN_ROUNDS: [usize; 8] = [22, 22, 14, 8, 8, 8, 9, 9];

/// Draws one transaction. Its operations have no numbers yet.
pub fn transaction(sampler: &mut Sampler, number: usize) -> TxPlan {
    let start = start(sampler);
    let read_only = start == Start::Explicit(BeginForm::ReadOnly);
    let count = match start {
        _ if sampler.options.for_rounds => 1 + sampler.random.weighted(&LENGTHS_IN_ROUNDS),
        Start::Autocommit => 1 + sampler.random.weighted(&[68, 23, 9]),
        _ => 1 + sampler.random.weighted(&[27, 35, 22, 10, 6]),
    };
    let mut statements = Vec::new();
    for _ in 0..count {
        // A write in a read-only transaction must fail, which is tested now and then.
        let reads_only = read_only && sampler.random.chance(90);
        let statement = sampler.statement(reads_only);
        add_perhaps_prepared(sampler, &mut statements, statement);
    }
    if sampler.options.ddl && sampler.random.chance(8) {
        let place = sampler.random.between(0, statements.len());
        if let Some(ddl) = sampler.ddl() {
            statements.insert(place, ddl);
        }
    }
    if start != Start::Autocommit && sampler.has(Feature::Savepoint) && sampler.random.chance(12) {
        add_savepoint(sampler, &mut statements);
    }
    let levels = &sampler.options.levels;
    let own_level = sampler.options.own_levels && levels.len() > 1 && sampler.random.chance(8);
    let end = match start {
        Start::Autocommit => End::None,
        _ if sampler.random.chance(15) => End::Rollback,
        _ => End::Commit,
    };
    TxPlan {
        session: format!("s{number}"),
        level: own_level.then(|| *sampler.random.pick(levels)),
        start_id: OpId(0),
        start,
        statements: statements.into_iter().map(PlannedStatement::from).collect(),
        end_id: OpId(0),
        end,
    }
}

fn start(sampler: &mut Sampler) -> Start {
    let off = if sampler.has(Feature::AutocommitOff) { 6 } else { 0 };
    match sampler.random.weighted(&[68, 26, off]) {
        0 => Start::Explicit(begin_form(sampler)),
        1 => Start::Autocommit,
        _ => Start::AutocommitOff,
    }
}

fn begin_form(sampler: &mut Sampler) -> BeginForm {
    let modes = sampler.options.mixed_modes;
    let weights: Vec<usize> = BeginForm::ALL
        .iter()
        .map(|form| match form.feature() {
            None => 85,
            Some(f) if !sampler.has(f) => 0,
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
    BeginForm::ALL[sampler.random.weighted(&weights)]
}

fn add_perhaps_prepared(sampler: &mut Sampler, statements: &mut Vec<Stmt>, statement: Stmt) {
    let prepared = sampler.options.prepared && sampler.has(Feature::Prepared);
    if !prepared || !sampler.random.chance(20) {
        statements.push(statement);
        return;
    }
    let name = sampler.fresh_name("e");
    statements.push(Stmt::Prepare { name: name.clone(), statement: Box::new(statement) });
    statements.push(Stmt::Execute(name));
}

/// Inserts a savepoint, and after it ROLLBACK TO or RELEASE.
fn add_savepoint(sampler: &mut Sampler, statements: &mut Vec<Stmt>) {
    let name = sampler.fresh_name("p");
    let from = sampler.random.between(0, statements.len());
    statements.insert(from, Stmt::Control(Control::Savepoint(name.clone())));
    let to = sampler.random.between(from + 1, statements.len());
    let release = sampler.random.chance(30);
    let after = if release {
        Stmt::Control(Control::Release(name))
    } else {
        Stmt::Control(Control::RollbackTo(name))
    };
    statements.insert(to, after);
}

/// Draws a schedule: all operations, those of each session in their order.
pub fn schedule(random: &mut Random, transactions: &[TxPlan]) -> Vec<OpId> {
    let mut sessions: Vec<(&str, Vec<OpId>)> = Vec::new();
    for tx in transactions {
        let ids = tx.sequence().into_iter().map(|(id, _)| id);
        match sessions.iter_mut().find(|(session, _)| *session == tx.session) {
            Some((_, operations)) => operations.extend(ids),
            None => sessions.push((&tx.session, ids.collect())),
        }
    }
    let turns = |(n, (_, operations)): (usize, &(&str, Vec<OpId>))| vec![n; operations.len()];
    let mut order: Vec<usize> = sessions.iter().enumerate().flat_map(turns).collect();
    random.shuffle(&mut order);
    let mut left: Vec<_> = sessions.into_iter().map(|(_, ids)| ids.into_iter()).collect();
    order.into_iter().filter_map(|session| left[session].next()).collect()
}
