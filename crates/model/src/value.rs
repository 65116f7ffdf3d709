//! Typed values as databases return them, with NULL kept apart from text.

use serde::de::{self, MapAccess, Visitor};
use serde::ser::SerializeMap;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::cmp::Ordering;
use std::fmt;

/// One cell of a result.
///
/// In JSON: `null`, `true`, `1`, `1.5`, `"text"`, `{"decimal":"1.50"}` and
/// `{"bytes":"c0ffee"}`. Dates, times and whatever else an engine prints as
/// text is `Text`.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    Null,
    Bool(bool),
    Int(i64),
    Float(f64),
    /// An exact number kept as the engine printed it.
    Decimal(String),
    Text(String),
    Bytes(Vec<u8>),
}

pub type Row = Vec<Value>;

impl Value {
    /// Whether two cells hold the same value, whatever type the engine gave
    /// it: 1, 1.0, 1.00 and true are the same number; NULL equals only NULL.
    pub fn same(&self, other: &Value) -> bool {
        self.compare(other) == Ordering::Equal
    }

    /// A total order in which equal means [`Value::same`].
    pub fn compare(&self, other: &Value) -> Ordering {
        use Value::*;
        match (self, other) {
            (Text(a), Text(b)) => a.cmp(b),
            (Bytes(a), Bytes(b)) => a.cmp(b),
            _ => match (self.number(), other.number()) {
                (Some(a), Some(b)) => a.compare(&b),
                _ => self.rank().cmp(&other.rank()),
            },
        }
    }

    fn rank(&self) -> u8 {
        match self {
            Value::Null => 0,
            Value::Bool(_) | Value::Int(_) | Value::Float(_) | Value::Decimal(_) => 1,
            Value::Text(_) => 2,
            Value::Bytes(_) => 3,
        }
    }

    fn number(&self) -> Option<Number> {
        match self {
            Value::Bool(b) => Some(Number::Exact(Decimal::from_int(i64::from(*b)))),
            Value::Int(i) => Some(Number::Exact(Decimal::from_int(*i))),
            Value::Float(f) => Some(Number::Float(*f)),
            Value::Decimal(text) => Some(match Decimal::parse(text) {
                Some(decimal) => Number::Exact(decimal),
                None => Number::Float(text.parse().unwrap_or(f64::NAN)),
            }),
            Value::Null | Value::Text(_) | Value::Bytes(_) => None,
        }
    }
}

enum Number {
    Exact(Decimal),
    Float(f64),
}

impl Number {
    fn compare(&self, other: &Number) -> Ordering {
        match (self, other) {
            (Number::Exact(a), Number::Exact(b)) => a.compare(b),
            (a, b) => a.as_float().total_cmp(&b.as_float()),
        }
    }

    fn as_float(&self) -> f64 {
        let float = match self {
            Number::Exact(decimal) => decimal.as_float(),
            Number::Float(f) => *f,
        };
        // -0.0 and 0.0 are one number to a database.
        if float == 0.0 { 0.0 } else { float }
    }
}

/// A decimal in canonical form: no leading zeros before the point, no
/// trailing ones after it, no negative zero.
struct Decimal {
    negative: bool,
    whole: String,
    fraction: String,
}

impl Decimal {
    fn from_int(i: i64) -> Decimal {
        Decimal { negative: i < 0, whole: i.unsigned_abs().to_string(), fraction: String::new() }
            .canonical()
    }

    fn parse(text: &str) -> Option<Decimal> {
        let (negative, digits) = match text.strip_prefix('-') {
            Some(rest) => (true, rest),
            None => (false, text.strip_prefix('+').unwrap_or(text)),
        };
        let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
        let all_digits = |s: &str| s.bytes().all(|b| b.is_ascii_digit());
        if (whole.is_empty() && fraction.is_empty()) || !all_digits(whole) || !all_digits(fraction)
        {
            return None;
        }
        Some(Decimal { negative, whole: whole.into(), fraction: fraction.into() }.canonical())
    }

    fn canonical(self) -> Decimal {
        let whole = self.whole.trim_start_matches('0').to_string();
        let fraction = self.fraction.trim_end_matches('0').to_string();
        let negative = self.negative && !(whole.is_empty() && fraction.is_empty());
        Decimal { negative, whole, fraction }
    }

