//! The SQL parser on generated statements and on the library of cases.

#![allow(clippy::disallowed_methods, clippy::disallowed_macros)]

use isolde_generator::{Generator, Options, Plan};
use isolde_model::case::Step;
use isolde_model::{Case, Level, case};
use isolde_sql::Dialect;
use isolde_sql::dialect::Family;
use isolde_sql::render::Renderer;
use isolde_sql::{Ddl, Schema, Stmt, read};
use std::path::Path;

const ENGINES: [(&str, &str); 12] = [
    ("sqlite", "3.54.1"),
    ("postgres", "15.18"),
    ("mariadb", "10.11.19"),
    ("mysql", "5.7.19"),
    ("mysql", "8.0.36"),
    ("mysql", "9.7.1"),
    ("tidb", "8.5"),
    ("dolt", "2.2.0"),
    ("turso+mvcc", "0.8.3"),
    ("duckdb", "2.0.0"),
    ("cockroach", "24.1"),
    ("an unknown engine", "1"),
];

fn plans(engine: (&str, &str), count: u64) -> Vec<Plan> {
    let mut options =
        Options::new(vec![Level::ReadCommitted, Level::Serializable], Level::ReadCommitted);
    options.ddl = true;
    options.prepared = true;
    let dialect = Dialect::for_engine(engine.0, engine.1);
    (0..count)
        .map(|n| Generator::new(dialect, n / 4, options.clone()).plan(n % 4 * 30 + n / 4 % 30))
        .collect()
}

/// Every kind of statement in every dialect. The parser knows all that the
/// generator writes, so there is no list of exceptions.
#[test]
fn every_generated_statement_survives_parsing_and_rendering() {
    let mut selects = 0;
    for engine in ENGINES {
        for plan in plans(engine, 240) {
            for (_, item) in plan.steps() {
                let made = item.statement();
                let text = made.render(&plan.dialect);
                let read = read::statement(&text, plan.dialect.family);
                let read = read.unwrap_or_else(|| panic!("{}: {text}", engine.0));
                assert_eq!(read.render(&plan.dialect), text, "{}", engine.0);
                // In most dialects DROP INDEX does not name the table.
                if !matches!(made.unprepared(), Stmt::Ddl(Ddl::DropIndex { .. })) {
                    assert_eq!(read.tables(), made.tables(), "{text}");
                }
                assert_eq!(read.written_table(), made.written_table(), "{text}");
                assert_eq!(read.needs(), made.needs(), "{text}");
                selects += u32::from(matches!(read, Stmt::Select(_)));
            }
        }
    }
    assert!(selects > 1000, "{selects}");
}

/// The schema without the value pools of its columns, which SQL cannot express.
fn without_pools(schema: &Schema) -> Schema {
    let mut schema = schema.clone();
    for table in &mut schema.tables {
        table.columns.iter_mut().for_each(|c| c.pool.clear());
    }
    schema
}

#[test]
fn every_generated_schema_survives_rendering_and_parsing() {
    for engine in ENGINES {
        for plan in plans(engine, 120) {
            let sql = plan.create_sql();
            let read = read::schema(sql.iter().map(String::as_str), plan.dialect.family);
            assert_eq!(read.unread, [], "{sql:#?}");
            assert_eq!(read.schema, without_pools(&plan.schema), "{sql:#?}");
        }
    }
}

fn library() -> Vec<Case> {
    fn gather(dir: &Path, cases: &mut Vec<Case>) {
        for path in std::fs::read_dir(dir).unwrap().flatten().map(|e| e.path()) {
            if path.is_dir() {
                gather(&path, cases);
            } else if let Ok(text) = std::fs::read_to_string(&path) {
                cases.extend(case::parse(&text));
            }
        }
    }
    let mut cases = Vec::new();
    gather(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../cli/cases"), &mut cases);
    assert!(cases.len() > 100, "the library has moved");
    cases
}

/// Asserts a share in thousandths. It may only grow; raise the figure when it
/// does.
fn at_least(what: &str, read: usize, all: usize, least: usize) {
    let share = read * 1000 / all;
    println!("{what}: {read} of {all} read");
    assert!(share >= least, "{what}: only {share} of 1000, and it was {least}");
    assert!(share < least + 8, "{what}: {share} of 1000, raise the figure {least}");
}

fn dialect_of(family: Family) -> Dialect {
    let engine = match family {
        Family::Sqlite => "sqlite",
        Family::Postgres => "postgres",
        Family::Mysql => "mysql",
        Family::Duckdb => "duckdb",
        Family::Other => "another",
    };
    Dialect::for_engine(engine, "9")
}

#[test]
fn statements_of_the_library_survive_rendering_and_parsing() {
    let mut compared = 0;
    for case in library() {
        let dialect = dialect_of(case.family());
        for read in case.steps.iter().filter_map(Step::statement) {
            let written = read.render(&dialect);
            let again = read::statement(&written, case.family());
            assert_eq!(again.as_ref(), Some(read), "{}: {written}", case.id);
            compared += 1;
        }
        for setup in &case.setups {
            let family = setup.family(case.family());
            let dialect = dialect_of(family);
            let texts = setup.statements.iter().map(|s| s.sql.as_str());
            let found = read::schema(texts, family).schema;
            let renderer = Renderer::new(&dialect);
            let written: Vec<String> =
                found.tables.iter().flat_map(|t| renderer.create_table(t)).collect();
            let again = read::schema(written.iter().map(String::as_str), family);
            assert_eq!(again.unread, [], "{}: {written:#?}", case.id);
            assert_eq!(again.schema.tables, found.tables, "{}: {written:#?}", case.id);
        }
    }
    assert!(compared > 500, "only {compared} statements were compared");
}

/// `--nocapture` shows the statements that are not parsed.
#[test]
fn most_of_the_library_is_parsed() {
    let (mut steps, mut read_steps) = (0, 0);
    let (mut tables, mut read_tables) = (0, 0);
    for case in library() {
        for step in &case.steps {
            steps += 1;
            match read::statement(&step.sql, case.family()) {
                Some(_) => read_steps += 1,
                None => println!("{}: {}", case.id, step.sql.replace('\n', " ")),
            }
        }
        for setup in &case.setups {
            let texts = setup.statements.iter().map(|s| s.sql.as_str());
            let found = read::schema(texts, setup.family(case.family()));
            read_tables += found.schema.tables.len();
            let unread = found.unread.iter().filter(|u| u.table.is_some()).count();
            tables += found.schema.tables.len() + unread;
            for unread in found.unread {
                println!("{}: {:?}: {}", case.id, unread.table, unread.reason);
            }
        }
    }
    at_least("steps", read_steps, steps, 906);
    at_least("tables", read_tables, tables, 842);
}
