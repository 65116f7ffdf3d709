//! Writes `*` out as the names of columns, at every depth: it would also stand for the added ones.

use crate::instrument::{Instrument, NotInstrumented};
use isolde_sql::{Cte, Expr, Literal, Select, SelectItem, Source};

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

    /// The items of a query with the columns of its sources in the place of `*`.
    fn items_by_name(&self, select: &Select, ctes: &[Cte]) -> Option<Vec<SelectItem>> {
        let mut items = Vec::new();
        for item in &select.items {
            let wanted = match item {
                SelectItem::Expression { .. } => {
                    items.push(item.clone());
                    continue;
                }
                SelectItem::All => None,
                SelectItem::AllOf(name) => Some(name.as_str()),
            };
            for source in select.from_and_joined() {
                let visible = source.visible_name()?;
                if wanted.is_none_or(|wanted| wanted == visible) {
                    let column = |name: String| {
                        let qualifier = Some(visible.to_string());
                        SelectItem::from(Expr::Column { qualifier, name })
                    };
                    items.extend(self.columns_of(source, ctes)?.into_iter().map(column));
                }
            }
        }
        Some(items)
    }

    /// The names of the columns of a source, if all have one.
    pub(super) fn columns_of(&self, source: &Source, ctes: &[Cte]) -> Option<Vec<String>> {
        let cte = source.table().and_then(|name| ctes.iter().rev().find(|cte| cte.name == name));
        match cte {
            Some(cte) if !cte.columns.is_empty() => Some(cte.columns.clone()),
            Some(cte) => cte.select.items.iter().map(|i| i.name().map(str::to_string)).collect(),
            None => self.schema.columns_of(source),
        }
    }
}
