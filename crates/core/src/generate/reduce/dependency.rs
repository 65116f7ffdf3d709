//! What operations need of each other: a savepoint before the way back to it, a
//! prepared statement before its execution, an index or column before its use.

use crate::generate::plan::{OpId, Plan, Planned, TxPlan};
use crate::sql::{Expr, Stmt};
use std::collections::BTreeSet;

/// Something that one operation makes and others use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Thing<'a> {
    /// Known in its transaction.
    Savepoint(&'a str),
    /// Known in its session.
    Prepared(&'a str),
    /// Known to all.
    Index(&'a str),
    Column(&'a str),
}

fn made_by(statement: &Stmt) -> Option<Thing<'_>> {
    match statement {
        Stmt::Savepoint(name) => Some(Thing::Savepoint(name)),
        Stmt::Prepare { name, .. } => Some(Thing::Prepared(name)),
        Stmt::CreateIndex { index, .. } => Some(Thing::Index(&index.name)),
        Stmt::AddColumn { column, .. } => Some(Thing::Column(column)),
        _ => None,
    }
}

fn uses(statement: &Stmt, thing: Thing<'_>) -> bool {
    match thing {
        Thing::Savepoint(name) => match statement {
            Stmt::RollbackTo(used) | Stmt::Release(used) => used == name,
            _ => false,
        },
        Thing::Prepared(name) => matches!(statement, Stmt::Execute(used) if used == name),
        Thing::Index(name) => match statement.unprepared() {
            Stmt::DropIndex { index, .. } => index == name,
            _ => false,
        },
        Thing::Column(name) => mentions(statement.unprepared(), name),
    }
}

fn mentions(statement: &Stmt, column: &str) -> bool {
    let listed = match statement {
        Stmt::Insert(insert) => insert.columns.iter().any(|c| c == column),
        Stmt::Update(update) => update.sets.iter().any(|(name, _)| name == column),
        _ => false,
    };
    let mut named = listed;
    statement.visit(&mut |e| named |= matches!(e, Expr::Column { name, .. } if name == column));
    named
}

impl Plan {
    /// These operations, those that depend on them, those that depend on
    /// those.
    pub(super) fn with_dependents(&self, mut gone: BTreeSet<OpId>) -> BTreeSet<OpId> {
        loop {
            let more: Vec<OpId> = self
                .operations()
                .filter(|(_, planned)| gone.contains(&planned.id))
                .filter_map(|(tx, planned)| Some((tx, made_by(&planned.statement)?)))
                .flat_map(|(tx, thing)| self.users(tx, thing))
                .filter(|id| !gone.contains(id))
                .collect();
            if more.is_empty() {
                return gone;
            }
            gone.extend(more);
        }
    }

    fn operations(&self) -> impl Iterator<Item = (&TxPlan, &Planned)> {
        self.transactions.iter().flat_map(|tx| tx.statements.iter().map(move |p| (tx, p)))
    }

    fn users<'p>(&'p self, maker: &'p TxPlan, thing: Thing<'p>) -> impl Iterator<Item = OpId> + 'p {
        let reached = move |tx: &TxPlan| match thing {
            Thing::Savepoint(_) => tx.start_id == maker.start_id,
            Thing::Prepared(_) => tx.session == maker.session,
            Thing::Index(_) | Thing::Column(_) => true,
        };
        self.operations()
            .filter(move |(tx, planned)| reached(tx) && uses(&planned.statement, thing))
            .map(|(_, planned)| planned.id)
    }
}
