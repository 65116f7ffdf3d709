//! Parses queries.

use super::Reader;
use super::expression::optional;
use super::name::single;
use crate::ast::{
    Cte, Expr, Grouping, Literal, LockPatience, LockStrength, Locking, Order, OrderKey, Select,
    SelectItem, SetOperator,
};
use sqlparser::ast::{
    self, Distinct, GroupByExpr, GroupByWithModifier, LimitClause, LockClause, LockType, NonBlock,
    Offset, OffsetRows, OrderByExpr, OrderByKind, OrderByOptions, OrderBySort, Query, SelectFlavor,
    SelectItemQualifiedWildcardKind, SetExpr, SetQuantifier, TableAlias, WildcardAdditionalOptions,
    With,
};

impl Reader {
    pub(super) fn query(self, query: Query, depth: usize) -> Option<Select> {
        let depth = depth.checked_sub(1)?;
        let Query {
            with,
            body,
            order_by,
            limit_clause,
            fetch: None,
            locks,
            for_clause: None,
            settings: None,
            format_clause: None,
            pipe_operators,
        } = query
        else {
            return None;
        };
        if !pipe_operators.is_empty() {
            return None;
        }
        let ends_here = order_by.is_none() && limit_clause.is_none() && locks.is_empty();
        let mut select = match *body {
            // Parentheses around all of it.
            SetExpr::Query(inner) if with.is_none() && ends_here => {
                return self.query(*inner, depth);
            }
            body => self.body(body, depth)?,
        };
        if let Some(with) = with {
            select.recursive = with.recursive;
            select.ctes = self.ctes(with, depth)?;
        }
        if let Some(order_by) = order_by {
            let ast::OrderBy { kind: OrderByKind::Expressions(keys), interpolate: None } = order_by
            else {
                return None;
            };
            let keys = keys.into_iter().map(|key| self.order_key(key, depth));
            select.order = ordered(keys.collect::<Option<_>>()?, &select.items);
        }
        (select.limit, select.offset) = self.limit(limit_clause, depth)?;
        if let Some(lock) = locks.first() {
            select.locking = Some(self.locking(lock)?);
        }
        let clear = select.locking.is_none() || select.set_operation.is_none();
        (locks.len() < 2 && clear).then_some(select)
    }

    fn ctes(self, with: With, depth: usize) -> Option<Vec<Cte>> {
        let With { with_token: _, recursive: _, cte_tables } = with;
        let read = |cte: ast::Cte| {
            let ast::Cte { alias, query, from: None, materialized: None, closing_paren_token: _ } =
                cte
            else {
                return None;
            };
            let TableAlias { explicit: _, name, columns, at: None } = alias else { return None };
            let column = |c: &ast::TableAliasColumnDef| {
                c.data_type.is_none().then(|| self.column(&c.name)).flatten()
            };
            Some(Cte {
                name: self.table_ident(&name)?,
                columns: columns.iter().map(column).collect::<Option<_>>()?,
                select: self.query(*query, depth)?,
            })
        };
        cte_tables.into_iter().map(read).collect()
    }

    fn body(self, body: SetExpr, depth: usize) -> Option<Select> {
        match body {
            SetExpr::Select(select) => self.select(*select, depth),
            SetExpr::SetOperation { .. } => self.set_operation(body, depth),
            SetExpr::Values(values) => {
                Some(Select { values: self.values(values, depth)?, ..Select::default() })
            }
            SetExpr::Query(_)
            | SetExpr::Insert(_)
            | SetExpr::Update(_)
            | SetExpr::Delete(_)
            | SetExpr::Merge(_)
            | SetExpr::Table(_) => None,
        }
    }

    /// A chain of one operator, all of whose sides are plain queries.
    fn set_operation(self, mut body: SetExpr, depth: usize) -> Option<Select> {
        let mut sides = Vec::new();
        let mut operator = None;
        while let SetExpr::SetOperation { left, op, set_quantifier, right } = body {
            let plain = matches!(set_quantifier, SetQuantifier::None | SetQuantifier::Distinct);
            let this = match (op, set_quantifier) {
                (ast::SetOperator::Union, SetQuantifier::All) => SetOperator::UnionAll,
                (ast::SetOperator::Union, _) if plain => SetOperator::Union,
                (ast::SetOperator::Except, _) if plain => SetOperator::Except,
                (ast::SetOperator::Intersect, _) if plain => SetOperator::Intersect,
                _ => return None,
            };
            let same = operator.is_none_or(|o| o == this && o != SetOperator::Except);
            if !same || sides.len() > depth {
                return None;
            }
            operator = Some(this);
            sides.push(*right);
            body = *left;
        }
        sides.push(body);
        // From the last side to the first.
        let mut chain: Option<Select> = None;
        for side in sides {
            let mut select = self.side(side, depth)?;
            if let (Some(operator), Some(rest)) = (operator, chain.take()) {
                select.set_operation = Some((operator, Box::new(rest)));
            }
            chain = Some(select);
        }
        chain
    }

