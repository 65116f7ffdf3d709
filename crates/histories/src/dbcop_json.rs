//! dbcop's JSON: sessions of transactions of events, bare or in an object with the parameters of
//! the run.

use crate::error::ReadError;
use crate::source::Source;
use crate::words::{NIL, Resolver, Words};
use isolde_checker::{Builder, History, Status};
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::Value;

pub(crate) fn detect(text: &[u8]) -> bool {
    let has = |name: &str| text.windows(name.len()).any(|window| window == name.as_bytes());
    let text = text.trim_ascii_start();
    matches!(text, [b'{' | b'[', ..]) && has("\"events\"") && !has("\"ops\"")
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Document {
    Whole { data: Vec<Vec<Transaction>> },
    Bare(Vec<Vec<Transaction>>),
}

#[derive(Deserialize)]
struct Transaction {
    events: Vec<Event>,
    committed: bool,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Event {
    Named(NamedEvent),
    /// `["r", variable, version]`
    Short(String, Value, Value),
}

#[derive(Deserialize)]
enum NamedEvent {
    Read { variable: Value, version: Option<Value> },
    Write { variable: Value, version: Value },
}

pub(crate) fn read(source: &mut Source) -> Result<History, ReadError> {
    let name = source.name().to_string();
    let text = source.rest()?;
    // Finds the line of a syntax error, which the untagged document cannot.
    if let Err(error) = serde_json::from_slice::<IgnoredAny>(&text) {
        let line = error.line().max(1) as u64;
        let problem = match error.is_eof() {
            true => "the file ends in the middle: it is truncated".into(),
            false => error.to_string(),
        };
        return Err(ReadError::at(&name, line, problem));
    }
    let document = serde_json::from_slice(&text).map_err(|_| {
        let problem = "this is not a history of dbcop: expected sessions of transactions such as \
                       [[{\"events\":[{\"Write\":{\"variable\":0,\"version\":1}}],\"committed\":true}]]";
        ReadError::new(&name, problem)
    })?;
    let (Document::Whole { data: sessions } | Document::Bare(sessions)) = document;
    let mut builder = Builder::new();
    for (number, session) in sessions.into_iter().enumerate() {
        let session_id = builder.numbered_session(number as u64 + 1);
        for transaction in session {
            builder.begin(session_id);
            for event in transaction.events {
                push(&mut builder, event).map_err(|problem| ReadError::new(&name, problem))?;
            }
            let committed = transaction.committed;
            builder.end(if committed { Status::Committed } else { Status::Aborted });
        }
    }
    Ok(builder.finish())
}

fn push(builder: &mut Builder, event: Event) -> Result<(), String> {
    let (write, variable, version) = match event {
        Event::Named(NamedEvent::Read { variable, version }) => (false, variable, version),
        Event::Named(NamedEvent::Write { variable, version }) => (true, variable, Some(version)),
        Event::Short(kind, variable, version) => match &kind[..] {
            "r" => (false, variable, Some(version).filter(|version| !version.is_null())),
            "w" => (true, variable, Some(version)),
            _ => return Err(format!("`{kind}` is neither r nor w")),
        },
    };
    let mut words = Words::default();
    let mut word = |value: &Value| match value {
        Value::String(text) => words.text(text),
        other => words.integer(&other.to_string()),
    };
    let (variable, version) = (word(&variable), version.as_ref().map_or(NIL, &mut word));
    let mut resolver = Resolver::new(&words);
    let item = resolver.item(builder, variable);
    let value = resolver.value(builder, version);
    match write {
        true => builder.write(item, value),
        false => builder.read(item, value),
    }
    Ok(())
}
