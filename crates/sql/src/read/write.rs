//! Parses INSERT, REPLACE, UPDATE and DELETE.

use super::expression::optional;
use super::{DEEPEST, Reader};
use crate::ast::{
    Binary, Conflict, Delete, Expr, Function, Insert, InsertSource, Join, JoinKind, Source, Stmt,
    TableJoin, Update, Using, Write,
};
use crate::dialect::Family;
use sqlparser::ast::{
    self, Assignment, AssignmentTarget, ConflictTarget, DoUpdate, FromTable, ObjectNamePart,
    OnConflict, OnConflictAction, OnInsert, Query, SetExpr, SqliteOnConflict, TableObject,
    TableWithJoins, UpdateTableFromKind, Values,
};

/// Turns an INSERT into REPLACE, which is the meaning of CockroachDB's UPSERT.
pub(super) fn make_replace(statement: &mut Stmt) -> Option<()> {
    let Stmt::Write(Write::Insert(insert)) = statement else { return None };
    let plain = insert.conflict == Conflict::Fail;
    insert.conflict = Conflict::Replace;
    plain.then_some(())
}

impl Reader {
    pub(super) fn insert(self, insert: ast::Insert) -> Option<Insert> {
        let ast::Insert {
            insert_token: _,
            optimizer_hints,
            or,
            ignore,
            into: _,
            table: TableObject::TableName(table),
            table_alias,
            columns,
            overwrite: false,
            source,
            assignments,
            partitioned: None,
            after_columns,
            has_table_keyword: false,
            on,
            returning,
            output: None,
            replace_into,
            priority: None,
            insert_alias: None,
            settings: None,
            format_clause: None,
            multi_table_insert_type: None,
            multi_table_into_clauses,
            multi_table_when_clauses,
            multi_table_else_clause: None,
        } = insert
        else {
            return None;
        };
        let nothing_else = optimizer_hints.is_empty()
            && after_columns.is_empty()
            && multi_table_into_clauses.is_empty()
            && multi_table_when_clauses.is_empty();
        let table = self.table_name(&table)?;
        let (columns, source) = match source {
            Some(source) if assignments.is_empty() => {
                let columns = columns.iter().map(|c| self.column_of(c)).collect::<Option<_>>()?;
                (columns, self.insert_source(*source)?)
            }
            Some(_) => return None,
            None if assignments.is_empty() => {
                if !columns.is_empty() {
                    return None;
                }
                (Vec::new(), InsertSource::Defaults)
            }
            // INSERT … SET is a row of VALUES.
            None => {
                let sets = self.sets(assignments, &table)?;
                let (columns, row) = sets.into_iter().unzip();
                (columns, InsertSource::Values(vec![row]))
            }
        };
        let alias = optional(table_alias, |alias| self.table_ident(&alias.alias))?;
        let seen = alias.clone().unwrap_or_else(|| table.clone());
        let conflict = match (or, ignore, replace_into, on) {
            (None, false, false, None) => Conflict::Fail,
            (None, true, false, None) if self.family == Family::Mysql => Conflict::Ignore,
            (None, false, true, None) => self.replace()?,
            (Some(SqliteOnConflict::Replace), false, false, None) => self.replace()?,
            (Some(SqliteOnConflict::Ignore), false, false, None)
                if matches!(self.family, Family::Sqlite | Family::Duckdb) =>
            {
                Conflict::Ignore
            }
            (None, false, false, Some(on)) => self.conflict(on, &seen)?,
            _ => return None,
        };
        let returning = self.items(returning.unwrap_or_default(), DEEPEST)?;
        nothing_else.then_some(Insert { table, alias, columns, source, conflict, returning })
    }

    /// Whether the statement is spelled REPLACE.
    fn replace(self) -> Option<Conflict> {
        matches!(self.family, Family::Sqlite | Family::Mysql).then_some(Conflict::Replace)
    }

