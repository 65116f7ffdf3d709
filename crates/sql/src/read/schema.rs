//! The tables that a setup makes.

use super::table::{CreatedTable, PartitionKind};
use super::{DEEPEST, Reader, parse};
use crate::ast::{Binary, Expr, Literal, Schema, Unary, View};
use crate::dialect::Family;
use crate::lexer;
use crate::lexer::Kind;
use crate::render::PARTS;
use sqlparser::ast::{CreateTableOptions, CreateView, ForValues, ObjectType, Statement};
use std::collections::BTreeMap;

/// The tables that a sequence of statements defines.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SchemaRead {
    /// Only tables of which everything could be read.
    pub schema: Schema,
    pub unread: Vec<Unread>,
    /// The functions that the setup makes.
    pub functions: Vec<String>,
    /// The table that each partition of PostgreSQL belongs to.
    pub part_of: BTreeMap<String, String>,
}

/// A schema that is being read.
struct SchemaReader {
    reader: Reader,
    read: SchemaRead,
    /// The tables that are partitioned by list or range, with the conditions of their
    /// partitions.
    partitioned: BTreeMap<String, Vec<Expr>>,
}

/// A statement that could not be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unread {
    /// The table that is missing because of it. None when it may be about
    /// anything: a trigger, a call.
    pub table: Option<String>,
    pub reason: String,
}

/// The tables that statements make, one after the other. Writes and queries
/// among them are passed over.
pub fn schema<'a>(statements: impl IntoIterator<Item = &'a str>, family: Family) -> SchemaRead {
    let mut reader = SchemaReader {
        reader: Reader::new(family),
        read: SchemaRead::default(),
        partitioned: BTreeMap::new(),
    };
    for text in statements {
        reader.heed(text);
    }
    reader.check_partitions();
    reader.find_parents();
    reader.read
}

impl SchemaReader {
    fn heed(&mut self, text: &str) {
        let words: Vec<String> =
            lexer::outer_words(text).iter().map(|(_, w)| w.to_ascii_lowercase()).collect();
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        match (lexer::kind(text), words.as_slice()) {
            (Kind::Ddl, ["create", "table", ..] | ["create", _, "table", ..]) => {
                self.create_table(text);
            }
            (Kind::Ddl, ["truncate", ..]) => {}
            (Kind::Ddl, _) => self.other_ddl(text, &words),
            (
                Kind::Other,
                ["call" | "do" | "execute" | "prepare" | "import" | "load" | "attach" | "use", ..],
            ) => self.opaque(None, "what it does to the tables is not known"),
            (
                Kind::Other
                | Kind::Begin
                | Kind::Commit
                | Kind::Rollback
                | Kind::Savepoint
                | Kind::RollbackTo
                | Kind::Release
                | Kind::Select
                | Kind::Write,
                _,
            ) => {}
        }
    }

    /// Marks a table as not parsed, and forgets its definition.
    fn opaque(&mut self, table: Option<String>, reason: impl Into<String>) {
        let table = table.map(|name| self.read.part_of.get(&name).cloned().unwrap_or(name));
        self.read.schema.tables.retain(|t| Some(&t.name) != table.as_ref());
        self.read.unread.push(Unread { table, reason: reason.into() });
    }

    fn is_unread(&self, table: &str) -> bool {
        self.read.unread.iter().any(|u| u.table.as_deref() == Some(table))
    }

    fn create_table(&mut self, text: &str) {
        // A query of a table finds the rows of those that inherit from it, too.
        for parent in inherited(text) {
            self.opaque(Some(parent), "another table inherits from it");
        }
        match self.reader.create_table(text) {
            Ok(CreatedTable::Table(table, kind)) => {
                let name = table.name.clone();
                if self.read.schema.table(&name).is_some() || self.is_unread(&name) {
                    self.opaque(Some(name), "it is made twice");
                } else {
                    if kind == Some(PartitionKind::Values) {
                        self.partitioned.insert(name, Vec::new());
                    }
                    self.read.schema.tables.push(*table);
                }
            }
            Ok(CreatedTable::Part { of, name, values }) => self.part(of, name, values),
            Err((table, reason)) => self.opaque(table, reason),
        }
    }

    /// Adds a partition to a table.
    fn part(&mut self, of: String, name: String, values: ForValues) {
        let Some(column) = self.read.schema.table(&of).and_then(|t| t.partitioned_by.clone())
        else {
            return self.opaque(Some(of), "its partitions are not read");
        };
        match (values, self.partitioned.get_mut(&of)) {
            (ForValues::With { modulus, remainder }, None) => {
                self.read.part_of.insert(name.clone(), of.clone());
                if modulus != PARTS as u64 || name != format!("{of}_{remainder}") {
                    self.opaque(Some(of), "its parts are not those that hash partitions have");
                }
            }
            (values, Some(conditions)) => match self.reader.bounds(&column, values) {
                Some(condition) => {
                    conditions.push(condition);
                    self.read.part_of.insert(name, of);
                }
                None => self.opaque(Some(of), "the bounds of its partitions are not read"),
            },
            _ => self.opaque(Some(of), "its partitions are not read"),
        }
    }

