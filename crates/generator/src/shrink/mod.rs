//! Makes plans smaller, one step at a time; the reducer keeps the steps after which the failure
//! still occurs.
//!
//! A strategy of [`crate::reduce`] removes operations, over the graph of `dependency.rs`. For
//! everything else a [`Simplification`] names what is removed or simplified, and [`Candidates`]
//! returns one smaller plan at a time, made from the best one so far. Every plan is consistent: an
//! operation is removed together with those that require it, and nothing is removed that others
//! still need.

mod candidates;
mod dependency;
mod expression;
mod plain;
mod schedule;
mod schema;
mod statement;

pub use candidates::{Candidates, Pass, Simplification};

use super::plan::{End, OpId, Plan, PlannedStatement, Start, TxPlan};
use isolde_sql::BeginForm;
use isolde_sql::{Conflict, Expr, Stmt, Write};
use std::collections::BTreeSet;

impl Plan {
    /// The copy from which a smaller plan is made. Tests count these.
    fn copied(&self) -> Plan {
        #[cfg(test)]
        candidates::tests::COPIES.with(|copies| copies.set(copies.get() + 1));
        self.clone()
    }

    /// Removes operations, and transactions that have no statements left.
    fn without_operations(&self, gone: &BTreeSet<OpId>) -> Plan {
        let mut plan = self.copied();
        plan.transactions.retain(|tx| !gone.contains(&tx.start_id));
        plan.transactions.iter_mut().for_each(|tx| tx.statements.retain(|p| !gone.contains(&p.id)));
        plan.transactions.retain(|tx| !tx.statements.is_empty());
        plan.drop_unsent();
        plan
    }

    /// Removes operations from the schedule that no transaction sends any more.
    fn drop_unsent(&mut self) {
        let sent: BTreeSet<OpId> =
            self.transactions.iter().flat_map(TxPlan::sequence).map(|(id, _)| id).collect();
        self.schedule.retain(|id| sent.contains(id));
    }

    fn planned(&self, id: OpId) -> Option<&PlannedStatement> {
        self.transactions.iter().flat_map(|tx| &tx.statements).find(|planned| planned.id == id)
    }

    /// The plan with another statement as this operation.
    fn with_statement(&self, id: OpId, statement: Stmt) -> Plan {
        let mut plan = self.copied();
        let mut all = plan.transactions.iter_mut().flat_map(|tx| &mut tx.statements);
        if let Some(planned) = all.find(|planned| planned.id == id) {
            planned.statement = statement;
        }
        plan
    }

    /// The nth simplification of a transaction, counted from the last.
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

    /// The nth simplification of a statement, counted from the last. The first one sends a
    /// prepared statement directly.
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

    /// The execution of a prepared statement, if there is only one.
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
            Stmt::Write(Write::Insert(insert)) => match &insert.conflict {
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
