//! The tables that a setup makes.

use super::table::CreatedTable;
use super::{DEEPEST, Reader, parse};
use crate::ast::{Schema, View};
use crate::dialect::Family;
use crate::lexer;
use crate::lexer::Kind;
use crate::render::PARTS;
use sqlparser::ast::{CreateTableOptions, CreateView, ObjectType, Statement};

/// The tables that a sequence of statements defines.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SchemaRead {
    /// Only tables of which everything could be read.
    pub schema: Schema,
    pub unread: Vec<Unread>,
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
    let mut read = SchemaRead::default();
    for text in statements {
        read.heed(text, Reader::new(family));
    }
    read.find_parent_columns();
    read
}

impl SchemaRead {
    fn heed(&mut self, text: &str, reader: Reader) {
        let words: Vec<String> =
            lexer::outer_words(text).iter().map(|(_, w)| w.to_ascii_lowercase()).collect();
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        match (lexer::kind(text), words.as_slice()) {
            (Kind::Ddl, ["create", "table", ..] | ["create", _, "table", ..]) => {
                self.create_table(text, reader);
            }
            (Kind::Ddl, ["truncate", ..]) => {}
            (Kind::Ddl, _) => self.other_ddl(text, reader),
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
        self.schema.tables.retain(|t| Some(&t.name) != table.as_ref());
        self.unread.push(Unread { table, reason: reason.into() });
    }

    fn create_table(&mut self, text: &str, reader: Reader) {
        match reader.create_table(text) {
            Ok(CreatedTable::Table(table)) => {
                let name = table.name.clone();
                let unread = self.unread.iter().any(|u| u.table.as_ref() == Some(&name));
                if self.schema.table(&name).is_some() || unread {
                    self.opaque(Some(name), "it is made twice");
                } else {
                    self.schema.tables.push(*table);
                }
            }
            Ok(CreatedTable::Part { of, name, modulus, remainder }) => {
                let expected = format!("{of}_{remainder}");
                let parent = self.schema.table(&of).is_some_and(|t| t.partitioned_by.is_some());
                if !parent || modulus != PARTS as u64 || name != expected {
                    self.opaque(Some(of), "its parts are not those that hash partitions have");
                }
            }
            Err((table, reason)) => self.opaque(table, reason),
        }
    }

    fn other_ddl(&mut self, text: &str, reader: Reader) {
        match parse(text, reader.family) {
            Some(Statement::CreateIndex(create)) => {
                let table = reader.table_name(&create.table_name);
                match reader.create_index(create) {
                    Ok((table, index)) => {
                        let known = self.schema.tables.iter_mut().find(|t| t.name == table);
                        if let Some(known) = known {
                            known.indexes.push(index);
                        }
                    }
                    Err(reason) => self.opaque(table, reason),
                }
            }
            Some(Statement::Drop { object_type: ObjectType::Table, names, .. }) => {
                for name in &names {
                    match reader.table_name(name) {
                        Some(name) => {
                            self.schema.tables.retain(|t| t.name != name);
                            self.unread.retain(|u| u.table.as_ref() != Some(&name));
                        }
                        None => self.opaque(None, "which table is dropped is not known"),
                    }
                }
            }
            Some(Statement::CreateView(create)) => self.create_view(create, reader),
            Some(Statement::Drop { object_type: ObjectType::View, names, .. }) => {
                for name in names.iter().filter_map(|name| reader.table_name(name)) {
                    self.schema.views.retain(|view| view.name != name);
                    self.unread.retain(|unread| unread.table.as_ref() != Some(&name));
                }
            }
            Some(Statement::AlterTable(alter)) => {
                let name = reader.table_name(&alter.name);
                let known = self.schema.tables.iter_mut().find(|t| Some(&t.name) == name.as_ref());
                let altered = known.map(|table| reader.alter_table(table, alter));
                match altered {
                    Some(Ok(())) => {}
                    Some(Err(reason)) => self.opaque(name, reason),
                    None => self.opaque(name, "it is altered"),
                }
            }
            _ => {
                let words = lexer::outer_words(text);
                let first: Vec<String> =
                    words.iter().take(2).map(|(_, w)| w.to_ascii_lowercase()).collect();
                self.opaque(None, format!("{} is not read", first.join(" ")));
            }
        }
    }

    fn create_view(&mut self, create: CreateView, reader: Reader) {
        let Some(name) = reader.table_name(&create.name) else {
            return self.opaque(None, "which view is made is not known");
        };
        self.schema.views.retain(|view| view.name != name);
        match self.view(create, reader) {
            Some(view) => self.schema.views.push(view),
            None => self.opaque(Some(name), "it is a view that is not read"),
        }
    }

    fn view(&self, create: CreateView, reader: Reader) -> Option<View> {
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
        self.schema.view_of(name, &columns, select)
    }

    /// Sets the parent column of foreign keys that name none: the primary key of the parent.
    fn find_parent_columns(&mut self) {
        let keys: Vec<(String, Vec<String>)> =
            self.schema.tables.iter().map(|t| (t.name.clone(), t.primary_key.clone())).collect();
        let mut lost = Vec::new();
        for table in &mut self.schema.tables {
            for key in table.foreign_keys.iter_mut().filter(|k| k.parent_column.is_empty()) {
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
