//! Writes down tables and indexes.

use super::Expr;
use super::render::{Renderer, listed};
use super::schema::{Column, ForeignKey, Index, IndexPart, OnDelete, Table};
use super::value::Literal;
use crate::sql::dialect::PartitionForm;

/// How many parts a partitioned table has.
const PARTS: usize = 2;

impl Renderer<'_> {
    /// The table, its parts and its indexes, each a statement.
    pub fn create_table(&self, table: &Table) -> Vec<String> {
        let mut parts: Vec<String> = table.columns.iter().map(|c| self.column(c)).collect();
        if !table.primary_key.is_empty() {
            parts.push(format!("primary key ({})", table.primary_key.join(", ")));
        }
        parts.extend(table.unique.iter().map(|key| format!("unique ({})", key.join(", "))));
        parts.extend(table.checks.iter().map(|check| format!("check ({})", self.expr(check))));
        parts.extend(table.foreign_key.iter().map(foreign_key));
        let (inside, after): (Vec<&Index>, Vec<&Index>) = table
            .indexes
            .iter()
            .partition(|i| self.dialect.spelling.indexes_in_table && i.only_where.is_none());
        parts.extend(inside.iter().map(|index| self.index_in_table(index)));
        let mut create = format!("create table {} ({})", table.name, parts.join(", "));
        let mut statements = Vec::new();
        match (&table.partitioned_by, self.dialect.spelling.partitions) {
            (None, _) => statements.push(create),
            (Some(column), PartitionForm::Clause) => {
                create.push_str(&format!(" partition by hash ({column}) partitions {PARTS}"));
                statements.push(create);
            }
            (Some(column), PartitionForm::Tables) => {
                statements.push(format!("{create} partition by hash ({column})"));
                statements.extend((0..PARTS).map(|part| {
                    format!(
                        "create table {0}_{part} partition of {0} for values with (modulus {PARTS}, remainder {part})",
                        table.name
                    )
                }));
            }
        }
        statements.extend(after.iter().map(|i| self.create_index(&table.name, i)));
        statements
    }

    fn column(&self, column: &Column) -> String {
        let mut text = format!("{} {}", column.name, self.dialect.type_name(column.of_type));
        if let Some(generated) = &column.generated {
            let kind = if generated.stored { "stored" } else { "virtual" };
            text.push_str(&format!(" generated always as ({}) {kind}", self.expr(&generated.from)));
        }
        if let Some(default) = &column.default {
            // MySQL takes a date there only as plain text.
            let value = match default {
                Literal::Date(date) => format!("'{date}'"),
                other => self.literal(other),
            };
            text.push_str(&format!(" default {value}"));
        }
        if column.not_null {
            text.push_str(" not null");
        }
        text
    }

    fn index_in_table(&self, index: &Index) -> String {
        let unique = if index.unique { "unique " } else { "" };
        let parts = listed(&index.parts, |part| self.index_part(part));
        format!("{unique}index {} ({parts})", index.name)
    }

    pub fn create_index(&self, table: &str, index: &Index) -> String {
        let unique = if index.unique { "unique " } else { "" };
        let parts = listed(&index.parts, |part| self.index_part(part));
        let only = index
            .only_where
            .as_ref()
            .map(|e| format!(" where {}", self.expr(e)))
            .unwrap_or_default();
        format!("create {unique}index {} on {table} ({parts}){only}", index.name)
    }

    fn index_part(&self, part: &IndexPart) -> String {
        let of = match &part.of {
            Expr::Column { name, .. } => name.clone(),
            other => format!("({})", self.expr(other)),
        };
        format!("{of}{}", if part.descending { " desc" } else { "" })
    }

    pub fn drop_index(&self, table: &str, index: &str) -> String {
        if self.dialect.spelling.drop_index_on_table {
            format!("drop index {index} on {table}")
        } else {
            format!("drop index {index}")
        }
    }
}

fn foreign_key(key: &ForeignKey) -> String {
    let on_delete = match key.on_delete {
        OnDelete::Refuse => "",
        OnDelete::Cascade => " on delete cascade",
        OnDelete::SetNull => " on delete set null",
    };
    let on_update = if key.update_cascades { " on update cascade" } else { "" };
    format!(
        "foreign key ({}) references {} ({}){on_delete}{on_update}",
        key.column, key.parent, key.parent_column
    )
}
