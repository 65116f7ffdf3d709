//! Operators and functions of expressions.

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

    /// The operator as SQL, where it is the same in every dialect.
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
    /// Any other function, by name. It may be an aggregate, or have an effect on the session.
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
