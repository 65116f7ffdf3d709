//! What is read means what was written: SQLite runs damaged statements, and
//! what the reader made of them, and must do the same both times.

use isolde_core::generate::{Dialect, Generator, Options, Plan};
use isolde_core::sql::read;
use isolde_core::sql::words::{self, Kind};
use isolde_core::{Case, Level};
use rusqlite::Connection;
use rusqlite::types::Value;

/// Enough chance for a test, the same every time.
struct Chance(u64);

impl Chance {
    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % limit.max(1) as u64) as usize
    }
}

/// What is put in the place of a piece, or before it.
const PIECES: [&str; 58] = [
    "not",
    "and",
    "or",
    "is",
    "null",
    "is not",
    "in",
    "like",
    "between",
    "=",
    "<",
    ">",
    "<=",
    "!=",
    "<>",
    "==",
    "+",
    "-",
    "*",
    "/",
    "%",
    "||",
    "(",
    ")",
    ",",
    "distinct",
    "all",
    "as",
    "x",
    "desc",
    "asc",
    "limit 2",
    "offset 1",
    "order by 1",
    "union",
    "except",
    "union all",
    "left",
    "cross",
    "join",
    "natural",
    "using",
    "case",
    "when",
    "then",
    "else",
    "end",
    "'a'",
    "1",
    "-1",
    "1.5",
    "1e1",
    "default",
    "returning *",
    "*",
    "true",
    "cast",
    "\"a1\"",
];

fn damaged(text: &str, chance: &mut Chance) -> String {
    let mut text = text.to_string();
    for _ in 0..1 + chance.below(3) {
        let places: Vec<(usize, usize)> = words::pieces(&text)
            .iter()
            .map(|piece| (piece.as_ptr() as usize - text.as_ptr() as usize, piece.len()))
            .collect();
        if places.is_empty() {
            break;
        }
        let opened = places[chance.below(places.len())].0;
        if let Some(closed) = closing(&text, opened, &places) {
            text.replace_range(closed..closed + 1, " ");
            text.replace_range(opened..opened + 1, " ");
            continue;
        }
        let (at, len) = places[chance.below(places.len())];
        let (from, other) = places[chance.below(places.len())];
        let new = match chance.below(3) {
            0 => PIECES[chance.below(PIECES.len())].to_string(),
            1 => text[from..from + other].to_string(),
            _ => String::new(),
        };
        let replaced = if chance.below(2) == 0 { len } else { 0 };
        text.replace_range(at..at + replaced, &format!(" {new} "));
    }
    text
}

/// Where the parenthesis at a place closes, if there is one: without the pair
/// it is the signs that say what belongs together.
fn closing(text: &str, opened: usize, places: &[(usize, usize)]) -> Option<usize> {
    let mut depth = 0;
    for (at, len) in places.iter().filter(|(at, _)| *at >= opened) {
        match &text[*at..at + len] {
            "(" => depth += 1,
            ")" => depth -= 1,
            _ if depth == 0 => return None,
            _ => {}
        }
        if depth == 0 {
            return Some(*at).filter(|at| *at > opened);
        }
    }
    None
}

type Rows = Vec<Vec<Value>>;

fn rows(database: &Connection, sql: &str) -> rusqlite::Result<Rows> {
    let mut statement = database.prepare(sql)?;
    let count = statement.column_count();
    let row = |row: &rusqlite::Row| (0..count).map(|c| row.get(c)).collect();
    statement.query_map([], row)?.collect()
}

/// What it returned and what the tables hold then; none when it failed. All is
/// as before afterwards.
fn outcome(database: &Connection, sql: &str, finals: &Case) -> Option<(Rows, Vec<Rows>)> {
    database.execute_batch("savepoint before").unwrap();
    let returned = rows(database, sql);
    let state = finals.finals.iter().map(|f| rows(database, &f.sql).unwrap()).collect();
    database.execute_batch("rollback to before; release before").unwrap();
    Some((returned.ok()?, state))
}

fn database_of(plan: &Plan) -> Connection {
    let database = Connection::open_in_memory().unwrap();
    database.execute_batch("pragma foreign_keys = on").unwrap();
    for sql in plan.create_sql().iter().chain(&plan.reset_sql()) {
        database.execute_batch(sql).unwrap();
    }
    database
}

#[test]
fn what_is_read_does_what_the_text_does() {
    let dialect = Dialect::for_engine("sqlite", "3.54.1");
    let options = Options::new(vec![Level::Serializable], Level::Serializable);
    let mut chance = Chance(0x9e37_79b9_7f4a_7c15);
    let (mut ran, mut compared) = (0, 0);
    for seed in 0..100 {
        let plan = Generator::new(dialect, seed, options.clone()).plan(seed);
        let (database, case) = (database_of(&plan), plan.to_case());
        for statement in plan.statements().filter(|s| s.needs().is_none() && s.provides().is_none())
        {
            let text = statement.render(&dialect);
            for _ in 0..60 {
                let text = damaged(&text, &mut chance);
                if !matches!(words::kind(&text), Kind::Select | Kind::Write) {
                    continue;
                }
                let Some(expected) = outcome(&database, &text, &case) else { continue };
                ran += 1;
                let Some(read) = read::statement(&text, dialect.family) else { continue };
                compared += 1;
                let written = read.render(&dialect);
                let found = outcome(&database, &written, &case);
                assert_eq!(found, Some(expected), "{text}\nis written as\n{written}");
            }
        }
    }
    println!("{ran} ran, {compared} were read");
    assert!(compared > 2000, "{compared}");
}