    fn insert_source(self, source: Query) -> Option<InsertSource> {
        if !matches!(*source.body, SetExpr::Values(_)) {
            return Some(InsertSource::Select(Box::new(self.query(source, DEEPEST)?)));
        }
        let Query {
            with: None,
            body,
            order_by: None,
            limit_clause: None,
            fetch: None,
            locks,
            for_clause: None,
            settings: None,
            format_clause: None,
            pipe_operators,
        } = source
        else {
            return None;
        };
        let SetExpr::Values(values) = *body else { return None };
        let rows = self.values(Values { value_keyword: false, ..values }, DEEPEST)?;
        (locks.is_empty() && pipe_operators.is_empty()).then_some(InsertSource::Values(rows))
    }

    fn conflict(self, on: OnInsert, table: &str) -> Option<Conflict> {
        match (on, self.family) {
            (OnInsert::DuplicateKeyUpdate(assignments), Family::Mysql) => {
                let sets = incoming(self.sets(assignments, table)?);
                Some(Conflict::Update { key: Vec::new(), sets, filter: None })
            }
            (OnInsert::OnConflict(OnConflict { conflict_target, action }), family)
                if family != Family::Mysql =>
            {
                let key = match conflict_target {
                    None => Vec::new(),
                    Some(ConflictTarget::Columns(columns)) => {
                        columns.iter().map(|c| self.column(c)).collect::<Option<_>>()?
                    }
                    Some(ConflictTarget::OnConstraint(_)) => return None,
                };
                match action {
                    OnConflictAction::DoNothing => {
                        Some(match key.is_empty() && family != Family::Sqlite {
                            true => Conflict::Ignore,
                            false => Conflict::DoNothing { key },
                        })
                    }
                    OnConflictAction::DoUpdate(DoUpdate { assignments, selection }) => {
                        let sets = incoming(self.sets(assignments, table)?);
                        let mut filter = optional(selection, |e| self.expr(e, DEEPEST))?;
                        filter.iter_mut().for_each(mark_incoming);
                        Some(Conflict::Update { key, sets, filter })
                    }
                }
            }
            _ => None,
        }
    }

    /// Column names of the written table; `t.a` becomes `a` if `t` is that table.
    pub(super) fn sets(
        self,
        assignments: Vec<Assignment>,
        table: &str,
    ) -> Option<Vec<(String, Expr)>> {
        let read = |Assignment { target, value }: Assignment| {
            let AssignmentTarget::ColumnName(name) = target else { return None };
            let column = match name.0.as_slice() {
                [ObjectNamePart::Identifier(column)] => self.column(column)?,
                [ObjectNamePart::Identifier(of), ObjectNamePart::Identifier(column)] => {
                    let own = self.family == Family::Mysql && self.table_ident(of)? == table;
                    own.then(|| self.column(column)).flatten()?
                }
                _ => return None,
            };
            Some((column, self.expr(value, DEEPEST)?))
        };
        assignments.into_iter().map(read).collect()
    }

    pub(super) fn update(self, update: ast::Update) -> Option<Update> {
        let ast::Update {
            update_token: _,
            optimizer_hints,
            table,
            assignments,
            from,
            selection,
            returning,
            output: None,
            or: None,
            order_by,
            limit,
        } = update
        else {
            return None;
        };
        let joined = match from {
            None => Vec::new(),
            Some(UpdateTableFromKind::AfterSet(from)) => from,
            Some(UpdateTableFromKind::BeforeSet(_)) => return None,
        };
        let filter = optional(selection, |e| self.expr(e, DEEPEST))?;
        let target = self.target(table, joined, filter)?;
        let seen = target.alias.clone().unwrap_or_else(|| target.table.clone());
        let order = order_by.into_iter().map(|key| self.order_key(key, DEEPEST));
        let read = Update {
            sets: self.sets(assignments, &seen)?,
            table: target.table,
            alias: target.alias,
            join: target.join,
            filter: target.filter,
            order: order.collect::<Option<_>>()?,
            limit: optional(limit, |e| self.expr(e, DEEPEST))?,
            returning: self.items(returning.unwrap_or_default(), DEEPEST)?,
        };
        optimizer_hints.is_empty().then_some(read)
    }

