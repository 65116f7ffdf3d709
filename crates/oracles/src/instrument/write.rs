//! Rewrites writes so that they leave their number in the rows, and return which rows those are.

use super::tables::{
    CELL, IMAGE, NEXT, NULL_CELL, column_of, past_column, row_column, text, writes_column,
};
use super::{Instrument, NotInstrumented, Probe, RowsOf, Sent, StatementId, is_bare, plain};
use isolde_sql::Class;
use isolde_sql::{
    Binary, Column, Conflict, Delete, Expr, Function, Insert, InsertSource, LockPatience,
    LockStrength, Locking, Select, SelectItem, Source, Stmt, Table, Type, Update, Write,
};

type Sets = Vec<(String, Expr)>;

impl Instrument {
    pub(super) fn update(&self, id: StatementId, update: &Update) -> Result<Sent, NotInstrumented> {
        let Some((place, table)) = self.table(&update.table).filter(|(t, _)| self.is_followed(*t))
        else {
            return Ok(plain(&Stmt::Write(Write::Update(update.clone()))));
        };
        if update.sets.iter().any(|(column, _)| table.column(column).is_none()) {
            return Err(NotInstrumented("it changes two tables"));
        }
        let qualifier = update.alias.as_deref().unwrap_or(&update.table);
        let mut observed = update.clone();
        observed.sets = self.marked(id, (place, table), qualifier, &update.sets);
        let own_columns = self.returning(&mut observed.returning, table, (place, qualifier))?;
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
        Ok(Sent { statement: Stmt::Write(Write::Update(observed)), probe })
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
        let returns = self.capabilities.returns_deleted
            && (self.capabilities.returns_written || delete.join.is_none());
        if returns {
            let own_columns = self.add_rows(&mut observed.returning, table, (place, qualifier))?;
            let what = RowsOf::Deleted;
            let probe = Probe::Rows { own_columns, table: place, what, predicate };
            return Ok(vec![Sent { statement: Stmt::Write(Write::Delete(observed)), probe }]);
        }
        let after = Sent { statement: Stmt::Write(Write::Delete(observed)), probe: Probe::Count };
        if delete.join.is_some() {
            // The partner's rows would be locked, too, and more strictly.
            return Ok(vec![after]);
        }
        let source = Source::Table { name: table.name.clone(), alias: delete.alias.clone() };
        let before = Select {
            items: self.whole_row(place, qualifier),
            from: Some(source),
            filter: delete.filter.clone(),
            order: match delete.order.is_empty() {
                true => isolde_sql::Order::None,
                false => isolde_sql::Order::By(delete.order.clone()),
            },
            limit: delete.limit.clone(),
            locking: Some(for_update()),
            ..Select::default()
        };
        let what = RowsOf::Deleted;
        let probe = Probe::Rows { own_columns: 0, table: place, what, predicate };
        Ok(vec![Sent { statement: Stmt::Select(before), probe }, after])
    }

    pub(super) fn insert(
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
        let before = self.replaced(&observed, place, table);
        observed.columns.extend(self.added_columns(place).into_iter().map(|c| c.name));
        match &mut observed.source {
            InsertSource::Values(rows) => {
                for (number, row) in rows.iter_mut().enumerate() {
                    row.extend(self.new_row(
                        place,
                        id,
                        text(&format!("{place}s{id}.{number}")),
                        text(""),
                    ));
                }
            }
            InsertSource::Defaults => {
                let row = self.new_row(place, id, text(&format!("{place}s{id}.0")), text(""));
                observed.source = InsertSource::Values(vec![row]);
            }
            InsertSource::Select(select) => self.insert_select((place, id), select)?,
        }
        let qualifier = insert.alias.as_deref().unwrap_or(&insert.table);
        if let Conflict::Update { sets, .. } = &mut observed.conflict {
            *sets = self.marked(id, (place, table), qualifier, sets);
        }
        let own_columns = self.returning(&mut observed.returning, table, (place, qualifier))?;
        let probe = match own_columns {
            Some(own_columns) => {
                let what = RowsOf::Written;
                Probe::Rows { own_columns, table: place, what, predicate: None }
            }
            None => Probe::Count,
        };
        let after = Sent { statement: Stmt::Write(Write::Insert(observed)), probe };
        Ok(before.into_iter().chain([after]).collect())
    }

    /// What a new row has in our columns.
    fn new_row(&self, place: usize, id: StatementId, row: Expr, origin: Expr) -> Vec<Expr> {
        let mut cells = vec![row, text(&format!("{NEXT}{id}")), origin];
        cells.resize(self.added_columns(place).len(), text(""));
        cells
    }

    /// Each row is called by those it is made of, and keeps their versions.
    fn insert_select(
        &self,
        (place, id): (usize, StatementId),
        select: &mut Select,
    ) -> Result<(), NotInstrumented> {
        let aggregates = select.items.iter().filter_map(SelectItem::expression).any(|e| {
            let mut found = false;
            e.visit(&mut |e| {
                found |= matches!(e, Expr::Aggregate { .. } | Expr::Call(Function::Named(_), _))
            });
            found
        });
        let limited = Select { limit: None, offset: None, ..select.clone() };
        if !is_bare(&limited) || aggregates || select.items.iter().any(|i| i.expression().is_none())
        {
            return Err(NotInstrumented("what it inserts is put together from several rows"));
        }
        let mut rows = vec![text(&format!("{place}s{id}:"))];
        let mut origin = Vec::new();
        for source in select.from_and_joined() {
            let (Some(name), Some(visible)) = (source.table(), source.visible_name()) else {
                return Err(NotInstrumented("what it inserts comes from a query inside"));
            };
            let Some((from, _)) = self.table(name).filter(|(t, _)| self.is_followed(*t)) else {
                return Err(NotInstrumented(
                    "what it inserts comes from a table that is not followed",
                ));
            };
            rows.push(column_of(visible, &row_column(from)));
            rows.push(text("+"));
            origin.push(self.version(from, visible));
            origin.push(text(";"));
        }
        let origin = if origin.is_empty() { text("") } else { self.joined(origin) };
        let row = self.joined(rows);
        let cells = self.new_row(place, id, row, origin);
        select.items.extend(cells.into_iter().map(SelectItem::from));
        Ok(())
    }

