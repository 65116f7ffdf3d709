//! Renders expressions.

use super::{Renderer, listed, type_name};
use crate::ast::{Binary, Expr, Function, OrderKey, Unary, WindowFunction};
use crate::dialect::{Family, UpsertForm};

impl Renderer<'_> {
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
                format!("cast({} as {})", self.expr(of), type_name(self.dialect, to))
            }
            Expr::Call(function, arguments) => self.call(function, arguments),
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
            Expr::Window { function, arguments, partition, order } => {
                self.window(*function, arguments, partition, order)
            }
            Expr::Incoming(column) => match self.dialect.spelling.upsert {
                UpsertForm::OnConflict => format!("excluded.{}", self.name(column)),
                UpsertForm::OnDuplicateKey => format!("values({})", self.name(column)),
            },
            Expr::Default => "default".into(),
        }
    }

    fn call(&self, function: &Function, arguments: &[Expr]) -> String {
        match (function, arguments) {
            (Function::Operator(sign), [left, right]) => {
                format!("({} {sign} {})", self.operand(left), self.operand(right))
            }
            (Function::Subscript, [of, place]) => {
                format!("({})[{}]", self.expr(of), self.expr(place))
            }
            (Function::Array, items) => format!("array[{}]", listed(items, |e| self.expr(e))),
            _ => format!("{}({})", function.name(), listed(arguments, |e| self.expr(e))),
        }
    }

    fn unary(&self, sign: Unary, of: &Expr) -> String {
        let of = self.operand(of);
        match sign {
            Unary::Not => format!("not {of}"),
            // Two minus signs in a row begin a comment.
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
        arguments: &[Expr],
        partition: &[Expr],
        order: &[OrderKey],
    ) -> String {
        let mut over = Vec::new();
        if !partition.is_empty() {
            over.push(format!("partition by {}", listed(partition, |e| self.expr(e))));
        }
        if !order.is_empty() {
            over.push(self.order_by(order).trim_start().into());
        }
        let arguments = match (function, arguments) {
            (WindowFunction::Count, []) => "*".into(),
            (_, arguments) => listed(arguments, |e| self.expr(e)),
        };
        format!("{}({arguments}) over ({})", function.name(), over.join(" "))
    }

    /// An operand, in parentheses unless it cannot be misread.
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

fn not(negated: bool) -> &'static str {
    if negated { " not" } else { "" }
}
