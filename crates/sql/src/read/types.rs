//! Parses the types of columns and casts.

use super::Reader;
use crate::ast::Type;
use crate::dialect::Family;
use sqlparser::ast::{BinaryLength, CharacterLength, DataType, ExactNumberInfo};

impl Reader {
    pub(super) fn of_type(self, data_type: &DataType) -> Option<Type> {
        let known = match (data_type, self.family) {
            (DataType::Int(None), _) => Some(Type::Int),
            // In SQLite an INTEGER primary key is the row id.
            (DataType::Integer(None), Family::Sqlite) => None,
            (DataType::Integer(None), _) => Some(Type::Int),
            (DataType::BigInt(None), _) => Some(Type::BigInt),
            (
                DataType::Decimal(ExactNumberInfo::PrecisionAndScale(10, 2))
                | DataType::Numeric(ExactNumberInfo::PrecisionAndScale(10, 2)),
                _,
            ) => Some(Type::Decimal),
            (DataType::DoublePrecision, Family::Postgres | Family::Other) => Some(Type::Float),
            (
                DataType::Double(ExactNumberInfo::None),
                Family::Sqlite | Family::Mysql | Family::Duckdb,
            ) => Some(Type::Float),
            (DataType::Varchar(Some(CharacterLength::IntegerLength { length, unit: None })), _) => {
                u16::try_from(*length).ok().map(|length| Type::Text(Some(length)))
            }
            (DataType::Text, _) => Some(Type::Text(None)),
            (DataType::Date, _) => Some(Type::Date),
            (DataType::Boolean | DataType::Bool, _) => Some(Type::Bool),
            (DataType::Bytea, Family::Postgres | Family::Other) => Some(Type::Blob),
            (DataType::Blob(None), Family::Sqlite | Family::Duckdb) => Some(Type::Blob),
            (
                DataType::Varbinary(Some(BinaryLength::IntegerLength { length: 20 })),
                Family::Mysql,
            ) => Some(Type::Blob),
            _ => None,
        };
        known.or_else(|| other(data_type))
    }
}

/// A type that is stored by its name. Quoted names and ENUM values would change in lower case, so
/// they are not supported.
fn other(data_type: &DataType) -> Option<Type> {
    let name = data_type.to_string();
    let plain = |c: char| c.is_ascii_alphanumeric() || "_ (),".contains(c);
    let fits = !name.is_empty() && name.chars().all(plain);
    fits.then(|| Type::Other(name.to_ascii_lowercase()))
}