    /// One side of a set operation, in parentheses or not.
    fn side(self, side: SetExpr, depth: usize) -> Option<Select> {
        match side {
            SetExpr::Select(select) => self.select(*select, depth),
            SetExpr::Query(query) => {
                let select = self.query(*query, depth)?;
                let plain = select.ctes.is_empty()
                    && select.set_operation.is_none()
                    && select.order == Order::None
                    && select.limit.is_none()
                    && select.offset.is_none()
                    && select.locking.is_none();
                plain.then_some(select)
            }
            _ => None,
        }
    }

    fn select(self, select: ast::Select, depth: usize) -> Option<Select> {
        let ast::Select {
            select_token: _,
            optimizer_hints,
            distinct,
            select_modifiers: None,
            top: None,
            top_before_distinct: false,
            projection,
            exclude: None,
            into: None,
            from,
            lateral_views,
            prewhere: None,
            selection,
            connect_by,
            group_by,
            cluster_by,
            distribute_by,
            sort_by,
            having,
            named_window,
            qualify: None,
            window_before_qualify: _,
            value_table_mode: None,
            flavor: SelectFlavor::Standard,
        } = select
        else {
            return None;
        };
        let nothing_else = optimizer_hints.is_empty()
            && lateral_views.is_empty()
            && connect_by.is_empty()
            && cluster_by.is_empty()
            && distribute_by.is_empty()
            && sort_by.is_empty();
        let windows = self.named_windows(named_window, depth)?;
        let distinct = match distinct {
            None => false,
            Some(Distinct::Distinct) => true,
            Some(Distinct::All | Distinct::On(_)) => return None,
        };
        let (group_by, grouping) = self.group_by(group_by, depth)?;
        let (from, joins) = self.from(from, depth)?;
        let read = Select {
            distinct,
            items: self.items(projection, depth)?,
            from,
            joins,
            filter: optional(selection, |e| self.expr(e, depth))?,
            group_by,
            grouping,
            windows,
            having: optional(having, |e| self.expr(e, depth))?,
            ..Select::default()
        };
        // PostgreSQL accepts a query without columns, which the syntax tree cannot represent.
        (nothing_else && !read.items.is_empty()).then_some(read)
    }

    fn group_by(self, group_by: GroupByExpr, depth: usize) -> Option<(Vec<Expr>, Grouping)> {
        let GroupByExpr::Expressions(mut keys, modifiers) = group_by else { return None };
        let single = |sets: Vec<Vec<ast::Expr>>| {
            let alone = |mut set: Vec<ast::Expr>| (set.len() == 1).then(|| set.pop()).flatten();
            sets.into_iter().map(alone).collect::<Option<Vec<ast::Expr>>>()
        };
        match (keys.as_slice(), modifiers.as_slice()) {
            (_, [GroupByWithModifier::Rollup]) => {
                Some((self.exprs(keys, depth)?, Grouping::Rollup))
            }
            ([ast::Expr::Rollup(_) | ast::Expr::Cube(_) | ast::Expr::GroupingSets(_)], []) => {
                match keys.pop()? {
                    ast::Expr::Rollup(sets) => {
                        Some((self.exprs(single(sets)?, depth)?, Grouping::Rollup))
                    }
                    ast::Expr::Cube(sets) => {
                        Some((self.exprs(single(sets)?, depth)?, Grouping::Cube))
                    }
                    ast::Expr::GroupingSets(sets) => self.grouping_sets(sets, depth),
                    _ => None,
                }
            }
            (_, []) => Some((self.exprs(keys, depth)?, Grouping::AllKeys)),
            _ => None,
        }
    }

    fn grouping_sets(
        self,
        sets: Vec<Vec<ast::Expr>>,
        depth: usize,
    ) -> Option<(Vec<Expr>, Grouping)> {
        let (mut keys, mut places) = (Vec::new(), Vec::new());
        for set in sets {
            let mut of_set = Vec::new();
            for key in self.exprs(set, depth)? {
                let place = keys.iter().position(|known| *known == key);
                of_set.push(place.unwrap_or(keys.len()));
                if place.is_none() {
                    keys.push(key);
                }
            }
            places.push(of_set);
        }
        Some((keys, Grouping::Sets(places)))
    }

