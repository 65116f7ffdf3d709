//! Renders INSERT, UPDATE and DELETE.

use super::{Renderer, listed};
use crate::ast::{
    Conflict, Delete, Expr, Insert, InsertSource, MatchKind, Merge, MergeAction, MergeClause,
    OrderKey, SelectItem, TableJoin, Update,
};
use crate::dialect::{IgnoreForm, UpsertForm, WriteJoin};

impl Renderer<'_> {
    pub fn insert(&self, insert: &Insert) -> String {
        let spelling = self.dialect.spelling;
        let verb = match (&insert.conflict, spelling.ignore) {
            (Conflict::Replace, _) => spelling.replace,
            (Conflict::Ignore, IgnoreForm::InsertIgnore) => "insert ignore into",
            (Conflict::Ignore, IgnoreForm::OrIgnore) => "insert or ignore into",
            (Conflict::Ignore, IgnoreForm::DoNothing)
            | (Conflict::Fail | Conflict::DoNothing { .. } | Conflict::Update { .. }, _) => {
                "insert into"
            }
        };
        let columns = match insert.columns.is_empty() {
            true => String::new(),
            false => format!(" ({})", self.names(&insert.columns)),
        };
        let source = match &insert.source {
            InsertSource::Values(rows) => {
                let row = |row: &Vec<Expr>| format!("({})", listed(row, |e| self.expr(e)));
                format!("values {}", listed(rows, row))
            }
            InsertSource::Select(select) => self.select(select),
            InsertSource::Defaults => "default values".into(),
        };
        let table = self.table(&insert.table, insert.alias.as_deref());
        let conflict = self.conflict(&insert.conflict);
        format!("{verb} {table}{columns} {source}{conflict}{}", self.returning(&insert.returning))
    }

    /// The conflict clause after the rows of an INSERT.
    fn conflict(&self, conflict: &Conflict) -> String {
        let spelling = self.dialect.spelling;
        let target = |key: &[String]| match key.is_empty() {
            true => String::new(),
            false => format!(" ({})", self.names(key)),
        };
        match conflict {
            Conflict::Fail | Conflict::Replace => String::new(),
            Conflict::Ignore => match spelling.ignore {
                IgnoreForm::DoNothing => " on conflict do nothing".into(),
                IgnoreForm::InsertIgnore | IgnoreForm::OrIgnore => String::new(),
            },
            Conflict::DoNothing { key } => format!(" on conflict{} do nothing", target(key)),
            Conflict::Update { key, sets, filter } => match spelling.upsert {
                UpsertForm::OnConflict => format!(
                    " on conflict{} do update set {}{}",
                    target(key),
                    self.sets(sets),
                    self.filter(filter.iter())
                ),
                UpsertForm::OnDuplicateKey => {
                    format!(" on duplicate key update {}", self.sets(sets))
                }
            },
        }
    }

    fn sets(&self, sets: &[(String, Expr)]) -> String {
        listed(sets, |(column, value)| format!("{} = {}", self.name(column), self.expr(value)))
    }

    fn returning(&self, items: &[SelectItem]) -> String {
        match items.is_empty() {
            true => String::new(),
            false => format!(" returning {}", self.items(items)),
        }
    }

    /// ` order by … limit …`, as far as they are present.
    fn end_of_write(&self, order: &[OrderKey], limit: &Option<Expr>) -> String {
        let limit = limit.as_ref().map(|e| format!(" limit {}", self.expr(e)));
        format!("{}{}", self.order_by(order), limit.unwrap_or_default())
    }

    /// ` join t on …`, as MySQL's family writes it.
    fn joined(&self, join: &TableJoin) -> String {
        let on = join.on.as_ref().map(|e| format!(" on {}", self.expr(e)));
        let table = self.table(&join.table, join.alias.as_deref());
        format!(" join {table}{}", on.unwrap_or_default())
    }

    pub fn update(&self, update: &Update) -> String {
        let table = self.table(&update.table, update.alias.as_deref());
        let sets = self.sets(&update.sets);
        let changed = match (&update.join, self.dialect.spelling.write_join) {
            (None, _) => format!("update {table} set {sets}{}", self.filter(update.filter.iter())),
            (Some(join), WriteJoin::Join) => format!(
                "update {table}{} set {sets}{}",
                self.joined(join),
                self.filter(update.filter.iter())
            ),
            (Some(join), WriteJoin::From) => format!(
                "update {table} set {sets} from {}{}",
                self.table(&join.table, join.alias.as_deref()),
                self.filter(join.on.iter().chain(&update.filter))
            ),
        };
        let end = self.end_of_write(&update.order, &update.limit);
        format!("{changed}{end}{}", self.returning(&update.returning))
    }

    pub fn delete(&self, delete: &Delete) -> String {
        let table = self.table(&delete.table, delete.alias.as_deref());
        let filter = self.filter(delete.filter.iter());
        let seen = self.name(delete.alias.as_deref().unwrap_or(&delete.table));
        let cut = delete.limit.is_some() || !delete.order.is_empty();
        let deleted = match (&delete.join, self.dialect.spelling.write_join) {
            // MariaDB accepts an alias only in this form, which has no LIMIT.
            (None, WriteJoin::Join) if delete.alias.is_some() && !cut => {
                format!("delete {seen} from {table}{filter}")
            }
            (None, _) => format!("delete from {table}{filter}"),
            (Some(join), WriteJoin::Join) => {
                format!("delete {seen} from {table}{}{filter}", self.joined(join))
            }
            (Some(join), WriteJoin::From) => format!(
                "delete from {table} using {}{}",
                self.table(&join.table, join.alias.as_deref()),
                self.filter(join.on.iter().chain(&delete.filter))
            ),
        };
        let end = self.end_of_write(&delete.order, &delete.limit);
        format!("{deleted}{end}{}", self.returning(&delete.returning))
    }

    pub fn merge(&self, merge: &Merge) -> String {
        let table = self.table(&merge.table, merge.alias.as_deref());
        let (source, on) = (self.source(&merge.source), self.expr(&merge.on));
        let mut out = format!("merge into {table} using {source} on {on}");
        for MergeClause { kind, condition, action } in &merge.clauses {
            let kind = match kind {
                MatchKind::Matched => "matched",
                MatchKind::NotMatched => "not matched",
                MatchKind::NotMatchedBySource => "not matched by source",
            };
            let condition = condition.as_ref().map(|e| format!(" and {}", self.expr(e)));
            let action = match action {
                MergeAction::Update(sets) => format!("update set {}", self.sets(sets)),
                MergeAction::Delete => "delete".into(),
                MergeAction::Nothing => "do nothing".into(),
                MergeAction::Insert { columns, values } => {
                    let columns = match columns.is_empty() {
                        true => String::new(),
                        false => format!(" ({})", self.names(columns)),
                    };
                    format!("insert{columns} values ({})", listed(values, |e| self.expr(e)))
                }
            };
            out.push_str(&format!(" when {kind}{} then {action}", condition.unwrap_or_default()));
        }
        out
    }

    /// ` where …`, or nothing when there is no condition.
    fn filter<'e>(&self, conditions: impl Iterator<Item = &'e Expr>) -> String {
        let whole = conditions.cloned().reduce(Expr::and);
        whole.map(|e| format!(" where {}", self.expr(&e))).unwrap_or_default()
    }
}
