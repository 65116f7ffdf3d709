//! Parses keys, checks, foreign keys and indexes. The names of constraints are not stored.

use super::name::single;
use super::{DEEPEST, Read, Reader};
use crate::ast::{Expr, ForeignKey, Index, IndexPart, OnDelete, Table};
use crate::dialect::Family;
use sqlparser::ast::{
    self, CheckConstraint, CreateIndex, ForeignKeyConstraint, IndexColumn, IndexConstraint,
    IndexType, KeyOrIndexDisplay, NullsDistinctOption, PrimaryKeyConstraint, ReferentialAction,
    TableConstraint, UniqueConstraint,
};

impl Reader {
    pub(super) fn constraint(self, table: &mut Table, constraint: TableConstraint) -> Read<()> {
        match constraint {
            TableConstraint::PrimaryKey(key)
                if table.primary_key.is_empty() && self.key_is_plain(&key) =>
            {
                table.primary_key = self.key_columns(key.columns)?;
            }
            TableConstraint::Unique(unique) if self.is_plain_unique(&unique) => {
                let index = unique.index_type_display != KeyOrIndexDisplay::None;
                if self.family == Family::Mysql && (index || unique.index_name.is_some()) {
                    let index = self.index_in_table(table, unique.index_name, unique.columns)?;
                    table.indexes.push(Index { unique: true, ..index });
                } else {
                    table.unique.push(self.key_columns(unique.columns)?);
                }
            }
            TableConstraint::ForeignKey(key) => table.foreign_keys.push(self.foreign_key(key)?),
            TableConstraint::Check(check) => table.checks.push(self.check(check)?),
            TableConstraint::Index(index) => {
                let IndexConstraint { display_as_key: _, name, index_type, columns, index_options } =
                    index;
                if !index_options.is_empty() || !is_tree(index_type.as_ref()) {
                    return Err("an index with options".into());
                }
                let index = self.index_in_table(table, name, columns)?;
                table.indexes.push(index);
            }
            TableConstraint::PrimaryKey(_)
            | TableConstraint::Unique(_)
            | TableConstraint::FulltextOrSpatial(_)
            | TableConstraint::PrimaryKeyUsingIndex(_)
            | TableConstraint::UniqueUsingIndex(_)
            | TableConstraint::Exclude(_) => return Err("a constraint that is not read".into()),
        }
        Ok(())
    }

    pub(super) fn key_is_plain(self, key: &PrimaryKeyConstraint) -> bool {
        let PrimaryKeyConstraint {
            name: _,
            index_name: _,
            index_type,
            columns: _,
            include,
            index_options,
            characteristics,
        } = key;
        // Columns of INCLUDE are stored in the index and are no part of the key.
        is_tree(index_type.as_ref())
            && (include.is_empty() || self.family == Family::Postgres)
            && index_options.is_empty()
            && characteristics.is_none()
    }

    pub(super) fn is_plain_unique(self, unique: &UniqueConstraint) -> bool {
        let UniqueConstraint {
            name: _,
            index_name: _,
            index_type_display: _,
            index_type,
            columns: _,
            include,
            index_options,
            characteristics,
            nulls_distinct,
        } = unique;
        is_tree(index_type.as_ref())
            && (include.is_empty() || self.family == Family::Postgres)
            && index_options.is_empty()
            && characteristics.is_none()
            && *nulls_distinct == NullsDistinctOption::None
    }

    fn key_columns(self, columns: Vec<IndexColumn>) -> Read<Vec<String>> {
        let name = |part: IndexPart| match part {
            IndexPart { of: Expr::Column { qualifier: None, name }, descending: false } => Ok(name),
            _ => Err("a key of more than columns".into()),
        };
        self.index_parts(columns)?.into_iter().map(name).collect()
    }

    pub(super) fn check(self, check: CheckConstraint) -> Read<Expr> {
        let CheckConstraint { name: _, expr, no_inherit: false, enforced: None | Some(true) } =
            check
        else {
            return Err("a check that is not enforced everywhere".into());
        };
        self.expr(*expr, DEEPEST).ok_or_else(|| "the condition of a check".into())
    }

