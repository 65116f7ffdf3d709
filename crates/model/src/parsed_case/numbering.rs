//! The numbers that an engine gives to rows: sequences, serial and identity columns of
//! PostgreSQL, AUTO_INCREMENT of InnoDB.
//!
//! Numbers are not transactional. A statement draws its numbers when it starts, and
//! none is given back by a rollback or an error, so the order in which the statements
//! were sent decides them. [`Numbering::resolve`] writes them into the statements as
//! literals, and the reference model does not need to know where they came from.
//!
//! - PostgreSQL, `sql-createsequence` (Notes): "nextval … is never rolled back"; a value
//!   that is given explicitly does not advance the sequence.
//! - InnoDB, "AUTO_INCREMENT Handling in InnoDB": an INSERT with a known number of rows
//!   draws that many consecutive numbers; an explicit value above the counter advances it.

use super::Operation;
use super::utility::{TableLocks, Utility};
use crate::history::{ErrorClass, EventKind, History};
use isolde_sql::{
    Expr, Family, Function, Insert, InsertSource, Literal, Numbered, Schema, SelectItem, Stmt,
    Table, Write, lexer, read,
};
use std::collections::BTreeMap;

/// The counters of a schema as the setup leaves them.
#[derive(Clone, Debug, Default)]
pub struct Numbering {
    counters: BTreeMap<String, Counter>,
}

#[derive(Clone, Copy, Debug)]
struct Counter {
    /// None from the moment at which it cannot be predicted any more.
    next: Option<i64>,
    increment: i64,
}

impl Counter {
    fn draw(&mut self) -> Option<i64> {
        let number = self.next?;
        self.next = number.checked_add(self.increment);
        Some(number)
    }
}

/// What an INSERT did to a counter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Draws {
    rows: usize,
    /// The first number that the statement was given.
    first: Option<i64>,
    /// Whether some values are explicit and count, which an error may undo or not.
    explicit: bool,
}

/// The last number of each session.
#[derive(Default)]
struct LastNumbers<'h> {
    /// By counter; the empty name stands for the last one of all.
    drawn: BTreeMap<(&'h str, String), Option<i64>>,
}

/// The sequence of a numbered column.
fn counter_name(table: &Table) -> Option<(String, &str)> {
    let column = table.columns.iter().find(|column| column.numbered.is_some())?;
    Some(match column.numbered? {
        Numbered::AutoIncrement => (table.name.clone(), &column.name),
        _ => (sequence_of(&table.name, &column.name), &column.name),
    })
}

fn sequence_of(table: &str, column: &str) -> String {
    format!("{table}_{column}_seq")
}

/// The name, the start and the increment of `create sequence`; none if it has other options.
fn sequence(sql: &str) -> Option<(String, Counter)> {
    let words: Vec<String> =
        lexer::outer_words(sql).iter().map(|(_, word)| word.to_ascii_lowercase()).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let rest = words.strip_prefix(&["create", "sequence"][..])?;
    let rest = rest.strip_prefix(&["if", "not", "exists"][..]).unwrap_or(rest);
    let (name, mut rest) = rest.split_first()?;
    let mut counter = Counter { next: Some(1), increment: 1 };
    while let Some((option, after)) = rest.split_first() {
        let after = after.strip_prefix(&["with"][..]).unwrap_or(after);
        let after = after.strip_prefix(&["by"][..]).unwrap_or(after);
        let (number, after) = after.split_first()?;
        let number: i64 = number.parse().ok()?;
        match *option {
            "start" => counter.next = Some(number),
            "increment" if number > 0 => counter.increment = number,
            _ => return None,
        }
        rest = after;
    }
    Some((name.to_string(), counter))
}

/// Whether a setup statement makes a sequence that is modelled.
pub fn is_sequence(sql: &str, family: Family) -> bool {
    family == Family::Postgres && sequence(sql).is_some()
}

/// Whether the numbers of an engine are modelled.
fn is_modelled(engine: &str) -> bool {
    matches!(engine, "postgres" | "mysql" | "mariadb")
}

