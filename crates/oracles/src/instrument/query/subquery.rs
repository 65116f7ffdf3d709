//! What a subquery of an expression reads: the same tables and conditions once more, for their
//! versions, evaluated next to the row that the subquery is evaluated for.
//!
//! A subquery in a subquery is joined to it, because not every engine has aggregates of
//! aggregates:
//!
//! ```text
//!   (select a from t where b in (select c from u where u.d = t.d))
//!       ──► (select gathered(version of t) from t where b in (…)),
//!           (select gathered(version of u) from t cross join u where b in (…) and u.d = t.d)
//! ```

use super::{Scope, is_unsafe_to_repeat, members, subqueries_of, with_views};
use crate::instrument::{Instrument, NotInstrumented};
use isolde_sql::{Cte, Expr, Join, JoinKind, Order, Select, SelectItem, Source, Using};

/// The most sources of one repeated subquery: each multiplies its rows.
const MOST_JOINED: usize = 4;

/// Why what a subquery reads is not revealed.
pub(in crate::instrument) const READ_BY_WRITE: NotInstrumented =
    NotInstrumented("a subquery of a write reads rows");

/// The names of the sources of a query, with their columns where they are known.
type VisibleSources = Vec<(String, Option<Vec<String>>)>;

impl Instrument {
    /// Expressions that name all versions that a subquery reads, in the place of the subquery.
    /// Queries in its FROM and subqueries in it are included.
    pub(in crate::instrument) fn read_by_subquery(
        &self,
        subquery: &Select,
        scope: &Scope,
        unobserved: &mut Vec<NotInstrumented>,
    ) -> Vec<Expr> {
        let cannot = match self.gathers() {
            Ok(()) if !scope.repeats_subqueries => Some(READ_BY_WRITE),
            Ok(()) => None,
            Err(why) => Some(why),
        };
        if let Some(why) = cannot {
            unobserved.extend(self.reads_followed_tables(subquery).then_some(why));
            return Vec::new();
        }
        self.read_inside(subquery, None, scope, unobserved)
    }

    /// The same for a subquery whose rows are joined to those of the one around it.
    fn read_inside(
        &self,
        subquery: &Select,
        around: Option<&Select>,
        scope: &Scope,
        unobserved: &mut Vec<NotInstrumented>,
    ) -> Vec<Expr> {
        let mut found = Vec::new();
        for member in members(subquery).filter(|member| self.reads_followed_tables(member)) {
            if !member.ctes.is_empty() {
                unobserved.push(NotInstrumented("a subquery has CTEs"));
                continue;
            }
            let rows = match around {
                None => Ok(rows_of(member)),
                Some(around) => self.joined_rows(around, &rows_of(member), scope),
            };
            let rows = match rows {
                Ok(rows) if rows.own_expressions().any(is_unsafe_to_repeat) => {
                    Err(NotInstrumented("a condition calls a function with an effect"))
                }
                rows => rows,
            };
            let rows = match rows {
                Ok(rows) => rows,
                Err(why) => {
                    unobserved.push(why);
                    continue;
                }
            };
            for source in member.from_and_joined() {
                if let Source::Derived { select, lateral, .. } = source {
                    let beside = if *lateral { Some(&rows) } else { around };
                    let beside = beside.filter(|_| self.depends_on_outer(select, scope));
                    found.extend(self.read_inside(select, beside, scope, unobserved));
                }
                let version = self
                    .followed_table(source, scope)
                    .and_then(|place| Some(self.version(place, source.visible_name()?)));
                found.extend(version.map(|version| {
                    let items = vec![SelectItem::from(self.gathered(version))];
                    Expr::Scalar(Box::new(Select { items, ..rows.clone() }))
                }));
            }
            for inner in subqueries_of(member) {
                let beside = Some(&rows).filter(|_| self.depends_on_outer(inner, scope));
                found.extend(self.read_inside(inner, beside, scope, unobserved));
            }
        }
        found
    }

    /// The rows of one query with those of a query in it, where that can be expressed.
    fn joined_rows(
        &self,
        around: &Select,
        inner: &Select,
        scope: &Scope,
    ) -> Result<Select, NotInstrumented> {
        let Some(first) = &inner.from else {
            let filter = both(around.filter.clone(), inner.filter.clone());
            return Ok(Select { filter, ..around.clone() });
        };
        if around.from.is_none() {
            let filter = both(around.filter.clone(), inner.filter.clone());
            return Ok(Select { filter, ..inner.clone() });
        }
        let mut together = around.clone();
        together.joins.push(Join {
            kind: JoinKind::Cross,
            source: first.clone(),
            on: None,
            using: Using::Nothing,
            nested: inner.joins.len(),
        });
        together.joins.extend(inner.joins.iter().cloned());
        together.filter = both(together.filter, inner.filter.clone());
        if together.from_and_joined().count() > MOST_JOINED {
            return Err(NotInstrumented("subqueries are nested too deeply"));
        }
        match self.has_ambiguous_names(&together, scope) {
            true => Err(NotInstrumented("a subquery uses the names of the one around it")),
            false => Ok(together),
        }
    }

    /// Whether two sources have the same name, or a column without a qualifier may be of two.
    fn has_ambiguous_names(&self, select: &Select, scope: &Scope) -> bool {
        let names: Vec<&str> = select.from_and_joined().filter_map(Source::visible_name).collect();
        let is_repeated = |(n, name): (usize, &&str)| names[..n].contains(name);
        if names.iter().enumerate().any(is_repeated) {
            return true;
        }
        let columns: Vec<Option<Vec<String>>> =
            select.from_and_joined().map(|s| self.columns_of(s, &scope.ctes)).collect();
        let of_many = |name: &String| {
            let may_have = |columns: &Option<Vec<String>>| {
                columns.as_ref().is_none_or(|columns| columns.contains(name))
            };
            columns.iter().filter(|columns| may_have(columns)).count() > 1
        };
        let mut found = false;
        for expression in select.own_expressions() {
            expression.visit(&mut |e| {
                if let Expr::Column { qualifier: None, name } = e {
                    found |= of_many(name);
                }
            });
        }
        found
    }

    /// Whether a subquery uses a column of the queries around it, as far as that can be told.
    pub(super) fn depends_on_outer(&self, select: &Select, scope: &Scope) -> bool {
        self.uses_other_columns(select, &scope.ctes, &mut Vec::new())
    }

    fn uses_other_columns(
        &self,
        select: &Select,
        ctes: &[Cte],
        scopes: &mut Vec<VisibleSources>,
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
        scopes: &mut Vec<VisibleSources>,
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

fn both(left: Option<Expr>, right: Option<Expr>) -> Option<Expr> {
    match (left, right) {
        (Some(left), Some(right)) => Some(left.and(right)),
        (left, right) => left.or(right),
    }
}
