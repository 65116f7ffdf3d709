//! Parses expressions.
//!
//! Engines disagree on the precedence of operators of the same kind (`a = b in (1)`, `a || b +
//! c`), so such a pair is parsed only with parentheses.

use super::Reader;
use crate::ast::{Binary, Expr, Literal, Type, Unary};
use crate::dialect::Family;
use sqlparser::ast::{
    self, BinaryOperator, CaseWhen, CastKind, DataType, TypedString, UnaryOperator, Value,
};

impl Reader {
    pub(super) fn expr(self, parsed: ast::Expr, depth: usize) -> Option<Expr> {
        let depth = depth.checked_sub(1)?;
        match parsed {
            ast::Expr::Nested(inside) => self.expr(*inside, depth),
            ast::Expr::UnaryOp { op, expr } => self.unary(op, *expr, depth),
            ast::Expr::BinaryOp { left, op, right } => self.binary(*left, op, *right, depth),
            other => self.operand(other, depth),
        }
    }

    /// An expression that does not begin with an operator. A function of its own, because the
    /// many forms make its stack frame large, and chains of operators nest deeply.
    fn operand(self, parsed: ast::Expr, depth: usize) -> Option<Expr> {
        let boxed = |e: Box<ast::Expr>| Some(Box::new(self.expr(*e, depth)?));
        let query = |q: Box<ast::Query>| Some(Box::new(self.query(*q, depth)?));
        let test = |sign: Unary, of: Box<ast::Expr>| {
            let of = self.compared(*of, depth)?;
            Some(Expr::unary(sign, of))
        };
        match parsed {
            ast::Expr::Identifier(ident) => {
                if ident.quote_style.is_none() && ident.value.eq_ignore_ascii_case("default") {
                    return Some(Expr::Default);
                }
                let name = self.column_in_expression(&ident)?;
                Some(Expr::Column { qualifier: None, name })
            }
            ast::Expr::CompoundIdentifier(parts) => {
                let [of, name] = parts.as_slice() else { return None };
                let qualifier = Some(self.table_ident(of)?);
                Some(Expr::Column { qualifier, name: self.column(name)? })
            }
            ast::Expr::Value(value) => Some(Expr::Literal(self.literal(value.value)?)),
            ast::Expr::TypedString(typed) => self.typed(typed),
            ast::Expr::IsNull(of) => test(Unary::IsNull, of),
            ast::Expr::IsNotNull(of) => test(Unary::IsNotNull, of),
            ast::Expr::IsTrue(of) => test(Unary::IsTrue, of),
            ast::Expr::IsNotTrue(of) => test(Unary::IsNotTrue, of),
            ast::Expr::IsFalse(of) => test(Unary::IsFalse, of),
            ast::Expr::IsNotFalse(of) => test(Unary::IsNotFalse, of),
            ast::Expr::IsDistinctFrom(left, right) => {
                let (left, right) = (self.compared(*left, depth)?, self.compared(*right, depth)?);
                Some(Expr::binary(Binary::Distinct, left, right))
            }
            ast::Expr::IsNotDistinctFrom(left, right) => {
                let (left, right) = (self.compared(*left, depth)?, self.compared(*right, depth)?);
                Some(Expr::binary(Binary::NotDistinct, left, right))
            }
            ast::Expr::InList { expr, list, negated } => Some(Expr::InList {
                of: Box::new(self.compared(*expr, depth)?),
                items: self.exprs(list, depth)?,
                negated,
            }),
            ast::Expr::InSubquery { expr, subquery, negated } => Some(Expr::InSelect {
                of: Box::new(self.compared(*expr, depth)?),
                select: query(subquery)?,
                negated,
            }),
            ast::Expr::Between { expr, negated, low, high } => Some(Expr::Between {
                of: Box::new(self.compared(*expr, depth)?),
                low: Box::new(self.compared(*low, depth)?),
                high: Box::new(self.compared(*high, depth)?),
                negated,
            }),
            ast::Expr::Like { negated, any: false, expr, pattern, escape_char: None } => {
                Some(Expr::Like {
                    of: Box::new(self.compared(*expr, depth)?),
                    pattern: Box::new(self.compared(*pattern, depth)?),
                    negated,
                })
            }
            ast::Expr::Exists { subquery, negated } => {
                Some(Expr::Exists { select: query(subquery)?, negated })
            }
            ast::Expr::Subquery(subquery) => Some(Expr::Scalar(query(subquery)?)),
            ast::Expr::AnyOp { left, compare_op, right, is_some: _ } => {
                self.quantified(*left, &compare_op, false, *right, depth)
            }
            ast::Expr::AllOp { left, compare_op, right } => {
                self.quantified(*left, &compare_op, true, *right, depth)
            }
            ast::Expr::Tuple(cells) => Some(Expr::Row(self.exprs(cells, depth)?)),
            ast::Expr::Case { case_token: _, end_token: _, operand, conditions, else_result } => {
                let branch = |CaseWhen { condition, result }: CaseWhen| {
                    Some((self.expr(condition, depth)?, self.expr(result, depth)?))
                };
                Some(Expr::Case {
                    operand: optional(operand, boxed)?,
                    branches: conditions.into_iter().map(branch).collect::<Option<_>>()?,
                    otherwise: optional(else_result, boxed)?,
                })
            }
            ast::Expr::Cast { kind, expr, data_type, format: None } => {
                self.cast(kind, *expr, &data_type, depth)
            }
            ast::Expr::Function(function) => self.function(function, depth),
            ast::Expr::Floor { .. }
            | ast::Expr::Ceil { .. }
            | ast::Expr::Trim { .. }
            | ast::Expr::Substring { .. } => self.keyword_function(parsed, depth),
            _ => None,
        }
    }