const FUNCTIONS: [&str; 4] = ["nextval", "currval", "lastval", "last_insert_id"];

/// Whether a statement calls one of the functions that draw a number or repeat one.
pub fn is_number_function(name: &str, engine: &str) -> bool {
    let of_engine = match engine {
        "postgres" => &FUNCTIONS[..3],
        "mysql" | "mariadb" => &FUNCTIONS[3..],
        _ => &[],
    };
    of_engine.contains(&name)
}

/// Whether a statement needs numbers from the engine; an error if they are not modelled.
pub fn needs_numbers(statement: &Stmt, schema: &Schema, engine: &str) -> Result<bool, String> {
    let mut calls = false;
    statement
        .visit(&mut |e| calls |= number_call(e).is_some_and(|c| is_number_function(c, engine)));
    let unknown =
        |column: &str| Err(format!("the number that the engine gives {column} is not modelled"));
    let needs = match statement.unprepared() {
        Stmt::Write(Write::Insert(insert)) => {
            let table = schema.table(&insert.table);
            let column =
                table.and_then(|t| t.columns.iter().find(|column| column.numbered.is_some()));
            match (table, column) {
                (Some(table), Some(column)) => {
                    let given = gives_all(insert, table, &column.name);
                    let always = column.numbered == Some(Numbered::IdentityAlways);
                    let null = is_sequence_column(column.numbered)
                        && gives_null(insert, place_of(insert, table, &column.name));
                    if given && always || null || !given && !is_modelled(engine) {
                        return unknown(&column.name);
                    }
                    !given
                }
                _ => false,
            }
        }
        Stmt::Write(Write::Update(update)) => {
            let table = schema.table(&update.table);
            let is_numbered = |name: &str| {
                let column = table.and_then(|table| table.column(name));
                column.is_some_and(|column| column.numbered.is_some())
            };
            let mut set = update.sets.iter();
            if let Some((column, _)) =
                set.find(|(column, value)| *value == Expr::Default && is_numbered(column))
            {
                return unknown(column);
            }
            false
        }
        _ => false,
    };
    match statement {
        Stmt::Prepare { .. } if needs || calls => {
            Err("numbers that a prepared statement draws are not modelled".into())
        }
        _ => Ok(needs || calls),
    }
}

fn number_call(e: &Expr) -> Option<&str> {
    match e {
        Expr::Call(Function::Named(name), _) => Some(name),
        _ => None,
    }
}

/// Whether every row of an INSERT has a value for the numbered column.
fn gives_all(insert: &Insert, table: &Table, column: &str) -> bool {
    let place = place_of(insert, table, column);
    match (&insert.source, place) {
        (InsertSource::Values(rows), Some(place)) => {
            rows.iter().all(|row| is_given(row.get(place), table))
        }
        _ => false,
    }
}

/// Whether a row of an INSERT has NULL in this place.
fn gives_null(insert: &Insert, place: Option<usize>) -> bool {
    let null = |row: &Vec<Expr>| {
        place.and_then(|place| row.get(place)) == Some(&Expr::Literal(Literal::Null))
    };
    matches!(&insert.source, InsertSource::Values(rows) if rows.iter().any(null))
}

fn place_of(insert: &Insert, table: &Table, column: &str) -> Option<usize> {
    match insert.columns.is_empty() {
        true => table.writable().position(|c| c.name == column),
        false => insert.columns.iter().position(|name| name == column),
    }
}

/// Whether a cell is a value for the numbered column. NULL asks for a number, except
/// on PostgreSQL; 0 does in InnoDB.
fn is_given(cell: Option<&Expr>, table: &Table) -> bool {
    let numbered = table.columns.iter().find_map(|column| column.numbered);
    match cell {
        None | Some(Expr::Default) => false,
        Some(Expr::Literal(Literal::Null)) => is_sequence_column(numbered),
        Some(Expr::Literal(Literal::Int(0))) => numbered != Some(Numbered::AutoIncrement),
        Some(_) => true,
    }
}

