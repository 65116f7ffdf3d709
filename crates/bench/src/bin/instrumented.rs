//! Which share of statements and tables the instrumented oracles leave out, and why.
//!
//! The isolation oracle's part is counted without a server: what the instrumentation leaves as it
//! is. The topological oracle is run, because lock waits and cycles take statements away, too.

use isolde_bench::open;
use isolde_engines::runner::Runner;
use isolde_generator::{Generator, Options};
use isolde_hunt::check::check;
use isolde_hunt::executor::{Executor, Fixture};
use isolde_model::parsed_case::{Operation, ParsedCase};
use isolde_model::{Case, Level, case};
use isolde_oracles::Oracle;
use isolde_oracles::instrument::Instrument;
use std::collections::BTreeMap;

const SEED: u64 = 1;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [what, target, rest @ ..] = &arguments[..] else {
        println!("Usage: bench/instrumented CASES|FILE TARGET [LEVEL]");
        return;
    };
    let Some(engine) = open(target) else { return };
    let level = rest.first().map(|name| name.parse::<Level>().expect("a level"));
    let mut executor = Executor::new(Runner::new(engine));
    let mut counts = Counts::default();
    match what.parse::<u64>() {
        Ok(cases) => generated(&mut executor, cases, level, &mut counts),
        Err(_) => from_file(&mut executor, what, level, &mut counts),
    }
    counts.print();
}

#[derive(Default)]
struct Counts {
    cases: usize,
    /// Data statements, and those that the instrumentation leaves as they are, by reason.
    statements: usize,
    not_instrumented: BTreeMap<String, usize>,
    /// Statements that are instrumented, and some of whose reads are not revealed.
    unobserved: BTreeMap<String, usize>,
    tables: usize,
    not_followed: usize,
    /// Statements in a graph of the topological oracle's or left out of it, by reason.
    judged: usize,
    in_graphs: usize,
    left_out: BTreeMap<String, usize>,
}

impl Counts {
    fn print(&self) {
        let share = |part: usize, of: usize| 100.0 * part as f64 / of.max(1) as f64;
        let left: usize = self.not_instrumented.values().sum();
        let Counts { cases, statements, tables, not_followed, judged, in_graphs, .. } = self;
        println!("{cases} cases, {statements} statements, {tables} tables");
        println!("isolation: {left} statements left out, {:.1}%", share(left, *statements));
        self.not_instrumented.iter().for_each(|(why, count)| println!("{count:7} {why}"));
        let unobserved: usize = self.unobserved.values().sum();
        println!(
            "{unobserved} with reads that are not revealed, {:.1}%",
            share(unobserved, *statements)
        );
        self.unobserved.iter().for_each(|(why, count)| println!("{count:7} {why}"));
        println!("{not_followed} tables not followed, {:.1}%", share(*not_followed, *tables));
        let left: usize = self.left_out.values().sum();
        println!("topological: {left} of {judged} left out, {:.1}%", share(left, *judged));
        let rest = judged - left - in_graphs;
        println!("  {in_graphs} in graphs, {rest} of aborted transactions or failed by a conflict");
        self.left_out.iter().for_each(|(why, count)| println!("{count:7} {why}"));
    }

    fn count(&mut self, executor: &mut Executor, fixture: &Fixture, case: &Case) {
        let Some(reading) = fixture.reading.clone() else {
            println!("not read: {}", case.id);
            return;
        };
        self.cases += 1;
        let data =
            reading.operations.iter().zip(&case.steps).filter(
                |(operation, step)| match operation {
                    Operation::Statement(statement) => statement.is_data(),
                    _ => matches!(step.kind(), isolde_sql::Kind::Select | isolde_sql::Kind::Write),
                },
            );
        let data = data.count();
        self.statements += data;
        self.instrumentation(executor, case, &reading);
        self.topological(executor, fixture, case, data);
    }

