//! A line of Isolde's own format, as serde reads it.

use serde::Deserialize;
use serde::de::{self, Deserializer, IgnoredAny, SeqAccess, Visitor};
use std::borrow::Cow;
use std::fmt;

/// All fields that a line may have; which of them are present determines what the line is.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Line<'a> {
    #[serde(rename = "isolde-history")]
    pub(super) version: Option<u64>,
    /// In the first line: a free description.
    #[serde(default, rename = "about")]
    pub(super) _about: IgnoredAny,
    #[serde(borrow)]
    pub(super) session: Option<Word<'a>>,
    #[serde(borrow)]
    pub(super) txn: Option<Word<'a>>,
    pub(super) status: Option<Status>,
    pub(super) begin: Option<u64>,
    pub(super) end: Option<u64>,
    #[serde(borrow)]
    pub(super) ops: Option<Vec<Op<'a>>>,
    #[serde(borrow)]
    pub(super) order: Option<Word<'a>>,
    #[serde(borrow)]
    pub(super) versions: Option<Vec<Word<'a>>>,
    #[serde(borrow)]
    pub(super) predicate: Option<Cow<'a, str>>,
    #[serde(borrow, rename = "satisfied-by")]
    pub(super) satisfied_by: Option<Vec<(Word<'a>, Word<'a>)>>,
}

#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Status {
    Committed,
    Aborted,
    Unknown,
}

/// A name or a value: a number, a text, or null.
pub(super) enum Word<'a> {
    Null,
    Number(u64),
    Text(Cow<'a, str>),
}

/// The value of an operation.
pub(super) enum OpValue<'a> {
    One(Word<'a>),
    List(Vec<Word<'a>>),
    /// The matches of a predicate read.
    Versions(Vec<(Word<'a>, Word<'a>)>),
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum OpKind {
    Read,
    Write,
    Append,
    Predicate,
}

pub(super) struct Op<'a> {
    pub(super) kind: OpKind,
    pub(super) item: Word<'a>,
    pub(super) value: OpValue<'a>,
    pub(super) options: Options<'a>,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Options<'a> {
    pub(super) version: Option<u64>,
    #[serde(default)]
    pub(super) locking: bool,
    #[serde(borrow)]
    pub(super) sql: Option<Cow<'a, str>>,
}

impl<'de: 'a, 'a> Deserialize<'de> for Word<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Word<'a>, D::Error> {
        struct Words;
        impl<'de> Visitor<'de> for Words {
            type Value = Word<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a number, a text or null")
            }

            fn visit_unit<E>(self) -> Result<Word<'de>, E> {
                Ok(Word::Null)
            }

            fn visit_u64<E>(self, number: u64) -> Result<Word<'de>, E> {
                Ok(Word::Number(number))
            }

            fn visit_i64<E>(self, number: i64) -> Result<Word<'de>, E> {
                Ok(Word::Text(number.to_string().into()))
            }

            fn visit_f64<E>(self, number: f64) -> Result<Word<'de>, E> {
                Ok(Word::Text(number.to_string().into()))
            }

            fn visit_bool<E>(self, truth: bool) -> Result<Word<'de>, E> {
                Ok(Word::Text(truth.to_string().into()))
            }

            fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Word<'de>, E> {
                Ok(Word::Text(Cow::Borrowed(text)))
            }

            fn visit_str<E>(self, text: &str) -> Result<Word<'de>, E> {
                Ok(Word::Text(text.to_string().into()))
            }
        }
        deserializer.deserialize_any(Words)
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Op<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Op<'a>, D::Error> {
        struct Ops;
        impl<'de> Visitor<'de> for Ops {
            type Value = Op<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an operation such as [\"w\",\"x\",1]")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut parts: A) -> Result<Op<'de>, A::Error> {
                let short = || de::Error::custom("an operation has a kind, an item and a value");
                let kind: Cow<'de, str> = parts.next_element()?.ok_or_else(short)?;
                let kind = match &kind[..] {
                    "r" => OpKind::Read,
                    "w" => OpKind::Write,
                    "append" => OpKind::Append,
                    "predicate" => OpKind::Predicate,
                    other => {
                        let problem = format!("`{other}` is none of r, w, append, predicate");
                        return Err(de::Error::custom(problem));
                    }
                };
                let item = parts.next_element()?.ok_or_else(short)?;
                let value = match kind {
                    OpKind::Read => parts.next_element()?.ok_or_else(short)?,
                    OpKind::Write | OpKind::Append => {
                        OpValue::One(parts.next_element()?.ok_or_else(short)?)
                    }
                    OpKind::Predicate => {
                        OpValue::Versions(parts.next_element()?.ok_or_else(short)?)
                    }
                };
                let options = parts.next_element()?.unwrap_or_default();
                if parts.next_element::<IgnoredAny>()?.is_some() {
                    return Err(de::Error::custom("an operation has at most four parts"));
                }
                Ok(Op { kind, item, value, options })
            }
        }
        deserializer.deserialize_seq(Ops)
    }
}

/// The result of a read: a value, or the elements of a list.
impl<'de: 'a, 'a> Deserialize<'de> for OpValue<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<OpValue<'a>, D::Error> {
        struct Reads;
        impl<'de> Visitor<'de> for Reads {
            type Value = OpValue<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a number, a text, null, or a list of them")
            }

            fn visit_unit<E>(self) -> Result<OpValue<'de>, E> {
                Ok(OpValue::One(Word::Null))
            }

            fn visit_u64<E>(self, number: u64) -> Result<OpValue<'de>, E> {
                Ok(OpValue::One(Word::Number(number)))
            }

            fn visit_i64<E>(self, number: i64) -> Result<OpValue<'de>, E> {
                Ok(OpValue::One(Word::Text(number.to_string().into())))
            }

            fn visit_f64<E>(self, number: f64) -> Result<OpValue<'de>, E> {
                Ok(OpValue::One(Word::Text(number.to_string().into())))
            }

            fn visit_bool<E>(self, truth: bool) -> Result<OpValue<'de>, E> {
                Ok(OpValue::One(Word::Text(truth.to_string().into())))
            }

            fn visit_borrowed_str<E>(self, text: &'de str) -> Result<OpValue<'de>, E> {
                Ok(OpValue::One(Word::Text(Cow::Borrowed(text))))
            }

            fn visit_str<E>(self, text: &str) -> Result<OpValue<'de>, E> {
                Ok(OpValue::One(Word::Text(text.to_string().into())))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<OpValue<'de>, A::Error> {
                let mut elements = Vec::new();
                while let Some(element) = list.next_element()? {
                    elements.push(element);
                }
                Ok(OpValue::List(elements))
            }
        }
        deserializer.deserialize_any(Reads)
    }
}
