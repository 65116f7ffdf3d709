//! RETURNING: the rows that a write returns are computed from the versions that it
//! wrote or deleted.

use crate::constraints::Change;
use crate::model::ReferenceModel;
use crate::outcome::Expected;
use crate::stop::Stop;
use crate::version_tables::View;
use crate::world::TxId;
use isolde_sql::{Conflict, Expr, Select, SelectItem, Source, Stmt, Write};

/// Why the rows that a write returns are not modelled, if they are not.
pub fn beyond(items: &[SelectItem], has_join: bool) -> Option<&'static str> {
    let has_subquery = |item: &SelectItem| match item {
        SelectItem::Expression { of, .. } => contains_subquery(of),
        SelectItem::All | SelectItem::AllOf(_) => false,
    };
    if items.is_empty() {
        None
    } else if has_join {
        Some("RETURNING of a write with a join is not modelled")
    } else {
        items.iter().any(has_subquery).then_some("RETURNING with a subquery is not modelled")
    }
}

fn contains_subquery(expression: &Expr) -> bool {
    expression.subquery().is_some() || expression.children().into_iter().any(contains_subquery)
}

impl ReferenceModel<'_> {
    /// Whether a write returns rows instead of counting them.
    pub fn returns_rows(&self, step: usize) -> bool {
        match self.operation(step) {
            Some(Stmt::Write(Write::Insert(insert))) => !insert.returning.is_empty(),
            Some(Stmt::Write(Write::Update(update))) => !update.returning.is_empty(),
            Some(Stmt::Write(Write::Delete(delete))) => !delete.returning.is_empty(),
            _ => false,
        }
    }

    /// What a write comes to: the number of rows, or those that it returns.
    pub async fn expected_of_write(
        &mut self,
        (tx, step): (TxId, usize),
        table: usize,
        changes: &[Change],
        count: u64,
    ) -> Result<Expected, Stop> {
        let (items, alias) = match self.operation(step) {
            Some(Stmt::Write(Write::Insert(insert))) => (&insert.returning, &insert.alias),
            Some(Stmt::Write(Write::Update(update))) => (&update.returning, &update.alias),
            Some(Stmt::Write(Write::Delete(delete))) => (&delete.returning, &delete.alias),
            _ => return Ok(Expected::Count(count)),
        };
        if items.is_empty() {
            return Ok(Expected::Count(count));
        }
        if self.world.merges(tx) {
            return Err(Stop::not_modelled(step, "RETURNING is not modelled here"));
        }
        let upserts = matches!(self.operation(step), Some(Stmt::Write(Write::Insert(i)))
            if matches!(i.conflict, Conflict::Update { .. }));
        if upserts && self.world.concurrency(tx).counting.omits_unchanged() {
            let why = "RETURNING of rows that an upsert leaves as they are is not modelled";
            return Err(Stop::not_modelled(step, why));
        }
        let deletes = matches!(self.operation(step), Some(Stmt::Write(Write::Delete(_))));
        let of_table = changes.iter().filter(|change| change.place.table == table);
        let version = |change: &Change| match deletes {
            true => change.old.as_ref().map(|v| v.id),
            false => change.new.as_ref().map(|v| v.id),
        };
        let mut view: View = vec![Vec::new(); self.world.table_count()];
        view[table] = of_table.filter_map(version).collect();
        let name = self.subject.reading.schema.tables[table].name.clone();
        let from = Some(Source::Table { name, alias: alias.clone() });
        let select = Select { items: items.clone(), from, ..Select::default() };
        let sql = self.tables.select(&select, &view);
        Ok(Expected::Rows(self.evaluate(sql, Some(step)).await?))
    }
}
