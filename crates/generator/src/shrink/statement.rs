//! Smaller statements.

use super::expression::{
    constant, smaller as smaller_expressions, smaller_condition, smaller_subquery,
};
use isolde_sql::{
    Conflict, Delete, Expr, Insert, InsertSource, LockPatience, Merge, MergeAction, Schema, Select,
    Source, Stmt, Table, TableJoin, Type, Update, Write,
};

pub fn smaller(statement: &Stmt, schema: &Schema) -> Vec<Stmt> {
    match statement {
        Stmt::Select(select) => {
            smaller_selects(select, schema).into_iter().map(Stmt::from).collect()
        }
        Stmt::Write(Write::Insert(insert)) => {
            smaller_inserts(insert, schema).into_iter().map(Stmt::from).collect()
        }
        Stmt::Write(Write::Update(update)) => {
            smaller_updates(update, schema).into_iter().map(Stmt::from).collect()
        }
        Stmt::Write(Write::Delete(delete)) => {
            smaller_deletes(delete, schema).into_iter().map(Stmt::from).collect()
        }
        Stmt::Write(Write::Merge(merge)) => {
            smaller_merges(merge, schema).into_iter().map(Stmt::from).collect()
        }
        Stmt::Prepare { name, statement } => smaller(statement, schema)
            .into_iter()
            .map(|s| Stmt::Prepare { name: name.clone(), statement: Box::new(s) })
            .collect(),
        Stmt::Control(_) | Stmt::Ddl(_) | Stmt::Execute(_) => Vec::new(),
    }
}

/// Collects changed copies of one value.
struct Variants<'a, T> {
    of: &'a T,
    made: Vec<T>,
}

impl<'a, T: Clone> Variants<'a, T> {
    fn new(of: &'a T) -> Variants<'a, T> {
        Variants { of, made: Vec::new() }
    }

    fn add(&mut self, edit: impl FnOnce(&mut T)) {
        let mut copy = self.of.clone();
        edit(&mut copy);
        self.made.push(copy);
    }

    fn add_if(&mut self, wanted: bool, edit: impl FnOnce(&mut T)) {
        if wanted {
            self.add(edit);
        }
    }
}

fn smaller_selects(select: &Select, schema: &Schema) -> Vec<Select> {
    let mut copies = Variants::new(select);
    let waits = select.locking.as_ref().is_some_and(|l| l.patience == LockPatience::Wait);
    copies.add_if(select.locking.is_some(), |s| s.locking = None);
    copies.add_if(select.locking.is_some() && !waits, |s| {
        s.locking.iter_mut().for_each(|l| l.patience = LockPatience::Wait);
    });
    for place in 0..select.joins.len() {
        let alone = select.joins[place].nested == 0;
        copies.add_if(alone && !uses_join(select, place, schema), |s| s.remove_join(place));
    }
    let lone = select.items.len() < 2 || select.set_operation.is_some();
    for place in (0..select.items.len()).filter(|_| !lone) {
        copies.add(|s| {
            s.items.remove(place);
        });
    }
    copies.made.extend(smaller_subquery(select));
    copies.made
}

/// Whether anything but the condition of the join uses its table.
fn uses_join(select: &Select, place: usize, schema: &Schema) -> bool {
    let source = &select.joins[place].source;
    let visible = source.visible_name();
    let table = source.table().and_then(|name| schema.table(name));
    let mut rest = select.clone();
    rest.remove_join(place);
    let mut used = false;
    rest.visit(&mut |e| {
        if let Expr::Column { qualifier, name } = e {
            used |= match qualifier {
                Some(qualifier) => Some(qualifier.as_str()) == visible,
                None => table.is_some_and(|t| t.column(name).is_some()),
            };
        }
    });
    used
}

fn smaller_inserts(insert: &Insert, schema: &Schema) -> Vec<Insert> {
    let mut copies = Variants::new(insert);
    let table = schema.table(&insert.table);
    copies.add_if(insert.conflict != Conflict::Fail, |i| i.conflict = Conflict::Fail);
    match &insert.source {
        InsertSource::Values(rows) => {
            for place in (0..rows.len()).filter(|_| rows.len() > 1) {
                let mut rows = rows.clone();
                rows.remove(place);
                copies.add(|i| i.source = InsertSource::Values(rows));
            }
            let columns = insert_columns(insert, table);
            for (row, values) in rows.iter().enumerate() {
                for (place, value) in values.iter().enumerate() {
                    for new in smaller_value(value, columns.get(place).copied().flatten()) {
                        let mut rows = rows.clone();
                        rows[row][place] = new;
                        copies.add(|i| i.source = InsertSource::Values(rows));
                    }
                }
            }
        }
        InsertSource::Select(select) => {
            for new in smaller_subquery(select) {
                copies.add(|i| i.source = InsertSource::Select(Box::new(new)));
            }
        }
        InsertSource::Defaults => {}
    }
    if let Conflict::Update { key, sets, filter } = &insert.conflict {
        for sets in smaller_sets(sets, table) {
            let (key, filter) = (key.clone(), filter.clone());
            copies.add(|i| i.conflict = Conflict::Update { key, sets, filter });
        }
    }
    copies.made
}

/// The types of the columns that an INSERT gives values, where they are known.
fn insert_columns<'t>(insert: &Insert, table: Option<&'t Table>) -> Vec<Option<&'t Type>> {
    let Some(table) = table else { return Vec::new() };
    match insert.columns.is_empty() {
        true => table.columns.iter().map(|c| Some(&c.of_type)).collect(),
        false => insert.columns.iter().map(|name| Some(&table.column(name)?.of_type)).collect(),
    }
}

