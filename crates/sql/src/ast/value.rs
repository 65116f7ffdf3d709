//! Column types and the literals that go into them.

/// A column type. Text has the maximum length of its column; none means unlimited.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Type {
    #[default]
    Int,
    BigInt,
    /// Ten digits, two of them after the decimal point.
    Decimal,
    Float,
    Text(Option<u16>),
    Date,
    Bool,
    Blob,
    /// A type that is never generated, as written, in lower case.
    Other(String),
}

/// A class of types that can be compared and mixed without a cast even on the strictest engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    Integer,
    Decimal,
    Float,
    Text,
    Date,
    Bool,
    Blob,
    /// Not classified: times, JSON, user-defined types.
    Other,
}

impl Type {
    pub fn class(&self) -> Class {
        match self {
            Type::Int | Type::BigInt => Class::Integer,
            Type::Decimal => Class::Decimal,
            Type::Float => Class::Float,
            Type::Text(_) => Class::Text,
            Type::Date => Class::Date,
            Type::Bool => Class::Bool,
            Type::Blob => Class::Blob,
            Type::Other(name) => class_of_name(name),
        }
    }

    /// Whether a key can have a column of this type. The MySQL family cannot index unlimited text
    /// or blobs without a prefix, and floats are unfit for equality.
    pub fn fits_a_key(&self) -> bool {
        match self {
            Type::Int | Type::BigInt | Type::Decimal | Type::Text(Some(_)) | Type::Date => true,
            Type::Text(None) | Type::Blob | Type::Float | Type::Bool | Type::Other(_) => false,
        }
    }
}

/// The class of a type of which only the name is stored.
fn class_of_name(name: &str) -> Class {
    match name.split([' ', '(']).next().unwrap_or(name) {
        "int" | "integer" | "tinyint" | "smallint" | "mediumint" | "bigint" | "int2" | "int4"
        | "int8" | "serial" | "bigserial" | "smallserial" | "signed" | "unsigned" => Class::Integer,
        "decimal" | "numeric" | "dec" => Class::Decimal,
        "float" | "double" | "real" | "float4" | "float8" => Class::Float,
        "char" | "character" | "varchar" | "text" | "tinytext" | "mediumtext" | "longtext" => {
            Class::Text
        }
        "blob" | "tinyblob" | "mediumblob" | "longblob" | "binary" | "varbinary" | "bytea" => {
            Class::Blob
        }
        _ => Class::Other,
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
    /// A number of another form or size, as written.
    Number(String),
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
            Literal::Int(n) | Literal::Decimal(n) | Literal::Float(n) => {
                n.unsigned_abs() <= 100_000
            }
            Literal::Number(_)
            | Literal::Text(_)
            | Literal::Date(_)
            | Literal::Bool(_)
            | Literal::Blob(_) => false,
        }
    }
}
