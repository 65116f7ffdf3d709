//! Renders expressions.

use super::{Renderer, listed, type_name};
use crate::ast::{
    Aggregate, Binary, Expr, Frame, FrameBound, FrameUnit, OrderKey, Over, Unary, Window,
    WindowFunction,
};
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
            Expr::Quantified { sign, of, all, select } => {
                let quantifier = if *all { "all" } else { "any" };
                let (of, select) = (self.operand(of), self.select(select));
                format!("{of} {} {quantifier} ({select})", sign.sign())
            }
            Expr::Row(cells) => format!("({})", listed(cells, |e| self.expr(e))),
            Expr::Aggregate { function, of, distinct, order, filter } => {
                let of = of.as_ref().map_or("*".into(), |e| self.expr(e));
                let call = self.aggregate(*function, *distinct, &of, order);
                let filter = filter.as_ref().map(|e| format!(" filter (where {})", self.expr(e)));
                format!("{call}{}", filter.unwrap_or_default())
            }
            Expr::Window { function, arguments, over } => {
                let arguments = match (function, arguments.as_slice()) {
                    (WindowFunction::Count, []) => "*".into(),
                    (_, arguments) => listed(arguments, |e| self.expr(e)),
                };
                let over = match over {
                    Over::Named(name) => self.name(name).into_owned(),
                    Over::Window(window) => format!("({})", self.window(window)),
                };
                format!("{}({arguments}) over {over}", function.name())
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

    fn aggregate(
        &self,
        function: Aggregate,
        distinct: bool,
        of: &str,
        order: &[OrderKey],
    ) -> String {
        let (distinct, order) = (if distinct { "distinct " } else { "" }, self.order_by(order));
        match (function, self.dialect.family) {
            (Aggregate::Concat, Family::Mysql) => {
                format!("group_concat({distinct}{of}{order} separator ',')")
            }
            (Aggregate::Concat, Family::Sqlite) => {
                format!("group_concat({distinct}{of}, ','{order})")
            }
            (Aggregate::Concat, _) => format!("string_agg({distinct}{of}, ','{order})"),
            (function, _) => format!("{}({distinct}{of}{order})", function.name()),
        }
    }

    /// The parts of a window, without parentheses.
    pub(super) fn window(&self, window: &Window) -> String {
        let mut parts = Vec::new();
        if !window.partition.is_empty() {
            parts.push(format!("partition by {}", listed(&window.partition, |e| self.expr(e))));
        }
        if !window.order.is_empty() {
            parts.push(self.order_by(&window.order).trim_start().into());
        }
        parts.extend(window.frame.as_ref().map(frame));
        parts.join(" ")
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
            | Expr::Quantified { .. }
            | Expr::Exists { .. } => format!("({text})"),
            Expr::Column { .. }
            | Expr::Literal(_)
            | Expr::Cast { .. }
            | Expr::Call(..)
            | Expr::Scalar(_)
            | Expr::Row(_)
            | Expr::Aggregate { .. }
            | Expr::Window { .. }
            | Expr::Incoming(_)
            | Expr::Default => text,
        }
    }
}

fn frame(frame: &Frame) -> String {
    let unit = match frame.unit {
        FrameUnit::Rows => "rows",
        FrameUnit::Range => "range",
        FrameUnit::Groups => "groups",
    };
    let bound = |bound: FrameBound| match bound {
        FrameBound::UnboundedPreceding => "unbounded preceding".into(),
        FrameBound::Preceding(rows) => format!("{rows} preceding"),
        FrameBound::CurrentRow => "current row".into(),
        FrameBound::Following(rows) => format!("{rows} following"),
        FrameBound::UnboundedFollowing => "unbounded following".to_string(),
    };
    match frame.end {
        None => format!("{unit} {}", bound(frame.start)),
        Some(end) => format!("{unit} between {} and {}", bound(frame.start), bound(end)),
    }
}

fn not(negated: bool) -> &'static str {
    if negated { " not" } else { "" }
}