fn is_sequence_column(numbered: Option<Numbered>) -> bool {
    use Numbered::{IdentityAlways, IdentityByDefault, Serial};
    matches!(numbered, Some(Serial | IdentityAlways | IdentityByDefault))
}

impl Numbering {
    /// The counters after a setup.
    pub fn after_setup(setup: &[&str], schema: &Schema, family: Family) -> Numbering {
        let mut numbering = Numbering::default();
        for table in &schema.tables {
            if let Some((name, _)) = counter_name(table) {
                let start = |option: &String| {
                    option.replace(' ', "").strip_prefix("auto_increment=")?.parse().ok()
                };
                let next = table.options.iter().find_map(start).unwrap_or(1);
                let counter = Counter { next: Some(next), increment: 1 };
                numbering.counters.insert(name, counter);
            }
        }
        for sql in setup {
            if let Some((name, counter)) = sequence(sql) {
                numbering.counters.insert(name, counter);
                continue;
            }
            match read::statement(sql, family) {
                Some(mut statement) => {
                    let mut last = LastNumbers::default();
                    let _ = numbering.write_numbers(&mut statement, schema, "", &mut last);
                }
                None if mentions_counters(sql) => numbering.forget_all(),
                None => {}
            }
        }
        numbering
    }

    /// The operations of a run with the numbers that its statements were given.
    pub fn resolve(
        &self,
        operations: &[Operation],
        schema: &Schema,
        history: &History,
    ) -> Vec<Operation> {
        let mut numbering = self.clone();
        let mut last = LastNumbers::default();
        let mut resolved = operations.to_vec();
        for event in &history.events {
            let (EventKind::Sent { .. }, Some(step)) = (&event.what, event.step) else { continue };
            let statement = match &resolved[step] {
                Operation::Unnumbered(statement) | Operation::Statement(statement) => statement,
                Operation::Opaque(_) | Operation::Utility(_)
                    if mentions_counters(&history.steps[step].sql) =>
                {
                    numbering.forget_all();
                    continue;
                }
                _ => continue,
            };
            let error = history.outcome(step).reply.and_then(EventKind::error).map(|e| e.class);
            if error == Some(ErrorClass::Poisoned) {
                continue;
            }
            let mut statement = statement.clone();
            let drawn = numbering.write_numbers(&mut statement, schema, &event.session, &mut last);
            let drawn = match drawn {
                Ok(Some(drawn)) if drawn.rows > 1 && overlaps(history, step, &resolved) => {
                    Err("numbers drawn while the statement was blocked are not modelled".into())
                }
                other => other,
            };
            if let Some(class) = error {
                let certain = matches!(
                    class,
                    ErrorClass::Constraint
                        | ErrorClass::Deadlock
                        | ErrorClass::Serialization
                        | ErrorClass::LockTimeout
                );
                let some = drawn.as_ref().is_ok_and(Option::is_some);
                let in_part = drawn
                    .as_ref()
                    .is_ok_and(|drawn| drawn.is_some_and(|drawn| drawn.explicit || drawn.rows > 1));
                if some && (!certain || in_part) {
                    numbering.forget(&statement, schema);
                }
                last.forget(&event.session);
            }
            let numbered = matches!(resolved[step], Operation::Unnumbered(_));
            match drawn {
                Ok(_) if numbered => resolved[step] = Operation::Statement(statement),
                Ok(_) => {}
                Err(why) => {
                    numbering.forget(&statement, schema);
                    let reads_rows =
                        !matches!(&*statement, Stmt::Select(_)) || !statement.tables().is_empty();
                    match numbered {
                        true if reads_rows => resolved[step] = Operation::Opaque(why),
                        // It reads no row, whatever numbers it returns.
                        true => {
                            let locks = TableLocks::None;
                            let utility = Utility { takes_snapshot: true, locks };
                            resolved[step] = Operation::Utility(utility);
                        }
                        false => {}
                    }
                }
            }
        }
        resolved
    }

