//! Faults in the effect of a write.

use super::link::Link;
use super::moment::{Moment, Next, answer, run};
use super::rewrite::{Change, plain_insert, replace, row_count, upsert};
use super::{condition, needs};
use crate::engine::{Outcome, Reply, TxStatus};
use isolde_model::Value;
use isolde_model::history::{ErrorClass, ErrorEffect};
use isolde_sql::render::Renderer;
use isolde_sql::{Dialect, Family, Insert};
use std::sync::Arc;

const MARK: &str = "savepoint isolde_fault_write";
const BACK: &str = "rollback to savepoint isolde_fault_write";

/// Sets a savepoint before the client's statement, then continues. If that
/// fails, the statement runs unchanged.
fn marked(own: &Link, then: impl FnOnce() -> Next + Send + 'static) -> Next {
    run(own, MARK, move |reply| match reply.error() {
        Some(_) => Next::Plain,
        None => then(),
    })
}

pub(super) fn statement_dropped(m: &Moment<'_>) -> Option<Next> {
    if !m.strikes_write() {
        return None;
    }
    let (own, sql, watch) = (Arc::clone(m.own), m.sql.to_string(), m.watch.clone());
    Some(marked(m.own, move || {
        let link = Arc::clone(&own);
        run(&own, sql, move |first| match first.error().is_some() || !watch.waited() {
            true => Next::Innocent(first),
            false => run(&link, BACK, move |undone| answer(first, undone)),
        })
    }))
}

pub(super) fn update_twice(m: &Moment<'_>) -> Option<Next> {
    if !m.first_word_is("update") || !m.strikes_write() {
        return None;
    }
    let (own, sql, poisons) =
        (Arc::clone(m.own), m.sql.to_string(), needs::poisons(m.world.family));
    let (newer, watch) = (condition::rows_have_changed(m), m.watch.clone());
    Some(run(m.own, m.sql, move |first| {
        if first.error().is_some() || !(newer || watch.waited()) {
            return Next::Innocent(first);
        }
        let again = second_time(&own, sql, first.clone());
        // Where an error aborts the transaction, the second execution needs a
        // savepoint of its own.
        match poisons {
            true => run(&own, MARK, move |marked| match marked.error() {
                Some(_) => answer(first, marked),
                None => again,
            }),
            false => again,
        }
    }))
}

fn second_time(own: &Link, sql: String, first: Reply) -> Next {
    let link = Arc::clone(own);
    run(own, sql, move |second| match second.tx {
        Some(TxStatus::Failed) => run(&link, BACK, move |undone| answer(first, undone)),
        _ => answer(first, second),
    })
}

pub(super) fn row_skipped(m: &Moment<'_>) -> Option<Next> {
    let family = m.world.family;
    if !m.strikes_write() {
        return None;
    }
    let change = Change::of(m.statement?)?;
    let dialect = m.world.dialect;
    match family {
        Family::Sqlite | Family::Duckdb => {
            Some(skipping(m.own, change.without_first("rowid").render(&dialect)))
        }
        Family::Postgres => {
            let (own, sql) = (Arc::clone(m.own), change.without_first("ctid").render(&dialect));
            Some(marked(m.own, move || skipping(&own, sql)))
        }
        Family::Mysql => {
            // The count must see the rows that the change will see, not a snapshot.
            let count = change.locked_count().render(&dialect);
            let own = Arc::clone(m.own);
            Some(run(m.own, count, move |counted| match counted_rows(&counted) {
                Some(n) if n > 0 => run(&own, change.limited(n - 1).render(&dialect), or_plain),
                Some(_) => Next::Plain,
                None => or_plain(counted),
            }))
        }
        Family::Other => None,
    }
}

fn skipping(own: &Link, sql: String) -> Next {
    let link = Arc::clone(own);
    run(own, sql, move |reply| match (reply.error().map(|e| e.class), reply.tx) {
        // For example a view, or a table without row ids.
        (Some(ErrorClass::Rejected), Some(TxStatus::Failed)) => run(&link, BACK, |_| Next::Plain),
        _ => or_plain(reply),
    })
}

fn or_plain(reply: Reply) -> Next {
    match reply.error().map(|e| e.class) {
        Some(ErrorClass::Rejected) => Next::Plain,
        Some(_) => Next::Innocent(reply),
        None => Next::Answer(reply),
    }
}

fn counted_rows(reply: &Reply) -> Option<i64> {
    match &reply.outcome {
        Outcome::Rows { rows, .. } => match rows.first()?.first()? {
            Value::Int(n) => Some(*n),
            _ => None,
        },
        _ => None,
    }
}

