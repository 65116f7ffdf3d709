//! Makes plans smaller, one step at a time: whoever reduces a finding keeps
//! the steps after which it still shows.
//!
//! A [`Cut`] names what is taken away; [`Candidates`] hands out one smaller plan
//! at a time, made from the best one so far, and knows where it stands because
//! operations keep their numbers. Every plan is whole: an operation goes with
//! those that depend on it, and what others still need is not taken away.

mod candidates;
mod dependency;
mod expression;
mod schema;
mod search;
mod statement;

pub use candidates::{Candidates, Cut, Pass};
pub use search::{Smallest, Trial, reduce};

use super::plan::{BeginForm, OpId, Plan, Planned, Start, TxPlan};
use crate::sql::{Conflict, Expr, Stmt};
use std::collections::BTreeSet;

impl Plan {
    /// What every smaller plan is made from.
    fn copied(&self) -> Plan {
        #[cfg(test)]
        candidates::tests::COPIES.with(|copies| copies.set(copies.get() + 1));
        self.clone()
    }

    /// With all that depends on it, in other transactions, too.
    fn without_transaction(&self, start: OpId) -> Option<Plan> {
        let tx = self.transactions.iter().find(|tx| tx.start_id == start)?;
        let gone: BTreeSet<OpId> = tx.statements.iter().map(|planned| planned.id).collect();
        let plan = self.without_operations(gone);
        (!plan.transactions.is_empty()).then_some(plan)
    }

    /// With all that depends on it. None where that leaves a transaction with
    /// nothing to do.
    fn without_operation(&self, id: OpId) -> Option<Plan> {
        let all = || self.transactions.iter().flat_map(|tx| &tx.statements);
        if !all().any(|planned| planned.id == id) {
            return None;
        }
        let gone = self.with_dependents([id].into());
        let emptied = |tx: &TxPlan| tx.statements.iter().all(|p| gone.contains(&p.id));
        if self.transactions.iter().any(emptied) {
            return None;
        }
        Some(self.without_operations(gone))
    }

    /// Transactions that have nothing left to do go, too.
    fn without_operations(&self, gone: BTreeSet<OpId>) -> Plan {
        let gone = self.with_dependents(gone);
        let mut plan = self.copied();
        plan.transactions.iter_mut().for_each(|tx| tx.statements.retain(|p| !gone.contains(&p.id)));
        plan.transactions.retain(|tx| !tx.statements.is_empty());
        let left: BTreeSet<OpId> =
            plan.transactions.iter().flat_map(TxPlan::sequence).map(|(id, _)| id).collect();
        plan.schedule.retain(|id| left.contains(id));
        plan
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
        let edit = edits.into_iter().rev().nth(nth)?;
        let mut plan = self.copied();
        edit(&mut plan.transactions[place]);
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
        matches!(self.planned(prepare)?.statement, Stmt::Prepare { .. }).then_some(())?;
        let mut uses = self.with_dependents([prepare].into());
        uses.remove(&prepare);
        let only = uses.pop_first()?;
        uses.is_empty().then_some(only)
    }

    /// A prepared statement that is executed once, sent as it is.
    fn unprepared(&self, prepare: OpId, execute: OpId) -> Option<Plan> {
        let Stmt::Prepare { statement, .. } = &self.planned(prepare)?.statement else {
            return None;
        };
        let plan = self.with_statement(execute, (**statement).clone());
        Some(plan.without_operations([prepare].into()))
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
