//! The lines of the driver protocol as types. `docs/driver-protocol.md` is the
//! specification; a line that does not follow it becomes a text that describes
//! the error, never a panic.

use crate::engine::{Outcome, Reply, TxStatus, WaitState};
use isolde_model::history::{DbError, ErrorClass, ErrorEffect, Follows};
use isolde_model::value::Row;
use isolde_model::{Level, Profile};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value as Json;
use std::collections::{BTreeMap, HashSet};

pub const PROTOCOL: u64 = 1;

/// A driver's description of itself and its database.
#[derive(Clone, Debug, Deserialize)]
pub struct Hello {
    pub protocol: u64,
    pub name: String,
    pub version: String,
    pub profile: Profile,
    /// The optional requests that it supports.
    #[serde(default)]
    pub can: Vec<String>,
    #[serde(default)]
    pub settings: BTreeMap<String, String>,
    /// The engine whose dialect and rules the database follows.
    #[serde(default)]
    pub follows: Option<Box<Follows>>,
    #[serde(default)]
    pub level_sql: BTreeMap<Level, Vec<String>>,
    #[serde(default)]
    pub begin_at_sql: BTreeMap<Level, Vec<String>>,
}

impl Hello {
    pub fn can(&self, what: &str) -> bool {
        self.can.iter().any(|c| c == what)
    }

    /// An error in the contents, although every field has its type.
    pub fn invalidity(&self) -> Option<String> {
        let levels = self.profile.level_names();
        let unlisted = |map: &BTreeMap<Level, Vec<String>>| {
            map.keys().find(|level| !levels.contains(level)).copied()
        };
        let unknown = self.can.iter().find(|c| !["waiting", "cancel"].contains(&c.as_str()));
        if self.protocol != PROTOCOL {
            Some(format!("it speaks protocol {}, Isolde speaks {PROTOCOL}", self.protocol))
        } else if self.name.trim().is_empty() || self.version.trim().is_empty() {
            Some("name and version must not be empty".into())
        } else if levels.is_empty() {
            Some("profile.levels is empty: a database has at least one level".into())
        } else if levels.iter().collect::<HashSet<_>>().len() != levels.len() {
            Some("profile.levels names a level twice".into())
        } else if !levels.contains(&self.profile.default_level) {
            Some(format!(
                "profile.default_level {} is not in profile.levels",
                self.profile.default_level
            ))
        } else if self.profile.waiting == isolde_model::profile::Waiting::Probe
            && !self.can("waiting")
        {
            Some("profile.waiting is \"probe\", but `can` does not list \"waiting\"".into())
        } else if let Some(invalidity) =
            self.follows.as_ref().and_then(|follows| follows.invalidity())
        {
            Some(invalidity)
        } else if let Some(what) = unknown {
            Some(format!("`can` lists {what:?}; it may list \"waiting\" and \"cancel\""))
        } else {
            unlisted(&self.level_sql)
                .or_else(|| unlisted(&self.begin_at_sql))
                .map(|level| format!("{level} has statements but is not in profile.levels"))
        }
    }
}

#[derive(Clone, Debug)]
pub enum Message {
    Hello(Box<Hello>),
    Ok { tx: Option<TxStatus>, rolled_back: bool },
    Rows { columns: Vec<String>, rows: Vec<Row>, tx: Option<TxStatus> },
    Affected { count: u64, tx: Option<TxStatus> },
    Error { error: DriverError, tx: Option<TxStatus> },
    Waiting(Vec<Waiter>),
    Tables(Vec<String>),
}

#[derive(Clone, Debug, Deserialize)]
pub struct DriverError {
    pub code: String,
    pub message: String,
    pub sqlstate: Option<String>,
    pub class: Option<ErrorClass>,
    pub effect: Option<ErrorEffect>,
}

#[derive(Clone, Debug, Deserialize)]
pub struct Waiter {
    pub session: u64,
    #[serde(rename = "for", default)]
    pub on: Vec<u64>,
}

#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
enum Tx {
    Idle,
    Open,
    Failed,
}

#[derive(Deserialize)]
struct WithTx {
    tx: Option<Tx>,
    #[serde(default)]
    rolled_back: bool,
}

#[derive(Deserialize)]
struct RowsFields {
    columns: Vec<String>,
    rows: Vec<Row>,
}

#[derive(Deserialize)]
struct AffectedFields {
    count: u64,
}

#[derive(Deserialize)]
struct WaitingFields {
    sessions: Vec<Waiter>,
}

#[derive(Deserialize)]
struct TablesFields {
    tables: Vec<String>,
}