pub(super) fn error_swallowed(m: &Moment<'_>) -> Option<Next> {
    if !m.strikes_write() {
        return None;
    }
    let rows = m.statement.and_then(plain_insert).map_or(1, row_count);
    let (own, sql) = (Arc::clone(m.own), m.sql.to_string());
    let swallow = move || {
        let link = Arc::clone(&own);
        run(&own, sql, move |first| {
            let done = Outcome::Affected(rows);
            match constraint(&first) {
                Some(ErrorEffect::Poisoned) => {
                    run(&link, BACK, move |undone| answer(Reply::new(done, None), undone))
                }
                Some(ErrorEffect::Statement) => Next::Answer(Reply { outcome: done, ..first }),
                _ => Next::Innocent(first),
            }
        })
    };
    Some(if needs::poisons(m.world.family) { marked(m.own, swallow) } else { swallow() })
}

/// The effect of a violated constraint on the transaction.
fn constraint(reply: &Reply) -> Option<ErrorEffect> {
    reply.error().filter(|e| e.class == ErrorClass::Constraint).map(|e| e.effect)
}

pub(super) fn duplicate_key_accepted(m: &Moment<'_>) -> Option<Next> {
    let family = m.world.family;
    if !m.first_word_is("insert") || !m.strikes_write() {
        return None;
    }
    let insert = plain_insert(m.statement?)?;
    let done = Outcome::Affected(row_count(insert));
    let own = Arc::clone(m.own);
    let replace = match family {
        Family::Sqlite | Family::Mysql => replace(insert, &m.world.dialect),
        Family::Postgres => {
            let sql = m.sql.to_string();
            let upsert = Upsert { insert: insert.clone(), dialect: m.world.dialect };
            return Some(marked(m.own, move || {
                let link = Arc::clone(&own);
                run(&own, sql, move |first| match is_duplicate(&first) {
                    true => run(&link.clone(), BACK, move |_| upsert.run(&link, first, done)),
                    false => Next::Innocent(first),
                })
            }));
        }
        Family::Duckdb | Family::Other => return None,
    };
    Some(run(m.own, m.sql, move |first| match is_duplicate(&first) {
        true => run(&own, replace, move |second| accepted(first, second, done)),
        false => Next::Innocent(first),
    }))
}

fn is_duplicate(reply: &Reply) -> bool {
    const CODES: [&str; 4] =
        ["23505", "1062", "SQLITE_CONSTRAINT_UNIQUE", "SQLITE_CONSTRAINT_PRIMARYKEY"];
    let unique = |m: &str| m.contains("UNIQUE constraint failed");
    reply.error().is_some_and(|e| CODES.contains(&e.code.as_str()) || unique(&e.message))
}

fn accepted(first: Reply, second: Reply, done: Outcome) -> Next {
    match second.error() {
        Some(_) => answer(first, second),
        // The rows of RETURNING are the answer already.
        None if matches!(second.outcome, Outcome::Rows { .. }) => Next::Answer(second),
        None => Next::Answer(Reply { outcome: done, ..second }),
    }
}

/// PostgreSQL has no REPLACE: every column is set to the rejected value.
struct Upsert {
    insert: Insert,
    dialect: Dialect,
}

impl Upsert {
    fn run(self, own: &Link, first: Reply, done: Outcome) -> Next {
        let Some(constraint) = named_constraint(&first) else { return Next::Plain };
        if !self.insert.columns.is_empty() {
            let sql = upsert(&self.insert, &constraint, &self.insert.columns, &self.dialect);
            return run(own, sql, move |second| accepted(first, second, done));
        }
        let table = Renderer::new(&self.dialect).name(&self.insert.table).replace('\'', "''");
        let names = format!(
            "select attname::text from pg_attribute where attrelid = '{table}'::regclass \
             and attnum > 0 and not attisdropped and attgenerated = '' order by attnum"
        );
        let link = Arc::clone(own);
        run(own, names, move |found| {
            let Outcome::Rows { rows, .. } = &found.outcome else { return answer(first, found) };
            let text = |row: &Vec<Value>| match row.first() {
                Some(Value::Text(name)) => Some(name.clone()),
                _ => None,
            };
            let columns: Vec<String> = rows.iter().filter_map(text).collect();
            let sql = upsert(&self.insert, &constraint, &columns, &self.dialect);
            run(&link, sql, move |second| accepted(first, second, done))
        })
    }
}

/// `… violates unique constraint "t_pkey"`, quotes included.
fn named_constraint(reply: &Reply) -> Option<String> {
    let message = &reply.error()?.message;
    let from = message.find('"')?;
    let to = message.rfind('"').filter(|to| *to > from)?;
    Some(message[from..=to].into())
}
