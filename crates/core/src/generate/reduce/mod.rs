//! Makes plans smaller, one step at a time: whoever reduces a finding keeps
//! the steps after which it still shows.
//!
//! Every function answers with a plan that is whole: what others still need
//! is not taken away, and the answer is `None` instead.

mod expression;
mod schema;
mod statement;

use super::plan::{BeginForm, Plan, Start};
use crate::sql::{Conflict, Expr, Stmt};

impl Plan {
    pub fn without_transaction(&self, tx: usize) -> Option<Plan> {
        if self.transactions.len() < 2 || tx >= self.transactions.len() {
            return None;
        }
        let mut plan = self.clone();
        plan.transactions.remove(tx);
        plan.schedule.retain(|t| *t != tx);
        for turn in plan.schedule.iter_mut().filter(|t| **t > tx) {
            *turn -= 1;
        }
        Some(plan)
    }

    /// None for the last statement of a transaction, and for a savepoint or
    /// prepared statement that is used later.
    pub fn without_statement(&self, tx: usize, statement: usize) -> Option<Plan> {
        let statements = &self.transactions.get(tx)?.statements;
        let provided = statements.get(statement)?.provides();
        let needed = provided.is_some() && statements.iter().any(|s| s.needs() == provided);
        if statements.len() < 2 || needed {
            return None;
        }
        let mut plan = self.clone();
        plan.remove_statement(tx, statement);
        Some(plan)
    }

    fn remove_statement(&mut self, tx: usize, statement: usize) {
        let turn = self.transactions[tx].turn_of_statement(statement);
        self.transactions[tx].statements.remove(statement);
        let mut turns = self.schedule.iter().enumerate().filter(|(_, t)| **t == tx);
        if let Some((place, _)) = turns.nth(turn) {
            self.schedule.remove(place);
        }
    }

    /// Plans in which the transaction starts in a plainer way.
    pub fn simpler_transactions(&self, tx: usize) -> Vec<Plan> {
        let mut plans = Vec::new();
        let old = &self.transactions[tx];
        let mut change = |edit: fn(&mut super::plan::TxPlan)| {
            let mut plan = self.clone();
            edit(&mut plan.transactions[tx]);
            plans.push(plan);
        };
        if !matches!(old.start, Start::Autocommit | Start::Explicit(BeginForm::Plain)) {
            change(|tx| tx.start = Start::Explicit(BeginForm::Plain));
        }
        if old.level.is_some() {
            change(|tx| tx.level = None);
        }
        plans
    }

    /// Plans in which this statement is smaller and all else is the same.
    pub fn smaller_statements(&self, tx: usize, statement: usize) -> Vec<Plan> {
        let old = &self.transactions[tx].statements[statement];
        let mut plans: Vec<Plan> = statement::smaller(old, &self.schema)
            .into_iter()
            .map(|new| {
                let mut plan = self.clone();
                plan.transactions[tx].statements[statement] = new;
                plan
            })
            .collect();
        plans.extend(self.unprepared(tx, statement));
        plans
    }

    /// A prepared statement that is executed once, sent as it is.
    fn unprepared(&self, tx: usize, prepare: usize) -> Option<Plan> {
        let statements = &self.transactions[tx].statements;
        let Stmt::Prepare { name, statement } = &statements[prepare] else { return None };
        let uses = |s: &Stmt| s.needs() == Some(name);
        let execute = statements.iter().position(uses)?;
        if statements.iter().filter(|s| uses(s)).count() != 1 {
            return None;
        }
        let mut plan = self.clone();
        plan.transactions[tx].statements[execute] = (**statement).clone();
        plan.remove_statement(tx, prepare);
        Some(plan)
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