    /// The assignments of a write, preceded by those to the added columns: these see the row
    /// as it was, also where assignments take effect one after the other.
    fn marked(
        &self,
        id: StatementId,
        (place, table): (usize, &Table),
        qualifier: &str,
        sets: &Sets,
    ) -> Sets {
        let of = |name: &str| column_of(qualifier, name);
        let changes =
            self.capabilities.skips_equal_updates.then(|| nothing_changes(table, qualifier, sets));
        let unless_equal = |column: &str, new: Expr| match changes.clone().flatten() {
            None => new,
            Some(equal) => Expr::Case {
                operand: None,
                branches: vec![(equal, of(column))],
                otherwise: Some(Box::new(new)),
            },
        };
        let mut marked = Vec::new();
        if !self.capabilities.returns_written {
            let past = past_column(place);
            let new = self.joined(vec![
                of(&past),
                self.image(table, qualifier),
                text(&IMAGE.to_string()),
            ]);
            marked.push((past.clone(), unless_equal(&past, new)));
        }
        let writes = writes_column(place);
        let new = self.joined(vec![of(&writes), text(&format!("{NEXT}{id}"))]);
        marked.push((writes.clone(), unless_equal(&writes, new)));
        marked.extend(sets.iter().cloned());
        marked
    }

    /// What a row holds, as text.
    fn image(&self, table: &Table, qualifier: &str) -> Expr {
        let cell = |column: &Column| {
            let value = column_of(qualifier, &column.name);
            let value = match column.of_type.class() {
                Class::Blob => value,
                _ => Expr::Cast { of: Box::new(value), to: Type::Other("char".into()) },
            };
            let digits = Expr::Call(Function::Named("hex".into()), vec![value]);
            Expr::Call(Function::Coalesce, vec![digits, text(NULL_CELL)])
        };
        let cells = table.columns.iter().flat_map(|c| [cell(c), text(&CELL.to_string())]);
        self.joined(cells.collect())
    }

    /// The rows whose place a REPLACE takes, where its values say which.
    fn replaced(&self, insert: &Insert, place: usize, table: &Table) -> Option<Sent> {
        let (Conflict::Replace, InsertSource::Values(rows)) = (&insert.conflict, &insert.source)
        else {
            return None;
        };
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
        Some(Sent { statement: Stmt::Select(select), probe })
    }

    /// Makes a write say how it left its rows, where it can: behind how many columns.
    fn returning(
        &self,
        returning: &mut Vec<SelectItem>,
        table: &Table,
        at: (usize, &str),
    ) -> Result<Option<usize>, NotInstrumented> {
        if !self.capabilities.returns_written {
            // Its own columns would be taken for ours.
            return Ok(None);
        }
        self.add_rows(returning, table, at).map(Some)
    }

    fn add_rows(
        &self,
        returning: &mut Vec<SelectItem>,
        table: &Table,
        (place, qualifier): (usize, &str),
    ) -> Result<usize, NotInstrumented> {
        let mut own = Vec::new();
        for item in returning.drain(..) {
            match item {
                SelectItem::All => {
                    own.extend(table.columns.iter().map(|c| Expr::column(&c.name).into()));
                }
                SelectItem::AllOf(_) => return Err(NotInstrumented("it returns * of a table")),
                item @ SelectItem::Expression { .. } => own.push(item),
            }
        }
        let count = own.len();
        *returning = own;
        returning.extend(self.whole_row(place, qualifier));
        Ok(count)
    }
}

/// That every assignment leaves its column as it is. None where that cannot be expressed
/// without computing something twice that may differ.
fn nothing_changes(table: &Table, qualifier: &str, sets: &Sets) -> Option<Expr> {
    let mut all: Option<Expr> = None;
    for (name, new) in sets {
        let mut unsafe_to_repeat = false;
        new.visit(&mut |e| {
            unsafe_to_repeat |= matches!(e, Expr::Default | Expr::Call(Function::Named(_), _));
        });
        if unsafe_to_repeat {
            return None;
        }
        let column = table.column(name)?;
        let (mut old, mut new) = (column_of(qualifier, name), new.clone());
        if column.of_type.class() == Class::Text {
            // To the engine a text has changed when its bytes have, whatever its collation.
            let bytes =
                |of: Expr| Expr::Cast { of: Box::new(of), to: Type::Other("binary".into()) };
            (old, new) = (bytes(old), bytes(new));
        }
        let same = Expr::binary(Binary::NotDistinct, old, new);
        all = Some(all.map_or(same.clone(), |all| all.and(same)));
    }
    all
}

fn for_update() -> Locking {
    Locking { strength: LockStrength::Update, of: Vec::new(), patience: LockPatience::Wait }
}