/// Parses one line: the id of the request that it answers (none where the
/// driver could not read the request) and the answer. The error says what is
/// wrong.
pub fn read_line(line: &str) -> Result<(Option<u64>, Message), String> {
    let json: Json = serde_json::from_str(line).map_err(|e| format!("it is not JSON ({e})"))?;
    let Some(object) = json.as_object() else {
        return Err("it is not a JSON object".into());
    };
    let id = match object.get("id") {
        Some(Json::Null) => None,
        Some(id) => Some(id.as_u64().ok_or("its `id` is neither a number nor null")?),
        None => return Err("it has no `id`".into()),
    };
    let Some(kind) = object.get("reply").and_then(Json::as_str) else {
        return Err("it has no `reply` that says what kind of reply it is".into());
    };
    let kind = kind.to_string();
    let message = read_message(&kind, json).map_err(|e| format!("in the reply `{kind}`, {e}"))?;
    Ok((id, message))
}

fn read_message(kind: &str, json: Json) -> Result<Message, String> {
    let WithTx { tx, rolled_back } = fields(&json)?;
    let tx = tx.map(|tx| match tx {
        Tx::Idle => TxStatus::Idle,
        Tx::Open => TxStatus::Open,
        Tx::Failed => TxStatus::Failed,
    });
    Ok(match kind {
        "hello" => Message::Hello(Box::new(fields(&json)?)),
        "ok" => Message::Ok { tx, rolled_back },
        "rows" => {
            let RowsFields { columns, rows } = fields(&json)?;
            if let Some(row) = rows.iter().find(|row| row.len() != columns.len()) {
                let (cells, names) = (row.len(), columns.len());
                return Err(format!("a row has {cells} cells and there are {names} columns"));
            }
            Message::Rows { columns, rows, tx }
        }
        "affected" => Message::Affected { count: fields::<AffectedFields>(&json)?.count, tx },
        "error" => Message::Error { error: fields(&json)?, tx },
        "waiting" => Message::Waiting(fields::<WaitingFields>(&json)?.sessions),
        "tables" => Message::Tables(fields::<TablesFields>(&json)?.tables),
        _ => return Err("which is not a kind of reply".into()),
    })
}

fn fields<T: DeserializeOwned>(json: &Json) -> Result<T, String> {
    T::deserialize(json).map_err(|e| e.to_string())
}

impl Message {
    /// Describes an unexpected answer.
    pub fn describe(&self) -> String {
        match self {
            Message::Hello(_) => "`hello`".into(),
            Message::Ok { .. } => "`ok`".into(),
            Message::Rows { rows, .. } => {
                format!("`rows` {}", isolde_model::value::show_rows(rows))
            }
            Message::Affected { count, .. } => format!("`affected` {count}"),
            Message::Error { error, .. } => {
                format!("`error` {}: {}", error.code, error.message)
            }
            Message::Waiting(_) => "`waiting`".into(),
            Message::Tables(tables) => format!("`tables` {tables:?}"),
        }
    }

    pub fn tx(&self) -> Option<TxStatus> {
        match self {
            Message::Ok { tx, .. }
            | Message::Rows { tx, .. }
            | Message::Affected { tx, .. }
            | Message::Error { tx, .. } => *tx,
            _ => None,
        }
    }

    /// The answer to a statement; none for a kind of message that is not one.
    /// `before` is the status of the session: if a transaction was open and is
    /// not any more, it has been rolled back, whatever the error table says.
    pub fn into_reply(self, profile: &Profile, before: Option<TxStatus>) -> Option<Reply> {
        let tx = self.tx();
        let mut reply = match self {
            Message::Ok { rolled_back, .. } => {
                Reply { commit_rolled_back: rolled_back, ..Reply::new(Outcome::Done, tx) }
            }
            Message::Rows { columns, rows, .. } => Reply::new(Outcome::Rows { columns, rows }, tx),
            Message::Affected { count, .. } => Reply::new(Outcome::Affected(count), tx),
            Message::Error { error, .. } => {
                Reply::new(Outcome::Error(error.classify(profile, before, tx)), tx)
            }
            Message::Hello(_) | Message::Waiting(_) | Message::Tables(_) => return None,
        };
        reply.tx = tx;
        Some(reply)
    }
}

impl DriverError {
    pub fn classify(
        self,
        profile: &Profile,
        before: Option<TxStatus>,
        now: Option<TxStatus>,
    ) -> DbError {
        let (class, effect) = profile.classify(&self.code, self.sqlstate.as_deref(), &self.message);
        let class = self.class.unwrap_or(class);
        let was_open = matches!(before, Some(TxStatus::Open | TxStatus::Failed));
        let effect = self.effect.unwrap_or(match now {
            _ if class == ErrorClass::Lost => ErrorEffect::Lost,
            Some(TxStatus::Failed) => ErrorEffect::Poisoned,
            Some(TxStatus::Idle) if was_open => ErrorEffect::RolledBack,
            _ => effect,
        });
        DbError { code: self.code, sqlstate: self.sqlstate, message: self.message, class, effect }
    }
}

