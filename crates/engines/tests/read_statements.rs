//! Parsing keeps the meaning of a statement: engines run randomly changed
//! statements and what the parser renders of them, with the same result.

use isolde_engines::engine::{ANSWER_LIMIT, Outcome, Session, run_to_end};
use isolde_engines::runner::Runner;
use isolde_generator::{Generator, Options, Plan};
use isolde_model::value::{Row, compare_rows};
use isolde_model::{Case, Level};
use isolde_sql::Dialect;
use isolde_sql::Kind;
use isolde_sql::lexer;
use isolde_sql::read;
use isolde_testing::cases::{Dice, repeats};
use isolde_testing::servers::{FETCHED, open};

/// Pieces that replace a piece of a statement, or are inserted before it.
const PIECES: [&str; 62] = [
    "->",
    "->>",
    "@>",
    "~",
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

fn damaged(text: &str, dice: &mut Dice) -> String {
    let mut text = text.to_string();
    for _ in 0..1 + dice.below(3) {
        let places: Vec<(usize, usize)> = lexer::pieces(&text)
            .iter()
            .map(|piece| (piece.as_ptr() as usize - text.as_ptr() as usize, piece.len()))
            .collect();
        if places.is_empty() {
            break;
        }
        let opened = places[dice.below(places.len() as u64) as usize].0;
        if let Some(closed) = closing(&text, opened, &places) {
            text.replace_range(closed..closed + 1, " ");
            text.replace_range(opened..opened + 1, " ");
            continue;
        }
        let (at, len) = places[dice.below(places.len() as u64) as usize];
        let (from, other) = places[dice.below(places.len() as u64) as usize];
        let new = match dice.below(3) {
            0 => PIECES[dice.below(PIECES.len() as u64) as usize].to_string(),
            1 => text[from..from + other].to_string(),
            _ => String::new(),
        };
        let replaced = if dice.below(2) == 0 { len } else { 0 };
        text.replace_range(at..at + replaced, &format!(" {new} "));
    }
    text
}

/// Where the parenthesis at `opened` closes, if there is one. Without the pair,
/// operator precedence decides the grouping.
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

/// The result of a statement and the rows of all tables after it, sorted.
#[derive(Debug, PartialEq)]
struct Done {
    outcome: Outcome,
    tables: Vec<Vec<Row>>,
}

fn sorted(mut rows: Vec<Row>) -> Vec<Row> {
    rows.sort_by(|a, b| compare_rows(a, b));
    rows
}

fn run(session: &mut dyn Session, sql: &str) -> Outcome {
    match run_to_end(session, sql, ANSWER_LIMIT).unwrap_or_else(|e| panic!("{e}: {sql}")) {
        Outcome::Rows { columns, rows } => Outcome::Rows { columns, rows: sorted(rows) },
        other => other,
    }
}

/// Runs a statement in a transaction that is rolled back. `None` when it failed.
fn done(session: &mut dyn Session, sql: &str, case: &Case) -> Option<Done> {
    run(session, "begin");
    let outcome = run(session, sql);
    let failed = matches!(outcome, Outcome::Error(_));
    let mut tables = Vec::new();
    for query in case.finals.iter().filter(|_| !failed) {
        match run(session, &query.sql) {
            Outcome::Rows { rows, .. } => tables.push(rows),
            other => panic!("{other:?}: {}", query.sql),
        }
    }
    run(session, "rollback");
    // A column without a name is named by the text of its expression.
    let outcome = match outcome {
        Outcome::Rows { rows, .. } => Outcome::Rows { columns: Vec::new(), rows },
        other => other,
    };
    (!failed).then_some(Done { outcome, tables })
}

fn make_tables(runner: &mut Runner, plan: &Plan) {
    runner.engine.clear().unwrap();
    for sql in plan.create_sql().iter().chain(&plan.reset_sql()) {
        match runner.engine.control(sql).unwrap() {
            Outcome::Error(error) => panic!("{error}: {sql}"),
            Outcome::Rows { .. } | Outcome::Affected(_) | Outcome::Done => {}
        }
    }
}

fn compare(target: &str) {
    let Some(mut runner) = open(target) else { return };
    let info = runner.engine.info().clone();
    let dialect = Dialect::for_engine(&info.engine, &info.version);
    let options = Options::new(vec![Level::ReadCommitted], Level::ReadCommitted);
    let mut dice = Dice(7);
    let (mut ran, mut compared) = (0, 0);
    for seed in 0..repeats("ISOLDE_READ_PLANS", 12) as u64 {
        let plan = Generator::new(dialect, seed, options.clone()).plan(seed);
        let case = plan.to_case();
        make_tables(&mut runner, &plan);
        let mut session = runner.engine.open().unwrap();
        let plain = plan.statements().filter(|s| s.needs().is_none() && s.provides().is_none());
        for statement in plain {
            let text = statement.render(&dialect);
            for _ in 0..40 {
                let text = damaged(&text, &mut dice);
                if !matches!(lexer::kind(&text), Kind::Select | Kind::Write) {
                    continue;
                }
                let Some(expected) = done(&mut *session, &text, &case) else { continue };
                ran += 1;
                let Some(read) = read::statement(&text, dialect.family) else { continue };
                compared += 1;
                let written = read.render(&dialect);
                let found = done(&mut *session, &written, &case);
                assert_eq!(found, Some(expected), "{target}: {text}\nis written as\n{written}");
            }
        }
    }
    println!("{target}: {ran} ran, {compared} were parsed");
    assert!(compared * 2 > ran && compared > 50, "{target}: {compared} of {ran}");
}

#[test]
fn a_parsed_statement_behaves_as_its_text() {
    for target in ["sqlite", "postgres", "mariadb"].into_iter().chain(FETCHED) {
        compare(target);
    }
}
