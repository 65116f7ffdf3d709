//! Smaller schemas: fewer tables, columns, rows, indexes and constraints.

use crate::plan::Plan;
use isolde_sql::{Conflict, Ddl, InsertSource, MergeAction, OnDelete, Stmt, Table, Write};

impl Plan {
    /// The plan without a row; none if a row of another table refers to it.
    pub(super) fn without_row(&self, table: usize, row: usize) -> Option<Plan> {
        let gone = self.rows.get(table)?.get(row)?;
        let name = &self.schema.tables[table].name;
        for (child, rows) in self.schema.tables.iter().zip(&self.rows) {
            for key in child.foreign_keys.iter().filter(|f| f.parent == *name) {
                let parent_cell = place(&self.schema.tables[table], &key.parent_column)?;
                let child_cell = place(child, &key.column)?;
                if rows.iter().any(|r| r[child_cell] == gone[parent_cell]) {
                    return None;
                }
            }
        }
        let mut plan = self.copied();
        plan.rows[table].remove(row);
        Some(plan)
    }

    /// The plan without the rows of a table; none if there are fewer than two, or a row of another
    /// table refers to them.
    pub(super) fn without_rows(&self, table: usize) -> Option<Plan> {
        let name = &self.schema.tables.get(table)?.name;
        let children = self.schema.tables.iter().zip(&self.rows);
        let refers = |(child, rows): (&Table, &isolde_sql::fixture::Rows)| {
            !rows.is_empty() && child.foreign_keys.iter().any(|f| f.parent == *name)
        };
        if self.rows.get(table)?.len() < 2 || children.into_iter().any(refers) {
            return None;
        }
        let mut plan = self.copied();
        plan.rows[table].clear();
        Some(plan)
    }

    /// The plan without a table; none if a statement or a foreign key names it.
    pub(super) fn without_table(&self, table: usize) -> Option<Plan> {
        let name = &self.schema.tables.get(table)?.name;
        let used = self.statements().any(|s| s.tables().contains(&name.as_str()));
        if used || self.schema.tables.len() < 2 || self.schema.children(name).next().is_some() {
            return None;
        }
        let mut plan = self.copied();
        plan.schema.tables.remove(table);
        plan.rows.remove(table);
        Some(plan)
    }

    /// The plan without a column, which INSERT and SET lists lose too; none if a key, an index or
    /// an expression needs it.
    pub(super) fn without_column(&self, table: usize, column: usize) -> Option<Plan> {
        let old = self.schema.tables.get(table)?;
        let name = old.columns.get(column)?.name.clone();
        let in_key = old.primary_key.contains(&name)
            || old.unique.iter().flatten().any(|c| *c == name)
            || old.foreign_keys.iter().any(|f| f.column == name)
            || old.partitioned_by.as_ref() == Some(&name);
        let mut referring = self.schema.tables.iter().flat_map(|t| &t.foreign_keys);
        let referred = referring.any(|f| f.parent == old.name && f.parent_column == name);
        if in_key || referred || old.columns.len() < 2 {
            return None;
        }
        let mut plan = self.copied();
        plan.schema.tables[table].columns.remove(column);
        for row in &mut plan.rows[table] {
            row.remove(column);
        }
        for tx in &mut plan.transactions {
            for planned in &mut tx.statements {
                drop_from_lists(&mut planned.statement, &name)?;
            }
        }
        (!plan.mentions_column(&name)).then_some(plan)
    }

    /// The plan without an index; none if a statement drops it or needs its uniqueness.
    pub(super) fn without_index(&self, table: usize, index: usize) -> Option<Plan> {
        let owner = self.schema.tables.get(table)?;
        let old = owner.indexes.get(index)?;
        let dropped = self
            .statements()
            .any(|s| matches!(s.unprepared(), Stmt::Ddl(Ddl::DropIndex { index, .. }) if *index == old.name));
        if dropped || self.is_upsert_key(&owner.name, &old.columns()) {
            return None;
        }
        let mut plan = self.copied();
        plan.schema.tables[table].indexes.remove(index);
        Some(plan)
    }

