//! Faults in what a write does.

use super::moment::{Link, Moment, Next, answer, run};
use super::text::{Change, Insert};
use super::{condition, needs};
use crate::engine::{Outcome, Reply, TxStatus};
use isolde_core::Value;
use isolde_core::history::{ErrorClass, ErrorEffect};
use isolde_core::sql::Family;
use std::sync::Arc;

const MARK: &str = "savepoint isolde_fault_write";
const BACK: &str = "rollback to savepoint isolde_fault_write";

/// Marks the place before the client's statement, then goes on. Without the
/// mark the statement runs as it is.
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
        // Where an error costs more than its statement, the second time must
        // be undone alone.
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
    let change = Change::parse(m.sql, family == Family::Mysql)?;
    let by_place = |place: &str| {
        let first = change.select(place, &format!(" order by {place} limit 1"));
        change.and(&format!("{place} <> ({first})"))
    };
    match family {
        Family::Sqlite | Family::Duckdb => Some(skipping(m.own, by_place("rowid"))),
        Family::Postgres => {
            let (own, sql) = (Arc::clone(m.own), by_place("ctid"));
            Some(marked(m.own, move || skipping(&own, sql)))
        }
        Family::Mysql => {
            // The count has to see what the change will see, not a snapshot.
            let count = change.select("count(*)", " for update");
            let (own, sql) = (Arc::clone(m.own), m.sql.to_string());
            let limited = move |rows| Change::parse(&sql, true).map(|change| change.limited(rows));
            Some(run(m.own, count, move |counted| match counted_rows(&counted) {
                Some(n) if n > 0 => match limited(n - 1) {
                    Some(fewer) => run(&own, fewer, or_plain),
                    None => Next::Plain,
                },
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
        // A view, say, or a table without row ids.
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
    let rows = Insert::parse(m.sql, m.world.family == Family::Mysql).map_or(1, |i| i.rows);
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

/// What a violated constraint did to the transaction.
fn constraint(reply: &Reply) -> Option<ErrorEffect> {
    reply.error().filter(|e| e.class == ErrorClass::Constraint).map(|e| e.effect)
}

pub(super) fn duplicate_key_accepted(m: &Moment<'_>) -> Option<Next> {
    let family = m.world.family;
    if !m.first_word_is("insert") || !m.strikes_write() {
        return None;
    }
    let insert = Insert::parse(m.sql, family == Family::Mysql)?;
    let done = Outcome::Affected(insert.rows);
    let own = Arc::clone(m.own);
    let replace = match family {
        Family::Sqlite => format!("insert or replace into {} {}", insert.rest, insert.returning),
        Family::Mysql => format!("replace into {} {}", insert.rest, insert.returning),
        Family::Postgres => {
            let (sql, upsert) = (m.sql.to_string(), Upsert::of(&insert));
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
    let told = |m: &str| m.contains("UNIQUE constraint failed");
    reply.error().is_some_and(|e| CODES.contains(&e.code.as_str()) || told(&e.message))
}

fn accepted(first: Reply, second: Reply, done: Outcome) -> Next {
    match second.error() {
        Some(_) => answer(first, second),
        // What RETURNING gives is an answer already.
        None if matches!(second.outcome, Outcome::Rows { .. }) => Next::Answer(second),
        None => Next::Answer(Reply { outcome: done, ..second }),
    }
}

/// PostgreSQL has no REPLACE: every column is set to what was refused.
struct Upsert {
    table: String,
    columns: Option<Vec<String>>,
    rest: String,
    returning: String,
}

impl Upsert {
    fn of(insert: &Insert<'_>) -> Upsert {
        let texts = |names: &Vec<&str>| names.iter().map(|n| n.to_string()).collect();
        Upsert {
            table: insert.table.into(),
            columns: insert.columns.as_ref().map(texts),
            rest: insert.rest.into(),
            returning: insert.returning.into(),
        }
    }

    fn run(mut self, own: &Link, first: Reply, done: Outcome) -> Next {
        let Some(constraint) = named_constraint(&first) else { return Next::Plain };
        if let Some(columns) = self.columns.take() {
            let sql = self.sql(&constraint, &columns);
            return run(own, sql, move |second| accepted(first, second, done));
        }
        let names = format!(
            "select quote_ident(attname)::text from pg_attribute where attrelid = '{}'::regclass \
             and attnum > 0 and not attisdropped and attgenerated = '' order by attnum",
            self.table.replace('\'', "''")
        );
        let link = Arc::clone(own);
        run(own, names, move |found| {
            let Outcome::Rows { rows, .. } = &found.outcome else { return answer(first, found) };
            let text = |row: &Vec<Value>| match row.first() {
                Some(Value::Text(name)) => Some(name.clone()),
                _ => None,
            };
            let columns: Vec<String> = rows.iter().filter_map(text).collect();
            let sql = self.sql(&constraint, &columns);
            run(&link, sql, move |second| accepted(first, second, done))
        })
    }

    fn sql(&self, constraint: &str, columns: &[String]) -> String {
        let set: Vec<String> = columns.iter().map(|c| format!("{c} = excluded.{c}")).collect();
        format!(
            "insert into {} on conflict on constraint {constraint} do update set {} {}",
            self.rest,
            set.join(", "),
            self.returning
        )
    }
}

/// `… violates unique constraint "t_pkey"`, quotes included.
fn named_constraint(reply: &Reply) -> Option<String> {
    let message = &reply.error()?.message;
    let from = message.find('"')?;
    let to = message.rfind('"').filter(|to| *to > from)?;
    Some(message[from..=to].into())
}
