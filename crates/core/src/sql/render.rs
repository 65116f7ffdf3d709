//! Writes expressions and queries down, lower case and on one line.

use super::expression::{Expr, Unary, WindowFunction};
use super::select::{
    JoinKind, LockPatience, LockStrength, Locking, Order, Select, SetOperator, Source,
};
use super::value::Literal;
use crate::sql::dialect::{Dialect, UpsertForm};

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

    /// Queries read a derived table in the place of each table that
    /// `substitute` knows, under the same name.
    pub fn reading(dialect: &'a Dialect, substitute: Substitute<'a>) -> Renderer<'a> {
        Renderer { dialect, substitute: Some(substitute) }
    }

    pub fn literal(&self, literal: &Literal) -> String {
        let spelling = self.dialect.spelling;
        match literal {
            Literal::Null => "null".into(),
            Literal::Int(n) => n.to_string(),
            Literal::Decimal(hundredths) => fixed_point(*hundredths, 100),
            Literal::Float(quarters) => fixed_point(quarters * 25, 100),
            Literal::Text(text) => format!("'{}'", text.replace('\'', "''")),
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
            Expr::Column { qualifier: Some(of), name } => format!("{of}.{name}"),
            Expr::Column { qualifier: None, name } => name.clone(),
            Expr::Literal(literal) => self.literal(literal),
            Expr::Unary(Unary::Not, of) => format!("not {}", self.operand(of)),
            Expr::Unary(Unary::IsNull, of) => format!("{} is null", self.operand(of)),
            Expr::Unary(Unary::IsNotNull, of) => format!("{} is not null", self.operand(of)),
            Expr::Binary(sign, left, right) => {
                format!("{} {} {}", self.operand(left), sign.sign(), self.operand(right))
            }
            Expr::InList { of, items, negated } => format!(
                "{}{} in ({})",
                self.operand(of),
                not(*negated),
                listed(items, |e| self.expr(e))
            ),
            Expr::Between { of, low, high } => format!(
                "{} between {} and {}",
                self.operand(of),
                self.operand(low),
                self.operand(high)
            ),
            Expr::Like { of, pattern } => format!("{} like '{pattern}'", self.operand(of)),
            Expr::Case { branches, otherwise } => {
                let branches: String = branches
                    .iter()
                    .map(|(when, then)| {
                        format!(" when {} then {}", self.expr(when), self.expr(then))
                    })
                    .collect();
                format!("case{branches} else {} end", self.expr(otherwise))
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
                UpsertForm::OnConflict => format!("excluded.{column}"),
                UpsertForm::OnDuplicateKey => format!("values({column})"),
            },
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
        over.push(format!("order by {}", listed(order, |e| self.expr(e))));
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
            _ => text,
        }
    }

    pub fn select(&self, select: &Select) -> String {
        let mut out = String::new();
        if !select.ctes.is_empty() {
            let ctes =
                listed(&select.ctes, |c| format!("{} as ({})", c.name, self.select(&c.select)));
            out.push_str(&format!("with {ctes} "));
        }
        out.push_str(if select.distinct { "select distinct " } else { "select " });
        out.push_str(&listed(&select.items, |e| self.expr(e)));
        out.push_str(&format!(" from {}", self.source(&select.from)));
        for join in &select.joins {
            let word = match join.kind {
                JoinKind::Inner => "join",
                JoinKind::Left => "left join",
            };
            out.push_str(&format!(
                " {word} {} on {}",
                self.source(&join.source),
                self.expr(&join.on)
            ));
        }
        if let Some(filter) = &select.filter {
            out.push_str(&format!(" where {}", self.expr(filter)));
        }
        if !select.group_by.is_empty() {
            out.push_str(&format!(" group by {}", listed(&select.group_by, |e| self.expr(e))));
        }
        if let Some(having) = &select.having {
            out.push_str(&format!(" having {}", self.expr(having)));
        }
        if let Some((operator, other)) = &select.set_operation {
            let word = match operator {
                SetOperator::Union => "union",
                SetOperator::UnionAll => "union all",
                SetOperator::Except => "except",
                SetOperator::Intersect => "intersect",
            };
            out.push_str(&format!(" {word} {}", self.select(other)));
        }
        if let Order::AllItems { descending } = select.order {
            let direction = if descending { " desc" } else { "" };
            let places: Vec<usize> = (1..=select.items.len()).collect();
            out.push_str(&format!(" order by {}", listed(&places, |n| format!("{n}{direction}"))));
        }
        if let Some(locking) = &select.locking {
            out.push_str(&format!(" {}", self.locking(locking)));
        }
        out
    }

    pub fn source(&self, source: &Source) -> String {
        let instead = self.substitute.and_then(|substitute| substitute(&source.name));
        match (instead, &source.alias) {
            (Some(query), _) => format!("({query}) as {}", source.visible_name()),
            (None, Some(alias)) => format!("{} as {alias}", source.name),
            (None, None) => source.name.clone(),
        }
    }

    fn locking(&self, locking: &Locking) -> String {
        let strength = match locking.strength {
            LockStrength::Update => "for update",
            LockStrength::Share => self.dialect.share_lock,
        };
        let patience = match locking.patience {
            LockPatience::Wait => "",
            LockPatience::NoWait => " nowait",
            LockPatience::SkipLocked => " skip locked",
        };
        format!("{strength}{patience}")
    }
}

fn not(negated: bool) -> &'static str {
    if negated { " not" } else { "" }
}

fn fixed_point(value: i64, scale: i64) -> String {
    let sign = if value < 0 { "-" } else { "" };
    format!("{sign}{}.{:02}", value.abs() / scale, value.abs() % scale)
}
