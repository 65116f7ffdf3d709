//! Renders the syntax tree as SQL of a dialect, in lower case and on one line.

mod expression;
mod schema;
mod select;
mod statement;
mod write;

pub use schema::PARTS;

use crate::ast::{Expr, Literal, Type};
use crate::dialect::Dialect;
use sqlparser::keywords::ALL_KEYWORDS;
use std::borrow::Cow;

/// Returns the SQL that replaces a table in FROM, if it is replaced.
pub type Substitute<'a> = &'a dyn Fn(&str) -> Option<String>;

pub struct Renderer<'a> {
    pub dialect: &'a Dialect,
    substitute: Option<Substitute<'a>>,
}

pub fn listed<T>(items: &[T], each: impl Fn(&T) -> String) -> String {
    items.iter().map(each).collect::<Vec<_>>().join(", ")
}

impl<'a> Renderer<'a> {
    pub fn new(dialect: &'a Dialect) -> Renderer<'a> {
        Renderer { dialect, substitute: None }
    }

    /// A renderer whose queries read a substitute for each table for which `substitute` returns
    /// one, under the name of the table.
    pub fn reading(dialect: &'a Dialect, substitute: Substitute<'a>) -> Renderer<'a> {
        Renderer { dialect, substitute: Some(substitute) }
    }

    /// The substitute for a table, if it has one.
    pub(super) fn instead_of(&self, table: &str) -> Option<String> {
        self.substitute.and_then(|substitute| substitute(table))
    }

    /// The name, in quotes if it would otherwise be misread.
    pub fn name<'n>(&self, name: &'n str) -> Cow<'n, str> {
        if is_plain_name(name) && !is_keyword(name) {
            return Cow::Borrowed(name);
        }
        let quote = self.dialect.spelling.quote;
        Cow::Owned(format!("{quote}{}{quote}", name.replace(quote, &format!("{quote}{quote}"))))
    }

    /// The parts of a conflict target.
    fn targets(&self, key: &[String]) -> String {
        listed(key, |part| match part.strip_prefix(EXPRESSION) {
            Some(expression) => format!("({expression})"),
            None => self.name(part).into_owned(),
        })
    }

    pub fn names(&self, names: &[String]) -> String {
        listed(names, |name| self.name(name).into_owned())
    }

    pub fn text(&self, text: &str) -> String {
        let quoted = text.replace('\'', "''");
        match self.dialect.spelling.backslash_escapes {
            true => format!("'{}'", quoted.replace('\\', "\\\\")),
            false => format!("'{quoted}'"),
        }
    }

    pub fn literal(&self, literal: &Literal) -> String {
        let spelling = self.dialect.spelling;
        match literal {
            Literal::Null => "null".into(),
            Literal::Int(n) => n.to_string(),
            Literal::Decimal(hundredths) => fixed_point(*hundredths, 100),
            Literal::Float(quarters) => fixed_point(quarters * 25, 100),
            Literal::Number(digits) => digits.clone(),
            Literal::Text(text) => self.text(text),
            Literal::Date(date) => format!("{}'{date}'", spelling.date_literal),
            Literal::Bool(true) => spelling.booleans.0.into(),
            Literal::Bool(false) => spelling.booleans.1.into(),
            Literal::Blob(bytes) => {
                let digits: String = bytes.iter().map(|b| format!("{b:02x}")).collect();
                format!("{}{digits}{}", spelling.blob_literal.0, spelling.blob_literal.1)
            }
        }
    }
}

/// Marks the target of ON CONFLICT that is an expression and no column.
const EXPRESSION: char = '=';

/// The name of a part of a key in the target of ON CONFLICT: a column, or an expression as SQL,
/// which is the same for equal expressions.
pub fn key_name(part: &Expr) -> String {
    match part {
        Expr::Column { name, .. } => name.clone(),
        other => {
            let dialect = Dialect::for_engine("postgres", "");
            format!("{EXPRESSION}{}", Renderer::new(&dialect).expr(other))
        }
    }
}

/// Whether a name needs no quotes. It is in lower case, so an engine that folds names does not
/// change it.
pub fn is_plain_name(name: &str) -> bool {
    let plain = |c: char| c.is_ascii_lowercase() || c == '_';
    name.starts_with(plain) && name.chars().all(|c| plain(c) || c.is_ascii_digit())
}

/// Whether the word is a keyword of some engine. Generated names have at most three characters,
/// one of them a digit, which no keyword has, so they are not looked up.
fn is_keyword(name: &str) -> bool {
    if name.len() < 4 && name.bytes().any(|b| b.is_ascii_digit()) {
        return false;
    }
    let upper = || name.bytes().map(|b| b.to_ascii_uppercase());
    name.len() > 1 && ALL_KEYWORDS.binary_search_by(|word| word.bytes().cmp(upper())).is_ok()
}

fn fixed_point(value: i64, scale: i64) -> String {
    let sign = if value < 0 { "-" } else { "" };
    let value = value.unsigned_abs();
    let scale = scale.unsigned_abs();
    format!("{sign}{}.{:02}", value / scale, value % scale)
}

/// The name of a type in a dialect.
fn type_name(dialect: &Dialect, of_type: &Type) -> String {
    match of_type {
        Type::Int => "int".into(),
        Type::BigInt => "bigint".into(),
        Type::Decimal => "decimal(10, 2)".into(),
        Type::Float => dialect.spelling.float.into(),
        Type::Text(Some(length)) => format!("varchar({length})"),
        Type::Text(None) => "text".into(),
        Type::Date => "date".into(),
        Type::Bool => "boolean".into(),
        Type::Blob => dialect.spelling.blob.into(),
        Type::Other(name) => name.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn name_that_could_be_misread_is_quoted() {
        let dialect = Dialect::for_engine("mysql", "9");
        let quoted = |name: &str| Renderer::new(&dialect).name(name).starts_with('`');
        for name in ["order", "int4", "as", "T1", "a b", "1a", "é", ""] {
            assert!(quoted(name), "{name}");
        }
        for name in ["t1", "i1a", "q", "x", "a", "_a", "abc1"] {
            assert!(!quoted(name), "{name}");
        }
        assert_eq!(Renderer::new(&dialect).name("a`b"), "`a``b`");
        let short = |word: &&&str| word.len() < 4 && word.bytes().any(|b| b.is_ascii_digit());
        assert_eq!(ALL_KEYWORDS.iter().find(short), None);
    }
}
