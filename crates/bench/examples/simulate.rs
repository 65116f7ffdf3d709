//! Writes a history of a simulated database, for trying and measuring checkers:
//!
//! ```text
//! simulate out=FILE.jsonl txns=1000000 keys=10000 sessions=50 ops=8 lists=yes skewed=yes \
//!     made=snapshot plant=long-fork times=no seed=1
//! ```
//!
//! The extension of the file selects the format: `edn`, `json` and `jsonl` are Elle's, `isolde` is
//! our own. With `times=no` the history has no times, and its transactions are in the order of
//! their sessions.

use isolde_bench::simulate::{Isolation, Plan, Planted, simulate};
use isolde_checker::{Builder, History, OpKind, Value};
use isolde_histories::{write_elle_edn, write_elle_json, write_own};
use std::collections::HashMap;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::str::FromStr;

/// The arguments of the command line.
struct Arguments(HashMap<String, String>);

impl Arguments {
    fn number<T: FromStr>(&self, name: &str, default: T) -> T {
        self.0.get(name).and_then(|text| text.parse().ok()).unwrap_or(default)
    }

    fn is(&self, name: &str, word: &str) -> bool {
        self.0.get(name).is_some_and(|text| text == word)
    }
}

fn main() -> io::Result<()> {
    let arguments = std::env::args().skip(1);
    let pairs = arguments.filter_map(|a| a.split_once('=').map(|(n, v)| (n.into(), v.into())));
    let arguments = Arguments(pairs.collect());
    let usual = Plan::default();
    let plan = Plan {
        seed: arguments.number("seed", usual.seed),
        transactions: arguments.number("txns", usual.transactions),
        sessions: arguments.number("sessions", usual.sessions),
        items: arguments.number("keys", usual.items),
        operations: arguments.number("ops", usual.operations),
        lists: arguments.is("lists", "yes"),
        skewed: arguments.is("skewed", "yes"),
        isolation: match arguments.is("made", "snapshot") {
            true => Isolation::Snapshot,
            false => Isolation::Serializable,
        },
        planted: Planted::ALL.into_iter().find(|planted| arguments.is("plant", name(*planted))),
    };
    let mut history = simulate(&plan);
    if arguments.is("times", "no") {
        history = by_session(&history);
    }
    let file = arguments.0.get("out").map_or("history.jsonl", String::as_str);
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

/// The same transactions, session by session and without their times.
fn by_session(history: &History) -> History {
    let mut txns: Vec<_> = history.transactions().collect();
    txns.sort_by_key(|txn| history.session_of(*txn).0);
    let mut builder = Builder::new();
    for txn in txns {
        let session = builder.numbered_session(history.session_of(txn).0.into());
        builder.begin(session);
        for (position, op) in history.ops(txn).iter().enumerate() {
            let Some(item) = op.item() else { continue };
            let item = builder.numbered_item(item.0.into());
            let value = op.value().unwrap_or(Value::INITIAL);
            match op.kind() {
                OpKind::Write => builder.write(item, value),
                OpKind::Append => builder.append(item, value),
                OpKind::ReadList => {
                    builder.read_list(item, &history.whole_list(txn, position).unwrap_or_default());
                }
                _ => builder.read(item, value),
            }
        }
        builder.end(history.status(txn));
    }
    builder.finish()
}
