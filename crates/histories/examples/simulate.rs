//! Writes a history of a simulated database, for trying and measuring checkers:
//!
//! ```text
//! simulate out=FILE.jsonl txns=1000000 keys=10000 sessions=50 ops=8 lists=yes skewed=yes \
//!     made=snapshot plant=long-fork times=no seed=1
//! ```
//!
//! The ending of the file says the format: `edn` and `json` are Elle's, `jsonl` is Elle's too
//! and `isolde` our own. With `times=no` ours has no times, and its transactions stand
//! session after session.

use isolde_checker::{Builder, History, OpKind, Value};
use isolde_histories::simulate::{Isolation, Plan, Planted, simulate};
use isolde_histories::{write_elle_edn, write_elle_json, write_own};
use std::collections::HashMap;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::str::FromStr;

/// What was asked for on the command line.
struct Asked(HashMap<String, String>);

impl Asked {
    fn number<T: FromStr>(&self, name: &str, default: T) -> T {
        self.0.get(name).and_then(|text| text.parse().ok()).unwrap_or(default)
    }

    fn says(&self, name: &str, word: &str) -> bool {
        self.0.get(name).is_some_and(|text| text == word)
    }
}

fn main() -> io::Result<()> {
    let arguments = std::env::args().skip(1);
    let pairs = arguments.filter_map(|a| a.split_once('=').map(|(n, v)| (n.into(), v.into())));
    let asked = Asked(pairs.collect());
    let usual = Plan::default();
    let plan = Plan {
        seed: asked.number("seed", usual.seed),
        transactions: asked.number("txns", usual.transactions),
        sessions: asked.number("sessions", usual.sessions),
        items: asked.number("keys", usual.items),
        operations: asked.number("ops", usual.operations),
        lists: asked.says("lists", "yes"),
        skewed: asked.says("skewed", "yes"),
        isolation: match asked.says("made", "snapshot") {
            true => Isolation::Snapshot,
            false => Isolation::Serializable,
        },
        planted: Planted::ALL.into_iter().find(|planted| asked.says("plant", name(*planted))),
    };
    let mut history = simulate(&plan);
    if asked.says("times", "no") {
        history = by_session(&history);
    }
    let file = asked.0.get("out").map_or("history.jsonl", String::as_str);
    let mut out = BufWriter::new(File::create(file)?);
    match file.rsplit('.').next() {
        Some("edn") => write_elle_edn(&history, &mut out)?,
        Some("isolde") => write_own(&history, &mut out)?,
        _ => write_elle_json(&history, &mut out)?,
    }
    out.flush()
}

fn name(planted: Planted) -> &'static str {
    match planted {
        Planted::AbortedRead => "aborted-read",
        Planted::IntermediateRead => "intermediate-read",
        Planted::LostUpdate => "lost-update",
        Planted::ReadSkew => "read-skew",
        Planted::WriteSkew => "write-skew",
        Planted::LongFork => "long-fork",
    }
}

/// The same transactions, session after session and without their times.
fn by_session(history: &History) -> History {
    let mut txns: Vec<_> = history.transactions().collect();
    txns.sort_by_key(|txn| history.session_of(*txn).0);
    let mut builder = Builder::new();
    for txn in txns {
        let session = builder.numbered_session(history.session_of(txn).0.into());
        builder.begin(session);
        for (place, op) in history.ops(txn).iter().enumerate() {
            let Some(item) = op.item() else { continue };
            let item = builder.numbered_item(item.0.into());
            let value = op.value().unwrap_or(Value::INITIAL);
            match op.kind() {
                OpKind::Write => builder.write(item, value),
                OpKind::Append => builder.append(item, value),
                OpKind::ReadList => {
                    builder.read_list(item, &history.whole_list(txn, place).unwrap_or_default());
                }
                _ => builder.read(item, value),
            }
        }
        builder.end(history.status(txn));
    }
    builder.finish()
}
