//! How the tests of a database assert an isolation level: run transactions, record what each read
//! and wrote, and check the history. Here the database is a map behind a mutex, with a switch that
//! makes each transaction work on a copy and write its changes back, as a faulty one might.
//!
//! `cargo run -p isolde-checker --example assert_level`

#![allow(clippy::disallowed_methods, clippy::disallowed_macros)]

use isolde_checker::{Builder, Level, Status, Value, Verdict, check};
use std::collections::HashMap;
use std::sync::Mutex;
use std::thread;

type Database = Mutex<HashMap<u64, u64>>;
/// A recorded operation: a read with its result, or a write.
enum Operation {
    Read(u64, Option<u64>),
    Wrote(u64, u64),
}

/// Reads one key and writes another.
fn transfer(database: &Database, faulty: bool, unique: u64) -> Vec<Operation> {
    let (a, b) = (unique % 3, (unique / 3) % 3);
    let mut shared = database.lock().expect("no thread panics");
    let mut copy = shared.clone();
    if faulty {
        // Other threads may work on a copy of their own meanwhile.
        drop(shared);
        thread::yield_now();
        shared = database.lock().expect("no thread panics");
    }
    let operation = vec![Operation::Read(a, copy.get(&a).copied()), Operation::Wrote(b, unique)];
    copy.insert(b, unique);
    shared.insert(b, copy[&b]);
    operation
}

fn main() {
    for faulty in [false, true] {
        let database = Database::default();
        let logs: Vec<Vec<Vec<Operation>>> = thread::scope(|scope| {
            let work = |session: u64| {
                let database = &database;
                move || (0..500).map(|n| transfer(database, faulty, 1 + 4 * n + session)).collect()
            };
            let threads: Vec<_> = (0..4).map(|session| scope.spawn(work(session))).collect();
            threads.into_iter().map(|thread| thread.join().expect("no thread panics")).collect()
        });

        // One session per thread, one transaction per log entry.
        let mut history = Builder::new();
        for (session, log) in (0..).zip(&logs) {
            let session = history.numbered_session(session);
            for transaction in log {
                history.begin(session);
                for operation in transaction {
                    match operation {
                        Operation::Read(key, value) => {
                            let item = history.numbered_item(*key);
                            history.read(item, value.map_or(Value::INITIAL, Value));
                        }
                        Operation::Wrote(key, value) => {
                            let item = history.numbered_item(*key);
                            history.write(item, Value(*value));
                        }
                    }
                }
                history.end(Status::Committed);
            }
        }
        let history = history.finish();
        let report = check(&history);
        println!("faulty: {faulty}; serializable: {}", report.verdict(Level::Serializable));
        for anomaly in report.anomalies.iter().take(1) {
            println!("{}:\n  {}", anomaly.name(), anomaly.sentences(&history).join("\n  "));
        }
        if !faulty {
            assert_eq!(report.verdict(Level::StrongSessionSerializable), Verdict::Holds);
        }
    }
}
