//! Plain values and names: small numbers, short texts, tables t and u, columns a and b.
//!
//! All at once is tried first, then one after the other. Numbers keep their order.

use crate::generate::plan::Plan;
use crate::sql::{
    Conflict, Expr, InsertSource, Join, Literal, Select, SelectItem, Source, Stmt, TableJoin,
};
use std::collections::BTreeMap;

impl Plan {
    /// The nth way to make values or names plain; each leaves a plan that is plainer.
    pub(super) fn plainer(&self, nth: usize) -> Option<Plan> {
        let values = self.plain_values();
        let names = self.plain_names();
        let mut ways: Vec<Way> = Vec::new();
        if values.len() > 1 {
            ways.push(Way::Values(values.clone()));
        }
        // One alone may not become what another is, which keys could forbid.
        let taken = self.literals();
        let alone = values.into_iter().filter(|(_, new)| !taken.contains(new));
        ways.extend(alone.map(|value| Way::Values(vec![value])));
        if !names.is_empty() {
            ways.push(Way::Names(names));
        }
        let mut plan = self.copied();
        match ways.into_iter().nth(nth)? {
            Way::Values(values) => plan.with_values(&values),
            Way::Names(names) => plan.rename(&names),
        }
        Some(plan)
    }

    /// Each number or text that is not plain, with the plain one in its place.
    fn plain_values(&self) -> Vec<(Literal, Literal)> {
        let (mut numbers, mut texts) = (Vec::new(), Vec::new());
        for literal in self.literals() {
            match literal {
                Literal::Int(n) => numbers.push(n),
                Literal::Text(text) => texts.push(text),
                _ => {}
            }
        }
        numbers.sort_unstable();
        numbers.dedup();
        texts.sort();
        texts.dedup();
        let below = numbers.iter().filter(|n| **n < 0).count() as i64;
        let plain = (-below..0).chain(1..);
        let numbers = numbers.into_iter().filter(|n| *n != 0).zip(plain);
        let numbers = numbers.map(|(old, new)| (Literal::Int(old), Literal::Int(new)));
        let texts = texts.into_iter().filter(|text| !text.is_empty()).zip(letters('a'));
        let texts = texts.map(|(old, new)| (Literal::Text(old), Literal::Text(new)));
        numbers.chain(texts).filter(|(old, new)| old != new).collect()
    }

    /// All values of rows and statements.
    fn literals(&self) -> Vec<Literal> {
        let mut all: Vec<Literal> = self.rows.iter().flatten().flatten().cloned().collect();
        self.statements().for_each(|s| {
            s.visit(&mut |e| {
                if let Expr::Literal(literal) = e {
                    all.push(literal.clone());
                }
            });
        });
        all
    }

    fn with_values(&mut self, values: &[(Literal, Literal)]) {
        let change = |literal: &mut Literal| {
            if let Some((_, new)) = values.iter().find(|(old, _)| old == literal) {
                *literal = new.clone();
            }
        };
        self.rows.iter_mut().flatten().flatten().for_each(change);
        self.each_expression(&mut |e| {
            if let Expr::Literal(literal) = e {
                change(literal);
            }
        });
    }

    /// For each table, column and index that has another name than the plain one its plain
    /// name. Columns of different tables keep different names.
    fn plain_names(&self) -> BTreeMap<String, String> {
        let tables = self.schema.tables.iter();
        let mut columns: Vec<&str> = Vec::new();
        for column in tables.clone().flat_map(|t| &t.columns) {
            if !columns.contains(&column.name.as_str()) {
                columns.push(&column.name);
            }
        }
        let added = self.statements().filter_map(|s| match s {
            Stmt::AddColumn { column, .. } => Some(column.as_str()),
            _ => None,
        });
        columns.extend(added);
        let indexes = tables.clone().flat_map(|t| &t.indexes).map(|i| i.name.as_str());
        let names = tables.map(|t| t.name.as_str()).zip(letters('t'));
        let named = names.chain(columns.into_iter().zip(column_names()));
        let named = named.chain(indexes.zip((1..).map(|n| format!("i{n}"))));
        named.filter(|(old, new)| old != new).map(|(old, new)| (old.into(), new)).collect()
    }

