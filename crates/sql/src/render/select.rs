//! Renders queries.

use super::{Renderer, listed};
use crate::ast::{
    Expr, Grouping, Join, JoinKind, LockPatience, LockStrength, Locking, Order, OrderKey, Select,
    SelectItem, SetOperator, Source, Using,
};
use crate::dialect::Family;

impl Renderer<'_> {
    pub fn select(&self, select: &Select) -> String {
        let mut out = String::new();
        if !select.ctes.is_empty() {
            let ctes = listed(&select.ctes, |c| {
                let columns = match c.columns.is_empty() {
                    true => String::new(),
                    false => format!(" ({})", self.names(&c.columns)),
                };
                format!("{}{columns} as ({})", self.name(&c.name), self.select(&c.select))
            });
            let recursive = if select.recursive { "recursive " } else { "" };
            out.push_str(&format!("with {recursive}{ctes} "));
        }
        if !select.values.is_empty() {
            out.push_str(&self.values(&select.values));
            out.push_str(&self.end_of_select(select));
            return out;
        }
        out.push_str(if select.distinct { "select distinct " } else { "select " });
        out.push_str(&self.items(&select.items));
        if let Some(from) = &select.from {
            out.push_str(&format!(" from {}", self.source(from)));
        }
        self.joins(&select.joins, &mut out);
        if let Some(filter) = &select.filter {
            out.push_str(&format!(" where {}", self.expr(filter)));
        }
        if !select.group_by.is_empty() {
            out.push_str(&format!(" group by {}", self.grouping(select)));
        }
        if let Some(having) = &select.having {
            out.push_str(&format!(" having {}", self.expr(having)));
        }
        if !select.windows.is_empty() {
            let named = listed(&select.windows, |named| {
                format!("{} as ({})", self.name(&named.name), self.window(&named.window))
            });
            out.push_str(&format!(" window {named}"));
        }
        if let Some((operator, other)) = &select.set_operation {
            let word = match operator {
                SetOperator::Union => "union",
                SetOperator::UnionAll => "union all",
                SetOperator::Except => "except",
                SetOperator::Intersect => "intersect",
            };
            out.push_str(&format!(" {word} {}", self.select(other)));
        }
        out.push_str(&self.end_of_select(select));
        out
    }

    /// The rows of VALUES.
    fn values(&self, rows: &[Vec<Expr>]) -> String {
        let word = match self.dialect.quirks.values_row {
            true => "row",
            false => "",
        };
        let row = |row: &Vec<Expr>| format!("{word}({})", listed(row, |e| self.expr(e)));
        format!("values {}", listed(rows, row))
    }

    /// The keys of GROUP BY.
    fn grouping(&self, select: &Select) -> String {
        let keys = || listed(&select.group_by, |e| self.expr(e));
        match &select.grouping {
            Grouping::AllKeys => keys(),
            Grouping::Rollup if self.dialect.family == Family::Mysql => {
                format!("{} with rollup", keys())
            }
            Grouping::Rollup => format!("rollup ({})", keys()),
            Grouping::Cube => format!("cube ({})", keys()),
            Grouping::Sets(sets) => {
                let set = |places: &Vec<usize>| {
                    format!("({})", listed(places, |n| self.expr(&select.group_by[*n])))
                };
                format!("grouping sets ({})", listed(sets, set))
            }
        }
    }

    /// The clauses after the last side of a set operation: ORDER BY, LIMIT, locking.
    fn end_of_select(&self, select: &Select) -> String {
        let mut out = match &select.order {
            Order::None => String::new(),
            Order::AllItems { descending } => {
                let direction = if *descending { " desc" } else { "" };
                let places: Vec<usize> = (1..=select.items.len()).collect();
                format!(" order by {}", listed(&places, |n| format!("{n}{direction}")))
            }
            Order::By(keys) => self.order_by(keys),
        };
        if let Some(limit) = &select.limit {
            out.push_str(&format!(" limit {}", self.expr(limit)));
        }
        if let Some(offset) = &select.offset {
            out.push_str(&format!(" offset {}", self.expr(offset)));
        }
        if let Some(locking) = &select.locking {
            out.push_str(&format!(" {}", self.locking(locking)));
        }
        out
    }

    /// ` order by …`, or nothing.
    pub fn order_by(&self, keys: &[OrderKey]) -> String {
        if keys.is_empty() {
            return String::new();
        }
        let key = |key: &OrderKey| {
            let direction = if key.descending { " desc" } else { "" };
            let nulls = match key.nulls_first {
                None => "",
                Some(true) => " nulls first",
                Some(false) => " nulls last",
            };
            format!("{}{direction}{nulls}", self.expr(&key.of))
        };
        format!(" order by {}", listed(keys, key))
    }

    pub fn items(&self, items: &[SelectItem]) -> String {
        listed(items, |item| match item {
            SelectItem::Expression { of, alias: None } => self.expr(of),
            SelectItem::Expression { of, alias: Some(alias) } => {
                format!("{} as {}", self.expr(of), self.name(alias))
            }
            SelectItem::All => "*".into(),
            SelectItem::AllOf(source) => format!("{}.*", self.name(source)),
        })
    }

    fn joins(&self, mut joins: &[Join], out: &mut String) {
        while let [join, rest @ ..] = joins {
            let word = match join.kind {
                JoinKind::Inner => " join",
                JoinKind::Left => " left join",
                JoinKind::Right => " right join",
                JoinKind::Full => " full join",
                JoinKind::Cross => " cross join",
                JoinKind::Comma => ",",
            };
            let natural = if join.using == Using::SameNames { " natural" } else { "" };
            let (nested, rest) = rest.split_at(join.nested);
            let mut source = self.source(&join.source);
            if !nested.is_empty() {
                self.joins(nested, &mut source);
                source = format!("({source})");
            }
            out.push_str(&format!("{natural}{word} {source}"));
            if let Using::Columns(columns) = &join.using {
                out.push_str(&format!(" using ({})", self.names(columns)));
            }
            if let Some(on) = &join.on {
                out.push_str(&format!(" on {}", self.expr(on)));
            }
            joins = rest;
        }
    }

    pub fn source(&self, source: &Source) -> String {
        match source {
            Source::Table { name, alias } => match self.instead_of(name) {
                Some(instead) => {
                    format!("{instead} as {}", self.name(alias.as_deref().unwrap_or(name)))
                }
                None => self.table(name, alias.as_deref()),
            },
            Source::Derived { lateral, select, alias, columns, .. } => {
                let lateral = if *lateral { "lateral " } else { "" };
                let alias = alias.as_ref().map(|alias| format!(" as {}", self.name(alias)));
                let columns = match columns.is_empty() {
                    true => String::new(),
                    false => format!(" ({})", self.names(columns)),
                };
                let alias = alias.unwrap_or_default();
                format!("{lateral}({}){alias}{columns}", self.select(select))
            }
        }
    }

    pub fn table(&self, name: &str, alias: Option<&str>) -> String {
        match alias {
            Some(alias) => format!("{} as {}", self.name(name), self.name(alias)),
            None => self.name(name).into_owned(),
        }
    }

    fn locking(&self, locking: &Locking) -> String {
        let strength = match locking.strength {
            LockStrength::Update => "for update",
            LockStrength::NoKeyUpdate => "for no key update",
            LockStrength::Share => self.dialect.share_lock,
            LockStrength::KeyShare => "for key share",
        };
        let of = match locking.of.is_empty() {
            true => String::new(),
            false => format!(" of {}", self.names(&locking.of)),
        };
        let patience = match locking.patience {
            LockPatience::Wait => String::new(),
            LockPatience::NoWait => " nowait".into(),
            LockPatience::SkipLocked => " skip locked".into(),
            LockPatience::Seconds(seconds) => format!(" wait {seconds}"),
        };
        format!("{strength}{of}{patience}")
    }
}
