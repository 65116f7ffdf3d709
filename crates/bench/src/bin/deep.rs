//! How many statements of another generator are read, and how many two-session cases made of them
//! the reference model decides.
//!
//! The file has blocks of a schema, rows and statements, each under a line `-- block N: schema`,
//! `rows` or `statements`. Four statements of a block at a time become a case of two transactions
//! with interleaved statements.

use isolde_bench::explained::{Explainer, reason};
use isolde_model::case;
use isolde_model::case::Case;
use isolde_model::{Level, Verdict};
use isolde_sql::dialect::Family;
use isolde_sql::read;
use std::collections::BTreeMap;

#[derive(Default)]
struct Block {
    setup: Vec<String>,
    statements: Vec<String>,
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let Some(text) = arguments.first().and_then(|file| std::fs::read_to_string(file).ok()) else {
        println!("Usage: bench/deep FILE [TARGET [LEVEL]]");
        return;
    };
    let blocks = blocks(&text);
    let all: Vec<&String> = blocks.iter().flat_map(|block| &block.statements).collect();
    let unread: Vec<&&String> =
        all.iter().filter(|sql| read::statement(sql, Family::Mysql).is_none()).collect();
    unread.iter().for_each(|sql| println!("not read: {sql}"));
    println!("{} of {} statements are read", all.len() - unread.len(), all.len());
    let Some(target) = arguments.get(1) else { return };
    let level = arguments.get(2).map(|name| name.parse().expect("a level"));
    decide(&blocks, target, level);
}

fn blocks(text: &str) -> Vec<Block> {
    let mut blocks: Vec<Block> = Vec::new();
    let mut statements = false;
    for line in text.lines() {
        if let Some(heading) = line.strip_prefix("-- block ") {
            statements = heading.ends_with("statements");
            if heading.ends_with("schema") {
                blocks.push(Block::default());
            }
        } else if let (Some(sql), Some(block)) = (line.strip_suffix(';'), blocks.last_mut()) {
            match statements {
                true => block.statements.push(sql.into()),
                false => block.setup.push(sql.into()),
            }
        }
    }
    blocks
}

/// A case of two transactions with two statements each, interleaved.
fn case_of(block: &Block, four: &[String], level: Option<Level>) -> Option<Case> {
    let setup: String = block.setup.iter().map(|sql| format!("  {sql};\n")).collect();
    let [a, b, c, d] = four else { return None };
    let text = format!(
        "case: deep\nengines: mysql\n\nsetup:\n{setup}\ns1> begin;\ns2> begin;\ns1> {a};\n\
         s2> {b};\ns1> {c};\ns2> {d};\ns1> commit;\ns2> commit;\n"
    );
    let mut case = case::parse(&text).ok()?;
    case.level = level;
    Some(case)
}

fn decide(blocks: &[Block], target: &str, level: Option<Level>) {
    let mut explainer = Explainer::new(target);
    let (mut labels, mut reasons) = (BTreeMap::new(), BTreeMap::<String, usize>::new());
    for (number, block) in blocks.iter().enumerate() {
        for (part, four) in block.statements.chunks_exact(4).enumerate() {
            let run = format!("block {} case {}", number + 1, part + 1);
            let Some(case) = case_of(block, four, level) else {
                println!("{run}: not a case");
                continue;
            };
            let Some(account) = explainer.explain(&case, &run) else { continue };
            println!("{run}: {}: {}", account.label.name(), account.why.replace('\n', " "));
            *labels.entry(account.label.name()).or_insert(0) += 1;
            match account.label {
                Verdict::Undecided => *reasons.entry(reason(&account)).or_default() += 1,
                Verdict::Bug => println!("BUG: {}", case::format(&case)),
                Verdict::Consistent | Verdict::Documented | Verdict::Locking => {}
            }
        }
    }
    let runs: usize = labels.values().sum();
    let undecided = labels.get(Verdict::Undecided.name()).copied().unwrap_or_default();
    println!("\n{runs} cases, {} decided, {undecided} undecided", runs - undecided);
    labels.iter().for_each(|(label, count)| println!("{count:6} {label}"));
    reasons.iter().for_each(|(why, count)| println!("{count:6} undecided: {why}"));
}