    fn rename(&mut self, names: &BTreeMap<String, String>) {
        let change = |name: &mut String| {
            if let Some(new) = names.get(name) {
                name.clone_from(new);
            }
        };
        for table in &mut self.schema.tables {
            change(&mut table.name);
            table.columns.iter_mut().for_each(|c| change(&mut c.name));
            table.primary_key.iter_mut().for_each(change);
            table.unique.iter_mut().flatten().for_each(change);
            table.partitioned_by.iter_mut().for_each(change);
            table.indexes.iter_mut().for_each(|i| change(&mut i.name));
            for key in &mut table.foreign_keys {
                [&mut key.column, &mut key.parent, &mut key.parent_column]
                    .into_iter()
                    .for_each(change);
            }
        }
        self.each_expression(&mut |e| match e {
            Expr::Column { qualifier, name } => {
                change(name);
                qualifier.iter_mut().for_each(change);
            }
            Expr::Incoming(name) => change(name),
            _ => {}
        });
        for planned in self.transactions.iter_mut().flat_map(|tx| &mut tx.statements) {
            rename_statement(&mut planned.statement, &change);
        }
    }

    /// All expressions of statements and of the schema.
    fn each_expression(&mut self, see: &mut dyn FnMut(&mut Expr)) {
        for table in &mut self.schema.tables {
            table.checks.iter_mut().for_each(|e| e.visit_mut(see));
            for column in &mut table.columns {
                column.generated.iter_mut().for_each(|g| g.from.visit_mut(see));
            }
            for index in &mut table.indexes {
                let parts = index.parts.iter_mut().map(|p| &mut p.of);
                parts.chain(&mut index.only_where).for_each(|e| e.visit_mut(see));
            }
        }
        for planned in self.transactions.iter_mut().flat_map(|tx| &mut tx.statements) {
            planned.statement.visit_mut(see);
        }
    }
}

enum Way {
    Values(Vec<(Literal, Literal)>),
    Names(BTreeMap<String, String>),
}

/// `t`, `u`, … `z`, then `t1`, `u1`.
fn letters(first: char) -> impl Iterator<Item = String> {
    let alphabet = move |round: u32| {
        (first..='z').map(move |c| if round == 0 { c.into() } else { format!("{c}{round}") })
    };
    (0..).flat_map(alphabet)
}

/// Letters that no table has.
fn column_names() -> impl Iterator<Item = String> {
    letters('a').filter(|name| !name.starts_with(|c: char| c >= 't'))
}

/// The names in a statement that are not part of an expression.
fn rename_statement(statement: &mut Stmt, change: &impl Fn(&mut String)) {
    let partner = |join: &mut Option<TableJoin>| {
        join.iter_mut().for_each(|join| change(&mut join.table));
    };
    match statement {
        Stmt::Select(select) => rename_select(select, change),
        Stmt::Insert(insert) => {
            change(&mut insert.table);
            insert.columns.iter_mut().for_each(change);
            if let InsertSource::Select(select) = &mut insert.source {
                rename_select(select, change);
            }
            match &mut insert.conflict {
                Conflict::Update { key, sets, .. } => {
                    key.iter_mut().chain(sets.iter_mut().map(|(name, _)| name)).for_each(change);
                }
                Conflict::DoNothing { key } => key.iter_mut().for_each(change),
                Conflict::Fail | Conflict::Ignore | Conflict::Replace => {}
            }
        }
        Stmt::Update(update) => {
            change(&mut update.table);
            partner(&mut update.join);
            update.sets.iter_mut().for_each(|(name, _)| change(name));
        }
        Stmt::Delete(delete) => {
            change(&mut delete.table);
            partner(&mut delete.join);
        }
        Stmt::CreateIndex { table, index } => {
            change(table);
            change(&mut index.name);
        }
        Stmt::DropIndex { table, index } => {
            table.iter_mut().for_each(change);
            change(index);
        }
        Stmt::AddColumn { table, column, .. } => {
            change(table);
            change(column);
        }
        Stmt::Truncate(table) => change(table),
        Stmt::Prepare { statement, .. } => return rename_statement(statement, change),
        Stmt::Begin(_)
        | Stmt::Commit
        | Stmt::Rollback
        | Stmt::SetAutocommit(_)
        | Stmt::SetTransaction(_)
        | Stmt::Savepoint(_)
        | Stmt::RollbackTo(_)
        | Stmt::Release(_)
        | Stmt::Execute(_) => {}
    }
    statement.visit_mut(&mut |e| {
        if let Some(select) = e.subquery_mut() {
            rename_select(select, change);
        }
    });
}

fn rename_select(select: &mut Select, change: &impl Fn(&mut String)) {
    let joined = select.joins.iter_mut().map(|join: &mut Join| &mut join.source);
    for source in select.from.iter_mut().chain(joined) {
        if let Source::Table { name, .. } = source {
            change(name);
        }
    }
    for item in &mut select.items {
        if let SelectItem::AllOf(name) = item {
            change(name);
        }
    }
    if let Some(locking) = &mut select.locking {
        locking.of.iter_mut().for_each(change);
    }
    select.parts_mut().into_iter().for_each(|part| rename_select(part, change));
}
