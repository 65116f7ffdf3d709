//! SQL that makes the engine evaluate a statement on chosen row versions.

use super::*;
use isolde_sql::Source;
use isolde_sql::render::{Renderer, Substitute, listed};
use isolde_sql::{
    Expr, Insert, InsertSource, Join, JoinKind, Order, OrderKey, Select, SelectItem, TableJoin,
    Using,
};

impl VersionTables<'_> {
    pub fn select(&self, select: &Select, view: &View) -> Vec<String> {
        let views = Views { outer: view, inner: view };
        let substitute: Substitute = &|name| self.instead(name, views);
        let plain = Select { locking: None, ..select.clone() };
        vec![Renderer::reading(self.dialect, substitute).select(&plain)]
    }

    /// The same query over tables that contain the rows of the view.
    pub fn select_materialised(&self, select: &Select, view: &View) -> Vec<String> {
        let mut sql = Vec::new();
        let names = select.sources();
        for (place, table) in self.schema.tables.iter().enumerate() {
            if !names.contains(&table.name.as_str()) {
                continue;
            }
            let rows = self.rows_name(table);
            let columns = listed(&table.columns, |c| self.quoted(&c.name));
            sql.push(format!("delete from {rows}"));
            let versions = self.versions(table, &view[place], false);
            sql.push(format!("insert into {rows} ({columns}) {versions}"));
        }
        let substitute: Substitute = &|name| {
            let table = self.schema.table(name)?;
            Some(self.rows_name(table))
        };
        let plain = Select { locking: None, ..select.clone() };
        sql.push(Renderer::reading(self.dialect, substitute).select(&plain));
        sql
    }

    /// A query whose rows begin with the ids of the versions that they were made of,
    /// one per source.
    pub fn select_with_sources(&self, select: &Select, views: Views<'_>) -> Vec<String> {
        let substitute: Substitute = &|name| self.instead(name, views);
        let names = select.from_and_joined().filter_map(Source::visible_name);
        let mut items: Vec<SelectItem> = names.map(|name| version_of(name).into()).collect();
        items.extend(select.items.iter().cloned());
        let order = match select.limit.is_some() {
            true => Order::By(select.order_keys()),
            false => Order::None,
        };
        let (limit, offset) = (None, None);
        let mut plain = Select { locking: None, items, order, limit, offset, ..select.clone() };
        let joined = plain.joins.iter_mut().map(|j| &mut j.source);
        plain.from.iter_mut().chain(joined).for_each(mark_outer);
        vec![Renderer::reading(self.dialect, substitute).select(&plain)]
    }

    /// The same for one version of each source, in order. Two sources of one table have
    /// versions of their own.
    pub fn select_of_versions(
        &self,
        select: &Select,
        versions: &[(usize, VersionId)],
        inner: &View,
    ) -> Vec<String> {
        let substitute: Substitute = &|name| match name.strip_prefix(OUTER) {
            Some(place) => {
                let (table, id) = versions.get(place.parse::<usize>().ok()?)?;
                let table = &self.schema.tables[*table];
                Some(format!("({})", self.versions(table, &[*id], true)))
            }
            None => self.instead(name, Views { outer: inner, inner }),
        };
        let names = select.from_and_joined().filter_map(Source::visible_name);
        let mut items: Vec<SelectItem> = names.map(|name| version_of(name).into()).collect();
        items.extend(select.items.iter().cloned());
        let (limit, offset) = (None, None);
        let mut plain =
            Select { locking: None, items, order: Order::None, limit, offset, ..select.clone() };
        let joined = plain.joins.iter_mut().map(|j| &mut j.source);
        for (place, source) in plain.from.iter_mut().chain(joined).enumerate() {
            if let Source::Table { name, alias } = source {
                alias.get_or_insert_with(|| name.clone());
                *name = format!("{OUTER}{place}");
            }
        }
        vec![Renderer::reading(self.dialect, substitute).select(&plain)]
    }

    /// Creates the versions that an UPDATE makes of those that it finds.
    pub fn update(&self, search: Search<'_>, sets: Sets<'_>, views: Views<'_>) -> Vec<String> {
        let of = self.schema.table(search.table).expect("a table of the schema");
        let written: Vec<&str> = of.writable().map(|c| c.name.as_str()).collect();
        let mut items = vec![made_mark(), version_of(search.name())];
        items.extend(written.iter().map(|column| match sets.iter().find(|(c, _)| c == column) {
            Some((_, value)) => or_default(of, column, value),
            None => qualified(search.name(), column),
        }));
        let select = self.targets(search, items, views);
        self.make(of, &written, &select)
    }

    /// Finds the versions of the view that a write acts on.
    pub fn found(&self, search: Search<'_>, views: Views<'_>) -> Vec<String> {
        vec![self.targets(search, vec![version_of(search.name())], views)]
    }

    /// The same, in the order of some keys.
    pub fn found_in_order(
        &self,
        search: Search<'_>,
        order: &[OrderKey],
        views: Views<'_>,
    ) -> Vec<String> {
        let order = Renderer::new(self.dialect).order_by(order);
        vec![format!("{} {order}", self.targets(search, vec![version_of(search.name())], views))]
    }

    /// The same, with the version of the joined table.
    pub fn found_pairs(&self, search: Search<'_>, views: Views<'_>) -> Vec<String> {
        let partner = search.join.map(|j| version_of(j.alias.as_deref().unwrap_or(&j.table)));
        let items = std::iter::once(version_of(search.name())).chain(partner).collect();
        vec![self.targets(search, items, views)]
    }

    fn targets(&self, search: Search<'_>, items: Vec<Expr>, views: Views<'_>) -> String {
        let substitute: Substitute = &|name| self.instead(name, views);
        let source = |table: &str, alias: Option<&str>| {
            let alias = alias.map(str::to_string);
            let mut source = Source::Table { name: table.into(), alias };
            mark_outer(&mut source);
            source
        };
        let join = |j: &TableJoin| Join {
            kind: if j.on.is_some() { JoinKind::Inner } else { JoinKind::Cross },
            source: source(&j.table, j.alias.as_deref()),
            on: j.on.clone(),
            using: Using::Nothing,
            nested: 0,
        };
        let select = Select {
            items: items.into_iter().map(SelectItem::from).collect(),
            from: Some(source(search.table, search.alias)),
            joins: search.join.map(join).into_iter().collect(),
            filter: search.filter.cloned(),
            ..Select::default()
        };
        Renderer::reading(self.dialect, substitute).select(&select)
    }

    /// Creates versions of the rows of an INSERT, in its order.
    pub fn incoming(&self, insert: &Insert, view: &View) -> Vec<String> {
        let table = self.schema.table(&insert.table).expect("a table of the schema");
        let views = Views { outer: view, inner: view };
        let substitute: Substitute = &|name| self.instead(name, views);
        let renderer = Renderer::reading(self.dialect, substitute);
        let columns: Vec<&str> = match (&insert.source, insert.columns.is_empty()) {
            (InsertSource::Values(_) | InsertSource::Select(_), true) => {
                table.writable().map(|c| c.name.as_str()).collect()
            }
            _ => insert.columns.iter().map(String::as_str).collect(),
        };
        let rest = match &insert.source {
            InsertSource::Values(rows) => {
                let row = |row: &Vec<Expr>| {
                    let cells: String =
                        row.iter().map(|e| format!(", {}", renderer.expr(e))).collect();
                    format!("({MADE_MARK}, 0{cells})")
                };
                format!("values {}", listed(rows, row))
            }
            InsertSource::Select(select) => {
                let mut select = (**select).clone();
                select.items.splice(0..0, [made_mark().into(), Expr::int(0).into()]);
                renderer.select(&select)
            }
            InsertSource::Defaults => format!("values ({MADE_MARK}, 0)"),
        };
        self.make(table, &columns, &rest)
    }

    /// Creates the version that an upsert makes of the existing and the incoming row. Its
    /// subqueries read the view.
    pub fn upserted(
        &self,
        table: &str,
        sets: Sets<'_>,
        (existing, incoming): (VersionId, VersionId),
        view: &View,
    ) -> Vec<String> {
        let of = self.schema.table(table).expect("a table of the schema");
        let written: Vec<&str> = of.writable().map(|c| c.name.as_str()).collect();
        let mut items = vec![made_mark(), version_of(table)];
        items.extend(written.iter().map(|column| match sets.iter().find(|(c, _)| c == column) {
            Some((_, value)) => with_incoming(&or_default(of, column, value)),
            None => qualified(table, column),
        }));
        let substitute: Substitute = &|name| self.instead(name, Views { outer: view, inner: view });
        let renderer = Renderer::reading(self.dialect, substitute);
        let items = listed(&items, |e| renderer.expr(e));
        let select = format!("select {items} from {}", self.upsert_rows(of, existing, incoming));
        self.make(of, &written, &select)
    }

    /// The version of the existing row if the condition of an upsert holds.
    pub fn upsert_matches(
        &self,
        table: &str,
        filter: &Expr,
        (existing, incoming): (VersionId, VersionId),
        view: &View,
    ) -> Vec<String> {
        let of = self.schema.table(table).expect("a table of the schema");
        let substitute: Substitute = &|name| self.instead(name, Views { outer: view, inner: view });
        let renderer = Renderer::reading(self.dialect, substitute);
        vec![format!(
            "select {} from {} where {}",
            renderer.expr(&version_of(table)),
            self.upsert_rows(of, existing, incoming),
            renderer.expr(&with_incoming(filter))
        )]
    }

    /// The existing row under the name of its table, and the incoming one.
    fn upsert_rows(&self, of: &Table, existing: VersionId, incoming: VersionId) -> String {
        format!(
            "({}) as {} cross join (select {} from {} where {ID} = {incoming}) as {EXCLUDED}",
            self.versions(of, &[existing], true),
            self.quoted(&of.name),
            listed(&of.columns, |c| {
                let name = self.quoted(&incoming_name(&c.name));
                format!("{} as {name}", self.quoted(&c.name))
            }),
            self.name(of)
        )
    }

    /// Creates a copy of a version with some columns of another one.
    pub fn merged(
        &self,
        table: usize,
        onto: VersionId,
        from: VersionId,
        columns: &[usize],
    ) -> Vec<String> {
        let of = &self.schema.tables[table];
        let taken = |name: &str| columns.iter().any(|c| of.columns[*c].name == name);
        let written: Vec<&str> = of.writable().map(|c| c.name.as_str()).collect();
        let name = self.name(of);
        let cell = |column: &&str| {
            let quoted = self.quoted(column);
            match taken(column) {
                true => format!(", (select {quoted} from {name} where {ID} = {from})"),
                false => format!(", {quoted}"),
            }
        };
        let cells: String = written.iter().map(cell).collect();
        let select = format!("select {MADE_MARK}, {ID}{cells} from {name} where {ID} = {onto}");
        self.make(of, &written, &select)
    }

    /// Creates a copy of a version with one column changed.
    pub fn with_column(&self, table: usize, id: VersionId, column: &str, put: &Put) -> Vec<String> {
        let of = &self.schema.tables[table];
        let written: Vec<&str> = of.writable().map(|c| c.name.as_str()).collect();
        let value = match put {
            Put::Null => "null".into(),
            Put::Literal(text) => (*text).into(),
            Put::Version { table: parent, id, column } => format!(
                "(select {} from {} where {ID} = {id})",
                self.quoted(column),
                self.name(&self.schema.tables[*parent])
            ),
        };
        let cells: String = written
            .iter()
            .map(|c| match *c == column {
                true => format!(", {value}"),
                false => format!(", {}", self.quoted(c)),
            })
            .collect();
        let select =
            format!("select {MADE_MARK}, {ID}{cells} from {} where {ID} = {id}", self.name(of));
        self.make(of, &written, &select)
    }
}

/// The assigned value, where DEFAULT stands for that of the column.
pub(super) fn or_default(of: &Table, column: &str, value: &Expr) -> Expr {
    match (value, of.column(column)) {
        (Expr::Default, Some(column)) => {
            Expr::Literal(column.default.clone().unwrap_or(Literal::Null))
        }
        _ => value.clone(),
    }
}
