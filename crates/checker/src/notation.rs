//! The compact notation of tests and documents: one transaction per line, or several separated
//! by `|`.
//!
//! ```text
//! T1: w(x,1) r(y,nil)              committed, in a session of its own
//! s1/T2: a(l,3) r(l,[1 2])         in session s1, after its earlier ones
//! T3 aborted: w(x,2)               or `unknown`
//! T4 @10-20: r(x,1)                began at 10, ended at 20
//! T5: u(x,1) p(P: x=1 y=2)         a locking read; a predicate read and its matches
//! x: 1 < 2                         the version order of x
//! P: x=1 y=2 y=3                   the versions that satisfy P
//! ```

use crate::builder::Builder;
use crate::history::{History, ListRead, Op, OpKind, Status, Value, Version};
use std::fmt;
use std::str::FromStr;

/// The error for a line that is not in the notation.
///
/// The notation has one transaction per line, or several separated by `|`:
///
/// ```text
/// T1: w(x,1) r(y,nil)              committed, in a session of its own
/// s1/T2: a(l,3) r(l,[1 2])         in session s1, after its earlier transactions
/// T3 aborted: w(x,2)               or `unknown`
/// T4 @10-20: r(x,1)                began at 10, ended at 20
/// T5: u(x,1) p(P: x=1 y=2)         a locking read; a predicate read and its matches
/// x: 1 < 2                         the version order of x
/// P: x=1 y=2 y=3                   the versions that satisfy P
/// ```
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("`{line}`: {problem}")]
pub struct NotationError {
    /// The line.
    pub line: String,
    /// What is wrong with it.
    pub problem: String,
}

impl FromStr for History {
    type Err = NotationError;

    fn from_str(text: &str) -> Result<History, NotationError> {
        let mut builder = Builder::new();
        for line in text.split(['|', '\n']).map(str::trim).filter(|line| !line.is_empty()) {
            read_line(&mut builder, line)
                .map_err(|problem| NotationError { line: line.into(), problem })?;
        }
        Ok(builder.finish())
    }
}

/// Writes the same notation, one transaction per line.
impl fmt::Display for History {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for txn in self.transactions() {
            let session = self.session_name(self.session_of(txn));
            write!(f, "{session}/{}", self.txn_name(txn))?;
            match self.status(txn) {
                Status::Committed => {}
                Status::Aborted => write!(f, " aborted")?,
                Status::Unknown => write!(f, " unknown")?,
            }
            if let Some((begin, end)) = self.times(txn) {
                write!(f, " @{begin}-{end}")?;
            }
            write!(f, ":")?;
            let mut own: Vec<(u32, u64)> = Vec::new();
            for op in self.ops(txn) {
                if op.kind == OpKind::Append {
                    own.push((op.item, op.value));
                }
                write!(f, " {}", self.format_op(*op, &own))?;
            }
            writeln!(f)?;
        }
        for (item, order) in &self.given_orders {
            let values: Vec<String> = order.iter().map(|v| self.value_name(Value(*v))).collect();
            writeln!(f, "{}: {}", self.items.name(*item, ""), values.join(" < "))?;
        }
        for (predicate, versions) in self.satisfying.iter().enumerate() {
            if !versions.is_empty() {
                let name = self.predicates.name(predicate as u32, "");
                writeln!(f, "{name}: {}", self.versions(versions))?;
            }
        }
        Ok(())
    }
}

impl History {
    fn format_op(&self, op: Op, own: &[(u32, u64)]) -> String {
        let item = || self.items.name(op.item, "");
        let value = || self.value_name(Value(op.value));
        match op.kind {
            OpKind::Write => format!("w({},{})", item(), value()),
            OpKind::Append => format!("a({},{})", item(), value()),
            OpKind::Read => format!("r({},{})", item(), value()),
            OpKind::LockingRead => format!("u({},{})", item(), value()),
            OpKind::ReadList => {
                let mut list = self.list(op).unwrap_or_default().to_vec();
                if !matches!(ListRead::unpack(op.value), ListRead::MissingOwn(_)) {
                    list.extend(own.iter().filter(|(of, _)| *of == op.item).map(|(_, v)| *v));
                }
                let list: Vec<String> = list.iter().map(|v| self.value_name(Value(*v))).collect();
                format!("r({},[{}])", item(), list.join(" "))
            }
            OpKind::PredicateRead => {
                let name = self.predicates.name(op.item, "");
                let found = self.versions(self.matched(op).unwrap_or_default());
                format!("p({name}: {found})").replace(": )", ":)")
            }
        }
    }

