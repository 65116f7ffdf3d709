//! Three strategies on the same findings: trials, time and what is left.
//!
//! A run of many transactions on one schema is played on an engine with a planted fault
//! and on the same engine without. It fails if the final rows differ: the same schedule
//! gives the same history on a sound engine, so that is the fault's doing, at any level.
//! Each strategy then looks for the operations that it takes; what it leaves is proved to be
//! 1-minimal, with trials that are counted apart. Nothing is remembered between trials.

use isolde_bench::open;
use isolde_engines::fault::{self, Planted};
use isolde_engines::runner::Runner;
use isolde_generator::plan::number_operations;
use isolde_generator::reduce::{Reducible, Strategy, Trial, TrialRequest, bound, minimize, prove};
use isolde_generator::{End, Generator, OpId, Options, Plan, Start};
use isolde_hunt::executor::{Executor, Fixture};
use isolde_model::inquiry::Inquiry;
use isolde_model::value::Row;
use isolde_sql::{InsertSource, Stmt, Write};
use std::time::Instant;

const TARGETS: [&str; 3] = ["sqlite", "postgres", "mariadb"];
const SIZES: [usize; 3] = [100, 1_000, 10_000];
const FAULTS: [&str; 4] =
    ["update-twice", "row-skipped", "aborted-insert-stays", "statement-dropped"];

fn main() {
    let mut arguments = std::env::args().skip(1);
    let Ok(largest) = arguments.next().map_or(Ok(10_000), |a| a.parse::<usize>()) else {
        println!("Usage: bench/reduce [LARGEST [TARGET...]]");
        return;
    };
    let named: Vec<String> = arguments.collect();
    let all = TARGETS.map(String::from);
    println!(
        "target    fault                     N      M   strategy  trials   bound  proof  left  seconds"
    );
    for target in if named.is_empty() { &all[..] } else { &named } {
        for size in SIZES.into_iter().filter(|size| *size <= largest) {
            measure(target, size);
        }
    }
}

struct Pair {
    faulty: Executor,
    sound: Executor,
}

impl Pair {
    fn open(target: &str, planted: Planted) -> Option<Pair> {
        let faulty = fault::plant(open(target)?, planted);
        let sound = open(target)?;
        Some(Pair {
            faulty: Executor::new(Runner::new(faulty)),
            sound: Executor::new(Runner::new(sound)),
        })
    }

    /// Whether the fault changes what is left in the tables.
    fn fails(&mut self, plan: &Plan) -> bool {
        let (fixture, case) =
            (Fixture { versions: None, reading: None, ..Fixture::of(plan) }, plan.to_case());
        if case.steps.is_empty() {
            return false;
        }
        let left = |executor: &mut Executor| -> Option<Vec<Vec<Row>>> {
            let history = executor.run(&fixture, &case).ok()?;
            if history.was_cancelled() || history.lost_server() {
                return None;
            }
            let sorted = |mut rows: Vec<Row>| {
                rows.sort_by_key(|row| format!("{row:?}"));
                rows
            };
            Some(history.final_state.into_iter().map(|f| sorted(f.rows)).collect())
        };
        match (left(&mut self.faulty), left(&mut self.sound)) {
            (Some(faulty), Some(sound)) => faulty != sound,
            _ => false,
        }
    }
}

/// Operations for each INSERT of a run: without a limit tables grow with the run, and its time
/// with the square of it.
const OPERATIONS_AN_INSERT: usize = 8;

