//! Scalar functions as data: which families have a function, what it takes and what it returns.
//!
//! Every function here is *total*: it returns a value or NULL for all arguments that the generator
//! draws, and never an error, because whether an engine evaluates an expression at all depends on
//! its plan. A new function is one line.

use crate::ast::Class;
use crate::dialect::Family::{self, Duckdb, Mysql, Postgres, Sqlite};
use Argument::{Blob, Count, Date, Decimal, Float, Integer, Small, Text, Word};

/// What one argument of a function must be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Argument {
    Integer,
    /// An integer far from every limit.
    Small,
    /// A literal from 1 to 4.
    Count,
    Text,
    /// This very literal.
    Word(&'static str),
    Decimal,
    Float,
    Date,
    Blob,
}

#[derive(Clone, Copy, Debug)]
pub struct FunctionForm {
    pub name: &'static str,
    pub families: &'static [Family],
    pub arguments: &'static [Argument],
    pub result: Class,
}

const fn form(
    families: &'static [Family],
    name: &'static str,
    arguments: &'static [Argument],
    result: Class,
) -> FunctionForm {
    FunctionForm { name, families, arguments, result }
}

const ALL: &[Family] = &[Sqlite, Postgres, Mysql, Duckdb];
const SERVERS: &[Family] = &[Postgres, Mysql];
const NOT_SQLITE: &[Family] = &[Postgres, Mysql, Duckdb];
const NOT_POSTGRES: &[Family] = &[Sqlite, Mysql, Duckdb];
const NOT_MYSQL: &[Family] = &[Sqlite, Postgres, Duckdb];

