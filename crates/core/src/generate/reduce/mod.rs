//! Makes plans smaller, one step at a time: whoever reduces a finding keeps
//! the steps after which it still shows.
//!
//! Operations are taken away by a strategy of [`crate::reduce`], over the graph of
//! `dependency.rs`. For all else a [`Cut`] names what is taken away or made plain, and
//! [`Candidates`] hands out one smaller plan at a time, made from the best one so far.
//! Every plan is whole: an operation goes with those that make no sense without it, and
//! what others still need is not taken away.

mod candidates;
mod dependency;
mod expression;
mod plain;
mod schedule;
mod schema;
mod statement;

pub use candidates::{Candidates, Cut, Pass};

use super::plan::{BeginForm, End, OpId, Plan, Planned, Start, TxPlan};
use crate::sql::{Conflict, Expr, Stmt};
use std::collections::BTreeSet;

impl Plan {
    /// What every smaller plan is made from.
    fn copied(&self) -> Plan {
        #[cfg(test)]
        candidates::tests::COPIES.with(|copies| copies.set(copies.get() + 1));
        self.clone()
    }

    /// Transactions that have nothing left to do go, too.
    fn without_operations(&self, gone: &BTreeSet<OpId>) -> Plan {
        let mut plan = self.copied();
        plan.transactions.retain(|tx| !gone.contains(&tx.start_id));
        plan.transactions.iter_mut().for_each(|tx| tx.statements.retain(|p| !gone.contains(&p.id)));
        plan.transactions.retain(|tx| !tx.statements.is_empty());
        plan.drop_unsent();
        plan
    }

    /// The schedule has nothing that no transaction sends.
    fn drop_unsent(&mut self) {
        let sent: BTreeSet<OpId> =
            self.transactions.iter().flat_map(TxPlan::sequence).map(|(id, _)| id).collect();
        self.schedule.retain(|id| sent.contains(id));
    }

    fn planned(&self, id: OpId) -> Option<&Planned> {
        self.transactions.iter().flat_map(|tx| &tx.statements).find(|planned| planned.id == id)
    }

    /// The same with another statement in this place.
    fn with_statement(&self, id: OpId, statement: Stmt) -> Plan {
        let mut plan = self.copied();
        let mut all = plan.transactions.iter_mut().flat_map(|tx| &mut tx.statements);
        if let Some(planned) = all.find(|planned| planned.id == id) {
            planned.statement = statement;
        }
        plan
    }

    /// The nth way from the end in which the transaction is plainer.
    fn simpler_transaction(&self, start: OpId, nth: usize) -> Option<Plan> {
        let place = self.transactions.iter().position(|tx| tx.start_id == start)?;
        let old = &self.transactions[place];
        let mut edits: Vec<fn(&mut TxPlan)> = Vec::new();
        if !matches!(old.start, Start::Autocommit | Start::Explicit(BeginForm::Plain)) {
            edits.push(|tx| tx.start = Start::Explicit(BeginForm::Plain));
        }
        if old.level.is_some() {
            edits.push(|tx| tx.level = None);
        }
        if old.start == Start::Explicit(BeginForm::Plain)
            && old.end == End::Commit
            && old.statements.len() == 1
            && self.level_of(old) == self.level_of(self.first_of_session(old))
        {
            edits.push(|tx| (tx.start, tx.end) = (Start::Autocommit, End::None));
        }
        let edit = edits.into_iter().rev().nth(nth)?;
        let mut plan = self.copied();
        edit(&mut plan.transactions[place]);
        plan.drop_unsent();
        Some(plan)
    }

    /// The nth way from the end in which this statement is smaller and all else
    /// is the same. Sent as it is instead of prepared is the first of them.
    fn smaller_statement(&self, id: OpId, nth: usize) -> Option<Plan> {
        let old = &self.planned(id)?.statement;
        let execute = self.only_use(id);
        let nth = match (execute, nth) {
            (Some(execute), 0) => return self.unprepared(id, execute),
            (Some(_), nth) => nth - 1,
            (None, nth) => nth,
        };
        let new = statement::smaller(old, &self.schema).into_iter().rev().nth(nth)?;
        Some(self.with_statement(id, new))
    }

    /// Where a prepared statement is executed, if that is one place.
    fn only_use(&self, prepare: OpId) -> Option<OpId> {
        let Stmt::Prepare { name, .. } = &self.planned(prepare)?.statement else { return None };
        let prepares = |tx: &&TxPlan| tx.statements.iter().any(|p| p.id == prepare);
        let session = &self.transactions.iter().find(prepares)?.session;
        let own = self.transactions.iter().filter(|tx| tx.session == *session);
        let mut uses = own
            .flat_map(|tx| &tx.statements)
            .filter(|p| matches!(&p.statement, Stmt::Execute(used) if used == name));
        let only = uses.next()?.id;
        uses.next().is_none().then_some(only)
    }

    /// A prepared statement that is executed once, sent as it is.
    fn unprepared(&self, prepare: OpId, execute: OpId) -> Option<Plan> {
        let Stmt::Prepare { statement, .. } = &self.planned(prepare)?.statement else {
            return None;
        };
        let plan = self.with_statement(execute, (**statement).clone());
        Some(plan.without_operations(&[prepare].into()))
    }

    /// Whether an upsert names this set of columns as its key.
    fn is_upsert_key(&self, table: &str, columns: &[String]) -> bool {
        self.statements().any(|s| match s.unprepared() {
            Stmt::Insert(insert) => match &insert.conflict {
                Conflict::Update { key, .. } => insert.table == table && key == columns,
                _ => false,
            },
            _ => false,
        })
    }

    /// Whether an expression of a statement or of the schema names a column.
    fn mentions_column(&self, column: &str) -> bool {
        let mut found = false;
        let mut see = |e: &Expr| {
            found |= match e {
                Expr::Column { name, .. } | Expr::Incoming(name) => name == column,
                _ => false,
            }
        };
        self.statements().for_each(|s| s.visit(&mut see));
        self.schema.tables.iter().for_each(|t| t.visit(&mut see));
        found
    }
}