/// The answer to `waiting`, in the order of the request.
pub fn wait_states(waiters: &[Waiter], sessions: &[u64]) -> Vec<WaitState> {
    let state = |id: &u64| match waiters.iter().find(|w| w.session == *id) {
        Some(waiter) => WaitState::Waiting(waiter.on.clone()),
        None => WaitState::Free,
    };
    sessions.iter().map(state).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use isolde_model::Value;

    #[test]
    fn an_invalid_line_is_described() {
        for (line, why) in [
            ("hi", "not JSON"),
            ("[]", "not a JSON object"),
            (r#"{"reply":"ok"}"#, "no `id`"),
            (r#"{"id":"1","reply":"ok"}"#, "neither a number"),
            (r#"{"id":1}"#, "no `reply`"),
            (r#"{"id":1,"reply":"dance"}"#, "not a kind"),
            (r#"{"id":1,"reply":"affected"}"#, "count"),
            (r#"{"id":1,"reply":"affected","count":-1}"#, "in the reply `affected`"),
            (r#"{"id":1,"reply":"rows","columns":["a"],"rows":[[1,2]]}"#, "2 cells"),
            (r#"{"id":1,"reply":"rows","columns":["a"],"rows":[[[1]]]}"#, "in the reply `rows`"),
            (r#"{"id":1,"reply":"ok","tx":"maybe"}"#, "maybe"),
        ] {
            let error = read_line(line).unwrap_err();
            assert!(error.contains(why), "{line}: {error}");
        }
    }

    #[test]
    fn wrong_description_of_a_database_is_refused() {
        let invalidity = |follows: &str| {
            let line = format!(
                r#"{{"id":1,"reply":"hello","protocol":1,"name":"x","version":"1","profile":
                   {{"levels":[{{"level":"SNAPSHOT"}}],"default_level":"SNAPSHOT",
                   "waiting":"never"}},"follows":{follows}}}"#
            );
            let Ok((_, Message::Hello(hello))) = read_line(&line) else { panic!("{line}") };
            hello.invalidity()
        };
        assert_eq!(invalidity(r#"{"rules":1,"engine":"sqlite+wal","version":"3.45"}"#), None);
        let own =
            r#"{"rules":1,"engine":"plain","levels":{"SNAPSHOT":{"snapshot":{"taken":"begin"}}}}"#;
        assert_eq!(invalidity(own), None);
        for (follows, why) in [
            (r#"{"rules":2,"engine":"sqlite","version":"3.45"}"#, "version 1"),
            (r#"{"rules":1,"engine":"oracle","version":"23"}"#, "no dialect here"),
            (r#"{"rules":1,"engine":"postgres","version":" "}"#, "must not be empty"),
            (&own.replace("taken", "when"), "no field snapshot.when"),
        ] {
            let found = invalidity(follows);
            assert!(found.as_ref().is_some_and(|f| f.contains(why)), "{found:?}");
        }
    }

    #[test]
    fn values_keep_their_types() {
        let line = r#"{"id":7,"reply":"rows","columns":["a","b","c","d","e"],
            "rows":[[1,1.0,null,"null",{"bytes":"c0ff"}]],"tx":"open"}"#;
        let (id, message) = read_line(line).unwrap();
        assert_eq!((id, message.tx()), (Some(7), Some(TxStatus::Open)));
        let Message::Rows { rows, .. } = message else { panic!("{message:?}") };
        let text = Value::Text("null".into());
        let bytes = Value::Bytes(vec![0xc0, 0xff]);
        assert_eq!(rows, [[Value::Int(1), Value::Float(1.0), Value::Null, text, bytes]]);
    }

    #[test]
    fn a_transaction_that_is_gone_after_an_error_was_rolled_back() {
        let json = r#"{"levels":[{"level":"SERIALIZABLE"}],"default_level":"SERIALIZABLE",
            "waiting":"never"}"#;
        let profile: Profile = serde_json::from_str(json).unwrap();
        let effect = |before, now| {
            let line = r#"{"id":1,"reply":"error","code":"x","message":"y"}"#;
            let Ok((_, Message::Error { error, .. })) = read_line(line) else { panic!() };
            error.classify(&profile, before, now).effect
        };
        use TxStatus::*;
        assert_eq!(effect(Some(Open), Some(Idle)), ErrorEffect::RolledBack);
        assert_eq!(effect(Some(Open), Some(Failed)), ErrorEffect::Poisoned);
        assert_eq!(effect(Some(Open), Some(Open)), ErrorEffect::Statement);
        assert_eq!(effect(Some(Idle), Some(Idle)), ErrorEffect::Statement);
    }
}