    /// A comparison with a query. With an array, `any` and `all` are not supported.
    fn quantified(
        self,
        of: ast::Expr,
        sign: &BinaryOperator,
        all: bool,
        query: ast::Expr,
        depth: usize,
    ) -> Option<Expr> {
        let sign = match sign {
            BinaryOperator::Eq => Binary::Equal,
            BinaryOperator::NotEq => Binary::Unequal,
            BinaryOperator::Lt => Binary::Less,
            BinaryOperator::LtEq => Binary::AtMost,
            BinaryOperator::Gt => Binary::Greater,
            BinaryOperator::GtEq => Binary::AtLeast,
            _ => return None,
        };
        let ast::Expr::Subquery(query) = query else { return None };
        let of = Box::new(self.compared(of, depth)?);
        Some(Expr::Quantified { sign, of, all, select: Box::new(self.query(*query, depth)?) })
    }

    pub(super) fn exprs(self, parsed: Vec<ast::Expr>, depth: usize) -> Option<Vec<Expr>> {
        parsed.into_iter().map(|e| self.expr(e, depth)).collect()
    }

    fn rank(self, parsed: &ast::Expr) -> Rank {
        match rank(parsed) {
            Rank::Concat if self.family == Family::Mysql => Rank::Pipes,
            rank => rank,
        }
    }

    /// An operand of a comparison: no other comparison without parentheses.
    fn compared(self, parsed: ast::Expr, depth: usize) -> Option<Expr> {
        (self.rank(&parsed) > Rank::Comparison).then(|| self.expr(parsed, depth)).flatten()
    }

    fn unary(self, op: UnaryOperator, of: ast::Expr, depth: usize) -> Option<Expr> {
        match op {
            UnaryOperator::Not if self.rank(&of) == Rank::Pipes => None,
            UnaryOperator::Not => Some(Expr::unary(Unary::Not, self.expr(of, depth)?)),
            UnaryOperator::Minus => match of {
                ast::Expr::Value(value) => {
                    let Value::Number(digits, false) = value.value else { return None };
                    Some(Expr::Literal(number(&format!("-{digits}"))))
                }
                of if self.rank(&of) == Rank::Atom => {
                    Some(Expr::unary(Unary::Negative, self.expr(of, depth)?))
                }
                _ => None,
            },
            _ => None,
        }
    }

