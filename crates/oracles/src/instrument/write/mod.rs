//! Rewrites writes so that they leave their number in the rows, and return which rows those are.

mod insert;
mod marks;

use self::marks::AssignmentOrder;
use super::query::{READ_BY_WRITE, outside_of_subqueries};
use super::tables::column_of;
use super::{Instrument, NotInstrumented, Probe, RowsOf, Sent, StatementId, plain};
use isolde_sql::dialect::Family;
use isolde_sql::{
    Binary, Column, Conflict, Delete, Expr, Insert, InsertSource, LockPatience, LockStrength,
    Locking, Select, SelectItem, Source, Stmt, Table, TableJoin, Update, Write,
};

type Sets = Vec<(String, Expr)>;

impl Instrument {
    pub(super) fn update(&self, id: StatementId, update: &Update) -> Result<Sent, NotInstrumented> {
        let Some((place, table)) = self.table(&update.table) else {
            return Ok(plain(&Stmt::Write(Write::Update(update.clone()))));
        };
        let qualifier = update.alias.as_deref().unwrap_or(&update.table);
        let mut observed = update.clone();
        let mut unobserved = Vec::new();
        let on = observed.join.iter_mut().filter_map(|join| join.on.as_mut());
        let values = observed.sets.iter_mut().map(|(_, value)| value);
        self.prepare(values.chain(on).chain(&mut observed.filter), &mut unobserved)?;
        let (own, others): (Sets, Sets) =
            observed.sets.into_iter().partition(|(column, _)| table.column(column).is_some());
        let order = self.assignment_order(update);
        let marks = |at: (usize, &Table), qualifier: &str, sets: Sets| match sets.is_empty() {
            false if self.is_followed(at.0) => self.marked(id, at, qualifier, &sets, order),
            _ => Ok(sets),
        };
        observed.sets = marks((place, table), qualifier, own)?;
        // In MySQL's family the joined table can be changed, too.
        let partner = update.join.as_ref().and_then(|join| Some((join, self.table(&join.table)?)));
        observed.sets.extend(match partner {
            Some((join, at)) => marks(at, join.alias.as_deref().unwrap_or(&join.table), others)?,
            None => others,
        });
        if !self.is_followed(place) {
            return Ok(Sent { unobserved, ..Sent::new(observed, Probe::Nothing) });
        }
        let partner = update.join.as_ref();
        let own_columns =
            self.returning(&mut observed.returning, (table, partner), (place, qualifier))?;
        let alone = update.join.is_none() && update.limit.is_none();
        let predicate =
            alone.then(|| self.predicate(&update.table, update.filter.as_ref())).flatten();
        let probe = match own_columns {
            Some(own_columns) => {
                Probe::Rows { own_columns, table: place, what: RowsOf::Written, predicate }
            }
            // Rows that match and are left as they are have no mark, so what it found is not
            // known.
            None => Probe::Count,
        };
        Ok(Sent { unobserved, ..Sent::new(observed, probe) })
    }

    /// What the assignments of an UPDATE see. One with a join or a subquery may be run as a join,
    /// which computes all values first.
    fn assignment_order(&self, update: &Update) -> AssignmentOrder {
        let mut subqueries = false;
        if let Some(filter) = &update.filter {
            filter.visit(&mut |e| subqueries |= e.subquery().is_some());
        }
        match self.capabilities.assigns_in_order {
            false => AssignmentOrder::Simultaneous,
            true if update.join.is_some() || subqueries => AssignmentOrder::AsPlanned,
            true => AssignmentOrder::InOrder,
        }
    }

