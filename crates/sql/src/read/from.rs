//! Parses FROM clauses.

use super::Reader;
use super::expression::optional;
use super::name::single;
use crate::ast::{Expr, Join, JoinKind, Literal, Select, SelectItem, SetOperator, Source, Using};
use crate::dialect::Family;
use sqlparser::ast::{
    self, FunctionArg, FunctionArgExpr, JoinConstraint, JoinOperator, TableAlias, TableFactor,
    TableWithJoins,
};

/// The most rows that a series of numbers is read as.
const LONGEST_SERIES: i64 = 50;

impl Reader {
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
                Some(_) => joins.push(Join::plain(JoinKind::Comma, source)),
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
        let (on, using) = match constraint {
            JoinConstraint::On(on) => (Some(self.expr(on, depth)?), Using::Nothing),
            JoinConstraint::None => (None, Using::Nothing),
            JoinConstraint::Natural => (None, Using::SameNames),
            JoinConstraint::Using(names) => {
                let name = |name: &ast::ObjectName| self.column(single(name)?);
                let columns = names.iter().map(name).collect::<Option<_>>()?;
                (None, Using::Columns(columns))
            }
        };
        let conditional = matches!(kind, JoinKind::Left | JoinKind::Right | JoinKind::Full);
        if conditional && on.is_none() && using == Using::Nothing {
            return None;
        }
        Some(Join { kind, source: self.source(relation, depth)?, on, using, nested: 0 })
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
            TableFactor::Table { name, alias: Some(alias), args: Some(args), .. }
                if self.family == Family::Postgres
                    && name.to_string().eq_ignore_ascii_case("generate_series") =>
            {
                self.series(alias, args, depth)
            }
            TableFactor::Derived { lateral, subquery, alias, sample: None } => {
                let alias = optional(alias, |alias| self.alias_with_columns(alias))?;
                let (alias, columns) = alias.unzip();
                Some(Source::Derived {
                    lateral,
                    select: Box::new(self.query(*subquery, depth)?),
                    alias,
                    columns: columns.unwrap_or_default(),
                    view: None,
                })
            }
            _ => None,
        }
    }

    /// `generate_series(1, 3) as g(x)` with literal bounds, as the rows that it consists of.
    fn series(
        self,
        alias: TableAlias,
        args: ast::TableFunctionArgs,
        depth: usize,
    ) -> Option<Source> {
        let TableAlias { explicit: _, name, columns, at: None } = alias else { return None };
        let column = match columns.as_slice() {
            [] => self.column(&name)?,
            [column] if column.data_type.is_none() => self.column(&column.name)?,
            _ => return None,
        };
        let bound = |arg: &FunctionArg| match arg {
            FunctionArg::Unnamed(FunctionArgExpr::Expr(e)) => match self.expr(e.clone(), depth)? {
                Expr::Literal(Literal::Int(bound)) => Some(bound),
                _ => None,
            },
            _ => None,
        };
        let ([first, last], None) = (args.args.as_slice(), args.settings) else { return None };
        let (first, last) = (bound(first)?, bound(last)?);
        if last < first || last.checked_sub(first)? > LONGEST_SERIES {
            return None;
        }
        let row = |number: i64| Select {
            items: vec![SelectItem::Expression {
                of: Expr::int(number),
                alias: Some(column.clone()),
            }],
            ..Select::default()
        };
        let mut rows = row(last);
        for number in (first..last).rev() {
            let rest = Some((SetOperator::UnionAll, Box::new(rows)));
            rows = Select { set_operation: rest, ..row(number) };
        }
        Some(Source::query(rows, &self.table_ident(&name)?))
    }

    fn alias(self, alias: TableAlias) -> Option<String> {
        let (name, columns) = self.alias_with_columns(alias)?;
        columns.is_empty().then_some(name)
    }

    fn alias_with_columns(self, alias: TableAlias) -> Option<(String, Vec<String>)> {
        let TableAlias { explicit: _, name, columns, at: None } = alias else { return None };
        let column = |c: &ast::TableAliasColumnDef| {
            c.data_type.is_none().then(|| self.column(&c.name)).flatten()
        };
        Some((self.table_ident(&name)?, columns.iter().map(column).collect::<Option<_>>()?))
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
