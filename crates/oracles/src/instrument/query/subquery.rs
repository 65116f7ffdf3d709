//! What a subquery of an expression reads: the same tables and conditions once more, for their
//! versions, evaluated next to the row that the subquery is evaluated for.

use super::{Scope, is_unsafe_to_repeat, members, subqueries_of, with_views};
use crate::instrument::tables::text;
use crate::instrument::{Instrument, NotInstrumented};
use isolde_sql::{Cte, Expr, Function, Order, Select, SelectItem, Source, Unary};

/// Why what a subquery reads is not revealed.
pub(in crate::instrument) const READ_BY_WRITE: NotInstrumented =
    NotInstrumented("a subquery of a write reads rows");

impl Instrument {
    /// Expressions that name all versions that a subquery reads, in the place of the subquery.
    /// Queries in its FROM and subqueries in it are included.
    pub(in crate::instrument) fn read_by_subquery(
        &self,
        subquery: &Select,
        scope: &Scope,
        unobserved: &mut Vec<NotInstrumented>,
    ) -> Vec<Expr> {
        let mut found = Vec::new();
        if !scope.repeats_subqueries {
            let reads = self.reads_followed_tables(subquery);
            unobserved.extend(reads.then_some(READ_BY_WRITE));
            return found;
        }
        if let Err(why) = self.gathers() {
            unobserved.extend(self.reads_followed_tables(subquery).then_some(why));
            return found;
        }
        for member in members(subquery).filter(|member| self.reads_followed_tables(member)) {
            if !member.ctes.is_empty() {
                unobserved.push(NotInstrumented("a subquery has CTEs"));
                continue;
            }
            for source in member.from_and_joined() {
                if let Source::Derived { select, .. } = source {
                    found.extend(self.read_by_subquery(select, scope, unobserved));
                }
            }
            let mut of_rows: Vec<Expr> = member
                .from_and_joined()
                .filter_map(|source| {
                    let place = self.followed_table(source, scope)?;
                    Some(self.version(place, source.visible_name()?))
                })
                .collect();
            let own = of_rows.len();
            for inner in subqueries_of(member) {
                of_rows.extend(self.read_by_subquery(inner, scope, unobserved));
            }
            if of_rows.is_empty() {
                continue;
            }
            if rows_of(member).own_expressions().any(is_unsafe_to_repeat) {
                unobserved.push(NotInstrumented("a condition calls a function with an effect"));
                continue;
            }
            if member.from.is_none() {
                found.extend(of_rows);
                continue;
            }
            // An aggregate of nothing but columns of the queries around is one of theirs.
            let anchor = match own {
                0 => self.a_column(member, scope),
                _ => None,
            };
            if own == 0 && anchor.is_none() {
                unobserved.push(NotInstrumented("a subquery reads a query without columns"));
                continue;
            }
            for of in of_rows {
                let of = match &anchor {
                    Some(column) => anchored(of, column),
                    None => of,
                };
                let items = vec![SelectItem::from(self.gathered(of))];
                found.push(Expr::Scalar(Box::new(Select { items, ..rows_of(member) })));
            }
        }
        found
    }

    /// A column of a source whose columns have names.
    fn a_column(&self, select: &Select, scope: &Scope) -> Option<Expr> {
        select.from_and_joined().find_map(|source| {
            let name = self.columns_of(source, &scope.ctes)?.into_iter().next()?;
            Some(Expr::Column { qualifier: Some(source.visible_name()?.into()), name })
        })
    }

    /// Whether a subquery uses a column of the queries around it, as far as that can be told.
    pub(super) fn depends_on_outer(&self, select: &Select, scope: &Scope) -> bool {
        self.uses_other_columns(select, &scope.ctes, &mut Vec::new())
    }

    fn uses_other_columns(
        &self,
        select: &Select,
        ctes: &[Cte],
        scopes: &mut Vec<Vec<(String, Option<Vec<String>>)>>,
    ) -> bool {
        let mut ctes = ctes.to_vec();
        for cte in &select.ctes {
            if self.uses_other_columns(&cte.select, &ctes, scopes) {
                return true;
            }
            ctes.push(cte.clone());
        }
        let visible = |source: &Source| {
            Some((source.visible_name()?.to_string(), self.columns_of(source, &ctes)))
        };
        let derived = select.from_and_joined().filter_map(Source::derived);
        if derived.into_iter().any(|inner| self.uses_other_columns(inner, &ctes, scopes)) {
            return true;
        }
        scopes.push(select.from_and_joined().filter_map(visible).collect());
        let foreign = select.own_expressions().any(|e| self.is_foreign(e, select, &ctes, scopes));
        scopes.pop();
        let other = select.set_operation.as_ref().map(|(_, other)| other);
        foreign || other.is_some_and(|other| self.uses_other_columns(other, &ctes, scopes))
    }

    /// Whether an expression of a query uses a column of no source in the scopes.
    fn is_foreign(
        &self,
        expression: &Expr,
        of: &Select,
        ctes: &[Cte],
        scopes: &mut Vec<Vec<(String, Option<Vec<String>>)>>,
    ) -> bool {
        if let Expr::Column { qualifier, name } = expression {
            let has = |columns: &Option<Vec<String>>| {
                columns.as_ref().is_some_and(|columns| columns.contains(name))
            };
            let is_own = scopes.iter().flatten().any(|(visible, columns)| match qualifier {
                Some(qualifier) => qualifier == visible,
                None => has(columns),
            });
            // ORDER BY and GROUP BY may name an item.
            let is_item = || qualifier.is_none() && of.items.iter().any(|i| i.name() == Some(name));
            return !is_own && !is_item();
        }
        if let Some(subquery) = expression.subquery()
            && self.uses_other_columns(subquery, ctes, scopes)
        {
            return true;
        }
        expression.children().into_iter().any(|child| self.is_foreign(child, of, ctes, scopes))
    }
}

/// The rows of the sources of a query that satisfy its condition, without what it makes of them.
pub(super) fn rows_of(select: &Select) -> Select {
    let alone = Select {
        from: select.from.clone(),
        joins: select.joins.clone(),
        filter: select.filter.clone(),
        order: Order::None,
        ..Select::default()
    };
    with_views(alone)
}

/// An expression that also depends on a column, without another value.
fn anchored(of: Expr, column: &Expr) -> Expr {
    let never = Expr::unary(Unary::IsNull, column.clone())
        .and(Expr::unary(Unary::IsNotNull, column.clone()));
    Expr::Case {
        operand: None,
        branches: vec![(never, text(""))],
        otherwise: Some(Box::new(Expr::Call(Function::Coalesce, vec![of, text("")]))),
    }
}