    pub(super) fn delete(&self, delete: &Delete) -> Result<Vec<Sent>, NotInstrumented> {
        let Some((place, table)) = self.table(&delete.table).filter(|(t, _)| self.is_followed(*t))
        else {
            return Ok(vec![plain(&Stmt::Write(Write::Delete(delete.clone())))]);
        };
        let alone = delete.join.is_none() && delete.limit.is_none();
        let predicate =
            alone.then(|| self.predicate(&delete.table, delete.filter.as_ref())).flatten();
        let qualifier = delete.alias.as_deref().unwrap_or(&delete.table);
        let mut observed = delete.clone();
        let mut unobserved = Vec::new();
        let on = observed.join.iter_mut().filter_map(|join| join.on.as_mut());
        self.prepare(on.chain(&mut observed.filter), &mut unobserved)?;
        let children = self.deleted_with(&observed, place)?;
        let returns = self.capabilities.returns_deleted
            && (self.capabilities.returns_written || delete.join.is_none());
        if returns {
            let partner = delete.join.as_ref();
            let own_columns =
                self.add_rows(&mut observed.returning, (table, partner), (place, qualifier))?;
            let what = RowsOf::Deleted;
            let probe = Probe::Rows { own_columns, table: place, what, predicate };
            let sent = Sent { unobserved, ..Sent::new(observed, probe) };
            return Ok(children.into_iter().chain([sent]).collect());
        }
        let (filter, order) = (observed.filter.clone(), observed.order.clone());
        let limit = observed.limit.clone();
        let after = Sent { unobserved, ..Sent::new(observed, Probe::Count) };
        if delete.join.is_some() {
            // The partner's rows would be locked, too, and more strictly.
            return Ok(vec![after]);
        }
        let source = Source::Table { name: table.name.clone(), alias: delete.alias.clone() };
        let before = Select {
            items: self.whole_row(place, qualifier),
            from: Some(source),
            filter,
            order: match order.is_empty() {
                true => isolde_sql::Order::None,
                false => isolde_sql::Order::By(order),
            },
            limit,
            locking: Some(for_update()),
            ..Select::default()
        };
        let what = RowsOf::Deleted;
        let probe = Probe::Rows { own_columns: 0, table: place, what, predicate };
        Ok(children.into_iter().chain([Sent::new(before, probe), after]).collect())
    }

    /// The rows of other tables that a DELETE takes away with its own, on engines whose writes
    /// return nothing.
    fn deleted_with(&self, delete: &Delete, place: usize) -> Result<Vec<Sent>, NotInstrumented> {
        if self.capabilities.returns_written || self.changed_with(place).is_empty() {
            return Ok(Vec::new());
        }
        if delete.join.is_some() || delete.limit.is_some() {
            return Err(NotInstrumented("which rows of other tables it changes is not known"));
        }
        let table = Source::Table { name: delete.table.clone(), alias: delete.alias.clone() };
        Ok(self.children_of(&table, place, delete.filter.as_ref()))
    }

    /// Reads the rows that actions delete with rows of a table, at any depth.
    fn children_of(&self, table: &Source, place: usize, filter: Option<&Expr>) -> Vec<Sent> {
        let visible = table.visible_name().unwrap_or_default();
        let mut found = Vec::new();
        for action in self.cascades_from(place).into_iter().filter(|a| self.is_followed(a.child)) {
            let column = |table: usize, at: usize| &self.schema.tables[table].columns[at].name;
            let keys = Select {
                items: vec![column_of(visible, column(place, action.parent_column)).into()],
                from: Some(table.clone()),
                filter: filter.cloned(),
                locking: Some(for_update()),
                ..Select::default()
            };
            let child = &self.schema.tables[action.child].name;
            let of_them = Expr::InSelect {
                of: Box::new(column_of(child, column(action.child, action.column))),
                select: Box::new(keys),
                negated: false,
            };
            let rows = Select {
                items: self.whole_row(action.child, child),
                from: Some(Source::named(child)),
                filter: Some(of_them.clone()),
                locking: Some(for_update()),
                ..Select::default()
            };
            let (table, what) = (action.child, RowsOf::Deleted);
            found.push(Sent::new(
                rows,
                Probe::Rows { own_columns: 0, table, what, predicate: None },
            ));
            found.extend(self.children_of(&Source::named(child), table, Some(&of_them)));
        }
        found
    }

    /// The rows whose place a REPLACE takes, where its values say which, and those of other tables
    /// that are deleted with them.
    fn replaced(
        &self,
        insert: &Insert,
        place: usize,
        table: &Table,
    ) -> Result<Vec<Sent>, NotInstrumented> {
        if insert.conflict != Conflict::Replace {
            return Ok(Vec::new());
        }
        match self.replaced_by_values(insert, place, table) {
            None if !self.changed_with(place).is_empty() => {
                Err(NotInstrumented("which rows of other tables it changes is not known"))
            }
            sent => Ok(sent.unwrap_or_default()),
        }
    }

