//! Parses MERGE.

use super::expression::optional;
use super::{DEEPEST, Reader};
use crate::ast::{Expr, MatchKind, Merge, MergeAction, MergeClause, Source};
use crate::dialect::Family;
use sqlparser::ast::{self, MergeClauseKind, MergeInsertKind, MergeUpdateKind};

impl Reader {
    pub(super) fn merge(self, merge: ast::Merge) -> Option<Merge> {
        let ast::Merge {
            merge_token: _,
            optimizer_hints,
            into: _,
            table,
            source,
            on,
            clauses,
            output: None,
        } = merge
        else {
            return None;
        };
        if self.family == Family::Mysql || !optimizer_hints.is_empty() {
            return None;
        }
        let Source::Table { name: table, alias } = self.source(table, DEEPEST)? else {
            return None;
        };
        let seen = alias.clone().unwrap_or_else(|| table.clone());
        let clauses = clauses.into_iter().map(|clause| self.merge_clause(clause, &seen));
        Some(Merge {
            source: self.source(source, DEEPEST)?,
            on: self.expr(*on, DEEPEST)?,
            clauses: clauses.collect::<Option<_>>()?,
            table,
            alias,
        })
    }

    fn merge_clause(self, clause: ast::MergeClause, table: &str) -> Option<MergeClause> {
        let ast::MergeClause { when_token: _, clause_kind, predicate, action } = clause;
        Some(MergeClause {
            kind: match clause_kind {
                MergeClauseKind::Matched => MatchKind::Matched,
                MergeClauseKind::NotMatched | MergeClauseKind::NotMatchedByTarget => {
                    MatchKind::NotMatched
                }
                MergeClauseKind::NotMatchedBySource => MatchKind::NotMatchedBySource,
            },
            condition: optional(predicate, |e| self.expr(e, DEEPEST))?,
            action: self.merge_action(action, table)?,
        })
    }

    fn merge_action(self, action: ast::MergeAction, table: &str) -> Option<MergeAction> {
        match action {
            ast::MergeAction::Update(update) => {
                let (None, None) = (update.update_predicate, update.delete_predicate) else {
                    return None;
                };
                let MergeUpdateKind::Set(sets) = update.kind else { return None };
                Some(MergeAction::Update(self.sets(sets, table)?))
            }
            ast::MergeAction::Delete { .. } => Some(MergeAction::Delete),
            ast::MergeAction::DoNothing { .. } => Some(MergeAction::Nothing),
            ast::MergeAction::Insert(insert) => {
                let (MergeInsertKind::Values(values), None) =
                    (insert.kind, insert.insert_predicate)
                else {
                    return None;
                };
                let columns = insert.columns.iter().map(|name| self.column_of(name));
                let mut rows: Vec<Vec<Expr>> = self.values(values, DEEPEST)?;
                let values = rows.pop().filter(|_| rows.is_empty())?;
                Some(MergeAction::Insert { columns: columns.collect::<Option<_>>()?, values })
            }
        }
    }
}
