//! Writes names, values and expressions down, lower case and on one line.

use super::expression::{Binary, Expr, Unary, WindowFunction};
use super::value::Literal;
use crate::sql::dialect::{Dialect, Family, UpsertForm};
use sqlparser::keywords::ALL_KEYWORDS;
use std::borrow::Cow;

/// What stands in FROM in the place of a table, if something does.
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

    /// Queries read another table or a derived one in the place of each table
    /// that `substitute` knows, under the same name.
    pub fn reading(dialect: &'a Dialect, substitute: Substitute<'a>) -> Renderer<'a> {
        Renderer { dialect, substitute: Some(substitute) }
    }

    /// What is read in the place of a table, if something is.
    pub(super) fn instead_of(&self, table: &str) -> Option<String> {
        self.substitute.and_then(|substitute| substitute(table))
    }

    /// In quotes where it would be read as something else.
    pub fn name<'n>(&self, name: &'n str) -> Cow<'n, str> {
        if is_plain_name(name) && !is_keyword(name) {
            return Cow::Borrowed(name);
        }
        let quote = self.dialect.spelling.quote;
        Cow::Owned(format!("{quote}{}{quote}", name.replace(quote, &format!("{quote}{quote}"))))
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

    pub fn expr(&self, expression: &Expr) -> String {
        match expression {
            Expr::Column { qualifier: Some(of), name } => {
                format!("{}.{}", self.name(of), self.name(name))
            }
            Expr::Column { qualifier: None, name } => self.name(name).into_owned(),
            Expr::Literal(literal) => self.literal(literal),
            Expr::Unary(sign, of) => self.unary(*sign, of),
            Expr::Binary(sign, left, right) => self.binary(*sign, left, right),
            Expr::InList { of, items, negated } => format!(
                "{}{} in ({})",
                self.operand(of),
                not(*negated),
                listed(items, |e| self.expr(e))
            ),
            Expr::Between { of, low, high, negated } => format!(
                "{}{} between {} and {}",
                self.operand(of),
                not(*negated),
                self.operand(low),
                self.operand(high)
            ),
            Expr::Like { of, pattern, negated } => {
                format!("{}{} like {}", self.operand(of), not(*negated), self.operand(pattern))
            }
            Expr::Case { operand, branches, otherwise } => {
                let operand = operand.as_ref().map(|e| format!(" {}", self.expr(e)));
                let branches: String = branches
                    .iter()
                    .map(|(when, then)| {
                        format!(" when {} then {}", self.expr(when), self.expr(then))
                    })
                    .collect();
                let otherwise = otherwise.as_ref().map(|e| format!(" else {}", self.expr(e)));
                let (operand, otherwise) =
                    (operand.unwrap_or_default(), otherwise.unwrap_or_default());
                format!("case{operand}{branches}{otherwise} end")
            }
            Expr::Cast { of, to } => {
                format!("cast({} as {})", self.expr(of), self.dialect.type_name(to))
            }
            Expr::Call(function, arguments) => {
                format!("{}({})", function.name(), listed(arguments, |e| self.expr(e)))
            }
            Expr::InSelect { of, select, negated } => {
                format!("{}{} in ({})", self.operand(of), not(*negated), self.select(select))
            }
            Expr::Exists { select, negated } => {
                let not = if *negated { "not " } else { "" };
                format!("{not}exists ({})", self.select(select))
            }
            Expr::Scalar(select) => format!("({})", self.select(select)),
            Expr::Aggregate { function, of, distinct } => {
                let distinct = if *distinct { "distinct " } else { "" };
                let of = of.as_ref().map_or("*".into(), |e| self.expr(e));
                format!("{}({distinct}{of})", function.name())
            }
            Expr::Window { function, of, partition, order } => {
                self.window(*function, of.as_deref(), partition, order)
            }
            Expr::Incoming(column) => match self.dialect.spelling.upsert {
                UpsertForm::OnConflict => format!("excluded.{}", self.name(column)),
                UpsertForm::OnDuplicateKey => format!("values({})", self.name(column)),
            },
            Expr::Default => "default".into(),
        }
    }

    fn unary(&self, sign: Unary, of: &Expr) -> String {
        let of = self.operand(of);
        match sign {
            Unary::Not => format!("not {of}"),
            // Two signs in a row begin a comment.
            Unary::Negative if of.starts_with('-') => format!("-({of})"),
            Unary::Negative => format!("-{of}"),
            Unary::IsNull => format!("{of} is null"),
            Unary::IsNotNull => format!("{of} is not null"),
            Unary::IsTrue => format!("{of} is true"),
            Unary::IsNotTrue => format!("{of} is not true"),
            Unary::IsFalse => format!("{of} is false"),
            Unary::IsNotFalse => format!("{of} is not false"),
        }
    }

    fn binary(&self, sign: Binary, left: &Expr, right: &Expr) -> String {
        let (left, right) = (self.operand(left), self.operand(right));
        match (sign, self.dialect.family) {
            (Binary::NotDistinct, Family::Mysql) => format!("{left} <=> {right}"),
            (Binary::Distinct, Family::Mysql) => format!("not ({left} <=> {right})"),
            _ => format!("{left} {} {right}", sign.sign()),
        }
    }

    fn window(
        &self,
        function: WindowFunction,
        of: Option<&Expr>,
        partition: &[Expr],
        order: &[Expr],
    ) -> String {
        let mut over = Vec::new();
        if !partition.is_empty() {
            over.push(format!("partition by {}", listed(partition, |e| self.expr(e))));
        }
        if !order.is_empty() {
            over.push(format!("order by {}", listed(order, |e| self.expr(e))));
        }
        let of = match (function, of) {
            (_, Some(of)) => self.expr(of),
            (WindowFunction::Count, None) => "*".into(),
            (_, None) => String::new(),
        };
        format!("{}({of}) over ({})", function.name(), over.join(" "))
    }

    /// In parentheses unless it cannot be misread.
    fn operand(&self, expression: &Expr) -> String {
        let text = self.expr(expression);
        match expression {
            Expr::Unary(..)
            | Expr::Binary(..)
            | Expr::InList { .. }
            | Expr::Between { .. }
            | Expr::Like { .. }
            | Expr::Case { .. }
            | Expr::InSelect { .. }
            | Expr::Exists { .. } => format!("({text})"),
            Expr::Column { .. }
            | Expr::Literal(_)
            | Expr::Cast { .. }
            | Expr::Call(..)
            | Expr::Scalar(_)
            | Expr::Aggregate { .. }
            | Expr::Window { .. }
            | Expr::Incoming(_)
            | Expr::Default => text,
        }
    }
}

/// Lower case, so that an engine that folds names folds it to itself.
pub fn is_plain_name(name: &str) -> bool {
    let plain = |c: char| c.is_ascii_lowercase() || c == '_';
    name.starts_with(plain) && name.chars().all(|c| plain(c) || c.is_ascii_digit())
}

/// Whether any engine may take the word for one of its own. The names that
/// are generated have three letters at most and a digit among them, which no
/// keyword has: they are not looked for.
fn is_keyword(name: &str) -> bool {
    if name.len() < 4 && name.bytes().any(|b| b.is_ascii_digit()) {
        return false;
    }
    let upper = || name.bytes().map(|b| b.to_ascii_uppercase());
    name.len() > 1 && ALL_KEYWORDS.binary_search_by(|word| word.bytes().cmp(upper())).is_ok()
}

fn not(negated: bool) -> &'static str {
    if negated { " not" } else { "" }
}

fn fixed_point(value: i64, scale: i64) -> String {
    let sign = if value < 0 { "-" } else { "" };
    let value = value.unsigned_abs();
    let scale = scale.unsigned_abs();
    format!("{sign}{}.{:02}", value / scale, value % scale)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_could_be_misread_are_in_quotes() {
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
