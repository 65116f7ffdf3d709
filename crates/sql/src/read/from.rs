//! Parses FROM clauses.

use super::Reader;
use super::expression::optional;
use crate::ast::{Join, JoinKind, Source};
use sqlparser::ast::{self, JoinConstraint, JoinOperator, TableAlias, TableFactor, TableWithJoins};

impl Reader<'_> {
    pub(super) fn from(
        self,
        from: Vec<TableWithJoins>,
        depth: usize,
    ) -> Option<(Option<Source>, Vec<Join>)> {
        let mut first = None;
        let mut joins = Vec::new();
        let commas = from.len() > 1;
        for joined in from {
            let TableWithJoins { relation, joins: joined } = without_parentheses(joined);
            let source = self.source(relation, depth)?;
            match first {
                None => first = Some(source),
                Some(_) => joins.push(Join { kind: JoinKind::Comma, source, on: None, nested: 0 }),
            }
            for join in joined {
                joins.append(&mut self.joins(join, depth)?);
            }
        }
        let outward = |j: &Join| matches!(j.kind, JoinKind::Right | JoinKind::Full);
        (!(commas && joins.iter().any(outward))).then_some((first, joins))
    }

    /// A join, and behind it those that are in parentheses with its source.
    fn joins(self, mut join: ast::Join, depth: usize) -> Option<Vec<Join>> {
        let depth = depth.checked_sub(1)?;
        let mut inside = Vec::new();
        if let TableFactor::NestedJoin { table_with_joins, alias: None } = join.relation {
            let TableWithJoins { relation, joins } = without_parentheses(*table_with_joins);
            join.relation = relation;
            for join in joins {
                inside.append(&mut self.joins(join, depth)?);
            }
        }
        let mut read = vec![Join { nested: inside.len(), ..self.join(join, depth)? }];
        read.append(&mut inside);
        Some(read)
    }

    pub(super) fn join(self, join: ast::Join, depth: usize) -> Option<Join> {
        let ast::Join { relation, global: false, join_operator } = join else { return None };
        let (kind, constraint) = match join_operator {
            JoinOperator::Join(c) | JoinOperator::Inner(c) => (JoinKind::Inner, c),
            JoinOperator::Left(c) | JoinOperator::LeftOuter(c) => (JoinKind::Left, c),
            JoinOperator::Right(c) | JoinOperator::RightOuter(c) => (JoinKind::Right, c),
            JoinOperator::FullOuter(c) => (JoinKind::Full, c),
            JoinOperator::CrossJoin(JoinConstraint::None) => {
                (JoinKind::Cross, JoinConstraint::None)
            }
            _ => return None,
        };
        let on = match constraint {
            JoinConstraint::On(on) => Some(self.expr(on, depth)?),
            JoinConstraint::None => None,
            JoinConstraint::Using(_) | JoinConstraint::Natural => return None,
        };
        let conditional = matches!(kind, JoinKind::Left | JoinKind::Right | JoinKind::Full);
        if conditional && on.is_none() {
            return None;
        }
        Some(Join { kind, source: self.source(relation, depth)?, on, nested: 0 })
    }

    pub(super) fn source(self, relation: TableFactor, depth: usize) -> Option<Source> {
        match relation {
            TableFactor::Table {
                name,
                alias,
                args: None,
                with_hints,
                version: None,
                with_ordinality: false,
                partitions,
                json_path: None,
                sample: None,
                index_hints,
            } if with_hints.is_empty() && partitions.is_empty() && index_hints.is_empty() => {
                Some(Source::Table {
                    name: self.table_name(&name)?,
                    alias: optional(alias, |alias| self.alias(alias))?,
                })
            }
            TableFactor::Derived { lateral: false, subquery, alias, sample: None } => {
                Some(Source::Derived {
                    select: Box::new(self.query(*subquery, depth)?),
                    alias: optional(alias, |alias| self.alias(alias))?,
                    view: None,
                })
            }
            _ => None,
        }
    }

    fn alias(self, alias: TableAlias) -> Option<String> {
        let TableAlias { explicit: _, name, columns, at: None } = alias else { return None };
        columns.is_empty().then(|| self.table_ident(&name)).flatten()
    }
}

/// `(a join b) join c` without the parentheses: joins are left-associative.
fn without_parentheses(mut joined: TableWithJoins) -> TableWithJoins {
    while let TableFactor::NestedJoin { table_with_joins, alias: None } = joined.relation {
        let TableWithJoins { relation, mut joins } = *table_with_joins;
        joins.append(&mut joined.joins);
        joined = TableWithJoins { relation, joins };
    }
    joined
}