    fn instrumentation(&mut self, executor: &Executor, case: &Case, reading: &ParsedCase) {
        let capabilities = executor.runner.engine.info().capabilities();
        let mut instrument = Instrument::new(reading.schema.clone(), reading.dialect, capabilities);
        let instrumented = instrument.case(case, &reading.operations);
        for (_, why) in &instrumented.not_instrumented {
            *self.not_instrumented.entry(why.to_string()).or_default() += 1;
        }
        let mut last = None;
        for (step, why) in &instrumented.unobserved {
            if last.replace(*step) != Some(*step) {
                *self.unobserved.entry(why.to_string()).or_default() += 1;
            }
        }
        let tables = reading.schema.tables.len();
        self.tables += tables;
        self.not_followed += (0..tables).filter(|table| !instrument.is_followed(*table)).count();
    }

    fn topological(
        &mut self,
        executor: &mut Executor,
        fixture: &Fixture,
        case: &Case,
        data: usize,
    ) {
        let checked = match check(executor, fixture, case, &[Oracle::Topological]) {
            Ok(checked) => checked,
            Err(why) => {
                println!("{}: {why}", case.id);
                return;
            }
        };
        self.judged += data;
        if let Some(why) = &checked.silent {
            *self.left_out.entry(format!("the whole case: {why}")).or_default() += data;
            return;
        }
        for violation in &checked.violations {
            println!("VIOLATION: {violation:?}\n{}", case::format(case));
        }
        let Some(report) = checked.report(Oracle::Topological) else { return };
        let json = report.json();
        self.in_graphs += json["statements"].as_array().map_or(0, Vec::len);
        for left in json["left_out"].as_array().into_iter().flatten() {
            let why = left["why"].as_str().unwrap_or_default();
            *self.left_out.entry(why.into()).or_default() += 1;
        }
    }
}

fn generated(executor: &mut Executor, cases: u64, level: Option<Level>, counts: &mut Counts) {
    let profile = executor.runner.engine.profile();
    let default = profile.default_level;
    let levels = level.map_or_else(|| profile.level_names(), |level| vec![level]);
    let dialect = executor.runner.engine.info().dialect();
    let generator = Generator::new(dialect, SEED, Options::new(levels, default));
    for number in 0..cases {
        let plan = generator.plan(number);
        counts.count(executor, &Fixture::of(&plan), &plan.to_case());
    }
}

#[derive(Default)]
struct Block {
    setup: Vec<String>,
    statements: Vec<String>,
}

/// Cases of two transactions, made of four statements of a block at a time.
fn from_file(executor: &mut Executor, file: &str, level: Option<Level>, counts: &mut Counts) {
    let text = std::fs::read_to_string(file).expect("a file of statements");
    let mut blocks: Vec<Block> = Vec::new();
    let mut statements = false;
    for line in text.lines() {
        if let Some(heading) = line.strip_prefix("-- block ") {
            statements = heading.ends_with("statements");
            if heading.ends_with("schema") {
                blocks.push(Block::default());
            }
        } else if let (Some(sql), Some(block)) = (line.strip_suffix(';'), blocks.last_mut()) {
            if statements { &mut block.statements } else { &mut block.setup }.push(sql.into());
        }
    }
    let info = executor.runner.engine.info().clone();
    let default = executor.runner.engine.profile().default_level;
    for (number, block) in blocks.iter().enumerate() {
        for (part, four) in block.statements.chunks_exact(4).enumerate() {
            let setup: String = block.setup.iter().map(|sql| format!("  {sql};\n")).collect();
            let [a, b, c, d] = four else { continue };
            let text = format!(
                "case: block-{number}-{part}\nengines: mysql\n\nsetup:\n{setup}\ns1> begin;\n\
                 s2> begin;\ns1> {a};\ns2> {b};\ns1> {c};\ns2> {d};\ns1> commit;\ns2> commit;\n"
            );
            let mut case = match case::parse(&text) {
                Ok(case) => case.read_as(info.family()),
                Err(why) => {
                    println!("block {number} part {part} is not a case: {why}");
                    continue;
                }
            };
            case.level = Some(level.unwrap_or(default));
            let fixture = Fixture::of_case(&case, &info, default);
            if std::env::var("SHOW").is_ok() {
                println!("{}", case::format(&case));
            }
            executor.forget_tables();
            counts.count(executor, &fixture, &case);
        }
    }
}
