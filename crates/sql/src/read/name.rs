//! Parses names, folded as the family folds them, so that equal names compare equal.

use super::Reader;
use crate::dialect::Family;
use sqlparser::ast::{Ident, ObjectName, ObjectNamePart};

/// Words that are always values, never columns.
const NO_COLUMNS: [&str; 9] = [
    "current_date",
    "current_time",
    "current_timestamp",
    "current_user",
    "localtime",
    "localtimestamp",
    "session_user",
    "sysdate",
    "user",
];

/// Words that some engine does not accept as a name, while `sqlparser` does: it would parse
/// `update only t` as a table `only` with the alias `t`.
const NO_NAMES: [&str; 44] = [
    "all",
    "and",
    "any",
    "as",
    "between",
    "by",
    "case",
    "check",
    "constraint",
    "create",
    "cross",
    "delayed",
    "distinct",
    "else",
    "exists",
    "for",
    "foreign",
    "from",
    "group",
    "having",
    "high_priority",
    "ignore",
    "in",
    "into",
    "is",
    "join",
    "lateral",
    "like",
    "low_priority",
    "natural",
    "not",
    "null",
    "on",
    "only",
    "or",
    "order",
    "partition",
    "select",
    "set",
    "table",
    "then",
    "using",
    "when",
    "where",
];

impl Reader {
    /// A name that is not case-sensitive.
    pub(super) fn column(self, ident: &Ident) -> Option<String> {
        let Ident { value, quote_style, span: _ } = ident;
        match (quote_style, self.family) {
            (None, Family::Other) if is_bare(value) => plain(&value.to_ascii_lowercase()),
            (None, _) => is_bare(value).then(|| value.to_ascii_lowercase()),
            (Some('\''), _) => None,
            (Some(_), Family::Postgres) => Some(value.clone()),
            (Some(_), Family::Sqlite | Family::Mysql | Family::Duckdb) => {
                Some(value.to_ascii_lowercase())
            }
            (Some(_), Family::Other) => plain(value),
        }
    }

    /// The name or alias of a table, which is case-sensitive in MySQL.
    pub(super) fn table_ident(self, ident: &Ident) -> Option<String> {
        match (ident.quote_style, self.family) {
            (None, Family::Mysql) => is_bare(&ident.value).then(|| ident.value.clone()),
            (Some('`'), Family::Mysql) => Some(ident.value.clone()),
            _ => self.column(ident),
        }
    }

    /// A table name without a schema name, which is not supported.
    pub(super) fn table_name(self, name: &ObjectName) -> Option<String> {
        self.table_ident(single(name)?)
    }

    pub(super) fn column_of(self, name: &ObjectName) -> Option<String> {
        self.column(single(name)?)
    }

    /// A column in an expression. SQLite treats a name in double quotes as a string if there is no
    /// such column.
    pub(super) fn column_in_expression(self, ident: &Ident) -> Option<String> {
        if ident.quote_style == Some('"') && self.family == Family::Sqlite {
            return None;
        }
        let name = self.column(ident)?;
        let value = ident.quote_style.is_none() && NO_COLUMNS.contains(&name.as_str());
        (!value).then_some(name)
    }
}

/// The one part of a name that has one.
pub(super) fn single(name: &ObjectName) -> Option<&Ident> {
    match name.0.as_slice() {
        [ObjectNamePart::Identifier(ident)] => Some(ident),
        _ => None,
    }
}

/// The name of a function, which may be a word that is no other name.
pub(super) fn of_function(name: &ObjectName) -> Option<String> {
    let Ident { value, quote_style: None, span: _ } = single(name)? else { return None };
    is_word(value).then(|| value.to_ascii_lowercase())
}

/// How an unknown engine folds any other name is not known, and so neither is
/// how to write it down.
fn plain(name: &str) -> Option<String> {
    crate::render::is_plain_name(name).then(|| name.to_string())
}

/// A word that is a name without quotes.
fn is_bare(name: &str) -> bool {
    let keyword = NO_NAMES.iter().any(|word| name.eq_ignore_ascii_case(word));
    is_word(name) && !keyword
}

/// Not a variable such as `@a`.
fn is_word(name: &str) -> bool {
    let first = |c: char| c.is_alphabetic() || c == '_';
    name.starts_with(first) && name.chars().all(|c| c.is_alphanumeric() || c == '_' || c == '$')
}
