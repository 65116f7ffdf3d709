//! How deep generated statements are, beside those of another generator.
//!
//! Usage: `shape [FILE [CASES]]`. The file has one statement per line, in the SQL of MySQL's family.

use isolde_generator::{Generator, Options};
use isolde_sql::dialect::Family;
use isolde_sql::{Dialect, Expr, Function, Level, Select, Source, Stmt, Write, read};
use std::collections::BTreeSet;

const ENGINES: [(&str, &str); 4] =
    [("sqlite", "3.54.1"), ("postgres", "18.4"), ("mariadb", "10.11.19"), ("mysql", "9.7.1")];

const SEED: u64 = 1;

/// What a set of statements contains.
#[derive(Default)]
struct Shape {
    statements: usize,
    characters: usize,
    counts: [usize; 11],
    /// UPDATE and DELETE, and those with a subquery.
    writes: (usize, usize),
    functions: BTreeSet<String>,
    tables_of_cases: usize,
    rows_of_cases: usize,
    cases: usize,
}

const ROWS: [&str; 11] = [
    "contains a subquery, %",
    "nesting of two and more, %",
    "three or more different tables, %",
    "two or more joins, %",
    "CASE, %",
    "window function or named window, %",
    "set operation, %",
    "derived table, %",
    "CTE, %",
    "LIMIT, %",
    "scalar function, %",
];

impl Shape {
    fn add(&mut self, statement: &Stmt, text: &str) {
        self.statements += 1;
        self.characters += text.len();
        let depth = depth_of(statement);
        let names = statement.tables();
        let tables: BTreeSet<&str> =
            names.into_iter().filter(|name| !name.starts_with(['q', 'c'])).collect();
        let (mut case, mut window, mut functions) = (false, false, Vec::new());
        statement.visit(&mut |e| match e {
            Expr::Case { .. } => case = true,
            Expr::Window { .. } => window = true,
            Expr::Call(function, _) => functions.push(function.name().to_string()),
            _ => {}
        });
        let (mut joins, mut sets, mut derived, mut ctes, mut limits) = (0, 0, 0, 0, 0);
        for select in selects_of(statement) {
            joins = joins.max(select.joins.len());
            window |= !select.windows.is_empty();
            sets += usize::from(select.set_operation.is_some());
            derived += select.from_and_joined().filter(|s| is_derived(s)).count();
            ctes += select.ctes.len();
            limits += usize::from(select.limit.is_some());
        }
        let scalar = functions.iter().any(|name| name != Function::Coalesce.name());
        let there = [
            depth >= 1,
            depth >= 2,
            tables.len() >= 3,
            joins >= 2,
            case,
            window,
            sets > 0,
            derived > 0,
            ctes > 0,
            limits > 0,
            scalar,
        ];
        for (count, there) in self.counts.iter_mut().zip(there) {
            *count += usize::from(there);
        }
        if let Stmt::Write(Write::Update(_) | Write::Delete(_)) = statement {
            self.writes.0 += 1;
            self.writes.1 += usize::from(depth > 0);
        }
        self.functions.extend(functions);
    }
}

/// How deeply subqueries of expressions are nested.
fn depth_of(statement: &Stmt) -> usize {
    let mut deepest = 0;
    statement.visit(&mut |e| deepest = deepest.max(e.subquery().map_or(0, below)));
    deepest
}

fn below(select: &Select) -> usize {
    let mut deepest = 0;
    select.visit(&mut |e| deepest = deepest.max(e.subquery().map_or(0, below)));
    deepest + 1
}

fn is_derived(source: &Source) -> bool {
    matches!(source, Source::Derived { view: None, .. })
}

/// All queries in a statement.
fn selects_of(statement: &Stmt) -> Vec<&Select> {
    fn add<'s>(select: &'s Select, found: &mut Vec<&'s Select>) {
        found.push(select);
        select.parts().for_each(|part| add(part, found));
    }
    let mut found = Vec::new();
    match statement {
        Stmt::Select(select) => add(select, &mut found),
        Stmt::Write(Write::Insert(insert)) => {
            if let isolde_sql::InsertSource::Select(select) = &insert.source {
                add(select, &mut found);
            }
        }
        _ => {}
    }
    statement.visit(&mut |e| {
        if let Some(select) = e.subquery() {
            add(select, &mut found);
        }
    });
    found
}

fn generated((engine, version): (&str, &str), cases: u64) -> Shape {
    let levels = vec![Level::ReadCommitted, Level::RepeatableRead, Level::Serializable];
    let dialect = Dialect::for_engine(engine, version);
    let generator = Generator::new(dialect, SEED, Options::new(levels, Level::ReadCommitted));
    let mut shape = Shape::default();
    for number in 0..cases {
        let plan = generator.plan(number * 3);
        shape.cases += 1;
        shape.tables_of_cases += plan.schema.tables.len();
        shape.rows_of_cases += plan.rows.iter().map(Vec::len).sum::<usize>();
        for (_, item) in plan.steps() {
            let statement = item.statement();
            if statement.is_data() {
                shape.add(&statement, &statement.render(&plan.dialect));
            }
        }
    }
    shape
}

fn of_file(text: &str) -> Shape {
    let mut shape = Shape::default();
    for line in text.lines().filter(|line| !line.starts_with("create ")) {
        let Some(text) = line.strip_suffix(';') else { continue };
        if let Some(statement) = read::statement(text, Family::Mysql)
            && !text.starts_with("insert into") | text.contains("select")
        {
            shape.add(&statement, text);
        }
    }
    shape
}

fn main() {
    let mut arguments = std::env::args().skip(1);
    let file = arguments.next().and_then(|file| std::fs::read_to_string(file).ok());
    let cases = arguments.next().and_then(|n| n.parse().ok()).unwrap_or(2000);
    let mut columns: Vec<(String, Shape)> =
        ENGINES.iter().map(|engine| (engine.0.to_string(), generated(*engine, cases))).collect();
    columns.extend(file.map(|text| ("the file".to_string(), of_file(&text))));
    let show = |what: &str, value: &dyn Fn(&Shape) -> f64| {
        let cells = columns.iter().map(|(_, shape)| format!("{:>10.1}", value(shape)));
        println!("{what:<36}{}", cells.collect::<String>());
    };
    let names: String = columns.iter().map(|(name, _)| format!("{name:>10}")).collect();
    println!("{:<36}{names}", "per statement");
    #[allow(clippy::cast_precision_loss)]
    let share = |part: usize, whole: usize| part as f64 / whole.max(1) as f64;
    show("statements", &|s| share(s.statements, 1));
    show("mean length, characters", &|s| share(s.characters, s.statements));
    for (place, what) in ROWS.iter().enumerate() {
        show(what, &|s| 100.0 * share(s.counts[place], s.statements));
    }
    show("different functions", &|s| share(s.functions.len(), 1));
    show("UPDATE or DELETE with a subquery, %", &|s| 100.0 * share(s.writes.1, s.writes.0));
    show("tables per case", &|s| share(s.tables_of_cases, s.cases));
    show("rows per case", &|s| share(s.rows_of_cases, s.cases));
}