    /// The parent column stays empty if the constraint names none.
    pub(super) fn foreign_key(self, key: ForeignKeyConstraint) -> Read<ForeignKey> {
        let ForeignKeyConstraint {
            name: _,
            index_name: _,
            columns,
            foreign_table,
            referred_columns,
            on_delete,
            on_update,
            match_kind: None,
            characteristics: None,
        } = key
        else {
            return Err("a foreign key that is deferrable or has a MATCH".into());
        };
        let ([column], [] | [_]) = (columns.as_slice(), referred_columns.as_slice()) else {
            return Err("a foreign key of several columns".into());
        };
        let names = (
            self.column(column),
            self.table_name(&foreign_table),
            referred_columns.first().map_or(Some(String::new()), |c| self.column(c)),
        );
        let (Some(column), Some(parent), Some(parent_column)) = names else {
            return Err("the names of a foreign key".into());
        };
        let on_delete = match on_delete {
            None | Some(ReferentialAction::NoAction) => OnDelete::Refuse,
            Some(ReferentialAction::Restrict) => OnDelete::Restrict,
            Some(ReferentialAction::Cascade) => OnDelete::Cascade,
            Some(ReferentialAction::SetNull) => OnDelete::SetNull,
            Some(ReferentialAction::SetDefault) => return Err("ON DELETE SET DEFAULT".into()),
        };
        let update_cascades = match on_update {
            None | Some(ReferentialAction::NoAction | ReferentialAction::Restrict) => false,
            Some(ReferentialAction::Cascade) => true,
            Some(ReferentialAction::SetNull | ReferentialAction::SetDefault) => {
                return Err("what its foreign key does on update".into());
            }
        };
        Ok(ForeignKey { column, parent, parent_column, on_delete, update_cascades })
    }

    /// An index of CREATE TABLE. MySQL names an unnamed index after its first column.
    fn index_in_table(
        self,
        table: &Table,
        name: Option<ast::Ident>,
        columns: Vec<IndexColumn>,
    ) -> Read<Index> {
        let parts = self.index_parts(columns)?;
        let name = match name {
            Some(name) => self.column(&name),
            None => match parts.first() {
                Some(IndexPart { of: Expr::Column { name, .. }, .. }) => Some(name.clone()),
                _ => None,
            },
        };
        let name = name.ok_or("the name of an index")?;
        let taken = |name: &str| table.indexes.iter().any(|i| i.name == name);
        let numbered = (2..).map(|n| format!("{name}_{n}"));
        let name = std::iter::once(name.clone()).chain(numbered).find(|name| !taken(name));
        let name = name.ok_or("the name of an index")?;
        Ok(Index { name, unique: false, parts, only_where: None })
    }

    fn index_parts(self, columns: Vec<IndexColumn>) -> Read<Vec<IndexPart>> {
        let part = |column: IndexColumn| {
            let IndexColumn { column, operator_class: None } = column else { return None };
            // In MySQL `a(10)` is a prefix of a column.
            let prefix = matches!(column.expr, ast::Expr::Function(_));
            let key = self.order_key(column, DEEPEST)?;
            let plain = key.nulls_first.is_none() && !(prefix && self.family == Family::Mysql);
            plain.then_some(IndexPart { of: key.of, descending: key.descending })
        };
        let parts: Option<Vec<IndexPart>> = columns.into_iter().map(part).collect();
        parts.ok_or_else(|| "a part of an index".into())
    }

    pub(super) fn create_index(self, create: CreateIndex) -> Read<(String, Index)> {
        let CreateIndex {
            name: Some(name),
            table_name,
            using,
            columns,
            unique,
            concurrently: false,
            r#async: false,
            if_not_exists: false,
            include,
            nulls_distinct: None,
            with,
            predicate,
            index_options,
            alter_options,
        } = create
        else {
            return Err("an index without a name, or one that is made in a way of its own".into());
        };
        let plain = is_tree(using.as_ref())
            && include.is_empty()
            && with.is_empty()
            && index_options.is_empty()
            && alter_options.is_empty();
        if !plain {
            return Err("an index with options".into());
        }
        let names = (single(&name).and_then(|i| self.column(i)), self.table_name(&table_name));
        let (Some(name), Some(table)) = names else { return Err("the name of an index".into()) };
        let only_where = match predicate {
            None => None,
            Some(e) => Some(self.expr(e, DEEPEST).ok_or("the condition of an index")?),
        };
        Ok((table, Index { name, unique, parts: self.index_parts(columns)?, only_where }))
    }
}

/// Whether it is the default kind of index of all engines.
fn is_tree(index_type: Option<&IndexType>) -> bool {
    matches!(index_type, None | Some(IndexType::BTree))
}