    fn compare(&self, other: &Decimal) -> Ordering {
        let magnitude = self
            .whole
            .len()
            .cmp(&other.whole.len())
            .then_with(|| self.whole.cmp(&other.whole))
            .then_with(|| self.fraction.cmp(&other.fraction));
        match (self.negative, other.negative) {
            (false, true) => Ordering::Greater,
            (true, false) => Ordering::Less,
            (false, false) => magnitude,
            (true, true) => magnitude.reverse(),
        }
    }

    fn as_float(&self) -> f64 {
        let sign = if self.negative { "-" } else { "" };
        format!("{sign}0{}.{}0", self.whole, self.fraction).parse().unwrap_or(f64::NAN)
    }
}

/// Compares rows cell by cell; shorter rows come first.
pub fn compare_rows(a: &[Value], b: &[Value]) -> Ordering {
    a.iter()
        .zip(b)
        .map(|(x, y)| x.compare(y))
        .find(|o| *o != Ordering::Equal)
        .unwrap_or_else(|| a.len().cmp(&b.len()))
}

/// Whether two results hold the same rows, each as often, in any order.
pub fn same_multiset(a: &[Row], b: &[Row]) -> bool {
    let sorted = |rows: &[Row]| {
        let mut rows: Vec<Row> = rows.to_vec();
        rows.sort_by(|x, y| compare_rows(x, y));
        rows
    };
    a.len() == b.len()
        && sorted(a).iter().zip(&sorted(b)).all(|(x, y)| compare_rows(x, y) == Ordering::Equal)
}

/// The rows of `a` that are not in `b`, or not as often.
pub fn rows_without(a: &[Row], b: &[Row]) -> Vec<Row> {
    let mut left: Vec<&Row> = b.iter().collect();
    a.iter()
        .filter(|row| {
            let same = left.iter().position(|x| compare_rows(x, row) == Ordering::Equal);
            same.map(|i| left.swap_remove(i)).is_none()
        })
        .cloned()
        .collect()
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::Null => f.write_str("null"),
            Value::Bool(b) => write!(f, "{b}"),
            Value::Int(i) => write!(f, "{i}"),
            Value::Float(x) if x.is_finite() => write!(f, "{x:?}"),
            Value::Float(x) => write!(f, "'{x}'"),
            Value::Decimal(d) => f.write_str(d),
            Value::Text(t) => write!(f, "'{}'", t.replace('\'', "''")),
            Value::Bytes(b) => write!(f, "x'{}'", hex(b)),
        }
    }
}

/// `(1, 'a', null)`, as rows are written in case files and transcripts.
pub fn show_row(row: &[Value]) -> String {
    let cells: Vec<String> = row.iter().map(Value::to_string).collect();
    format!("({})", cells.join(", "))
}

/// All rows on one line; `none` when there are none.
pub fn show_rows(rows: &[Row]) -> String {
    if rows.is_empty() {
        return "none".into();
    }
    rows.iter().map(|r| show_row(r)).collect::<Vec<_>>().join(" ")
}

pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|b| format!("{b:02x}")).collect()
}

pub fn unhex(text: &str) -> Option<Vec<u8>> {
    if !text.len().is_multiple_of(2) || !text.is_ascii() {
        return None;
    }
    (0..text.len()).step_by(2).map(|i| u8::from_str_radix(&text[i..i + 2], 16).ok()).collect()
}

impl Serialize for Value {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        let tagged = |s: S, key: &str, text: &str| {
            let mut map = s.serialize_map(Some(1))?;
            map.serialize_entry(key, text)?;
            map.end()
        };
        match self {
            Value::Null => s.serialize_unit(),
            Value::Bool(b) => s.serialize_bool(*b),
            Value::Int(i) => s.serialize_i64(*i),
            Value::Float(x) if x.is_finite() => s.serialize_f64(*x),
            Value::Float(x) => tagged(s, "float", &x.to_string()),
            Value::Decimal(d) => tagged(s, "decimal", d),
            Value::Text(t) => s.serialize_str(t),
            Value::Bytes(b) => tagged(s, "bytes", &hex(b)),
        }
    }
}

impl<'de> Deserialize<'de> for Value {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Value, D::Error> {
        d.deserialize_any(ValueVisitor)
    }
}

struct ValueVisitor;

