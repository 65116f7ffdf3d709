//! Simplifies values and names: small numbers, short texts, tables t and u, columns a and b.
//!
//! All values at once are tried first, then each one. Numbers keep their order.

use crate::plan::Plan;
use isolde_sql::{
    Conflict, Ddl, Expr, InsertSource, Join, Literal, MergeAction, Select, SelectItem, Source,
    Stmt, TableJoin, Using, Write,
};
use std::collections::BTreeMap;

impl Plan {
    /// The nth way to simplify values or names.
    pub(super) fn plainer(&self, nth: usize) -> Option<Plan> {
        let values = self.plain_values();
        let names = self.plain_names();
        let mut ways: Vec<Substitution> = Vec::new();
        if values.len() > 1 {
            ways.push(Substitution::Values(values.clone()));
        }
        // A single value must not become equal to another, which keys could forbid.
        let taken = self.literals();
        let alone = values.into_iter().filter(|(_, new)| !taken.contains(new));
        ways.extend(alone.map(|value| Substitution::Values(vec![value])));
        if !names.is_empty() {
            ways.push(Substitution::Names(names));
        }
        let mut plan = self.copied();
        match ways.into_iter().nth(nth)? {
            Substitution::Values(values) => plan.with_values(&values),
            Substitution::Names(names) => plan.rename(&names),
        }
        Some(plan)
    }

    /// Each number or text that is not simple yet, with its simple replacement.
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

    /// The simple names of all tables, columns and indexes that have another name. Columns of
    /// different tables keep different names.
    fn plain_names(&self) -> BTreeMap<String, String> {
        let tables = self.schema.tables.iter();
        let mut columns: Vec<&str> = Vec::new();
        for column in tables.clone().flat_map(|t| &t.columns) {
            if !columns.contains(&column.name.as_str()) {
                columns.push(&column.name);
            }
        }
        let added = self.statements().filter_map(|s| match s {
            Stmt::Ddl(Ddl::AddColumn { column, .. }) => Some(column.as_str()),
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
        self.schema.tables.iter_mut().for_each(|table| table.visit_mut(see));
        for planned in self.transactions.iter_mut().flat_map(|tx| &mut tx.statements) {
            planned.statement.visit_mut(see);
        }
    }
}

enum Substitution {
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

/// Letters that are not names of tables.
fn column_names() -> impl Iterator<Item = String> {
    letters('a').filter(|name| !name.starts_with(|c: char| c >= 't'))
}

/// Changes the names in a statement that are not part of an expression.
fn rename_statement(statement: &mut Stmt, change: &impl Fn(&mut String)) {
    let partner = |join: &mut Option<TableJoin>| {
        join.iter_mut().for_each(|join| change(&mut join.table));
    };
    match statement {
        Stmt::Select(select) => rename_select(select, change),
        Stmt::Write(Write::Insert(insert)) => {
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
        Stmt::Write(Write::Update(update)) => {
            change(&mut update.table);
            partner(&mut update.join);
            update.sets.iter_mut().for_each(|(name, _)| change(name));
        }
        Stmt::Write(Write::Delete(delete)) => {
            change(&mut delete.table);
            partner(&mut delete.join);
        }
        Stmt::Write(Write::Merge(merge)) => {
            change(&mut merge.table);
            match &mut merge.source {
                Source::Table { name, .. } => change(name),
                Source::Derived { select, .. } => rename_select(select, change),
            }
            for clause in &mut merge.clauses {
                match &mut clause.action {
                    MergeAction::Update(sets) => {
                        sets.iter_mut().for_each(|(name, _)| change(name));
                    }
                    MergeAction::Insert { columns, .. } => columns.iter_mut().for_each(change),
                    MergeAction::Delete | MergeAction::Nothing => {}
                }
            }
        }
        Stmt::Ddl(Ddl::CreateIndex { table, index }) => {
            change(table);
            change(&mut index.name);
        }
        Stmt::Ddl(Ddl::DropIndex { table, index }) => {
            table.iter_mut().for_each(change);
            change(index);
        }
        Stmt::Ddl(Ddl::AddColumn { table, column, .. }) => {
            change(table);
            change(column);
        }
        Stmt::Ddl(Ddl::Truncate(table)) => change(table),
        Stmt::Prepare { statement, .. } => return rename_statement(statement, change),
        Stmt::Control(_) | Stmt::Execute(_) => {}
    }
    statement.visit_mut(&mut |e| {
        if let Some(select) = e.subquery_mut() {
            rename_select(select, change);
        }
    });
}

fn rename_select(select: &mut Select, change: &impl Fn(&mut String)) {
    for join in &mut select.joins {
        if let Using::Columns(columns) = &mut join.using {
            columns.iter_mut().for_each(change);
        }
    }
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
    select.parts_mut().for_each(|part| rename_select(part, change));
}