/// The functions that the generator draws, besides COALESCE, NULLIF, GREATEST and LEAST, which
/// take and return values of any class.
pub const FUNCTIONS: &[FunctionForm] = &[
    form(ALL, "lower", &[Text], Class::Text),
    form(ALL, "upper", &[Text], Class::Text),
    form(ALL, "trim", &[Text], Class::Text),
    form(ALL, "ltrim", &[Text], Class::Text),
    form(ALL, "rtrim", &[Text], Class::Text),
    form(ALL, "replace", &[Text, Text, Text], Class::Text),
    form(ALL, "substr", &[Text, Count], Class::Text),
    form(ALL, "substring", &[Text, Count, Count], Class::Text),
    form(ALL, "concat", &[Text, Text], Class::Text),
    form(ALL, "concat_ws", &[Word(","), Text, Text], Class::Text),
    form(NOT_SQLITE, "reverse", &[Text], Class::Text),
    form(NOT_SQLITE, "md5", &[Text], Class::Text),
    form(NOT_SQLITE, "left", &[Text, Count], Class::Text),
    form(NOT_SQLITE, "right", &[Text, Count], Class::Text),
    form(NOT_SQLITE, "repeat", &[Text, Count], Class::Text),
    form(NOT_SQLITE, "lpad", &[Text, Count, Word("xy")], Class::Text),
    form(NOT_SQLITE, "rpad", &[Text, Count, Word("xy")], Class::Text),
    form(&[Postgres], "initcap", &[Text], Class::Text),
    form(&[Postgres], "btrim", &[Text, Text], Class::Text),
    form(&[Postgres], "quote_literal", &[Text], Class::Text),
    form(&[Postgres], "quote_ident", &[Text], Class::Text),
    form(&[Postgres], "to_hex", &[Small], Class::Text),
    form(&[Postgres], "encode", &[Blob, Word("hex")], Class::Text),
    form(&[Postgres, Duckdb], "regexp_replace", &[Text, Word("[ab]"), Word("z")], Class::Text),
    form(&[Postgres, Duckdb], "translate", &[Text, Word("abc"), Word("xyz")], Class::Text),
    form(&[Postgres, Duckdb], "split_part", &[Text, Word(" "), Count], Class::Text),
    form(&[Mysql], "lcase", &[Text], Class::Text),
    form(&[Mysql], "ucase", &[Text], Class::Text),
    form(&[Mysql], "mid", &[Text, Count, Count], Class::Text),
    form(&[Mysql], "sha1", &[Text], Class::Text),
    form(&[Mysql], "quote", &[Text], Class::Text),
    form(&[Mysql], "to_base64", &[Text], Class::Text),
    form(&[Mysql], "soundex", &[Text], Class::Text),
    form(&[Mysql], "substring_index", &[Text, Word(" "), Count], Class::Text),
    form(&[Mysql], "elt", &[Count, Text, Text], Class::Text),
    form(&[Mysql], "make_set", &[Count, Text, Text], Class::Text),
    form(&[Mysql], "space", &[Count], Class::Text),
    form(&[Mysql], "oct", &[Small], Class::Text),
    form(&[Mysql, Duckdb], "bin", &[Small], Class::Text),
    form(&[Mysql, Duckdb], "dayname", &[Date], Class::Text),
    form(&[Mysql, Duckdb], "monthname", &[Date], Class::Text),
    form(&[Mysql], "json_quote", &[Text], Class::Text),
    form(NOT_POSTGRES, "hex", &[Text], Class::Text),
    form(&[Sqlite], "quote", &[Text], Class::Text),
    form(&[Sqlite], "char", &[Count], Class::Text),
    form(&[Sqlite], "typeof", &[Text], Class::Text),
    form(&[Sqlite], "printf", &[Word("%d"), Integer], Class::Text),
    form(&[Sqlite], "format", &[Word("%5s"), Text], Class::Text),
    form(&[Sqlite], "strftime", &[Word("%Y-%m"), Date], Class::Text),
    form(&[Sqlite], "json_quote", &[Text], Class::Text),
    form(&[Sqlite], "json_array", &[Text, Integer], Class::Text),
    form(&[Sqlite], "likely", &[Text], Class::Text),
    form(&[Duckdb], "sha256", &[Text], Class::Text),
    form(ALL, "length", &[Text], Class::Integer),
    form(ALL, "abs", &[Small], Class::Integer),
    form(ALL, "octet_length", &[Text], Class::Integer),
    form(SERVERS, "char_length", &[Text], Class::Integer),
    form(NOT_SQLITE, "character_length", &[Text], Class::Integer),
    form(NOT_SQLITE, "bit_length", &[Text], Class::Integer),
    form(NOT_SQLITE, "ascii", &[Text], Class::Integer),
    form(NOT_SQLITE, "mod", &[Small, Count], Class::Integer),
    form(&[Postgres, Duckdb], "strpos", &[Text, Text], Class::Integer),
    form(&[Duckdb], "gcd", &[Small, Small], Class::Integer),
    form(&[Duckdb], "lcm", &[Small, Count], Class::Integer),
    form(&[Postgres], "scale", &[Decimal], Class::Integer),
    form(&[Postgres], "num_nulls", &[Integer, Text], Class::Integer),
    form(&[Postgres], "num_nonnulls", &[Integer, Text], Class::Integer),
    form(&[Postgres], "octet_length", &[Blob], Class::Integer),
    form(NOT_POSTGRES, "instr", &[Text, Text], Class::Integer),
    form(NOT_POSTGRES, "sign", &[Small], Class::Integer),
    form(NOT_POSTGRES, "ifnull", &[Small, Count], Class::Integer),
    form(&[Sqlite, Duckdb], "unicode", &[Text], Class::Integer),
    form(&[Sqlite], "unixepoch", &[Date], Class::Integer),
    form(&[Sqlite], "json_valid", &[Text], Class::Integer),
    form(&[Sqlite], "glob", &[Word("a*"), Text], Class::Integer),
    form(&[Sqlite], "unlikely", &[Small], Class::Integer),
    form(&[Mysql], "locate", &[Text, Text], Class::Integer),
    form(&[Mysql], "strcmp", &[Text, Text], Class::Integer),
    form(&[Mysql], "field", &[Text, Text, Text], Class::Integer),
    form(&[Mysql], "find_in_set", &[Text, Text], Class::Integer),
    form(&[Mysql, Duckdb], "ord", &[Text], Class::Integer),
    form(&[Mysql], "crc32", &[Text], Class::Integer),
    form(&[Mysql], "bit_count", &[Small], Class::Integer),
    form(&[Mysql], "isnull", &[Text], Class::Integer),
    form(&[Mysql], "json_valid", &[Text], Class::Integer),
    form(&[Mysql, Duckdb], "year", &[Date], Class::Integer),
    form(&[Mysql, Duckdb], "month", &[Date], Class::Integer),
    form(&[Mysql, Duckdb], "dayofmonth", &[Date], Class::Integer),
    form(&[Mysql, Duckdb], "dayofweek", &[Date], Class::Integer),
    form(&[Mysql, Duckdb], "dayofyear", &[Date], Class::Integer),
    form(&[Mysql, Duckdb], "weekday", &[Date], Class::Integer),
    form(&[Mysql, Duckdb], "quarter", &[Date], Class::Integer),
    form(&[Mysql], "to_days", &[Date], Class::Integer),
    form(&[Mysql], "datediff", &[Date, Date], Class::Integer),
    form(&[Duckdb], "datediff", &[Word("day"), Date, Date], Class::Integer),
    form(&[Duckdb], "levenshtein", &[Text, Text], Class::Integer),
    form(&[Mysql, Duckdb], "last_day", &[Date], Class::Date),
    form(ALL, "ceil", &[Float], Class::Float),
    form(ALL, "ceiling", &[Float], Class::Float),
    form(ALL, "floor", &[Float], Class::Float),
    form(ALL, "round", &[Float], Class::Float),
    form(ALL, "pi", &[], Class::Float),
    form(ALL, "sin", &[Float], Class::Float),
    form(ALL, "cos", &[Float], Class::Float),
    form(ALL, "tan", &[Float], Class::Float),
    form(ALL, "atan", &[Float], Class::Float),
    form(ALL, "atan2", &[Float, Float], Class::Float),
    form(ALL, "degrees", &[Float], Class::Float),
    form(ALL, "radians", &[Float], Class::Float),
    form(ALL, "power", &[Float, Count], Class::Float),
    form(NOT_MYSQL, "trunc", &[Float], Class::Float),
    form(NOT_MYSQL, "tanh", &[Float], Class::Float),
    form(NOT_MYSQL, "asinh", &[Float], Class::Float),
    form(&[Sqlite, Mysql, Duckdb], "pow", &[Float, Count], Class::Float),
    form(&[Sqlite, Mysql], "sqrt", &[Float], Class::Float),
    form(&[Sqlite, Mysql], "asin", &[Float], Class::Float),
    form(&[Sqlite, Mysql], "acos", &[Float], Class::Float),
    form(&[Postgres, Duckdb], "cbrt", &[Float], Class::Float),
    form(&[Postgres], "sign", &[Float], Class::Float),
    form(&[Postgres], "date_part", &[Word("year"), Date], Class::Float),
    form(&[Sqlite], "julianday", &[Date], Class::Float),
    form(&[Sqlite], "exp", &[Float], Class::Float),
    form(&[Sqlite], "cosh", &[Float], Class::Float),
    form(&[Sqlite], "sinh", &[Float], Class::Float),
    form(&[Sqlite], "ln", &[Float], Class::Float),
    form(&[Sqlite], "log10", &[Float], Class::Float),
    form(&[Sqlite], "log2", &[Float], Class::Float),
    form(&[Sqlite], "mod", &[Small, Count], Class::Float),
    form(&[Mysql], "truncate", &[Float, Count], Class::Float),
    form(&[Duckdb], "even", &[Float], Class::Float),
    form(NOT_SQLITE, "round", &[Decimal, Count], Class::Decimal),
    form(&[Postgres], "trunc", &[Decimal, Count], Class::Decimal),
    form(&[Postgres], "factorial", &[Count], Class::Decimal),
    form(NOT_SQLITE, "abs", &[Decimal], Class::Decimal),
    form(&[Postgres, Duckdb], "starts_with", &[Text, Text], Class::Bool),
    form(&[Duckdb], "ends_with", &[Text, Text], Class::Bool),
    form(&[Duckdb], "contains", &[Text, Text], Class::Bool),
];

/// The functions of a family that return a value of this class.
pub fn functions_of(family: Family, result: Class) -> impl Iterator<Item = &'static FunctionForm> {
    let fits = move |f: &&FunctionForm| f.result == result && f.families.contains(&family);
    FUNCTIONS.iter().filter(fits)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_family_has_sixty_functions() {
        for family in ALL {
            let mut names: Vec<&str> =
                FUNCTIONS.iter().filter(|f| f.families.contains(family)).map(|f| f.name).collect();
            names.sort_unstable();
            names.dedup();
            // COALESCE, NULLIF and, except in SQLite, GREATEST and LEAST are not in the table.
            let others = if *family == Sqlite { 2 } else { 4 };
            assert!(names.len() + others >= 60, "{family:?} has {}", names.len() + others);
        }
    }
}
