//! Makes transactions conflict.
//!
//! Statements that are drawn independently rarely meet the same rows at the same time. A *shape*
//! changes or adds a statement so that two of them do: the same query twice in a transaction, a
//! query and a write with one condition, two writes with one condition, a write of all rows.

use super::Sampler;
use crate::plan::{PlannedStatement, Start, TxPlan};
use isolde_sql::{Control, Expr, Feature, Select, Source, Stmt, Write};

/// How often a shape is tried, and the function that applies it if the transactions allow it.
struct Shape {
    weight: usize,
    apply: fn(&mut Sampler, &mut [TxPlan]) -> Option<()>,
}

const SHAPES: &[Shape] = &[
    Shape { weight: 26, apply: share_condition },
    Shape { weight: 22, apply: read_before_write },
    Shape { weight: 16, apply: read_again },
    Shape { weight: 14, apply: write_all_rows },
    Shape { weight: 10, apply: change_nothing },
    Shape { weight: 12, apply: go_back_before_first_read },
];

/// Gives some cases one or two shapes.
pub fn add_shapes(sampler: &mut Sampler, all: &mut [TxPlan]) {
    let weights: Vec<usize> = SHAPES.iter().map(|shape| shape.weight).collect();
    for _ in 0..sampler.random.weighted(&[35, 45, 20]) {
        let shape = &SHAPES[sampler.random.weighted(&weights)];
        // Some shapes do not fit every case.
        let _ = (shape.apply)(sampler, all);
    }
}

/// The places of statements that a test accepts: transaction and statement.
fn places(all: &[TxPlan], fits: impl Fn(&TxPlan, &Stmt) -> bool) -> Vec<(usize, usize)> {
    let mut found = Vec::new();
    for (n, tx) in all.iter().enumerate() {
        let fitting = tx.statements.iter().enumerate().filter(|(_, s)| fits(tx, &s.statement));
        found.extend(fitting.map(|(place, _)| (n, place)));
    }
    found
}

fn is_one_transaction(tx: &TxPlan) -> bool {
    tx.start != Start::Autocommit
}

/// The table and the condition of an UPDATE or DELETE of one table.
fn searched(statement: &Stmt) -> Option<(&str, Option<&Expr>)> {
    match statement {
        Stmt::Write(Write::Update(u)) if u.join.is_none() && u.limit.is_none() => {
            Some((&u.table, u.filter.as_ref()))
        }
        Stmt::Write(Write::Delete(d)) if d.join.is_none() && d.limit.is_none() => {
            Some((&d.table, d.filter.as_ref()))
        }
        _ => None,
    }
}

fn filter_mut(statement: &mut Stmt) -> Option<&mut Option<Expr>> {
    match statement {
        Stmt::Write(Write::Update(update)) => Some(&mut update.filter),
        Stmt::Write(Write::Delete(delete)) => Some(&mut delete.filter),
        _ => None,
    }
}

/// Two writes of different transactions search one table with the same condition.
fn share_condition(sampler: &mut Sampler, all: &mut [TxPlan]) -> Option<()> {
    let writes = places(all, |_, s| searched(s).is_some());
    let mut pairs = Vec::new();
    for &(tx, place) in &writes {
        let table = |n: usize, at: usize| searched(&all[n].statements[at].statement).map(|s| s.0);
        let others = writes.iter().filter(|(n, at)| *n != tx && table(*n, *at) == table(tx, place));
        pairs.extend(others.map(|other| ((tx, place), *other)));
    }
    let &((from, from_place), (to, to_place)) = sampler.random.pick_any(&pairs)?;
    let filter = searched(&all[from].statements[from_place].statement)?.1.cloned();
    *filter_mut(&mut all[to].statements[to_place].statement)? = filter;
    Some(())
}

/// A transaction reads the rows that it is going to write, and perhaps again afterwards.
fn read_before_write(sampler: &mut Sampler, all: &mut [TxPlan]) -> Option<()> {
    let writes = places(all, |tx, s| is_one_transaction(tx) && searched(s).is_some());
    let &(tx, place) = sampler.random.pick_any(&writes)?;
    let (name, filter) = searched(&all[tx].statements[place].statement)?;
    let table = sampler.schema.table(name)?;
    let read = Stmt::Select(Select {
        items: table.columns.iter().map(|c| Expr::column(&c.name).into()).collect(),
        from: Some(Source::named(name)),
        filter: filter.cloned(),
        ..Select::default()
    });
    if sampler.random.chance(50) {
        all[tx].statements.insert(place + 1, PlannedStatement::from(read.clone()));
    }
    all[tx].statements.insert(place, PlannedStatement::from(read));
    Some(())
}

/// A transaction sends the same query twice.
fn read_again(sampler: &mut Sampler, all: &mut [TxPlan]) -> Option<()> {
    let plain = |s: &Stmt| matches!(s, Stmt::Select(select) if select.locking.is_none());
    let reads = places(all, |tx, s| is_one_transaction(tx) && plain(s));
    let &(tx, place) = sampler.random.pick_any(&reads)?;
    let again = PlannedStatement::from(all[tx].statements[place].statement.clone());
    let to = sampler.random.between(place + 1, all[tx].statements.len());
    all[tx].statements.insert(to, again);
    Some(())
}

/// An UPDATE or DELETE concerns all rows of its table.
fn write_all_rows(sampler: &mut Sampler, all: &mut [TxPlan]) -> Option<()> {
    let writes = places(all, |_, s| searched(s).is_some_and(|(_, filter)| filter.is_some()));
    let &(tx, place) = sampler.random.pick_any(&writes)?;
    *filter_mut(&mut all[tx].statements[place].statement)? = None;
    Some(())
}

/// An UPDATE sets a column to its present value.
fn change_nothing(sampler: &mut Sampler, all: &mut [TxPlan]) -> Option<()> {
    let writes = places(
        all,
        |_, s| matches!(s, Stmt::Write(Write::Update(u)) if u.join.is_none() && u.limit.is_none()),
    );
    let &(tx, place) = sampler.random.pick_any(&writes)?;
    let Stmt::Write(Write::Update(update)) = &mut all[tx].statements[place].statement else {
        return None;
    };
    for (column, value) in &mut update.sets {
        *value = Expr::column(column);
    }
    Some(())
}

/// A savepoint before the first statement, and a return to it after the first.
fn go_back_before_first_read(sampler: &mut Sampler, all: &mut [TxPlan]) -> Option<()> {
    let fits = |tx: &&mut TxPlan| {
        let savepoints = |s: &Stmt| matches!(s, Stmt::Control(_));
        is_one_transaction(tx)
            && !tx.statements.is_empty()
            && !tx.statements.iter().any(|s| savepoints(&s.statement))
    };
    if !sampler.has(Feature::Savepoint) {
        return None;
    }
    let mut fitting: Vec<&mut TxPlan> = all.iter_mut().filter(fits).collect();
    if fitting.is_empty() {
        return None;
    }
    let tx = fitting.swap_remove(sampler.random.below(fitting.len()));
    let name = sampler.fresh_name("p");
    tx.statements
        .insert(0, PlannedStatement::from(Stmt::Control(Control::Savepoint(name.clone()))));
    let to = sampler.random.between(2, tx.statements.len());
    tx.statements.insert(to, PlannedStatement::from(Stmt::Control(Control::RollbackTo(name))));
    Some(())
}
