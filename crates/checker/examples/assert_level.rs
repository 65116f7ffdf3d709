//! As the tests of a database would: run transactions, write down what each read and wrote,
//! and assert a level. Here the database is a map behind a mutex, with a switch that lets
//! each transaction work on a copy and write its changes back, as a careless one might.
//!
//! `cargo run -p isolde-checker --example assert_level`

use isolde_checker::{Builder, Level, Status, Value, Verdict, check};
use std::collections::HashMap;
use std::sync::Mutex;
use std::thread;

type Database = Mutex<HashMap<u64, u64>>;
/// A read or a write: its key, what was seen or written.
enum Did {
    Read(u64, Option<u64>),
    Wrote(u64, u64),
}

/// Adds something to two keys, after having read them.
fn transfer(database: &Database, careless: bool, unique: u64) -> Vec<Did> {
    let (a, b) = (unique % 3, (unique / 3) % 3);
    let mut shared = database.lock().expect("nobody panics");
    let mut copy = shared.clone();
    if careless {
        // Others may work on a copy of their own meanwhile.
        drop(shared);
        thread::yield_now();
        shared = database.lock().expect("nobody panics");
    }
    let did = vec![Did::Read(a, copy.get(&a).copied()), Did::Wrote(b, unique)];
    copy.insert(b, unique);
    shared.insert(b, copy[&b]);
    did
}

fn main() {
    for careless in [false, true] {
        let database = Database::default();
        let logs: Vec<Vec<Vec<Did>>> = thread::scope(|scope| {
            let work = |session: u64| {
                let database = &database;
                move || {
                    (0..500).map(|n| transfer(database, careless, 1 + 4 * n + session)).collect()
                }
            };
            let threads: Vec<_> = (0..4).map(|session| scope.spawn(work(session))).collect();
            threads.into_iter().map(|thread| thread.join().expect("nobody panics")).collect()
        });

        // The ten lines: a session a thread, a transaction a log entry.
        let mut history = Builder::new();
        for (session, log) in (0..).zip(&logs) {
            let session = history.numbered_session(session);
            for transaction in log {
                history.begin(session);
                for did in transaction {
                    match did {
                        Did::Read(key, seen) => {
                            let item = history.numbered_item(*key);
                            history.read(item, seen.map_or(Value::INITIAL, Value));
                        }
                        Did::Wrote(key, value) => {
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
        println!("careless: {careless}; serializable: {}", report.verdict(Level::Serializable));
        for anomaly in report.anomalies.iter().take(1) {
            println!("{}:\n  {}", anomaly.name(), anomaly.sentences(&history).join("\n  "));
        }
        if !careless {
            assert_eq!(report.verdict(Level::StrongSessionSerializable), Verdict::Holds);
        }
    }
}