    fn binary(
        self,
        left: ast::Expr,
        op: BinaryOperator,
        right: ast::Expr,
        depth: usize,
    ) -> Option<Expr> {
        let atoms = [&left, &right].iter().all(|side| self.rank(side) == Rank::Atom);
        let sign = match op {
            BinaryOperator::Eq => Binary::Equal,
            BinaryOperator::NotEq => Binary::Unequal,
            BinaryOperator::Lt => Binary::Less,
            BinaryOperator::LtEq => Binary::AtMost,
            BinaryOperator::Gt => Binary::Greater,
            BinaryOperator::GtEq => Binary::AtLeast,
            BinaryOperator::Spaceship if self.family == Family::Mysql => Binary::NotDistinct,
            BinaryOperator::And => Binary::And,
            BinaryOperator::Or => Binary::Or,
            BinaryOperator::Plus => Binary::Plus,
            BinaryOperator::Minus => Binary::Minus,
            BinaryOperator::Multiply => Binary::Times,
            BinaryOperator::Divide => Binary::Divide,
            BinaryOperator::Modulo => Binary::Modulo,
            BinaryOperator::BitwiseAnd => Binary::BitAnd,
            BinaryOperator::BitwiseOr => Binary::BitOr,
            BinaryOperator::PGBitwiseShiftLeft => Binary::ShiftLeft,
            BinaryOperator::PGBitwiseShiftRight => Binary::ShiftRight,
            BinaryOperator::StringConcat => match self.family {
                Family::Sqlite | Family::Postgres | Family::Duckdb => Binary::Concat,
                Family::Mysql if atoms => Binary::Or,
                Family::Mysql | Family::Other => return None,
            },
            _ => return None,
        };
        let fits = |side: &ast::Expr| match rank_of(sign) {
            Rank::Pipes | Rank::Logic => self.rank(side) != Rank::Pipes,
            Rank::Comparison => self.rank(side) > Rank::Comparison,
            Rank::Bits => self.rank(side) == Rank::Atom,
            Rank::Concat => matches!(self.rank(side), Rank::Concat | Rank::Atom),
            Rank::Arithmetic | Rank::Atom => {
                matches!(self.rank(side), Rank::Arithmetic | Rank::Atom)
            }
        };
        if !fits(&left) || !fits(&right) {
            return None;
        }
        Some(Expr::binary(sign, self.expr(left, depth)?, self.expr(right, depth)?))
    }

    fn literal(self, value: Value) -> Option<Literal> {
        match value {
            Value::Number(digits, false) => Some(number(&digits)),
            // It is not known whether a backslash is an escape.
            Value::SingleQuotedString(text)
                if self.family == Family::Other && text.contains('\\') =>
            {
                None
            }
            Value::SingleQuotedString(text) => Some(Literal::Text(text)),
            Value::DoubleQuotedString(text) if self.family == Family::Mysql => {
                Some(Literal::Text(text))
            }
            Value::HexStringLiteral(digits) => match self.family {
                Family::Sqlite | Family::Mysql => Some(Literal::Blob(bytes(&digits)?)),
                Family::Postgres | Family::Duckdb | Family::Other => None,
            },
            Value::Boolean(value) => Some(Literal::Bool(value)),
            Value::Null => Some(Literal::Null),
            _ => None,
        }
    }

    /// `date '2020-02-29'`, and times of PostgreSQL as the cast that they are.
    fn typed(self, typed: TypedString) -> Option<Expr> {
        if self.family == Family::Postgres
            && let TypedString { data_type, value, uses_odbc_syntax: false } = &typed
            && let DataType::Timestamp(None, _) | DataType::Time(None, _) = data_type
        {
            let Value::SingleQuotedString(time) = &value.value else { return None };
            let plain = time.starts_with(|c: char| c.is_ascii_digit());
            let of = Box::new(Expr::Literal(Literal::Text(time.clone())));
            let to = self.of_type(data_type)?;
            return plain.then_some(Expr::Cast { of, to });
        }
        let TypedString { data_type: DataType::Date, value, uses_odbc_syntax: false } = typed
        else {
            return None;
        };
        let Value::SingleQuotedString(date) = value.value else { return None };
        let plain = date.chars().all(|c| c.is_ascii_digit() || c == '-');
        (plain && self.family != Family::Sqlite).then_some(Expr::Literal(Literal::Date(date)))
    }

    fn cast(self, kind: CastKind, of: ast::Expr, to: &DataType, depth: usize) -> Option<Expr> {
        if !matches!(kind, CastKind::Cast | CastKind::DoubleColon) {
            return None;
        }
        let of = self.expr(of, depth)?;
        let to = self.of_type(to)?;
        let (Expr::Literal(Literal::Text(text)), Type::Blob) = (&of, &to) else {
            return Some(Expr::Cast { of: Box::new(of), to });
        };
        match text.strip_prefix("\\x") {
            Some(digits) => Some(Expr::Literal(Literal::Blob(bytes(digits)?))),
            None => Some(Expr::Cast { of: Box::new(of), to }),
        }
    }
}

