//! Expressions, and how to walk them.

use super::select::Select;
use super::value::{Literal, Type};

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Expr {
    Column {
        qualifier: Option<String>,
        name: String,
    },
    Literal(Literal),
    Unary(Unary, Box<Expr>),
    Binary(Binary, Box<Expr>, Box<Expr>),
    InList {
        of: Box<Expr>,
        items: Vec<Expr>,
        negated: bool,
    },
    Between {
        of: Box<Expr>,
        low: Box<Expr>,
        high: Box<Expr>,
        negated: bool,
    },
    Like {
        of: Box<Expr>,
        pattern: Box<Expr>,
        negated: bool,
    },
    /// With an operand, the branches are values that it is compared with.
    Case {
        operand: Option<Box<Expr>>,
        branches: Vec<(Expr, Expr)>,
        otherwise: Option<Box<Expr>>,
    },
    Cast {
        of: Box<Expr>,
        to: Type,
    },
    Call(Function, Vec<Expr>),
    InSelect {
        of: Box<Expr>,
        select: Box<Select>,
        negated: bool,
    },
    Exists {
        select: Box<Select>,
        negated: bool,
    },
    /// The generator's are aggregates without groups, so always one row.
    Scalar(Box<Select>),
    /// Without an argument it is `count(*)`.
    Aggregate {
        function: Aggregate,
        of: Option<Box<Expr>>,
        distinct: bool,
    },
    Window {
        function: WindowFunction,
        of: Option<Box<Expr>>,
        partition: Vec<Expr>,
        order: Vec<Expr>,
    },
    /// In an upsert, the value that could not be inserted.
    Incoming(String),
    /// In a write, the default of the column.
    Default,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unary {
    Not,
    Negative,
    IsNull,
    IsNotNull,
    IsTrue,
    IsNotTrue,
    IsFalse,
    IsNotFalse,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Binary {
    Equal,
    Unequal,
    Less,
    AtMost,
    Greater,
    AtLeast,
    And,
    Or,
    Plus,
    Minus,
    Times,
    Divide,
    Modulo,
    Concat,
    /// IS DISTINCT FROM: NULL is a value like any other.
    Distinct,
    /// IS NOT DISTINCT FROM, MySQL's `<=>`.
    NotDistinct,
}

impl Binary {
    pub const COMPARISONS: [Binary; 6] = [
        Binary::Equal,
        Binary::Unequal,
        Binary::Less,
        Binary::AtMost,
        Binary::Greater,
        Binary::AtLeast,
    ];

    /// The sign, where it is the same in every dialect.
    pub fn sign(self) -> &'static str {
        match self {
            Binary::Equal => "=",
            Binary::Unequal => "<>",
            Binary::Less => "<",
            Binary::AtMost => "<=",
            Binary::Greater => ">",
            Binary::AtLeast => ">=",
            Binary::And => "and",
            Binary::Or => "or",
            Binary::Plus => "+",
            Binary::Minus => "-",
            Binary::Times => "*",
            Binary::Divide => "/",
            Binary::Modulo => "%",
            Binary::Concat => "||",
            Binary::Distinct => "is distinct from",
            Binary::NotDistinct => "is not distinct from",
        }
    }

    pub fn is_logic(self) -> bool {
        matches!(self, Binary::And | Binary::Or)
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Function {
    Coalesce,
    NullIf,
    Abs,
    Length,
    /// Any other, of which only the name is known. It may be an aggregate, or
    /// do something to the session.
    Named(String),
}

impl Function {
    pub fn name(&self) -> &str {
        match self {
            Function::Coalesce => "coalesce",
            Function::NullIf => "nullif",
            Function::Abs => "abs",
            Function::Length => "length",
            Function::Named(name) => name,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Aggregate {
    Count,
    Min,
    Max,
    Sum,
    Avg,
}

impl Aggregate {
    pub fn name(self) -> &'static str {
        match self {
            Aggregate::Count => "count",
            Aggregate::Min => "min",
            Aggregate::Max => "max",
            Aggregate::Sum => "sum",
            Aggregate::Avg => "avg",
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WindowFunction {
    RowNumber,
    Rank,
    Count,
    Max,
    Lag,
}

impl WindowFunction {
    pub fn name(self) -> &'static str {
        match self {
            WindowFunction::RowNumber => "row_number",
            WindowFunction::Rank => "rank",
            WindowFunction::Count => "count",
            WindowFunction::Max => "max",
            WindowFunction::Lag => "lag",
        }
    }
}

impl Expr {
    pub fn column(name: &str) -> Expr {
        Expr::Column { qualifier: None, name: name.into() }
    }

    pub fn int(n: i64) -> Expr {
        Expr::Literal(Literal::Int(n))
    }

    pub fn binary(sign: Binary, left: Expr, right: Expr) -> Expr {
        Expr::Binary(sign, Box::new(left), Box::new(right))
    }

    pub fn unary(sign: Unary, of: Expr) -> Expr {
        Expr::Unary(sign, Box::new(of))
    }

    pub fn and(self, other: Expr) -> Expr {
        Expr::binary(Binary::And, self, other)
    }

    pub fn count_all() -> Expr {
        Expr::Aggregate { function: Aggregate::Count, of: None, distinct: false }
    }

    /// The expressions right below this one, those of subqueries left out.
    pub fn children(&self) -> Vec<&Expr> {
        match self {
            Expr::Column { .. } | Expr::Literal(_) | Expr::Incoming(_) | Expr::Default => {
                Vec::new()
            }
            Expr::Exists { .. } | Expr::Scalar(_) => Vec::new(),
            Expr::Unary(_, of) | Expr::Cast { of, .. } | Expr::InSelect { of, .. } => vec![of],
            Expr::Like { of, pattern, .. } => vec![of, pattern],
            Expr::Binary(_, left, right) => vec![left, right],
            Expr::InList { of, items, .. } => std::iter::once(&**of).chain(items).collect(),
            Expr::Between { of, low, high, .. } => vec![of, low, high],
            Expr::Case { operand, branches, otherwise } => operand
                .as_deref()
                .into_iter()
                .chain(branches.iter().flat_map(|(when, then)| [when, then]))
                .chain(otherwise.as_deref())
                .collect(),
            Expr::Call(_, arguments) => arguments.iter().collect(),
            Expr::Aggregate { of, .. } => of.as_deref().into_iter().collect(),
            Expr::Window { of, partition, order, .. } => {
                of.as_deref().into_iter().chain(partition).chain(order).collect()
            }
        }
    }

    pub fn children_mut(&mut self) -> Vec<&mut Expr> {
        match self {
            Expr::Column { .. } | Expr::Literal(_) | Expr::Incoming(_) | Expr::Default => {
                Vec::new()
            }
            Expr::Exists { .. } | Expr::Scalar(_) => Vec::new(),
            Expr::Unary(_, of) | Expr::Cast { of, .. } | Expr::InSelect { of, .. } => vec![of],
            Expr::Like { of, pattern, .. } => vec![of, pattern],
            Expr::Binary(_, left, right) => vec![left, right],
            Expr::InList { of, items, .. } => std::iter::once(&mut **of).chain(items).collect(),
            Expr::Between { of, low, high, .. } => vec![of, low, high],
            Expr::Case { operand, branches, otherwise } => operand
                .as_deref_mut()
                .into_iter()
                .chain(branches.iter_mut().flat_map(|(when, then)| [when, then]))
                .chain(otherwise.as_deref_mut())
                .collect(),
            Expr::Call(_, arguments) => arguments.iter_mut().collect(),
            Expr::Aggregate { of, .. } => of.as_deref_mut().into_iter().collect(),
            Expr::Window { of, partition, order, .. } => {
                of.as_deref_mut().into_iter().chain(partition).chain(order).collect()
            }
        }
    }

    pub fn subquery(&self) -> Option<&Select> {
        match self {
            Expr::InSelect { select, .. } | Expr::Exists { select, .. } | Expr::Scalar(select) => {
                Some(select)
            }
            Expr::Column { .. }
            | Expr::Literal(_)
            | Expr::Unary(..)
            | Expr::Binary(..)
            | Expr::InList { .. }
            | Expr::Between { .. }
            | Expr::Like { .. }
            | Expr::Case { .. }
            | Expr::Cast { .. }
            | Expr::Call(..)
            | Expr::Aggregate { .. }
            | Expr::Window { .. }
            | Expr::Incoming(_)
            | Expr::Default => None,
        }
    }

    pub fn subquery_mut(&mut self) -> Option<&mut Select> {
        match self {
            Expr::InSelect { select, .. } | Expr::Exists { select, .. } | Expr::Scalar(select) => {
                Some(select)
            }
            Expr::Column { .. }
            | Expr::Literal(_)
            | Expr::Unary(..)
            | Expr::Binary(..)
            | Expr::InList { .. }
            | Expr::Between { .. }
            | Expr::Like { .. }
            | Expr::Case { .. }
            | Expr::Cast { .. }
            | Expr::Call(..)
            | Expr::Aggregate { .. }
            | Expr::Window { .. }
            | Expr::Incoming(_)
            | Expr::Default => None,
        }
    }

    /// This expression and all below it, those of subqueries too.
    pub fn visit<'a>(&'a self, see: &mut dyn FnMut(&'a Expr)) {
        see(self);
        for child in self.children() {
            child.visit(see);
        }
        if let Some(select) = self.subquery() {
            select.visit(see);
        }
    }
}