    /// The nth simplification of a table, counted from the last: one constraint or property less.
    pub(super) fn simpler_schema(&self, table: usize, nth: usize) -> Option<Plan> {
        let simpler = self.simpler_tables(&self.schema.tables[table]).into_iter().rev().nth(nth)?;
        let mut plan = self.copied();
        plan.schema.tables[table] = simpler;
        Some(plan)
    }

    fn simpler_tables(&self, table: &Table) -> Vec<Table> {
        let mut found = Vec::new();
        let mut change = |edit: &dyn Fn(&mut Table)| {
            let mut copy = table.clone();
            edit(&mut copy);
            if copy != *table {
                found.push(copy);
            }
        };
        (0..table.foreign_keys.len()).for_each(|n| change(&|t| drop(t.foreign_keys.remove(n))));
        change(&|t| t.foreign_keys.iter_mut().for_each(|f| f.on_delete = OnDelete::Refuse));
        change(&|t| t.foreign_keys.iter_mut().for_each(|f| f.update_cascades = false));
        change(&|t| t.partitioned_by = None);
        (0..table.checks.len()).for_each(|n| change(&|t| drop(t.checks.remove(n))));
        for (n, key) in table.unique.iter().enumerate() {
            if !self.is_upsert_key(&table.name, key) {
                change(&|t| drop(t.unique.remove(n)));
            }
        }
        let parent = self.schema.children(&table.name).next().is_some();
        if !parent && !self.is_upsert_key(&table.name, &table.primary_key) {
            change(&|t| t.primary_key.clear());
        }
        for (n, column) in table.columns.iter().enumerate() {
            if !table.primary_key.contains(&column.name) {
                change(&|t| t.columns[n].not_null = false);
            }
            change(&|t| t.columns[n].default = None);
            change(&|t| t.columns[n].generated = None);
        }
        for (n, index) in table.indexes.iter().enumerate() {
            if !self.is_upsert_key(&table.name, &index.columns()) {
                change(&|t| t.indexes[n].unique = false);
            }
            change(&|t| t.indexes[n].only_where = None);
            change(&|t| t.indexes[n].parts.iter_mut().for_each(|p| p.descending = false));
        }
        found
    }
}

fn place(table: &Table, column: &str) -> Option<usize> {
    table.columns.iter().position(|c| c.name == column)
}

/// Removes a column from the INSERT and SET lists of a statement; none if nothing would be left to
/// write.
fn drop_from_lists(statement: &mut Stmt, column: &str) -> Option<()> {
    match statement {
        Stmt::Prepare { statement, .. } => return drop_from_lists(statement, column),
        Stmt::Write(Write::Update(update)) => {
            update.sets.retain(|(name, _)| name != column);
            return (!update.sets.is_empty()).then_some(());
        }
        Stmt::Write(Write::Insert(insert)) => {
            if let Some(place) = insert.columns.iter().position(|c| c == column) {
                insert.columns.remove(place);
                match &mut insert.source {
                    InsertSource::Values(rows) => {
                        rows.iter_mut().for_each(|r| drop(r.remove(place)))
                    }
                    InsertSource::Select(select) => drop(select.items.remove(place)),
                    InsertSource::Defaults => {}
                }
            }
            if let Conflict::Update { key, sets, .. } = &mut insert.conflict {
                sets.retain(|(name, _)| name != column);
                if sets.is_empty() || key.iter().any(|c| c == column) {
                    return None;
                }
            }
            return (!insert.columns.is_empty()).then_some(());
        }
        Stmt::Write(Write::Merge(merge)) => {
            for clause in &mut merge.clauses {
                match &mut clause.action {
                    MergeAction::Update(sets) => {
                        sets.retain(|(name, _)| name != column);
                        if sets.is_empty() {
                            return None;
                        }
                    }
                    MergeAction::Insert { columns, values } => {
                        if let Some(place) = columns.iter().position(|c| c == column) {
                            columns.remove(place);
                            values.remove(place);
                        }
                        if columns.is_empty() {
                            return None;
                        }
                    }
                    MergeAction::Delete | MergeAction::Nothing => {}
                }
            }
        }
        Stmt::Select(_)
        | Stmt::Write(Write::Delete(_))
        | Stmt::Control(_)
        | Stmt::Ddl(_)
        | Stmt::Execute(_) => {}
    }
    Some(())
}