/// The precedence of an operator, as far as all engines agree.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Rank {
    /// `||` in MySQL: an OR to the server, a concatenation to `sqlparser`.
    Pipes,
    Logic,
    Comparison,
    /// Engines order these among themselves, and against arithmetic, differently.
    Bits,
    Concat,
    Arithmetic,
    Atom,
}

fn rank_of(sign: Binary) -> Rank {
    match sign {
        Binary::And | Binary::Or => Rank::Logic,
        Binary::Equal
        | Binary::Unequal
        | Binary::Less
        | Binary::AtMost
        | Binary::Greater
        | Binary::AtLeast
        | Binary::Distinct
        | Binary::NotDistinct => Rank::Comparison,
        Binary::BitAnd | Binary::BitOr | Binary::ShiftLeft | Binary::ShiftRight => Rank::Bits,
        Binary::Concat => Rank::Concat,
        Binary::Plus | Binary::Minus | Binary::Times | Binary::Divide | Binary::Modulo => {
            Rank::Arithmetic
        }
    }
}

fn rank(parsed: &ast::Expr) -> Rank {
    match parsed {
        ast::Expr::BinaryOp { op, .. } => match op {
            BinaryOperator::And | BinaryOperator::Or | BinaryOperator::Xor => Rank::Logic,
            BinaryOperator::Plus
            | BinaryOperator::Minus
            | BinaryOperator::Multiply
            | BinaryOperator::Divide
            | BinaryOperator::Modulo => Rank::Arithmetic,
            BinaryOperator::StringConcat => Rank::Concat,
            BinaryOperator::BitwiseAnd
            | BinaryOperator::BitwiseOr
            | BinaryOperator::PGBitwiseShiftLeft
            | BinaryOperator::PGBitwiseShiftRight => Rank::Bits,
            _ => Rank::Comparison,
        },
        ast::Expr::UnaryOp { op: UnaryOperator::Not, .. } => Rank::Logic,
        ast::Expr::IsNull(_)
        | ast::Expr::IsNotNull(_)
        | ast::Expr::IsTrue(_)
        | ast::Expr::IsNotTrue(_)
        | ast::Expr::IsFalse(_)
        | ast::Expr::IsNotFalse(_)
        | ast::Expr::IsDistinctFrom(..)
        | ast::Expr::IsNotDistinctFrom(..)
        | ast::Expr::InList { .. }
        | ast::Expr::InSubquery { .. }
        | ast::Expr::Between { .. }
        | ast::Expr::Like { .. } => Rank::Comparison,
        _ => Rank::Atom,
    }
}

/// Parses an optional part: `Some(None)` if it is absent, `None` if it cannot be parsed.
pub(super) fn optional<A, B>(
    part: Option<A>,
    read: impl FnOnce(A) -> Option<B>,
) -> Option<Option<B>> {
    match part {
        None => Some(None),
        Some(part) => Some(Some(read(part)?)),
    }
}

/// A number: integers and numbers with two decimals have literals of their own.
fn number(digits: &str) -> Literal {
    if let Ok(whole) = digits.parse::<i64>() {
        return Literal::Int(whole);
    }
    let hundredths = digits.split_once('.').and_then(|(whole, part)| {
        let plain = part.len() == 2 && part.bytes().all(|b| b.is_ascii_digit());
        let some = whole.ends_with(|c: char| c.is_ascii_digit());
        (plain && some).then(|| format!("{whole}{part}").parse().ok()).flatten()
    });
    match hundredths {
        Some(hundredths) => Literal::Decimal(hundredths),
        None => Literal::Number(digits.to_ascii_lowercase()),
    }
}

pub(super) fn bytes(digits: &str) -> Option<Vec<u8>> {
    let pairs = digits.as_bytes().chunks(2);
    let byte = |pair: &[u8]| {
        let text = std::str::from_utf8(pair).ok()?;
        let hexadecimal = pair.len() == 2 && pair.iter().all(u8::is_ascii_hexdigit);
        hexadecimal.then(|| u8::from_str_radix(text, 16).ok()).flatten()
    };
    pairs.map(byte).collect()
}
