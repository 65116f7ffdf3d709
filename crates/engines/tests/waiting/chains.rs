//! Five sessions, most of them on one row: lock waits that pass from holder to
//! holder, statements that resume only to wait for a second holder, rows that
//! grow or change their key while other statements wait for them.
//!
//! All but the first session lock one row and never another, so there are no
//! deadlocks. The first locks several, in the order of their keys.

use crate::truth::{Model, Tally, Truth, WITH_ROOM, check};
use isolde_model::Level;
use isolde_model::case::Case;
use isolde_testing::cases::{self, Dice, interleaved, repeats};
use isolde_testing::servers::open;
use std::collections::{BTreeMap, BTreeSet};

const WIDE: &str = "select id from t where id in (10, 20, 30) order by id for update";
const MOVE: &str = "update t set id = id + 1 where id = 10";
const INSERT: &str = "insert into t values (11, 0, '')";

fn random_case(target: &str, seed: u64) -> Case {
    let mut dice = Dice(seed);
    let mut scripts: Vec<Vec<String>> = Vec::new();
    let mut whole = |dice: &mut Dice, statements: &[&str]| {
        let mut script = vec!["begin".to_string()];
        script.extend(statements.iter().map(ToString::to_string));
        script.push(if dice.below(4) == 0 { "rollback" } else { "commit" }.to_string());
        scripts.push(script);
    };
    match seed % 3 {
        0 => whole(&mut dice, &[WIDE]),
        1 => {
            whole(&mut dice, &[MOVE]);
            whole(&mut dice, &[INSERT]);
        }
        _ => {}
    }
    while scripts.len() < 5 {
        scripts.push(narrow(target, &mut dice));
    }
    interleaved(&mut dice, &WITH_ROOM, scripts)
}

/// A transaction, or an autocommit statement, on one row.
fn narrow(target: &str, dice: &mut Dice) -> Vec<String> {
    let row = [10, 10, 10, 20, 30][dice.below(5) as usize];
    let bump = format!("update t set v = v + 1 where id = {row}");
    let grow = format!("update t set pad = concat(pad, repeat('x', 300)) where id = {row}");
    let look = format!("select v from t where id = {row} for update");
    if dice.below(4) == 0 {
        return vec![bump];
    }
    if dice.below(4) == 0 && !target.starts_with("tidb") {
        // A transaction that only reads: old versions of InnoDB hide its waits.
        let form = if target.starts_with("postgres") { "for share" } else { "lock in share mode" };
        let peek = format!("select v from t where id = {row} {form}");
        return ["begin", &peek, "commit"].map(String::from).to_vec();
    }
    let mut script = vec!["begin".to_string()];
    for _ in 0..1 + dice.below(3) {
        script.push([&bump, &grow, &look][dice.below(3) as usize].clone());
    }
    script.push(if dice.below(4) == 0 { "rollback" } else { "commit" }.to_string());
    script
}

/// Whether a statement locks its row against writers only.
fn shares(sql: &str) -> bool {
    sql.ends_with(" for share") || sql.ends_with(" share mode")
}

/// The keys that a statement locks, in order.
fn keys(sql: &str) -> Vec<u64> {
    match sql {
        WIDE => vec![10, 20, 30],
        MOVE => vec![10, 11],
        INSERT => vec![11],
        _ => {
            let after = sql.split_once("id = ").map_or("", |(_, after)| after);
            let digits: String = after.chars().take_while(char::is_ascii_digit).collect();
            digits.parse().into_iter().collect()
        }
    }
}

#[derive(Default)]
struct Locks {
    holder: BTreeMap<u64, String>,
    sharers: BTreeSet<(u64, String)>,
    /// Keys of rows that were removed or refused: engines differ in the locks
    /// that remain on them.
    unclear: BTreeSet<u64>,
    /// TiDB may or may not keep the lock on the first row of a statement that
    /// waits for its second. It retries an autocommit statement from time to
    /// time, so the statement resumes some time after the lock is free.
    tidb: bool,
    open: BTreeSet<String>,
    moved: bool,
}

impl Locks {
    fn held(&self, session: &str, key: u64, waiting: &BTreeMap<String, String>) -> Truth {
        let taken_on_the_way = |other: &String, sql: &String| {
            let mine = |k: &u64| self.holder.get(k).is_none_or(|h| h == other);
            other != session && keys(sql).into_iter().take_while(mine).any(|k| k == key)
        };
        let on_the_way = waiting.iter().any(|(s, sql)| taken_on_the_way(s, sql));
        match self.holder.get(&key).is_some_and(|h| h != session) {
            true => Truth::Waits,
            false if on_the_way && self.tidb => Truth::Either,
            false if on_the_way => Truth::Waits,
            false => Truth::Free,
        }
    }
}

impl Model for Locks {
    fn truth(&self, session: &str, sql: &str, waiting: &BTreeMap<String, String>) -> Truth {
        let keys = keys(sql);
        if keys.iter().any(|k| self.unclear.contains(k)) {
            return Truth::Either;
        }
        let mut others = waiting.iter().filter(|(s, _)| *s != session);
        let queued = others.any(|(_, sql)| self::keys(sql).iter().any(|k| keys.contains(k)));
        let shared = |(key, by): &(u64, String)| keys.contains(key) && by != session;
        if !shares(sql) && self.sharers.iter().any(shared) {
            return Truth::Waits;
        }
        let held: Vec<Truth> = keys.iter().map(|k| self.held(session, *k, waiting)).collect();
        let alone = !self.open.contains(session);
        if held.contains(&Truth::Waits) {
            Truth::Waits
        } else if held.contains(&Truth::Either) || (self.tidb && alone) || (shares(sql) && queued) {
            Truth::Either
        } else {
            Truth::Free
        }
    }

    fn finished(&mut self, session: &str, sql: &str, stays: bool) {
        if sql == "begin" {
            self.open.insert(session.into());
        }
        for key in keys(sql) {
            if stays && shares(sql) {
                self.sharers.insert((key, session.into()));
            } else if stays {
                self.holder.insert(key, session.into());
            } else if matches!(sql, MOVE | INSERT) {
                self.unclear.insert(key);
            }
        }
        self.moved |= stays && sql == MOVE;
    }

    fn ended(&mut self, session: &str, committed: bool) {
        // Only the first session moves a row.
        if self.moved && session == "s1" && committed {
            self.unclear.insert(10);
        }
        self.open.remove(session);
        self.sharers.retain(|(_, by)| by != session);
        self.holder.retain(|_, h| h != session);
    }
}

pub fn stress(target: &str) {
    let Some(mut runner) = open(target) else { return };
    let mut tally = Tally::default();
    for seed in 0..repeats("ISOLDE_STRESS", 60) as u64 {
        let history =
            cases::run(&mut runner, &random_case(target, seed), Some(Level::ReadCommitted));
        let mut locks = Locks { tidb: target.starts_with("tidb"), ..Locks::default() };
        check(&history, &mut locks, &mut tally);
    }
    let Tally { waits, free, passed_on } = tally;
    println!("{target}: {waits} waited, {free} did not, {passed_on} went on waiting, 0 mistakes");
    assert!(waits > 60 && free > 60 && passed_on > 30, "{target}: {waits} {free} {passed_on}");
}
