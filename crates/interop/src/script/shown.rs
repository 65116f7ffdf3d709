//! Values and messages as the tools of PostgreSQL and MySQL print them.

use isolde_model::Value;
use isolde_model::value::{Row, hex};

/// A value as isolationtester prints it; `None` for NULL.
pub(super) fn in_postgres(value: &Value) -> Option<String> {
    Some(match value {
        Value::Null => return None,
        Value::Bool(b) => if *b { "t" } else { "f" }.into(),
        Value::Int(i) => i.to_string(),
        Value::Float(x) if x.is_nan() => "NaN".into(),
        Value::Float(x) if x.is_infinite() => {
            if *x > 0.0 { "Infinity" } else { "-Infinity" }.into()
        }
        Value::Float(x) => float(*x, true),
        Value::Decimal(d) => d.clone(),
        Value::Text(t) => t.clone(),
        Value::Bytes(b) => format!("\\x{}", hex(b)),
    })
}

/// A value as mysqltest prints it; `None` where it is not valid text.
pub(super) fn in_mysql(value: &Value) -> Option<String> {
    Some(match value {
        Value::Null => "NULL".into(),
        Value::Bool(b) => u8::from(*b).to_string(),
        Value::Int(i) => i.to_string(),
        Value::Float(x) => float(*x, false),
        Value::Decimal(d) => d.clone(),
        Value::Text(t) => t.clone(),
        Value::Bytes(b) => String::from_utf8(b.clone()).ok()?,
    })
}

/// Both write the shortest digits, and very large and very small numbers with
/// an exponent: PostgreSQL with its sign and two digits at least.
fn float(x: f64, signed: bool) -> String {
    if x == 0.0 || (1e-4..1e15).contains(&x.abs()) {
        return x.to_string();
    }
    let text = format!("{x:e}");
    let Some((digits, exponent)) = text.split_once('e').filter(|_| signed) else { return text };
    let (sign, exponent) = match exponent.strip_prefix('-') {
        Some(rest) => ('-', rest),
        None => ('+', exponent),
    };
    format!("{digits}e{sign}{exponent:0>2}")
}

/// Whether a text may be a date or time, which sessions print in styles of
/// their own.
pub(super) fn looks_dated(value: &Value) -> bool {
    let Value::Text(text) = value else { return false };
    let start: Vec<char> = text.chars().take(10).collect();
    start.len() == 10
        && start.iter().enumerate().all(|(i, c)| match i {
            4 | 7 => *c == '-',
            _ => c.is_ascii_digit(),
        })
}

/// A row as PostgreSQL's text form of a record, `(1,abc,)`, which is the sort key.
pub(super) fn as_record(row: &Row) -> String {
    let cell = |value: &Value| match in_postgres(value) {
        None => String::new(),
        Some(text) => {
            let marks = |c: char| matches!(c, '"' | '\\' | '(' | ')' | ',') || c.is_whitespace();
            match text.is_empty() || text.contains(marks) {
                true => format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\"\"")),
                false => text,
            }
        }
    };
    format!("({})", row.iter().map(cell).collect::<Vec<_>>().join(","))
}

/// MySQL's messages name the database, which is `test` in a test.
pub(super) fn with_test_database(message: &str) -> String {
    let mut out = String::new();
    let mut rest = message;
    while let Some(at) = rest.find("isolde") {
        let (before, found) = rest.split_at(at);
        let fits = |c: char| c.is_ascii_alphanumeric() || c == '_';
        let end = found.find(|c: char| !fits(c)).unwrap_or(found.len());
        let (name, after) = found.split_at(end);
        out.push_str(before);
        let qualifies = after.starts_with('.') || after.starts_with("`.");
        out.push_str(if qualifies && !before.ends_with(fits) { "test" } else { name });
        rest = after;
    }
    out + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_the_exponents_of_each_engine() {
        for (x, postgres, mysql) in [
            (1.0, "1", "1"),
            (-0.5, "-0.5", "-0.5"),
            (1.5e20, "1.5e+20", "1.5e20"),
            (1e-5, "1e-05", "1e-5"),
            (0.0, "0", "0"),
        ] {
            assert_eq!(in_postgres(&Value::Float(x)).unwrap(), postgres);
            assert_eq!(in_mysql(&Value::Float(x)).unwrap(), mysql);
        }
    }

    #[test]
    fn record_quotes_ambiguous_values() {
        let row = vec![
            Value::Int(1),
            Value::Null,
            Value::Text("a \"b\"".into()),
            Value::Text(String::new()),
        ];
        assert_eq!(as_record(&row), "(1,,\"a \"\"b\"\"\",\"\")");
    }

    #[test]
    fn database_name_is_replaced_only_as_a_qualifier() {
        let message = "fails (`isolde`.`t`, CONSTRAINT `isolde_fk`) 'isolde_3_x.t' isolde";
        let wanted = "fails (`test`.`t`, CONSTRAINT `isolde_fk`) 'test.t' isolde";
        assert_eq!(with_test_database(message), wanted);
    }

    #[test]
    fn dates_are_distinguished_from_other_texts() {
        assert!(looks_dated(&Value::Text("2024-01-31 10:00:00".into())));
        for other in ["2024", "a024-01-31", "2024-01-3x"] {
            assert!(!looks_dated(&Value::Text(other.into())), "{other}");
        }
    }
}
