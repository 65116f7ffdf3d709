//! Inserts between rows that others have looked at, or wait to look at.
//!
//! InnoDB keeps what REPEATABLE READ has scanned free of new rows; PostgreSQL
//! and TiDB do not, and there an insert of a fresh key never waits.

use crate::support::{self, Dice, interleaved, open, repeats};
use crate::truth::{Model, Tally, Truth, WITH_ROOM, check};
use isolde_core::Level;
use isolde_core::case::Case;
use std::collections::{BTreeMap, BTreeSet};

const SCAN: &str = "select id from t where id > 10 and id < 20 for update";
const BORDER: &str = "update t set pad = concat(pad, repeat('x', 300)) where id = 20";

fn random_case(seed: u64) -> Case {
    let mut dice = Dice(seed);
    let scripts = (0..6)
        .map(|who| {
            let insert = format!("insert into t values ({}, 0, '')", 11 + who);
            let mut script = vec!["begin".to_string()];
            match (who, dice.below(5)) {
                // Somebody who also inserts where it has looked.
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
        let history = support::run(&mut runner, &random_case(seed), Some(level));
        let mut gap = Gap { locked_by_scans: innodb, ..Gap::default() };
        check(&history, &mut gap, &mut tally);
    }
    let Tally { waits, free, passed_on } = tally;
    println!("{target}: {waits} waited, {free} did not, {passed_on} went on waiting, 0 mistakes");
    assert!(free > 60 && (!innodb || waits > 60 && passed_on > 30), "{target}: {waits} {free}");
}
