//! Column types and the literals that go into them.

/// The types of columns. Text has the length that its column allows; none
/// means that it has no limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Type {
    Int,
    BigInt,
    /// Ten digits, two of them behind the point.
    Decimal,
    Float,
    Text(Option<u16>),
    Date,
    Bool,
    Blob,
}

/// What may be compared and mixed without a cast on the strictest engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    Integer,
    Decimal,
    Float,
    Text,
    Date,
    Bool,
    Blob,
}

impl Type {
    pub fn class(self) -> Class {
        match self {
            Type::Int | Type::BigInt => Class::Integer,
            Type::Decimal => Class::Decimal,
            Type::Float => Class::Float,
            Type::Text(_) => Class::Text,
            Type::Date => Class::Date,
            Type::Bool => Class::Bool,
            Type::Blob => Class::Blob,
        }
    }

    /// MySQL's family cannot index text without limit or blobs as they are,
    /// and equality of floats is nothing to build a key on.
    pub fn fits_a_key(self) -> bool {
        !matches!(self, Type::Text(None) | Type::Blob | Type::Float | Type::Bool)
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Literal {
    Null,
    Int(i64),
    /// In hundredths.
    Decimal(i64),
    /// In quarters, which every float holds exactly.
    Float(i64),
    Text(String),
    /// `2020-02-29`.
    Date(String),
    Bool(bool),
    Blob(Vec<u8>),
}

impl Literal {
    pub fn is_null(&self) -> bool {
        *self == Literal::Null
    }

    pub fn text(text: &str) -> Literal {
        Literal::Text(text.into())
    }

    /// Whether arithmetic with it stays far from every limit.
    pub fn is_small_number(&self) -> bool {
        match self {
            Literal::Null => true,
            Literal::Int(n) | Literal::Decimal(n) | Literal::Float(n) => n.abs() <= 100_000,
            _ => false,
        }
    }
}
