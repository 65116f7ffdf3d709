//! Inserts that name their rows: `1s5.0` is the first row of VALUES of statement 5 in table 1,
//! `1s5:0r1+` the one that INSERT … SELECT made from row `0r1`, `1s5:3` the third of a query
//! that puts rows together.

use super::super::query::{Rewritten, in_from, is_unsafe_to_repeat, members, subqueries_of, width};
use super::super::tables::{NEXT, column_of, row_column, text};
use super::marks::AssignmentOrder;
use crate::instrument::{
    Instrument, NotInstrumented, Probe, RowsOf, Sent, StatementId, is_bare, plain,
};
use isolde_sql::dialect::Family;
use isolde_sql::{
    Class, Conflict, Expr, Feature, Function, Insert, InsertSource, Literal, OrderKey, Over,
    Select, SelectItem, Stmt, Type, Window, WindowFunction, Write,
};

impl Instrument {
    pub(in crate::instrument) fn insert(
        &self,
        id: StatementId,
        insert: &Insert,
    ) -> Result<Vec<Sent>, NotInstrumented> {
        let Some((place, table)) = self.table(&insert.table).filter(|(t, _)| self.is_followed(*t))
        else {
            return Ok(vec![plain(&Stmt::Write(Write::Insert(insert.clone())))]);
        };
        let mut observed = insert.clone();
        if observed.columns.is_empty() && observed.source != InsertSource::Defaults {
            observed.columns = table.writable().map(|c| c.name.clone()).collect();
        }
        let before = self.replaced(&observed, place, table)?;
        let mut unobserved = Vec::new();
        match &mut observed.source {
            InsertSource::Values(rows) => {
                for (number, row) in rows.iter_mut().enumerate() {
                    for value in row.iter_mut() {
                        self.name_columns(value, &[])?;
                    }
                    let name = text(&format!("{place}s{id}.{number}"));
                    let origin = self.versions_below(row, &mut unobserved);
                    let keys = self.new_keys(place, &observed.columns, row)?;
                    row.extend(self.new_row((place, id), name, origin, keys));
                }
            }
            InsertSource::Defaults => {
                let name = text(&format!("{place}s{id}.0"));
                let keys = self.new_keys(place, &[], &[])?;
                let row = self.new_row((place, id), name, text(""), keys);
                observed.source = InsertSource::Values(vec![row]);
            }
            InsertSource::Select(select) => {
                let into = (place, id, &observed.columns[..]);
                **select = self.insert_select(into, select, &mut unobserved)?;
            }
        }
        observed.columns.extend(self.added_columns(place).into_iter().map(|c| c.name));
        let qualifier = insert.alias.as_deref().unwrap_or(&insert.table);
        if let Conflict::Update { sets, filter, .. } = &mut observed.conflict {
            let values = sets.iter_mut().map(|(_, value)| value).chain(filter);
            self.prepare(values, &mut unobserved)?;
            // In MySQL's family these are always evaluated one after the other.
            *sets = self.marked(id, (place, table), qualifier, sets, AssignmentOrder::InOrder)?;
        }
        let own_columns =
            self.returning(&mut observed.returning, (table, None), (place, qualifier))?;
        let probe = match own_columns {
            Some(own_columns) => {
                let what = RowsOf::Written;
                Probe::Rows { own_columns, table: place, what, predicate: None }
            }
            None => Probe::Count,
        };
        let after = Sent { unobserved, ..Sent::new(observed, probe) };
        Ok(before.into_iter().chain([after]).collect())
    }

    /// What a new row has in our columns.
    fn new_row(
        &self,
        (place, id): (usize, StatementId),
        row: Expr,
        origin: Expr,
        keys: Option<Expr>,
    ) -> Vec<Expr> {
        let mut cells = vec![row, text(&format!("{NEXT}{id}")), origin];
        cells.resize(self.added_columns(place).len() - usize::from(keys.is_some()), text(""));
        cells.extend(keys);
        cells
    }

