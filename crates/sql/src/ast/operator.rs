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
    BitAnd,
    BitOr,
    ShiftLeft,
    ShiftRight,
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
            Binary::BitAnd => "&",
            Binary::BitOr => "|",
            Binary::ShiftLeft => "<<",
            Binary::ShiftRight => ">>",
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
    /// The texts, in an order that the call states, with commas between them.
    Concat,
    BitAnd,
    BitOr,
    BoolAnd,
    BoolOr,
}

impl Aggregate {
    pub fn name(self) -> &'static str {
        match self {
            Aggregate::Count => "count",
            Aggregate::Min => "min",
            Aggregate::Max => "max",
            Aggregate::Sum => "sum",
            Aggregate::Avg => "avg",
            // MySQL's family and SQLite have another name for it.
            Aggregate::Concat => "string_agg",
            Aggregate::BitAnd => "bit_and",
            Aggregate::BitOr => "bit_or",
            Aggregate::BoolAnd => "bool_and",
            Aggregate::BoolOr => "bool_or",
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WindowFunction {
    RowNumber,
    Rank,
    DenseRank,
    PercentRank,
    CumeDist,
    Ntile,
    Lag,
    Lead,
    FirstValue,
    LastValue,
    NthValue,
    Count,
    Min,
    Max,
    Sum,
    Avg,
}

impl WindowFunction {
    const ALL: [WindowFunction; 16] = [
        WindowFunction::RowNumber,
        WindowFunction::Rank,
        WindowFunction::DenseRank,
        WindowFunction::PercentRank,
        WindowFunction::CumeDist,
        WindowFunction::Ntile,
        WindowFunction::Lag,
        WindowFunction::Lead,
        WindowFunction::FirstValue,
        WindowFunction::LastValue,
        WindowFunction::NthValue,
        WindowFunction::Count,
        WindowFunction::Min,
        WindowFunction::Max,
        WindowFunction::Sum,
        WindowFunction::Avg,
    ];

    pub fn from_name(name: &str) -> Option<WindowFunction> {
        WindowFunction::ALL.into_iter().find(|function| function.name() == name)
    }

    pub fn name(self) -> &'static str {
        match self {
            WindowFunction::RowNumber => "row_number",
            WindowFunction::Rank => "rank",
            WindowFunction::DenseRank => "dense_rank",
            WindowFunction::PercentRank => "percent_rank",
            WindowFunction::CumeDist => "cume_dist",
            WindowFunction::Ntile => "ntile",
            WindowFunction::Lag => "lag",
            WindowFunction::Lead => "lead",
            WindowFunction::FirstValue => "first_value",
            WindowFunction::LastValue => "last_value",
            WindowFunction::NthValue => "nth_value",
            WindowFunction::Count => "count",
            WindowFunction::Min => "min",
            WindowFunction::Max => "max",
            WindowFunction::Sum => "sum",
            WindowFunction::Avg => "avg",
        }
    }

    /// The least and the greatest number of its arguments.
    pub fn arguments(self) -> (usize, usize) {
        match self {
            WindowFunction::RowNumber
            | WindowFunction::Rank
            | WindowFunction::DenseRank
            | WindowFunction::PercentRank
            | WindowFunction::CumeDist => (0, 0),
            WindowFunction::Lag | WindowFunction::Lead => (1, 3),
            WindowFunction::NthValue => (2, 2),
            WindowFunction::Ntile
            | WindowFunction::FirstValue
            | WindowFunction::LastValue
            | WindowFunction::Count
            | WindowFunction::Min
            | WindowFunction::Max
            | WindowFunction::Sum
            | WindowFunction::Avg => (1, 1),
        }
    }
}