/// Variants of the value of a column: smaller ones, or a constant.
fn smaller_value(value: &Expr, kind: Option<&Type>) -> Vec<Expr> {
    let mut found = smaller_expressions(value);
    found.extend(kind.and_then(|kind| constant(value, kind)));
    found
}

fn smaller_sets(sets: &[(String, Expr)], table: Option<&Table>) -> Vec<Vec<(String, Expr)>> {
    let mut found = Vec::new();
    for (place, (column, value)) in sets.iter().enumerate() {
        if sets.len() > 1 {
            let mut fewer = sets.to_vec();
            fewer.remove(place);
            found.push(fewer);
        }
        let kind = table.and_then(|t| t.column(column)).map(|c| &c.of_type);
        for new in smaller_value(value, kind) {
            let mut changed = sets.to_vec();
            changed[place].1 = new;
            found.push(changed);
        }
    }
    found
}

/// Whether an expression uses the joined table of a write.
fn needs_partner<'a>(
    join: &TableJoin,
    mut expressions: impl Iterator<Item = &'a Expr>,
    schema: &Schema,
) -> bool {
    let partner = schema.table(&join.table);
    expressions.any(|whole| {
        let mut used = false;
        whole.visit(&mut |e| {
            if let Expr::Column { name, .. } = e {
                used |= partner.is_some_and(|t| t.column(name).is_some());
            }
        });
        used
    })
}

fn smaller_updates(update: &Update, schema: &Schema) -> Vec<Update> {
    let mut copies = Variants::new(update);
    if let Some(join) = &update.join {
        let rest = update.sets.iter().map(|(_, e)| e).chain(&update.filter);
        copies.add_if(!needs_partner(join, rest, schema), |u| u.join = None);
    }
    for sets in smaller_sets(&update.sets, schema.table(&update.table)) {
        copies.add(|u| u.sets = sets);
    }
    for filter in smaller_condition(&update.filter) {
        copies.add(|u| u.filter = filter);
    }
    copies.made
}

fn smaller_deletes(delete: &Delete, schema: &Schema) -> Vec<Delete> {
    let mut copies = Variants::new(delete);
    if let Some(join) = &delete.join {
        copies.add_if(!needs_partner(join, delete.filter.iter(), schema), |d| d.join = None);
    }
    for filter in smaller_condition(&delete.filter) {
        copies.add(|d| d.filter = filter);
    }
    copies.made
}

fn smaller_merges(merge: &Merge, schema: &Schema) -> Vec<Merge> {
    let mut copies = Variants::new(merge);
    for place in (0..merge.clauses.len()).filter(|_| merge.clauses.len() > 1) {
        copies.add(|m| drop(m.clauses.remove(place)));
    }
    for (place, clause) in merge.clauses.iter().enumerate() {
        for condition in smaller_condition(&clause.condition) {
            copies.add(|m| m.clauses[place].condition = condition);
        }
        if let MergeAction::Update(sets) = &clause.action {
            for sets in smaller_sets(sets, schema.table(&merge.table)) {
                copies.add(|m| m.clauses[place].action = MergeAction::Update(sets));
            }
        }
    }
    if let Source::Derived { select, .. } = &merge.source {
        for new in smaller_subquery(select) {
            copies.add(|m| {
                if let Source::Derived { select, .. } = &mut m.source {
                    **select = new;
                }
            });
        }
    }
    copies.made
}
