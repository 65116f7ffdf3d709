//! Inserts into gaps that other transactions have scanned, or wait to scan.
//!
//! InnoDB locks the gaps that a locking read at REPEATABLE READ has scanned.
//! PostgreSQL and TiDB do not, so an insert of a new key never waits there.

use crate::truth::{Model, Tally, Truth, WITH_ROOM, check};
use isolde_model::Level;
use isolde_model::case::Case;
use isolde_testing::cases::{self, Dice, interleaved, repeats};
use isolde_testing::servers::open;
use std::collections::{BTreeMap, BTreeSet};

const SCAN: &str = "select id from t where id > 10 and id < 20 for update";
const BORDER: &str = "update t set pad = concat(pad, repeat('x', 300)) where id = 20";

fn random_case(seed: u64) -> Case {
    let mut dice = Dice(seed);
    let scripts = (0..6)
        .map(|session| {
            let insert = format!("insert into t values ({}, 0, '')", 11 + session);
            let mut script = vec!["begin".to_string()];
            match (session, dice.below(5)) {
                // A transaction that also inserts into the gap that it has scanned.
                (0, 0..3) => script.extend([SCAN.to_string(), insert]),
                (1, 0..3) => script.extend([BORDER.to_string(), BORDER.to_string()]),
                (_, 0..2) => script.push(SCAN.into()),
                (_, _) => script.push(insert),
            }
            script.push(if dice.below(4) == 0 { "rollback" } else { "commit" }.to_string());
            script
        })
        .collect();
    interleaved(&mut dice, &WITH_ROOM, scripts)
}

#[derive(Default)]
struct Gap {
    locked_by_scans: bool,
    scanned: BTreeSet<String>,
    inserted: BTreeSet<String>,
    border: Option<String>,
}

impl Model for Gap {
    fn truth(&self, session: &str, sql: &str, waiting: &BTreeMap<String, String>) -> Truth {
        let others = |set: &BTreeSet<String>| set.iter().any(|s| s != session);
        let waits =
            |wanted: &str| waiting.iter().any(|(s, sql)| s != session && sql.starts_with(wanted));
        match sql {
            SCAN if self.locked_by_scans && others(&self.inserted) => Truth::Waits,
            BORDER if self.border.as_ref().is_some_and(|s| s != session) => Truth::Waits,
            SCAN | BORDER => Truth::Either,
            sql if sql.starts_with("insert") => match self.locked_by_scans {
                true if others(&self.scanned) => Truth::Waits,
                true if waits("select") => Truth::Either,
                _ => Truth::Free,
            },
            _ => Truth::Free,
        }
    }

    fn finished(&mut self, session: &str, sql: &str, stays: bool) {
        match sql {
            _ if !stays => {}
            SCAN => drop(self.scanned.insert(session.into())),
            BORDER => self.border = Some(session.into()),
            sql if sql.starts_with("insert") => drop(self.inserted.insert(session.into())),
            _ => {}
        }
    }

    fn ended(&mut self, session: &str, _: bool) {
        self.scanned.remove(session);
        self.inserted.remove(session);
        self.border.take_if(|s| s == session);
    }
}

pub fn stress(target: &str) {
    let Some(mut runner) = open(target) else { return };
    let innodb = target.starts_with("mysql") || target.starts_with("mariadb");
    let level = if innodb { Level::RepeatableRead } else { Level::ReadCommitted };
    let mut tally = Tally::default();
    for seed in 0..repeats("ISOLDE_STRESS", 60) as u64 {
        let history = cases::run(&mut runner, &random_case(seed), Some(level));
        let mut gap = Gap { locked_by_scans: innodb, ..Gap::default() };
        check(&history, &mut gap, &mut tally);
    }
    let Tally { waits, free, passed_on } = tally;
    println!("{target}: {waits} waited, {free} did not, {passed_on} went on waiting, 0 mistakes");
    assert!(free > 60 && (!innodb || waits > 60 && passed_on > 30), "{target}: {waits} {free}");
}
