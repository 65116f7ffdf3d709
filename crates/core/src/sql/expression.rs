//! Expressions, and how to walk them.

use super::select::Select;
use super::value::Literal;

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
    },
    Like {
        of: Box<Expr>,
        pattern: String,
    },
    Case {
        branches: Vec<(Expr, Expr)>,
        otherwise: Box<Expr>,
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
    /// Always an aggregate without groups, so always one row.
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
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unary {
    Not,
    IsNull,
    IsNotNull,
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
        }
    }

    pub fn is_logic(self) -> bool {
        matches!(self, Binary::And | Binary::Or)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Function {
    Coalesce,
    NullIf,
    Abs,
    Length,
}

impl Function {
    pub fn name(self) -> &'static str {
        match self {
            Function::Coalesce => "coalesce",
            Function::NullIf => "nullif",
            Function::Abs => "abs",
            Function::Length => "length",
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Aggregate {
    Count,
    Min,
    Max,
    Sum,
}

impl Aggregate {
    pub fn name(self) -> &'static str {
        match self {
            Aggregate::Count => "count",
            Aggregate::Min => "min",
            Aggregate::Max => "max",
            Aggregate::Sum => "sum",
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
            Expr::Column { .. } | Expr::Literal(_) | Expr::Incoming(_) => Vec::new(),
            Expr::Exists { .. } | Expr::Scalar(_) => Vec::new(),
            Expr::Unary(_, of) | Expr::Like { of, .. } | Expr::InSelect { of, .. } => vec![of],
            Expr::Binary(_, left, right) => vec![left, right],
            Expr::InList { of, items, .. } => std::iter::once(&**of).chain(items).collect(),
            Expr::Between { of, low, high } => vec![of, low, high],
            Expr::Case { branches, otherwise } => branches
                .iter()
                .flat_map(|(when, then)| [when, then])
                .chain(std::iter::once(&**otherwise))
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
            Expr::Column { .. } | Expr::Literal(_) | Expr::Incoming(_) => Vec::new(),
            Expr::Exists { .. } | Expr::Scalar(_) => Vec::new(),
            Expr::Unary(_, of) | Expr::Like { of, .. } | Expr::InSelect { of, .. } => vec![of],
            Expr::Binary(_, left, right) => vec![left, right],
            Expr::InList { of, items, .. } => std::iter::once(&mut **of).chain(items).collect(),
            Expr::Between { of, low, high } => vec![of, low, high],
            Expr::Case { branches, otherwise } => branches
                .iter_mut()
                .flat_map(|(when, then)| [when, then])
                .chain(std::iter::once(&mut **otherwise))
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
            _ => None,
        }
    }

    pub fn subquery_mut(&mut self) -> Option<&mut Select> {
        match self {
            Expr::InSelect { select, .. } | Expr::Exists { select, .. } | Expr::Scalar(select) => {
                Some(select)
            }
            _ => None,
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
