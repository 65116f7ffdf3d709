//! Walks that may change what they see, as the `visit` of each type does without.

use super::{Conflict, Expr, InsertSource, Select, SelectItem, Source, Stmt};

impl Expr {
    /// Itself, then its operands and all in its subquery.
    pub fn visit_mut(&mut self, see: &mut dyn FnMut(&mut Expr)) {
        see(self);
        self.children_mut().into_iter().for_each(|child| child.visit_mut(see));
        if let Some(select) = self.subquery_mut() {
            select.visit_mut(see);
        }
    }
}

impl Select {
    pub fn visit_mut(&mut self, see: &mut dyn FnMut(&mut Expr)) {
        self.own_expressions_mut().for_each(|e| e.visit_mut(see));
        self.parts_mut().into_iter().for_each(|part| part.visit_mut(see));
    }

    /// The queries that it is made of: common tables, derived tables, the other side of a set
    /// operation.
    pub fn parts_mut(&mut self) -> Vec<&mut Select> {
        let mut parts: Vec<&mut Select> = self.ctes.iter_mut().map(|c| &mut c.select).collect();
        let joined = self.joins.iter_mut().map(|j| &mut j.source);
        for source in self.from.iter_mut().chain(joined) {
            if let Source::Derived { select, .. } = source {
                parts.push(select);
            }
        }
        parts.extend(self.set_operation.iter_mut().map(|(_, other)| &mut **other));
        parts
    }
}

fn items(list: &mut [SelectItem]) -> impl Iterator<Item = &mut Expr> {
    list.iter_mut().filter_map(|item| match item {
        SelectItem::Expression { of, .. } => Some(of),
        SelectItem::All | SelectItem::AllOf(_) => None,
    })
}

impl Stmt {
    pub fn visit_mut(&mut self, see: &mut dyn FnMut(&mut Expr)) {
        match self {
            Stmt::Select(select) => select.visit_mut(see),
            Stmt::Insert(insert) => {
                match &mut insert.source {
                    InsertSource::Values(rows) => {
                        rows.iter_mut().flatten().for_each(|e| e.visit_mut(see))
                    }
                    InsertSource::Select(select) => select.visit_mut(see),
                    InsertSource::Defaults => {}
                }
                if let Conflict::Update { sets, filter, .. } = &mut insert.conflict {
                    let sets = sets.iter_mut().map(|(_, e)| e);
                    sets.chain(filter).for_each(|e| e.visit_mut(see));
                }
                items(&mut insert.returning).for_each(|e| e.visit_mut(see));
            }
            Stmt::Update(update) => {
                let sets = update.sets.iter_mut().map(|(_, e)| e);
                let join = update.join.iter_mut().filter_map(|j| j.on.as_mut());
                let order = update.order.iter_mut().map(|key| &mut key.of);
                let rest = order.chain(&mut update.limit).chain(items(&mut update.returning));
                sets.chain(join)
                    .chain(&mut update.filter)
                    .chain(rest)
                    .for_each(|e| e.visit_mut(see));
            }
            Stmt::Delete(delete) => {
                let join = delete.join.iter_mut().filter_map(|j| j.on.as_mut());
                let order = delete.order.iter_mut().map(|key| &mut key.of);
                let rest = order.chain(&mut delete.limit).chain(items(&mut delete.returning));
                join.chain(&mut delete.filter).chain(rest).for_each(|e| e.visit_mut(see));
            }
            Stmt::CreateIndex { index, .. } => {
                let parts = index.parts.iter_mut().map(|p| &mut p.of);
                parts.chain(&mut index.only_where).for_each(|e| e.visit_mut(see));
            }
            Stmt::Prepare { statement, .. } => statement.visit_mut(see),
            Stmt::Begin(_)
            | Stmt::Commit
            | Stmt::Rollback
            | Stmt::SetAutocommit(_)
            | Stmt::SetTransaction(_)
            | Stmt::Savepoint(_)
            | Stmt::RollbackTo(_)
            | Stmt::Release(_)
            | Stmt::DropIndex { .. }
            | Stmt::AddColumn { .. }
            | Stmt::Truncate(_)
            | Stmt::Execute(_) => {}
        }
    }
}