/// Generated transactions of one schema, one case after the other, until there are that
/// many operations.
fn long_run(generator: &Generator, block: u64, size: usize) -> Plan {
    let mut plan = generator.plan(block * 30);
    (plan.transactions, plan.schedule) = (Vec::new(), Vec::new());
    plan.level = None;
    let (mut operations, mut inserts) = (0, 0);
    for number in (0..30).cycle() {
        let mut next = generator.plan(block * 30 + number);
        if next.transactions.iter().any(|tx| tx.start == Start::AutocommitOff) {
            continue;
        }
        for tx in &mut next.transactions {
            tx.statements.retain(|planned| match &planned.statement {
                // What copies rows into the table that they are from doubles it.
                Stmt::Write(Write::Insert(insert))
                    if matches!(insert.source, InsertSource::Select(_)) =>
                {
                    false
                }
                Stmt::Write(Write::Insert(_)) if inserts * OPERATIONS_AN_INSERT > operations => {
                    false
                }
                Stmt::Write(Write::Insert(_)) => {
                    inserts += 1;
                    true
                }
                Stmt::Prepare { .. } | Stmt::Execute(_) => false,
                _ => true,
            });
        }
        next.transactions.retain(|tx| !tx.statements.is_empty());
        let first = plan.transactions.len();
        let places: Vec<(OpId, usize, usize)> = next
            .transactions
            .iter()
            .enumerate()
            .flat_map(|(t, tx)| {
                let of = move |(n, id): (usize, OpId)| (id, t, n);
                let ids = tx.statements.iter().map(|p| p.id);
                let all: Vec<OpId> =
                    std::iter::once(tx.start_id).chain(ids).chain([tx.end_id]).collect();
                all.into_iter().enumerate().map(of)
            })
            .collect();
        let order: Vec<(usize, usize)> = next
            .schedule
            .iter()
            .filter_map(|id| places.iter().find(|(of, ..)| of == id))
            .map(|(_, t, n)| (first + t, *n))
            .collect();
        for mut tx in next.transactions {
            tx.level = None;
            operations += 1 + tx.statements.len();
            plan.transactions.push(tx);
        }
        number_operations(&mut plan.transactions);
        let id = |(t, n): &(usize, usize)| {
            let tx = &plan.transactions[*t];
            match *n {
                0 => tx.start_id,
                n if n <= tx.statements.len() => tx.statements[n - 1].id,
                _ => tx.end_id,
            }
        };
        let order: Vec<OpId> = order.iter().map(id).collect();
        plan.schedule.extend(order);
        if operations >= size {
            break;
        }
    }
    debug_assert!(
        plan.transactions.iter().all(|tx| tx.end != End::None || tx.start == Start::Autocommit)
    );
    plan
}

/// A finding of that size.
fn finding(target: &str, size: usize) -> Option<(Pair, Plan, &'static str)> {
    for name in FAULTS {
        let fault = fault::find(name).expect("a fault of the table");
        for seed in 1..=3u64 {
            let mut pair = Pair::open(target, Planted { fault, rate: 1.0, seed })?;
            let engine = &pair.sound.runner.engine;
            let profile = engine.profile();
            let options = Options::new(vec![profile.default_level], profile.default_level);
            let generator = Generator::new(engine.info().dialect(), seed, options);
            for block in 0..4 {
                let plan = long_run(&generator, block, size);
                if pair.fails(&plan) && pair.fails(&plan) {
                    return Some((pair, plan, name));
                }
            }
        }
    }
    println!("{target:9} no fault shows in a run of {size} operations");
    None
}

fn measure(target: &str, size: usize) {
    let Some((mut pair, plan, fault)) = finding(target, size) else { return };
    let graph = plan.graph();
    let n = graph.len();
    let trial = |fails| if fails { Trial::Fails } else { Trial::Passes };
    for strategy in Strategy::ALL {
        let began = Instant::now();
        let left = Inquiry::new(|channel| minimize(strategy, &graph, 0, channel))
            .answered_by(|question: TrialRequest<Vec<bool>>| {
                Ok::<_, ()>(trial(pair.fails(&plan.keeping(&question.subject))))
            })
            .expect("every question is answered");
        let m = left.kept.iter().filter(|kept| **kept).count();
        let small = plan.keeping(&left.kept);
        let graph = small.graph();
        let proof = Inquiry::new(|channel| prove(&graph, 0, channel))
            .answered_by(|question: TrialRequest<Vec<bool>>| {
                Ok::<_, ()>(trial(pair.fails(&small.keeping(&question.subject))))
            })
            .expect("every question is answered");
        let last = proof.kept.iter().filter(|kept| **kept).count();
        println!(
            "{target:9} {fault:22} {n:6} {m:6}   {:8} {:7} {:7.0} {:6} {last:5} {:8.1}",
            strategy.name(),
            left.trials,
            bound(n, m),
            proof.trials,
            began.elapsed().as_secs_f64()
        );
    }
}
