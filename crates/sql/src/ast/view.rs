//! Replaces the names of views by their queries.

use super::{Expr, InsertSource, Schema, Select, SelectItem, Source, Stmt, View, Write};

impl Schema {
    pub fn view(&self, name: &str) -> Option<&View> {
        self.views.iter().find(|view| view.name == name)
    }

    /// The statement with each view that it reads replaced by the query of the view. Writes to a
    /// view are not replaced.
    pub fn without_views(&self, statement: &Stmt) -> Stmt {
        let mut statement = statement.clone();
        match &mut statement {
            Stmt::Select(select) => self.put_queries_for_views(select, &[]),
            Stmt::Write(Write::Insert(insert)) => {
                if let InsertSource::Select(select) = &mut insert.source {
                    self.put_queries_for_views(select, &[]);
                }
            }
            Stmt::Prepare { statement, .. } => **statement = self.without_views(statement),
            _ => {}
        }
        statement
    }

    /// The view that CREATE VIEW defines, with names for its columns. None if a column has no
    /// known name.
    pub fn view_of(&self, name: String, columns: &[String], select: Select) -> Option<View> {
        let mut items = self.items_without_stars(&select)?;
        if !columns.is_empty() && columns.len() != items.len() {
            return None;
        }
        for (item, column) in items.iter_mut().zip(columns) {
            if let SelectItem::Expression { alias, .. } = item {
                *alias = Some(column.clone());
            }
        }
        let mut select = Select { items, ..select };
        self.put_queries_for_views(&mut select, &[]);
        select.items.iter().all(|item| item.name().is_some()).then_some(View { name, select })
    }

    /// The items of a query with `*` expanded to column names; none if a column has no name.
    pub fn items_without_stars(&self, select: &Select) -> Option<Vec<SelectItem>> {
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
                let (visible, columns) = (source.visible_name()?, self.columns_of(source)?);
                if wanted.is_none_or(|wanted| wanted == visible) {
                    let column = |name: String| {
                        let qualifier = Some(visible.to_string());
                        SelectItem::from(Expr::Column { qualifier, name })
                    };
                    items.extend(columns.into_iter().map(column));
                }
            }
        }
        Some(items)
    }

    /// The names of a source's columns, if all have one.
    pub fn columns_of(&self, source: &Source) -> Option<Vec<String>> {
        let named = |select: &Select| -> Option<Vec<String>> {
            select.items.iter().map(|item| item.name().map(str::to_string)).collect()
        };
        match source {
            Source::Derived { select, .. } => named(select),
            Source::Table { name, .. } => match self.table(name) {
                Some(table) => Some(table.columns.iter().map(|c| c.name.clone()).collect()),
                None => self.view(name).and_then(|view| named(&view.select)),
            },
        }
    }

    /// `hidden` are the CTEs in scope, which take precedence over a view of the same name.
    fn put_queries_for_views(&self, select: &mut Select, hidden: &[String]) {
        let mut hidden = hidden.to_vec();
        for cte in &mut select.ctes {
            self.put_queries_for_views(&mut cte.select, &hidden);
            hidden.push(cte.name.clone());
        }
        let joined = select.joins.iter_mut().map(|join| &mut join.source);
        for source in select.from.iter_mut().chain(joined) {
            let alias = source.visible_name().map(str::to_string);
            match source {
                Source::Derived { select, .. } => self.put_queries_for_views(select, &hidden),
                Source::Table { name, .. } if !hidden.contains(name) => {
                    if let Some(View { name, select }) = self.view(name) {
                        let (select, view) = (Box::new(select.clone()), Some(name.clone()));
                        let (lateral, columns) = (false, Vec::new());
                        *source = Source::Derived { lateral, select, alias, columns, view };
                    }
                }
                Source::Table { .. } => {}
            }
        }
        if let Some((_, other)) = &mut select.set_operation {
            self.put_queries_for_views(other, &hidden);
        }
        for expression in select.own_expressions_mut() {
            self.in_subqueries(expression, &hidden);
        }
    }

    fn in_subqueries(&self, expression: &mut Expr, hidden: &[String]) {
        if let Some(select) = expression.subquery_mut() {
            self.put_queries_for_views(select, hidden);
        }
        for child in expression.children_mut() {
            self.in_subqueries(child, hidden);
        }
    }
}

impl Select {
    /// Whether it reads a view, at any depth of FROM.
    pub fn reads_a_view(&self) -> bool {
        self.from_and_joined().any(|s| matches!(s, Source::Derived { view: Some(_), .. }))
            || self.parts().any(Select::reads_a_view)
    }
}