    /// The image of the columns of a new row that actions of foreign keys change.
    fn new_keys(
        &self,
        place: usize,
        columns: &[String],
        values: &[Expr],
    ) -> Result<Option<Expr>, NotInstrumented> {
        let table = &self.schema.tables[place];
        let mut all = Vec::new();
        for name in self.changing_columns(place) {
            let Some(column) = table.column(name) else { continue };
            let given = columns.iter().zip(values).find(|(own, _)| *own == name);
            let default = column.default.clone().unwrap_or(Literal::Null);
            let value = match given.map(|(_, value)| value) {
                None | Some(Expr::Default) => Expr::Literal(default),
                Some(value) if is_unsafe_to_repeat(value) => {
                    return Err(NotInstrumented("what a foreign key refers to then is not known"));
                }
                Some(value) => value.clone(),
            };
            // As the column stores it.
            let to = match self.capabilities.family {
                Family::Mysql => Type::Other("signed".into()),
                _ => column.of_type.clone(),
            };
            all.push(Expr::Cast { of: Box::new(value), to });
        }
        Ok((!all.is_empty()).then(|| self.keys_image(all)))
    }

    /// The versions that the subqueries of values read.
    fn versions_below(&self, values: &[Expr], unobserved: &mut Vec<NotInstrumented>) -> Expr {
        let items = values.iter().cloned().map(SelectItem::from).collect();
        let scope = &self.scope_of_write();
        let values = Select { items, ..Select::default() };
        let subqueries = subqueries_of(&values).into_iter();
        let read = subqueries.flat_map(|select| self.read_by_subquery(select, scope, unobserved));
        self.named_versions(read.collect())
    }

    /// Versions in one text, which is never NULL.
    fn named_versions(&self, cells: Vec<Expr>) -> Expr {
        let parts = cells
            .into_iter()
            .flat_map(|cell| [Expr::Call(Function::Coalesce, vec![cell, text("")]), text(";")]);
        let parts: Vec<Expr> = parts.collect();
        if parts.is_empty() { text("") } else { self.joined(parts) }
    }

    /// A query with the added columns of the rows that it inserts.
    fn insert_select(
        &self,
        (place, id, columns): (usize, StatementId, &[String]),
        select: &Select,
        unobserved: &mut Vec<NotInstrumented>,
    ) -> Result<Select, NotInstrumented> {
        let select = self.with_columns_named(select, &[])?;
        let prefix = text(&format!("{place}s{id}:"));
        let is_single = select.set_operation.is_none() && select.values.is_empty();
        let rewritten = match is_single {
            true => self.inline(&select, &self.scope_of_write()),
            false => Err(NotInstrumented("what it inserts comes from several queries")),
        };
        let rewritten = match rewritten {
            Ok(rewritten) => rewritten,
            Err(why) => {
                if self.reads_followed_tables(&select) {
                    unobserved.push(why);
                }
                let types = self.types_of(place, columns);
                return self.numbered_rows(&select, prefix, (place, id, columns), &types);
            }
        };
        let Rewritten { select: mut observed, own_columns, cells, unobserved: more, .. } =
            rewritten;
        unobserved.extend(more);
        observed.items.truncate(own_columns);
        let name = match self.name_by_rows(&select, &prefix) {
            Some(name) => name,
            None => self.joined(vec![prefix, self.row_number(&observed.items)?]),
        };
        let origin = self.named_versions(cells.into_iter().map(|cell| cell.of).collect());
        let values: Vec<Expr> =
            observed.items.iter().filter_map(SelectItem::expression).cloned().collect();
        let keys = self.new_keys(place, columns, &values)?;
        let added = self.new_row((place, id), name, origin, keys);
        observed.items.extend(added.into_iter().map(SelectItem::from));
        Ok(observed)
    }

