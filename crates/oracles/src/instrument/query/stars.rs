//! Writes `*` out as the names of columns, at every depth: it would also stand for the added ones.

use crate::instrument::tables::column_of;
use crate::instrument::{Instrument, NotInstrumented};
use isolde_sql::{Cte, Expr, JoinKind, Literal, Select, SelectItem, Source, Using};

const UNNAMED: NotInstrumented =
    NotInstrumented("it selects * of what has no names for its columns");

impl Instrument {
    /// A query without `*`, at any depth.
    pub(in crate::instrument) fn with_columns_named(
        &self,
        select: &Select,
        outer_ctes: &[Cte],
    ) -> Result<Select, NotInstrumented> {
        let mut select = select.clone();
        let mut ctes = outer_ctes.to_vec();
        for cte in &mut select.ctes {
            cte.select = self.with_columns_named(&cte.select, &ctes)?;
            ctes.push(cte.clone());
        }
        let joined = select.joins.iter_mut().map(|join| &mut join.source);
        for source in select.from.iter_mut().chain(joined) {
            if let Source::Derived { select, .. } = source {
                **select = self.with_columns_named(select, &ctes)?;
            }
        }
        self.name_joined_columns(&mut select, &ctes)?;
        if select.items.iter().any(|item| item.expression().is_none()) {
            select.items = self.items_by_name(&select, &ctes).ok_or(UNNAMED)?;
        }
        if let Some((_, other)) = &mut select.set_operation {
            **other = self.with_columns_named(other, &ctes)?;
        }
        for expression in select.own_expressions_mut() {
            self.name_columns(expression, &ctes)?;
        }
        Ok(select)
    }

    /// Writes out `*` in the subqueries of an expression.
    pub(in crate::instrument) fn name_columns(
        &self,
        expression: &mut Expr,
        ctes: &[Cte],
    ) -> Result<(), NotInstrumented> {
        if let Expr::Exists { select, .. } = expression
            && matches!(select.items[..], [SelectItem::All | SelectItem::AllOf(_)])
            && select.set_operation.is_none()
        {
            // What it returns does not matter.
            select.items = vec![Expr::Literal(Literal::Int(1)).into()];
        }
        if let Some(subquery) = expression.subquery_mut() {
            *subquery = self.with_columns_named(subquery, ctes)?;
        }
        expression.children_mut().into_iter().try_for_each(|child| self.name_columns(child, ctes))
    }

    /// Writes out the columns of NATURAL joins, which would also compare added ones.
    fn name_joined_columns(
        &self,
        select: &mut Select,
        ctes: &[Cte],
    ) -> Result<(), NotInstrumented> {
        const UNKNOWN: NotInstrumented =
            NotInstrumented("it compares all columns of what has no names for them");
        for place in 0..select.joins.len() {
            if select.joins[place].using != Using::SameNames {
                continue;
            }
            if select.joins.iter().any(|join| join.nested > 0) {
                return Err(UNKNOWN);
            }
            let before = select.from_and_joined().take(place + 1);
            let left: Vec<Vec<String>> = before
                .map(|source| self.columns_of(source, ctes))
                .collect::<Option<_>>()
                .ok_or(UNKNOWN)?;
            let right = self.columns_of(&select.joins[place].source, ctes).ok_or(UNKNOWN)?;
            let mut names: Vec<String> = Vec::new();
            for name in left.iter().flatten().filter(|name| right.contains(name)) {
                if !names.contains(name) {
                    names.push(name.clone());
                }
            }
            let join = &mut select.joins[place];
            match (names.is_empty(), join.kind) {
                (false, _) => join.using = Using::Columns(names),
                (true, JoinKind::Inner) => {
                    (join.kind, join.using) = (JoinKind::Cross, Using::Nothing);
                }
                (true, _) => return Err(UNKNOWN),
            }
        }
        Ok(())
    }

    /// The items of a query with the columns of its sources in the place of `*`.
    fn items_by_name(&self, select: &Select, ctes: &[Cte]) -> Option<Vec<SelectItem>> {
        let mut items = Vec::new();
        for item in &select.items {
            match item {
                SelectItem::Expression { .. } => items.push(item.clone()),
                SelectItem::All => {
                    let all = self.all_columns(select, ctes)?.into_iter();
                    items.extend(
                        all.map(|(qualifier, name)| Expr::Column { qualifier, name }.into()),
                    );
                }
                SelectItem::AllOf(wanted) => {
                    let mut sources = select.from_and_joined();
                    let source = sources.find(|s| s.visible_name() == Some(wanted))?;
                    let names = self.columns_of(source, ctes)?.into_iter();
                    items.extend(names.map(|name| column_of(wanted, &name).into()));
                }
            }
        }
        Some(items)
    }

    /// What `*` stands for: columns that a join compares by name come once, and first.
    fn all_columns(&self, select: &Select, ctes: &[Cte]) -> Option<Vec<(Option<String>, String)>> {
        let of = |source: &Source| -> Option<Vec<(Option<String>, String)>> {
            let visible = source.visible_name()?.to_string();
            let names = self.columns_of(source, ctes)?.into_iter();
            Some(names.map(|name| (Some(visible.clone()), name)).collect())
        };
        let mut all = of(select.from.as_ref()?)?;
        for join in &select.joins {
            let right = of(&join.source)?;
            let Using::Columns(names) = &join.using else {
                all.extend(right);
                continue;
            };
            // Which side comes first depends on the engine.
            let is_simple = matches!(join.kind, JoinKind::Inner | JoinKind::Left);
            if !is_simple || select.joins.iter().any(|join| join.nested > 0) {
                return None;
            }
            let others = |(_, name): &(Option<String>, String)| !names.contains(name);
            let merged = names.iter().map(|name| (None, name.clone()));
            let rest = all.into_iter().chain(right).filter(others);
            all = merged.chain(rest).collect();
        }
        Some(all)
    }

    /// The names of the columns of a source, if all have one.
    pub(super) fn columns_of(&self, source: &Source, ctes: &[Cte]) -> Option<Vec<String>> {
        let cte = source.table().and_then(|name| ctes.iter().rev().find(|cte| cte.name == name));
        match cte {
            Some(cte) => names_of(&cte.select, &cte.columns),
            None => match source {
                Source::Derived { select, columns, .. } => names_of(select, columns),
                Source::Table { .. } => self.schema.columns_of(source),
            },
        }
    }
}

/// The columns of an inner query, if all have a name.
fn names_of(select: &Select, columns: &[String]) -> Option<Vec<String>> {
    if !columns.is_empty() {
        return Some(columns.to_vec());
    }
    let has_names = select.values.is_empty();
    let names = select.items.iter().map(|item| item.name().map(str::to_string));
    if has_names { names.collect() } else { None }
}
