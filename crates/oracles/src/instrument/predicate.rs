//! Predicates: what a statement looked for, where what it found says exactly which
//! versions satisfy it.

use super::Instrument;
use isolde_sql::{Binary, Expr, LockPatience, Select, Source};

/// A condition on the rows of one table. None is satisfied by every row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Predicate {
    pub table: usize,
    pub filter: Option<Expr>,
}

impl Instrument {
    /// What a query looks for, if it is a condition on one table alone whose rows are all
    /// in the answer.
    pub(super) fn predicate_of(&self, select: &Select) -> Option<Predicate> {
        let whole = select.joins.is_empty()
            && select.having.is_none()
            && select.set_operation.is_none()
            && select.limit.is_none()
            && select.offset.is_none()
            && select.locking.as_ref().is_none_or(|l| l.patience != LockPatience::SkipLocked);
        match &select.from {
            Some(Source::Table { name, .. }) if whole && select.ctes.is_empty() => {
                self.predicate(name, select.filter.as_ref())
            }
            _ => None,
        }
    }

    /// The rows of a table that satisfy a condition.
    pub(super) fn predicate(&self, table: &str, filter: Option<&Expr>) -> Option<Predicate> {
        let place = self.place(table).filter(|place| self.followed[*place])?;
        match filter {
            None => Some(Predicate { table: place, filter: None }),
            Some(filter) => {
                let filter = Some(of_one_row(filter)?);
                Some(Predicate { table: place, filter })
            }
        }
    }
}

impl Predicate {
    /// The rows that satisfy another condition as well.
    pub(super) fn and(mut self, filter: Option<&Expr>) -> Option<Predicate> {
        if let Some(filter) = filter {
            let filter = of_one_row(filter)?;
            self.filter = Some(match self.filter {
                Some(own) => Expr::binary(Binary::And, own, filter),
                None => filter,
            });
        }
        Some(self)
    }
}

/// A condition that depends on nothing but the row, without qualifiers.
fn of_one_row(filter: &Expr) -> Option<Expr> {
    let mut other = false;
    filter.visit(&mut |e| {
        other |= e.subquery().is_some()
            || matches!(e, Expr::Call(isolde_sql::Function::Named(_), _))
            || matches!(e, Expr::Aggregate { .. } | Expr::Window { .. });
    });
    (!other).then(|| unqualified(filter.clone()))
}

fn unqualified(mut expression: Expr) -> Expr {
    if let Expr::Column { qualifier, .. } = &mut expression {
        *qualifier = None;
    }
    for child in expression.children_mut() {
        let bare = unqualified(child.clone());
        *child = bare;
    }
    expression
}
