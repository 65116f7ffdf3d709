//! EDN and JSON as trees, for operations that the fast scanner does not handle.

/// A value of EDN or JSON.
#[derive(Clone, PartialEq, Debug)]
pub(crate) enum Form {
    Nil,
    /// An integer as it was written: it may not fit into 64 bits.
    Integer(String),
    Text(String),
    /// A keyword without its colon.
    Keyword(String),
    /// A symbol, a character, true or false, or a number that is not an integer.
    Other(String),
    /// A vector, list or set.
    Sequence(Vec<Form>),
    Map(Vec<(Form, Form)>),
}

impl Form {
    /// The value of a key, which is a keyword in EDN and a string in JSON.
    pub(crate) fn get(&self, name: &str) -> Option<&Form> {
        let Form::Map(pairs) = self else { return None };
        pairs.iter().find(|(key, _)| key.name() == Some(name)).map(|(_, value)| value)
    }

    /// The text of a keyword or string.
    pub(crate) fn name(&self) -> Option<&str> {
        match self {
            Form::Keyword(name) | Form::Text(name) => Some(name),
            _ => None,
        }
    }

    /// The form in EDN, for messages and as the name of a key of any kind.
    pub(crate) fn write(&self) -> String {
        let all = |forms: &[Form]| forms.iter().map(Form::write).collect::<Vec<_>>().join(" ");
        match self {
            Form::Nil => "nil".into(),
            Form::Integer(text) | Form::Other(text) | Form::Text(text) => text.clone(),
            Form::Keyword(name) => format!(":{name}"),
            Form::Sequence(forms) => format!("[{}]", all(forms)),
            Form::Map(pairs) => {
                let pairs: Vec<String> =
                    pairs.iter().map(|(k, v)| format!("{} {}", k.write(), v.write())).collect();
                format!("{{{}}}", pairs.join(" "))
            }
        }
    }
}

impl From<serde_json::Value> for Form {
    fn from(value: serde_json::Value) -> Form {
        use serde_json::Value;
        match value {
            Value::Null => Form::Nil,
            Value::Bool(truth) => Form::Other(truth.to_string()),
            Value::Number(number) if number.is_f64() => Form::Other(number.to_string()),
            Value::Number(number) => Form::Integer(number.to_string()),
            Value::String(text) => Form::Text(text),
            Value::Array(values) => Form::Sequence(values.into_iter().map(Form::from).collect()),
            Value::Object(pairs) => Form::Map(
                pairs.into_iter().map(|(key, value)| (Form::Text(key), value.into())).collect(),
            ),
        }
    }
}