    /// Replaces what the engine numbers by the numbers that are next.
    fn write_numbers<'h>(
        &mut self,
        statement: &mut Stmt,
        schema: &Schema,
        session: &'h str,
        last: &mut LastNumbers<'h>,
    ) -> Result<Option<Draws>, String> {
        self.write_calls(statement, session, last)?;
        let Stmt::Write(Write::Insert(insert)) = statement else { return Ok(None) };
        let Some(table) = schema.table(&insert.table) else { return Ok(None) };
        let Some((name, column)) = counter_name(table) else { return Ok(None) };
        let is_auto =
            table.column(column).and_then(|c| c.numbered) == Some(Numbered::AutoIncrement);
        let place = place_of(insert, table, column);
        let rows = match &mut insert.source {
            InsertSource::Values(rows) => rows,
            InsertSource::Defaults => {
                insert.source = InsertSource::Values(vec![Vec::new()]);
                match &mut insert.source {
                    InsertSource::Values(rows) => rows,
                    _ => return Ok(None),
                }
            }
            InsertSource::Select(_) => {
                if let Some(counter) = self.counters.get_mut(&name) {
                    counter.next = None;
                }
                return Err(format!(
                    "the numbers that INSERT … SELECT gives {column} are not modelled"
                ));
            }
        };
        let count = rows.len();
        let given =
            rows.iter().filter(|row| is_given(place.and_then(|p| row.get(p)), table)).count();
        let mixed = given > 0 && given < count;
        let unknown = || format!("the number that the engine gives {column} is not known");
        let counter = self.counters.get_mut(&name).ok_or_else(unknown)?;
        if is_auto && mixed {
            counter.next = None;
            return Err(unknown());
        }
        let mut drawn = Draws { rows: count, first: None, explicit: false };
        let mut push = false;
        for row in rows.iter_mut() {
            let cell = place.and_then(|place| row.get(place));
            if is_given(cell, table) {
                if is_auto {
                    drawn.explicit = true;
                    match (cell, counter.next) {
                        (Some(Expr::Literal(Literal::Int(value))), Some(next)) => {
                            counter.next = Some(next.max(value.saturating_add(1)));
                        }
                        _ => counter.next = None,
                    }
                }
                continue;
            }
            let number = counter.draw().ok_or_else(unknown)?;
            drawn.first = drawn.first.or(Some(number));
            let literal = Expr::Literal(Literal::Int(number));
            match place.filter(|place| *place < row.len()) {
                Some(place) => row[place] = literal,
                None => {
                    push = true;
                    row.push(literal);
                }
            }
        }
        if push {
            if insert.columns.is_empty() {
                let short = rows.first().map_or(0, |row| row.len() - 1);
                let names = table.writable().map(|c| c.name.clone());
                insert.columns = names.take(short).collect();
            }
            insert.columns.push(column.to_string());
        }
        if let Some(first) = drawn.first {
            let plain = insert.conflict == isolde_sql::Conflict::Fail;
            let value = match is_auto {
                true => Some(first).filter(|_| plain),
                false => Some(first + (count as i64 - 1)),
            };
            last.set(session, &name, value);
        }
        Ok(Some(drawn))
    }

    /// Replaces the calls of functions that draw a number or repeat the last one.
    fn write_calls<'h>(
        &mut self,
        statement: &mut Stmt,
        session: &'h str,
        last: &mut LastNumbers<'h>,
    ) -> Result<(), String> {
        let once = match statement {
            Stmt::Select(select) => {
                select.from.is_none()
                    && select.items.iter().all(|i| matches!(i, SelectItem::Expression { .. }))
            }
            Stmt::Write(Write::Insert(insert)) => matches!(insert.source, InsertSource::Values(_)),
            _ => false,
        };
        let mut failed = None;
        statement.visit_mut(&mut |e| {
            let Expr::Call(Function::Named(name), arguments) = e else { return };
            let number = match (name.as_str(), sequence_argument(arguments)) {
                ("nextval", Some(sequence)) if once => {
                    let number = self.counters.get_mut(&sequence).and_then(Counter::draw);
                    last.set(session, &sequence, number);
                    number
                }
                ("currval", Some(sequence)) => last.of(session, &sequence),
                ("lastval", None) if arguments.is_empty() => last.of(session, ""),
                ("last_insert_id", None) if arguments.is_empty() => {
                    last.of_all(session).unwrap_or(Some(0))
                }
                (name, _) => {
                    if FUNCTIONS.contains(&name) {
                        failed = Some(format!("this use of {name} is not modelled"));
                    }
                    return;
                }
            };
            match number {
                Some(number) => *e = Expr::Literal(Literal::Int(number)),
                None => failed = Some(format!("the number that {name} returns is not known")),
            }
        });
        failed.map_or(Ok(()), Err)
    }

    fn forget_all(&mut self) {
        self.counters.values_mut().for_each(|counter| counter.next = None);
    }

    /// Gives up the counters that a statement may have advanced.
    fn forget(&mut self, statement: &Stmt, schema: &Schema) {
        let table = statement.written_table().and_then(|name| schema.table(name));
        match table.and_then(counter_name) {
            Some((name, _)) => {
                if let Some(counter) = self.counters.get_mut(&name) {
                    counter.next = None;
                }
            }
            None => self.forget_all(),
        }
    }
}