    fn replaced_by_values(
        &self,
        insert: &Insert,
        place: usize,
        table: &Table,
    ) -> Option<Vec<Sent>> {
        let InsertSource::Values(rows) = &insert.source else { return None };
        let value = |row: &[Expr], column: &String| {
            let given = insert.columns.iter().position(|c| c == column).map(|at| row[at].clone());
            let default = || table.column(column).and_then(|c| c.default.clone());
            given.or_else(|| default().map(Expr::Literal)).filter(|v| matches!(v, Expr::Literal(_)))
        };
        let mut any: Option<Expr> = None;
        for (row, key) in
            rows.iter().flat_map(|row| table.keys().into_iter().map(move |k| (row, k)))
        {
            let mut all: Option<Expr> = None;
            for column in &key {
                let value = value(row, column)?;
                let own = column_of(&table.name, column);
                let equal = Expr::binary(Binary::Equal, own, value);
                all = Some(all.map_or(equal.clone(), |all| all.and(equal)));
            }
            let Some(all) = all else { continue };
            any = Some(any.map_or(all.clone(), |any| Expr::binary(Binary::Or, any, all)));
        }
        let select = Select {
            items: self.whole_row(place, &table.name),
            from: Some(Source::named(&table.name)),
            filter: Some(any?),
            locking: self.dialect.has(isolde_sql::Feature::ForUpdate).then(for_update),
            ..Select::default()
        };
        let what = RowsOf::Replaced;
        let probe = Probe::Rows { own_columns: 0, table: place, what, predicate: None };
        let children = match self.capabilities.returns_written {
            true => Vec::new(),
            false => self.children_of(&Source::named(&table.name), place, select.filter.as_ref()),
        };
        Some(children.into_iter().chain([Sent::new(select, probe)]).collect())
    }

    /// Writes out `*` in the subqueries of a write, and says why what they read is not revealed.
    fn prepare<'e>(
        &self,
        expressions: impl IntoIterator<Item = &'e mut Expr>,
        unobserved: &mut Vec<NotInstrumented>,
    ) -> Result<(), NotInstrumented> {
        for expression in expressions {
            self.name_columns(expression, &[])?;
            let mut reads = false;
            outside_of_subqueries(expression, &mut |e| {
                reads |= e.subquery().is_some_and(|select| self.reads_followed_tables(select));
            });
            if reads {
                unobserved.push(READ_BY_WRITE);
            }
        }
        Ok(())
    }

    /// Makes a write say how it left its rows, where it can: behind how many columns.
    fn returning(
        &self,
        returning: &mut Vec<SelectItem>,
        tables: (&Table, Option<&TableJoin>),
        at: (usize, &str),
    ) -> Result<Option<usize>, NotInstrumented> {
        if !self.capabilities.returns_written {
            // Its own columns would be taken for ours.
            return Ok(None);
        }
        self.add_rows(returning, tables, at).map(Some)
    }

    fn add_rows(
        &self,
        returning: &mut Vec<SelectItem>,
        (table, partner): (&Table, Option<&TableJoin>),
        (place, qualifier): (usize, &str),
    ) -> Result<usize, NotInstrumented> {
        // Elsewhere RETURNING knows only the written table.
        let partner = partner.filter(|_| self.capabilities.family == Family::Postgres);
        let mut sources = vec![(qualifier, table)];
        if let Some(join) = partner {
            let (_, joined) = self.table(&join.table).ok_or(UNNAMED)?;
            sources.push((join.alias.as_deref().unwrap_or(&join.table), joined));
        }
        let mut own: Vec<SelectItem> = Vec::new();
        for item in returning.drain(..) {
            let wanted = match &item {
                SelectItem::Expression { .. } => {
                    own.push(item);
                    continue;
                }
                SelectItem::All => None,
                SelectItem::AllOf(name) => Some(name.as_str()),
            };
            let before = own.len();
            for (name, table) in &sources {
                if wanted.is_none_or(|wanted| wanted == *name) {
                    let column = |column: &Column| match partner {
                        None => Expr::column(&column.name),
                        Some(_) => column_of(name, &column.name),
                    };
                    own.extend(table.columns.iter().map(|c| column(c).into()));
                }
            }
            if own.len() == before {
                return Err(UNNAMED);
            }
        }
        let count = own.len();
        *returning = own;
        returning.extend(self.whole_row(place, qualifier));
        Ok(count)
    }
}

const UNNAMED: NotInstrumented = NotInstrumented("it returns * of what is not known");

fn for_update() -> Locking {
    Locking { strength: LockStrength::Update, of: Vec::new(), patience: LockPatience::Wait }
}