    /// The rows that a row is made from, where each row comes from one of each table.
    fn name_by_rows(&self, select: &Select, prefix: &Expr) -> Option<Expr> {
        let limited = Select { limit: None, offset: None, ..select.clone() };
        let aggregates = select.items.iter().filter_map(SelectItem::expression).any(|e| {
            let mut found = false;
            e.visit(&mut |e| found |= matches!(e, Expr::Aggregate { .. }));
            found
        });
        if !is_bare(&limited) || aggregates {
            return None;
        }
        let mut rows = vec![prefix.clone()];
        for source in select.from_and_joined() {
            let (from, visible) =
                (self.followed_table(source, &self.scope_of_write())?, source.visible_name()?);
            let row = column_of(visible, &row_column(from));
            // Of an outer join there may be none.
            rows.extend([Expr::Call(Function::Coalesce, vec![row, text("")]), text("+")]);
        }
        Some(self.joined(rows))
    }

    /// A number for each row of a query.
    fn row_number(&self, items: &[SelectItem]) -> Result<Expr, NotInstrumented> {
        if !self.dialect.has(Feature::Window) {
            return Err(NotInstrumented("what it inserts is put together from several rows"));
        }
        let sorts = |e: &&Expr| {
            let mut fits = !matches!(e, Expr::Literal(_));
            e.visit(&mut |e| {
                fits &= e.subquery().is_none() && !matches!(e, Expr::Window { .. });
            });
            fits
        };
        let keys = items.iter().filter_map(SelectItem::expression).filter(sorts);
        Ok(Expr::Window {
            function: WindowFunction::RowNumber,
            arguments: Vec::new(),
            over: Over::Window(Window {
                order: keys.cloned().map(OrderKey::ascending).collect(),
                ..Window::default()
            }),
        })
    }

    /// A query as it is in FROM, with numbers for its rows.
    fn numbered_rows(
        &self,
        select: &Select,
        prefix: Expr,
        (place, id, columns): (usize, StatementId, &[String]),
        types: &[Option<Type>],
    ) -> Result<Select, NotInstrumented> {
        let untyped: Vec<bool> =
            (0..width(select)).map(|at| members(select).any(|m| is_untyped(m, at))).collect();
        let mut outer = in_from(select);
        let own = outer.items.iter().filter_map(SelectItem::expression);
        let mut items: Vec<SelectItem> = Vec::new();
        for ((of, untyped), to) in own.zip(untyped).zip(types) {
            // In FROM it would become a text.
            items.push(
                match to {
                    Some(to) if untyped => Expr::Cast { of: Box::new(of.clone()), to: to.clone() },
                    _ => of.clone(),
                }
                .into(),
            );
        }
        let number = self.row_number(&items)?;
        let name = self.joined(vec![prefix, number]);
        let values: Vec<Expr> = items.iter().filter_map(SelectItem::expression).cloned().collect();
        let keys = self.new_keys(place, columns, &values)?;
        let added = self.new_row((place, id), name, text(""), keys);
        items.extend(added.into_iter().map(SelectItem::from));
        outer.items = items;
        Ok(outer)
    }

    /// The types of columns to which a literal without a type must be cast on PostgreSQL.
    fn types_of(&self, place: usize, columns: &[String]) -> Vec<Option<Type>> {
        let strict = matches!(self.capabilities.family, Family::Postgres | Family::Duckdb);
        let table = &self.schema.tables[place];
        let of_type = |name: &String| {
            let column =
                table.column(name).filter(|c| strict && c.of_type.class() != Class::Text)?;
            Some(column.of_type.clone())
        };
        columns.iter().map(of_type).collect()
    }
}

/// Whether an item of a query is a literal whose type only its use decides.
fn is_untyped(select: &Select, at: usize) -> bool {
    let is_untyped =
        |e: Option<&Expr>| matches!(e, Some(Expr::Literal(Literal::Null | Literal::Text(_))));
    is_untyped(select.items.get(at).and_then(SelectItem::expression))
        || select.values.iter().any(|row| is_untyped(row.get(at)))
}