/// Whether the text of a statement that is not parsed may move a counter.
fn mentions_counters(sql: &str) -> bool {
    let sql = sql.to_ascii_lowercase();
    if sql.trim_start().starts_with("create table") {
        return false;
    }
    ["insert", "replace", "nextval", "setval", "sequence", "auto_increment", "restart", "copy"]
        .iter()
        .any(|word| sql.contains(word))
}

/// Whether a statement was blocked while other statements were sent that may draw numbers.
fn overlaps(history: &History, step: usize, operations: &[Operation]) -> bool {
    if !history.outcome(step).waited {
        return false;
    }
    let of_step = |e: &crate::history::Event| e.step == Some(step);
    let sent = history.events.iter().position(of_step).unwrap_or(0);
    let replied = history.events.iter().rposition(of_step).unwrap_or(history.events.len());
    history.events[sent..replied].iter().any(|event| match (&event.what, event.step) {
        (EventKind::Sent { .. }, Some(other)) => {
            other != step
                && matches!(operations[other], Operation::Unnumbered(_) | Operation::Opaque(_))
        }
        _ => false,
    })
}

/// The sequence that `nextval` and `currval` name.
fn sequence_argument(arguments: &[Expr]) -> Option<String> {
    match arguments {
        [Expr::Literal(Literal::Text(name))] => Some(name.to_ascii_lowercase()),
        [Expr::Call(Function::Named(name), of)] if name == "pg_get_serial_sequence" => {
            match &of[..] {
                [Expr::Literal(Literal::Text(table)), Expr::Literal(Literal::Text(column))] => {
                    Some(sequence_of(&table.to_ascii_lowercase(), &column.to_ascii_lowercase()))
                }
                _ => None,
            }
        }
        _ => None,
    }
}

impl<'h> LastNumbers<'h> {
    fn set(&mut self, session: &'h str, counter: &str, number: Option<i64>) {
        self.drawn.insert((session, counter.to_string()), number);
        self.drawn.insert((session, String::new()), number);
    }

    fn of(&self, session: &'h str, counter: &str) -> Option<i64> {
        self.drawn.get(&(session, counter.to_string())).copied().flatten()
    }

    /// The last number of a session; none if it has drawn none.
    fn of_all(&self, session: &'h str) -> Option<Option<i64>> {
        self.drawn.get(&(session, String::new())).copied()
    }

    fn forget(&mut self, session: &'h str) {
        for ((of, _), number) in &mut self.drawn {
            if *of == session {
                *number = None;
            }
        }
    }
}