    /// A row for which there is no partition fails as if it violated a check.
    fn check_partitions(&mut self) {
        for (name, conditions) in std::mem::take(&mut self.partitioned) {
            let always = Expr::Literal(Literal::Bool(true));
            let Some(table) = self.read.schema.tables.iter_mut().find(|t| t.name == name) else {
                continue;
            };
            if conditions.contains(&always) {
                continue;
            }
            let never = Expr::Literal(Literal::Bool(false));
            let either = |all: Expr, one: Expr| Expr::binary(Binary::Or, all, one);
            let some = conditions.into_iter().reduce(either).unwrap_or(never);
            table.checks.push(Expr::unary(Unary::IsTrue, some));
        }
    }

    fn other_ddl(&mut self, text: &str, words: &[&str]) {
        let reader = self.reader;
        let is_postgres = reader.family == Family::Postgres;
        match words {
            ["create", "or", "replace", "function" | "procedure", ..]
            | ["create", "function" | "procedure", ..] => return self.create_function(text),
            ["create", rest @ ..] if rest.iter().take(4).any(|word| *word == "trigger") => {
                return self.create_trigger(text);
            }
            ["create", "role" | "user" | "schema" | "extension", ..]
            | ["grant" | "comment" | "analyze" | "vacuum", ..]
            | ["drop", "function" | "role" | "user", ..]
                if is_postgres =>
            {
                return;
            }
            // Storage parameters, the owner and the order of the heap change no result.
            ["alter", "table", _, "set"]
            | ["alter", "table", _, "owner", "to", _]
            | ["alter", "table", _, "cluster", "on", _]
                if is_postgres =>
            {
                return;
            }
            ["alter", "table", _, "attach", "partition", _, ..] if is_postgres => {
                return self.attach(text);
            }
            _ => {}
        }
        match parse(text, reader.family) {
            Some(Statement::CreateIndex(mut create)) => {
                let table = reader.table_name(&create.table_name);
                if is_postgres {
                    // Columns of INCLUDE are no part of the key, and PostgreSQL makes up a name
                    // that is missing.
                    create.include.clear();
                    create.name.get_or_insert_with(|| create.table_name.clone());
                }
                let unique = create.unique;
                match reader.create_index(create) {
                    Ok((table, index)) => {
                        let known = self.read.schema.tables.iter_mut().find(|t| t.name == table);
                        if let Some(known) = known {
                            known.indexes.push(index);
                        } else if unique && self.read.part_of.contains_key(&table) {
                            self.opaque(Some(table), "a partition of it has a key of its own");
                        }
                    }
                    // It decides neither what is locked nor what is found.
                    Err(_) if !unique && is_postgres => {}
                    Err(reason) => self.opaque(table, reason),
                }
            }
            Some(Statement::Drop { object_type: ObjectType::Table, names, .. }) => {
                for name in &names {
                    match reader.table_name(name) {
                        Some(name) => {
                            self.read.schema.tables.retain(|t| t.name != name);
                            self.read.unread.retain(|u| u.table.as_ref() != Some(&name));
                            if self.read.part_of.contains_key(&name) {
                                self.opaque(Some(name), "a partition of it is dropped");
                            }
                        }
                        None => self.opaque(None, "which table is dropped is not known"),
                    }
                }
            }
            Some(Statement::CreateView(create)) => self.create_view(create),
            Some(Statement::Drop { object_type: ObjectType::View, names, .. }) => {
                for name in names.iter().filter_map(|name| reader.table_name(name)) {
                    self.read.schema.views.retain(|view| view.name != name);
                    self.read.unread.retain(|unread| unread.table.as_ref() != Some(&name));
                }
            }
            Some(Statement::AlterTable(alter)) => {
                let name = reader.table_name(&alter.name);
                let tables = &mut self.read.schema.tables;
                let known = tables.iter_mut().find(|t| Some(&t.name) == name.as_ref());
                let altered = known.map(|table| reader.alter_table(table, alter));
                match altered {
                    Some(Ok(())) => {}
                    Some(Err(reason)) => self.opaque(name, reason),
                    None => self.opaque(name, "it is altered"),
                }
            }
            _ => {
                let first = &words[..words.len().min(2)];
                self.opaque(None, format!("{} is not read", first.join(" ")));
            }
        }
    }

    /// A function does nothing until it is called, and calls of it are not modelled.
    fn create_function(&mut self, text: &str) {
        match name_after(text, &["function", "procedure"]) {
            Some(name) => self.read.functions.push(name.to_ascii_lowercase()),
            None => self.opaque(None, "a function whose name is not read"),
        }
    }