    /// The rows of VALUES.
    pub(super) fn values(self, values: ast::Values, depth: usize) -> Option<Vec<Vec<Expr>>> {
        let ast::Values { explicit_row: _, value_keyword: false, rows } = values else {
            return None;
        };
        rows.into_iter().map(|row| self.exprs(row.content, depth)).collect()
    }

    pub(super) fn items(
        self,
        items: Vec<ast::SelectItem>,
        depth: usize,
    ) -> Option<Vec<SelectItem>> {
        let read = |item| match item {
            ast::SelectItem::UnnamedExpr(e) => Some(SelectItem::from(self.expr(e, depth)?)),
            ast::SelectItem::ExprWithAlias { expr, alias } => Some(SelectItem::Expression {
                of: self.expr(expr, depth)?,
                alias: Some(self.column(&alias)?),
            }),
            ast::SelectItem::QualifiedWildcard(
                SelectItemQualifiedWildcardKind::ObjectName(name),
                options,
            ) if is_bare(&options) => Some(SelectItem::AllOf(self.table_ident(single(&name)?)?)),
            ast::SelectItem::Wildcard(options) if is_bare(&options) => Some(SelectItem::All),
            ast::SelectItem::ExprWithAliases { .. }
            | ast::SelectItem::QualifiedWildcard(..)
            | ast::SelectItem::Wildcard(_) => None,
        };
        items.into_iter().map(read).collect()
    }

    pub(super) fn order_key(self, key: OrderByExpr, depth: usize) -> Option<OrderKey> {
        let OrderByExpr { expr, options, with_fill: None } = key else { return None };
        let OrderByOptions { sort, nulls_first } = options;
        let descending = match sort {
            None | Some(OrderBySort::Asc) => false,
            Some(OrderBySort::Desc) => true,
            Some(OrderBySort::Using(_)) => return None,
        };
        Some(OrderKey { of: self.expr(expr, depth)?, descending, nulls_first })
    }

    fn limit(
        self,
        clause: Option<LimitClause>,
        depth: usize,
    ) -> Option<(Option<Expr>, Option<Expr>)> {
        match clause {
            None => Some((None, None)),
            Some(LimitClause::LimitOffset { limit, offset, limit_by }) => {
                let offset = match offset {
                    None => None,
                    Some(Offset { value, rows: OffsetRows::None }) => {
                        Some(self.expr(value, depth)?)
                    }
                    Some(_) => return None,
                };
                let limit = optional(limit, |e| self.expr(e, depth))?;
                limit_by.is_empty().then_some((limit, offset))
            }
            Some(LimitClause::OffsetCommaLimit { offset, limit }) => {
                Some((Some(self.expr(limit, depth)?), Some(self.expr(offset, depth)?)))
            }
        }
    }

    fn locking(self, lock: &LockClause) -> Option<Locking> {
        let LockClause { lock_type, of, nonblock } = lock;
        Some(Locking {
            strength: match lock_type {
                LockType::Share => LockStrength::Share,
                LockType::Update => LockStrength::Update,
            },
            of: match of {
                None => Vec::new(),
                Some(name) => vec![self.table_name(name)?],
            },
            patience: match nonblock {
                None => LockPatience::Wait,
                Some(NonBlock::Nowait) => LockPatience::NoWait,
                Some(NonBlock::SkipLocked) => LockPatience::SkipLocked,
            },
        })
    }
}

/// ORDER BY 1, 2, … of all columns is represented as `Order::AllItems`.
fn ordered(keys: Vec<OrderKey>, items: &[SelectItem]) -> Order {
    let Some(first) = keys.first() else { return Order::None };
    let descending = first.descending;
    let at_place = |(place, key): (usize, &OrderKey)| {
        let number = i64::try_from(place + 1).ok().map(Literal::Int);
        key.descending == descending
            && key.nulls_first.is_none()
            && number.is_some_and(|n| key.of == Expr::Literal(n))
    };
    let known = items.iter().all(|item| item.expression().is_some());
    let all = keys.len() == items.len() && keys.iter().enumerate().all(at_place);
    if known && all { Order::AllItems { descending } } else { Order::By(keys) }
}

fn is_bare(options: &WildcardAdditionalOptions) -> bool {
    let WildcardAdditionalOptions {
        wildcard_token: _,
        opt_ilike,
        opt_exclude,
        opt_except,
        opt_replace,
        opt_rename,
        opt_alias,
    } = options;
    opt_ilike.is_none()
        && opt_exclude.is_none()
        && opt_except.is_none()
        && opt_replace.is_none()
        && opt_rename.is_none()
        && opt_alias.is_none()
}