    pub(super) fn delete(self, delete: ast::Delete) -> Option<Delete> {
        let ast::Delete {
            delete_token: _,
            optimizer_hints,
            tables,
            from: FromTable::WithFromKeyword(mut from),
            using,
            selection,
            returning,
            output: None,
            order_by,
            limit,
        } = delete
        else {
            return None;
        };
        let table = from.pop()?;
        if !from.is_empty() || tables.is_empty() && !table.joins.is_empty() {
            return None;
        }
        let filter = optional(selection, |e| self.expr(e, DEEPEST))?;
        let target = self.target(table, using.unwrap_or_default(), filter)?;
        // DELETE t FROM t JOIN u: the table whose rows are deleted must be the first.
        let seen = target.alias.as_ref().unwrap_or(&target.table);
        let named = match tables.as_slice() {
            [] => true,
            [name] => self.table_name(name)? == *seen,
            _ => false,
        };
        let order = order_by.into_iter().map(|key| self.order_key(key, DEEPEST));
        let read = Delete {
            table: target.table,
            alias: target.alias,
            join: target.join,
            filter: target.filter,
            order: order.collect::<Option<_>>()?,
            limit: optional(limit, |e| self.expr(e, DEEPEST))?,
            returning: self.items(returning.unwrap_or_default(), DEEPEST)?,
        };
        (named && optimizer_hints.is_empty()).then_some(read)
    }

    /// The written table, at most one joined table, and the condition.
    fn target(
        self,
        table: TableWithJoins,
        mut joined: Vec<TableWithJoins>,
        filter: Option<Expr>,
    ) -> Option<Target> {
        let TableWithJoins { relation, mut joins } = table;
        let (table, alias) = self.written(relation)?;
        let other = joined.pop();
        if !joined.is_empty() {
            return None;
        }
        let (join, filter) = match (joins.pop(), other, self.family) {
            (None, None, _) => (None, filter),
            (Some(join), None, Family::Mysql) => {
                let Join { kind: JoinKind::Inner, source, on, using: Using::Nothing, nested: 0 } =
                    self.join(join, DEEPEST)?
                else {
                    return None;
                };
                let Source::Table { name, alias } = source else { return None };
                (Some(TableJoin { table: name, alias, on }), filter)
            }
            (None, Some(TableWithJoins { relation, joins }), family) => {
                if family == Family::Mysql || !joins.is_empty() {
                    return None;
                }
                let (table, alias) = self.written(relation)?;
                // It does not matter which part of the condition belongs to the join.
                let (on, filter) = match filter {
                    Some(Expr::Binary(Binary::And, on, rest)) => (Some(*on), Some(*rest)),
                    whole => (whole, None),
                };
                (Some(TableJoin { table, alias, on }), filter)
            }
            _ => return None,
        };
        joins.is_empty().then_some(Target { table, alias, join, filter })
    }

    fn written(self, relation: ast::TableFactor) -> Option<(String, Option<String>)> {
        match self.source(relation, DEEPEST)? {
            Source::Table { name, alias } => Some((name, alias)),
            Source::Derived { .. } => None,
        }
    }
}

struct Target {
    table: String,
    alias: Option<String>,
    join: Option<TableJoin>,
    filter: Option<Expr>,
}

fn incoming(mut sets: Vec<(String, Expr)>) -> Vec<(String, Expr)> {
    sets.iter_mut().for_each(|(_, value)| mark_incoming(value));
    sets
}

/// Replaces `excluded.a` and MySQL's `values(a)` by the value that was to be inserted.
fn mark_incoming(value: &mut Expr) {
    let column = match value {
        Expr::Column { qualifier: Some(of), name } if of.eq_ignore_ascii_case("excluded") => {
            Some(name.clone())
        }
        Expr::Call(Function::Named(function), arguments) if function == "values" => {
            match arguments.as_slice() {
                [Expr::Column { qualifier: None, name }] => Some(name.clone()),
                _ => None,
            }
        }
        _ => None,
    };
    match column {
        Some(column) => *value = Expr::Incoming(column),
        None => value.children_mut().into_iter().for_each(mark_incoming),
    }
}