impl<'de> Visitor<'de> for ValueVisitor {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(
            "null, a boolean, a number, text, {\"decimal\":…}, {\"float\":…} or {\"bytes\":hex}",
        )
    }
    fn visit_unit<E: de::Error>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }
    fn visit_bool<E: de::Error>(self, b: bool) -> Result<Value, E> {
        Ok(Value::Bool(b))
    }
    fn visit_i64<E: de::Error>(self, i: i64) -> Result<Value, E> {
        Ok(Value::Int(i))
    }
    fn visit_u64<E: de::Error>(self, u: u64) -> Result<Value, E> {
        Ok(i64::try_from(u).map_or_else(|_| Value::Decimal(u.to_string()), Value::Int))
    }
    fn visit_f64<E: de::Error>(self, x: f64) -> Result<Value, E> {
        Ok(Value::Float(x))
    }
    fn visit_str<E: de::Error>(self, t: &str) -> Result<Value, E> {
        Ok(Value::Text(t.into()))
    }
    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Value, A::Error> {
        let Some((key, text)) = map.next_entry::<String, String>()? else {
            return Err(de::Error::custom("an empty object is not a value"));
        };
        match key.as_str() {
            "decimal" => Ok(Value::Decimal(text)),
            "float" => text.parse().map(Value::Float).map_err(de::Error::custom),
            "bytes" => unhex(&text)
                .map(Value::Bytes)
                .ok_or_else(|| de::Error::custom("bytes must be an even number of hex digits")),
            other => Err(de::Error::unknown_field(other, &["decimal", "float", "bytes"])),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_of_one_side_only_are_counted_one_by_one() {
        let rows =
            |values: &[i64]| -> Vec<Row> { values.iter().map(|v| vec![Value::Int(*v)]).collect() };
        assert_eq!(rows_without(&rows(&[1, 1, 2]), &rows(&[1, 3])), rows(&[1, 2]));
        assert!(rows_without(&rows(&[1, 2]), &rows(&[2, 1, 1])).is_empty());
    }

    #[test]
    fn numbers_are_the_same_whatever_their_type() {
        let one = [
            Value::Int(1),
            Value::Float(1.0),
            Value::Decimal("1.00".into()),
            Value::Decimal("01".into()),
            Value::Bool(true),
        ];
        for a in &one {
            for b in &one {
                assert!(a.same(b), "{a:?} and {b:?}");
            }
        }
        assert!(Value::Decimal("-0.0".into()).same(&Value::Int(0)));
        assert!(Value::Float(-0.0).same(&Value::Int(0)));
    }

    #[test]
    fn numbers_that_differ_far_behind_the_point_are_not_the_same() {
        let a = Value::Decimal("9007199254740993.1".into());
        let b = Value::Decimal("9007199254740993.2".into());
        assert!(!a.same(&b));
        assert!(!Value::Int(i64::MAX).same(&Value::Int(i64::MAX - 1)));
    }

    #[test]
    fn null_is_neither_text_nor_zero() {
        for other in [Value::Text("null".into()), Value::Text(String::new()), Value::Int(0)] {
            assert!(!Value::Null.same(&other));
        }
        assert!(Value::Null.same(&Value::Null));
    }

    #[test]
    fn multisets_count_duplicates_and_distinguish_swapped_cells() {
        let row = |a, b| vec![Value::Int(a), Value::Int(b)];
        assert!(same_multiset(&[row(1, 2), row(3, 4)], &[row(3, 4), row(1, 2)]));
        assert!(!same_multiset(&[row(1, 2), row(3, 4)], &[row(1, 4), row(3, 2)]));
        assert!(!same_multiset(&[row(1, 1), row(1, 1)], &[row(1, 1), row(2, 2)]));
    }

    #[test]
    fn every_value_survives_json() {
        for value in [
            Value::Null,
            Value::Bool(true),
            Value::Int(i64::MIN),
            Value::Float(0.1),
            Value::Float(f64::INFINITY),
            Value::Decimal("12.340".into()),
            Value::Text("it's".into()),
            Value::Bytes(vec![0, 255]),
        ] {
            let json = serde_json::to_string(&value).unwrap();
            assert_eq!(serde_json::from_str::<Value>(&json).unwrap(), value, "{json}");
        }
    }
}