    fn versions(&self, versions: &[Version]) -> String {
        let version = |(item, value): &Version| {
            format!("{}={}", self.item_name(*item), self.value_name(*value))
        };
        versions.iter().map(version).collect::<Vec<_>>().join(" ")
    }
}

fn read_line(builder: &mut Builder, line: &str) -> Result<(), String> {
    let (head, body) = line.split_once(':').ok_or("a line needs a name and a colon")?;
    let (head, body) = (head.trim(), body.trim());
    if body.contains('<') {
        let item = builder.item(head);
        let values: Vec<Value> =
            body.split('<').map(|value| read_value(value.trim())).collect::<Result<_, _>>()?;
        builder.version_order(item, &values);
        return Ok(());
    }
    if !body.contains('(') && body.contains('=') {
        for version in read_versions(builder, body)? {
            builder.satisfies(head, version);
        }
        return Ok(());
    }
    read_transaction(builder, head, body)
}

fn read_transaction(builder: &mut Builder, head: &str, body: &str) -> Result<(), String> {
    let mut words = head.split_whitespace();
    let name = words.next().ok_or("a transaction needs a name")?;
    let (session, name) = match name.split_once('/') {
        Some((session, name)) => (builder.session(session), name),
        None => (builder.new_session(), name),
    };
    builder.begin(session);
    builder.name_transaction(name);
    let mut status = Status::Committed;
    for word in words {
        match word {
            "aborted" => status = Status::Aborted,
            "unknown" => status = Status::Unknown,
            "committed" => {}
            _ => {
                let times = word.strip_prefix('@').and_then(|times| times.split_once('-'));
                let (begin, end) = times.ok_or_else(|| {
                    format!("`{word}` is none of aborted, unknown, committed, @BEGIN-END")
                })?;
                let time = |text: &str| text.parse().map_err(|_| format!("`{text}` is not a time"));
                builder.times(time(begin)?, time(end)?);
            }
        }
    }
    let mut rest = body;
    while !rest.is_empty() {
        let (kind, after) = rest.split_once('(').ok_or("an operation needs a parenthesis")?;
        let (inside, after) = after.split_once(')').ok_or("a parenthesis is not closed")?;
        read_operation(builder, kind.trim(), inside.trim())?;
        rest = after.trim();
    }
    builder.end(status);
    Ok(())
}

fn read_operation(builder: &mut Builder, kind: &str, inside: &str) -> Result<(), String> {
    if kind == "p" {
        let (predicate, found) = inside.split_once(':').ok_or("a predicate read needs a colon")?;
        let found = read_versions(builder, found)?;
        builder.predicate_read(predicate.trim(), &found);
        return Ok(());
    }
    let (item, value) = inside.split_once(',').ok_or("an operation needs an item and a value")?;
    let (item, value) = (builder.item(item.trim()), value.trim());
    match kind {
        "w" => builder.write(item, read_value(value)?),
        "a" => builder.append(item, read_value(value)?),
        "u" => builder.locking_read(item, read_value(value)?),
        "r" => match value.strip_prefix('[') {
            Some(list) => {
                let list = list.strip_suffix(']').ok_or("a bracket is not closed")?;
                let elements: Vec<Value> =
                    list.split_whitespace().map(read_value).collect::<Result<_, _>>()?;
                builder.read_list(item, &elements);
            }
            None => builder.read(item, read_value(value)?),
        },
        _ => return Err(format!("`{kind}` is none of r, w, a, u, p")),
    }
    Ok(())
}

fn read_versions(builder: &mut Builder, text: &str) -> Result<Vec<Version>, String> {
    text.split_whitespace()
        .map(|version| {
            let (item, value) =
                version.split_once('=').ok_or_else(|| format!("`{version}` is not a version"))?;
            Ok((builder.item(item), read_value(value)?))
        })
        .collect()
}

fn read_value(text: &str) -> Result<Value, String> {
    if text == "nil" {
        return Ok(Value::INITIAL);
    }
    text.parse().map(Value).map_err(|_| format!("`{text}` is neither a number nor nil"))
}