    /// A trigger runs when its table is written: statements on that table are not modelled.
    fn create_trigger(&mut self, text: &str) {
        let table = name_after(text, &["on"]).map(sqlparser::ast::Ident::new);
        match table.and_then(|table| self.reader.table_ident(&table)) {
            Some(table) => self.opaque(Some(table), "it has a trigger"),
            None => self.opaque(None, "a trigger of a table whose name is not read"),
        }
    }

    /// ATTACH PARTITION, which `sqlparser` does not parse, as the CREATE TABLE of a partition.
    fn attach(&mut self, text: &str) {
        let words = lexer::outer_words(text);
        let pieces = lexer::pieces(text);
        if words.iter().zip(&pieces).take(6).any(|((_, word), piece)| word != piece) {
            return self.opaque(None, "ATTACH PARTITION is not read");
        }
        let (table, (at, part)) = (words[2].1, words[5]);
        let rest = &text[at + part.len()..];
        let create = format!("create table {part} partition of {table} {rest}");
        match self.reader.create_table(&create) {
            Ok(CreatedTable::Part { of, name, values }) => {
                let tables = &self.read.schema.tables;
                let plain = tables
                    .iter()
                    .any(|t| t.name == name && t.foreign_keys.is_empty() && t.checks.is_empty());
                self.read.schema.tables.retain(|t| t.name != name);
                match plain {
                    true => self.part(of, name, values),
                    false => self.opaque(Some(of), "a partition of it is not read"),
                }
            }
            Ok(CreatedTable::Table(..)) => self.opaque(None, "ATTACH PARTITION is not read"),
            Err((table, reason)) => self.opaque(table, reason),
        }
    }

    fn create_view(&mut self, create: CreateView) {
        let Some(name) = self.reader.table_name(&create.name) else {
            return self.opaque(None, "which view is made is not known");
        };
        self.read.schema.views.retain(|view| view.name != name);
        match self.view(create) {
            Some(view) => self.read.schema.views.push(view),
            None => self.opaque(Some(name), "it is a view that is not read"),
        }
    }

    fn view(&self, create: CreateView) -> Option<View> {
        let reader = self.reader;
        let name = reader.table_name(&create.name)?;
        // Options of the view, such as its algorithm or CHECK OPTION, are not supported.
        let CreateView {
            or_alter: false,
            or_replace: _,
            materialized: false,
            secure: false,
            name: _,
            name_before_not_exists: _,
            columns,
            query,
            options: CreateTableOptions::None,
            cluster_by: _,
            comment: None,
            with_no_schema_binding: false,
            if_not_exists: false,
            temporary: false,
            copy_grants: false,
            to: None,
            params: None,
        } = create
        else {
            return None;
        };
        let columns: Vec<String> =
            columns.iter().map(|c| reader.column(&c.name)).collect::<Option<_>>()?;
        let select = reader.query(*query, DEEPEST)?;
        self.read.schema.view_of(name, &columns, select)
    }

    /// Sets the parent column of foreign keys that name none: the primary key of the parent. A
    /// table whose parent is not known is not known either.
    fn find_parents(&mut self) {
        let mut lost = Vec::new();
        let keys: Vec<(String, Vec<String>)> = self
            .read
            .schema
            .tables
            .iter()
            .map(|t| (t.name.clone(), t.primary_key.clone()))
            .collect();
        for table in &mut self.read.schema.tables {
            for key in &mut table.foreign_keys {
                if let Some(above) = self.read.part_of.get(&key.parent) {
                    lost.extend([table.name.clone(), above.clone()]);
                }
                if !key.parent_column.is_empty() {
                    continue;
                }
                let parent = keys.iter().find(|(name, _)| *name == key.parent);
                match parent.map(|(_, columns)| columns.as_slice()) {
                    Some([column]) => key.parent_column = column.clone(),
                    _ => lost.push(table.name.clone()),
                }
            }
        }
        for name in lost {
            self.opaque(Some(name), "which column its foreign key refers to is not known");
        }
    }
}

/// The name that follows the first of some words, without its schema; none if it is quoted.
fn name_after<'t>(text: &'t str, words: &[&str]) -> Option<&'t str> {
    let pieces = lexer::pieces(text);
    let at = pieces.iter().position(|p| words.iter().any(|w| p.eq_ignore_ascii_case(w)))?;
    let name = match pieces.get(at + 1..)? {
        [_, ".", name, ..] | [name, ..] => name,
        [] => return None,
    };
    name.chars().all(|c| c.is_alphanumeric() || c == '_').then_some(*name)
}

/// The tables that a CREATE TABLE inherits from.
fn inherited(text: &str) -> Vec<String> {
    let pieces = lexer::pieces(text);
    let behind = pieces.iter().skip_while(|p| !p.eq_ignore_ascii_case("inherits"));
    let names =
        behind.skip(1).take_while(|piece| **piece != ")").filter(|p| !["(", ",", "."].contains(*p));
    names.map(|name| name.trim_matches('"').to_lowercase()).collect()
}
