//! Writes down what changes rows.

use super::expression::Expr;
use super::render::{Renderer, listed};
use super::statement::Stmt;
use super::write::{Conflict, Delete, Insert, InsertSource, Update};
use crate::sql::dialect::{IgnoreForm, PrepareForm, UpsertForm, WriteJoin};

impl Renderer<'_> {
    pub fn insert(&self, insert: &Insert) -> String {
        let spelling = self.dialect.spelling;
        let verb = match (&insert.conflict, spelling.ignore) {
            (Conflict::Replace, _) => spelling.replace,
            (Conflict::Ignore, IgnoreForm::InsertIgnore) => "insert ignore into",
            (Conflict::Ignore, IgnoreForm::OrIgnore) => "insert or ignore into",
            _ => "insert into",
        };
        let source = match &insert.source {
            InsertSource::Values(rows) => {
                let row = |row: &Vec<Expr>| format!("({})", listed(row, |e| self.expr(e)));
                format!("values {}", listed(rows, row))
            }
            InsertSource::Select(select) => self.select(select),
        };
        let conflict = match (&insert.conflict, spelling.ignore, spelling.upsert) {
            (Conflict::Ignore, IgnoreForm::DoNothing, _) => " on conflict do nothing".into(),
            (Conflict::Update { key, sets }, _, UpsertForm::OnConflict) => {
                format!(" on conflict ({}) do update set {}", key.join(", "), self.sets(sets))
            }
            (Conflict::Update { sets, .. }, _, UpsertForm::OnDuplicateKey) => {
                format!(" on duplicate key update {}", self.sets(sets))
            }
            _ => String::new(),
        };
        let columns = insert.columns.join(", ");
        format!("{verb} {} ({columns}) {source}{conflict}", insert.table)
    }

    fn sets(&self, sets: &[(String, Expr)]) -> String {
        listed(sets, |(column, value)| format!("{column} = {}", self.expr(value)))
    }

    pub fn update(&self, update: &Update) -> String {
        let (table, sets) = (&update.table, self.sets(&update.sets));
        match (&update.join, self.dialect.spelling.write_join) {
            (None, _) => format!("update {table} set {sets}{}", self.filter([&update.filter])),
            (Some(join), WriteJoin::Join) => format!(
                "update {table} join {} on {} set {sets}{}",
                join.table,
                self.expr(&join.on),
                self.filter([&update.filter])
            ),
            (Some(join), WriteJoin::From) => format!(
                "update {table} set {sets} from {}{}",
                join.table,
                self.filter([&Some(join.on.clone()), &update.filter])
            ),
        }
    }

    pub fn delete(&self, delete: &Delete) -> String {
        let table = &delete.table;
        match (&delete.join, self.dialect.spelling.write_join) {
            (None, _) => format!("delete from {table}{}", self.filter([&delete.filter])),
            (Some(join), WriteJoin::Join) => format!(
                "delete {table} from {table} join {} on {}{}",
                join.table,
                self.expr(&join.on),
                self.filter([&delete.filter])
            ),
            (Some(join), WriteJoin::From) => format!(
                "delete from {table} using {}{}",
                join.table,
                self.filter([&Some(join.on.clone()), &delete.filter])
            ),
        }
    }

    /// ` where …`, or nothing when there is no condition.
    fn filter<const N: usize>(&self, conditions: [&Option<Expr>; N]) -> String {
        let whole = conditions.into_iter().flatten().cloned().reduce(Expr::and);
        whole.map(|e| format!(" where {}", self.expr(&e))).unwrap_or_default()
    }

    pub fn prepare(&self, name: &str, statement: &Stmt) -> String {
        let text = statement.render(self.dialect);
        match self.dialect.spelling.prepare {
            PrepareForm::As => format!("prepare {name} as {text}"),
            PrepareForm::From => format!("prepare {name} from '{}'", text.replace('\'', "''")),
        }
    }
}
