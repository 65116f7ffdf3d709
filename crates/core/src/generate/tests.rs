use super::*;
use crate::case;
use crate::random::fingerprint;
use crate::reduce::Subject;

const ENGINES: [(&str, &str); 11] = [
    ("sqlite", "3.54.1"),
    ("postgres", "15.18"),
    ("mariadb", "10.11.19"),
    ("mysql", "5.7.19"),
    ("tidb", "8.5"),
    ("dolt", "2.2.0"),
    ("turso+mvcc", "0.8.3"),
    ("duckdb", "2.0.0"),
    ("an engine nobody has seen", "1"),
    ("mysql", "8.0.36"),
    ("mysql", "9.7.1"),
];

/// Fingerprints of the first cases that each engine gets.
const FIRST_CASES: [(&str, u64); 11] = [
    ("sqlite", 1462533347128683961),
    ("postgres", 11099147681028527372),
    ("mariadb", 4092049115707012355),
    ("mysql", 17923824427153140798),
    ("tidb", 2769429438724819005),
    ("dolt", 8974276910460487774),
    ("turso+mvcc", 2779392737400126213),
    ("duckdb", 6000272860133136490),
    ("an engine nobody has seen", 9846470004801500362),
    ("mysql", 147617262803359842),
    ("mysql", 147617262803359842),
];

fn generator(engine: usize, seed: u64) -> Generator {
    let (name, version) = ENGINES[engine % ENGINES.len()];
    let levels = vec![Level::ReadCommitted, Level::Serializable];
    let mut options = Options::new(levels, Level::ReadCommitted);
    options.ddl = true;
    options.prepared = true;
    Generator::new(Dialect::for_engine(name, version), seed, options)
}

fn plans(count: u64) -> impl Iterator<Item = Plan> {
    (0..count).map(|seed| generator(seed as usize, seed).plan(seed % 100))
}

#[test]
fn the_first_case_of_a_seed_is_this_one_for_good() {
    let text = case::format(&generator(0, 1).plan(0).to_case());
    assert_eq!(fingerprint(&text), 9192804749387914871, "\n{text}");
}

/// What a seed means may not change with the types that statements have.
#[test]
fn the_first_cases_of_every_dialect_are_these_for_good() {
    let mut found = Vec::new();
    for (engine, (name, _)) in ENGINES.iter().enumerate() {
        let text = |number| case::format(&generator(engine, 7).plan(number).to_case());
        let all: Vec<String> = (0..300).step_by(3).map(text).collect();
        found.push((*name, fingerprint(&all.concat())));
    }
    assert_eq!(found, FIRST_CASES);
}

#[test]
fn a_case_can_be_written_down_and_read_again() {
    for plan in plans(500) {
        let case = plan.to_case();
        let text = case::format(&case);
        let again = case::parse(&text).unwrap_or_else(|e| panic!("{e}\n{text}"));
        assert_eq!(again, case, "{text}");
        assert_eq!(plan.features().len(), case.steps.len());
    }
}

#[test]
fn a_step_of_a_plan_has_the_statement_that_its_text_says() {
    for plan in plans(60) {
        for (step, (_, item)) in plan.to_case().steps.iter().zip(plan.steps()) {
            assert_eq!(step.statement(), Some(item.statement().as_ref()), "{}", step.sql);
        }
    }
}

#[test]
fn a_plan_depends_on_its_number_alone() {
    for engine in 0..ENGINES.len() {
        let generator = generator(engine, 3);
        let forward: Vec<Plan> = (0..60).map(|n| generator.plan(n)).collect();
        for number in (0..60).rev() {
            assert_eq!(generator.plan(number), forward[number as usize]);
        }
        for pair in forward.windows(2) {
            let same = |f: fn(u64) -> u64| f(pair[0].number) == f(pair[1].number);
            let created = pair.iter().map(Plan::create_sql).collect::<Vec<_>>();
            assert!(!same(Generator::block_of) || created[0] == created[1]);
            if same(|n| n / SCHEDULES_PER_GROUP) {
                assert_eq!(pair[0].transactions, pair[1].transactions);
            }
        }
    }
}

#[test]
fn the_schedule_has_every_operation_once() {
    for plan in plans(500) {
        is_whole(&plan);
        let steps = plan.to_case().steps;
        let origins: Vec<u32> = steps.iter().filter_map(|s| s.origin.0).collect();
        assert_eq!(origins, plan.schedule.iter().map(|id| id.0).collect::<Vec<_>>());
    }
}

#[test]
fn every_kind_of_statement_is_one_that_the_runner_knows() {
    for plan in plans(300) {
        for (step, (_, item)) in plan.to_case().steps.iter().zip(plan.steps()) {
            if let Item::Statement(statement) = item {
                let writes = statement.written_table().is_some();
                let prepared = matches!(statement, crate::sql::Stmt::Prepare { .. });
                assert_eq!(step.kind() == crate::sql::Kind::Write, writes && !prepared);
                assert_eq!(step.kind() == crate::sql::Kind::Ddl, statement.is_ddl());
            }
            assert!(!step.sql.contains('\n'));
        }
    }
}

#[test]
fn every_feature_has_a_name_of_its_own() {
    let mut names: Vec<&str> = Feature::ALL.iter().map(|f| f.name()).collect();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), Feature::ALL.len());
}

/// All candidates of a pass.
fn reductions(plan: &Plan, pass: Pass) -> Vec<Plan> {
    let mut candidates = Candidates::of(plan, pass);
    std::iter::from_fn(|| candidates.next(plan)).collect()
}

fn is_whole(plan: &Plan) {
    let case = plan.to_case();
    let text = case::format(&case);
    assert_eq!(case::parse(&text).unwrap_or_else(|e| panic!("{e}\n{text}")), case, "{text}");
    let mut sessions: Vec<&str> = plan.transactions.iter().map(|tx| tx.session.as_str()).collect();
    sessions.sort_unstable();
    sessions.dedup();
    let mut scheduled = 0;
    for session in sessions {
        let own = plan.transactions.iter().filter(|tx| tx.session == session);
        let own: Vec<OpId> = own.flat_map(|tx| tx.sequence()).map(|(id, _)| id).collect();
        let order: Vec<OpId> =
            plan.schedule.iter().copied().filter(|id| own.contains(id)).collect();
        assert_eq!(order, own, "{text}");
        scheduled += own.len();
    }
    assert_eq!((plan.schedule.len(), case.steps.len()), (scheduled, scheduled), "{text}");
}

/// SQLite itself looks every name up: nothing that is left may mean a table,
/// column, index or savepoint that was taken away.
fn names_only_what_is_there(plan: &Plan) {
    let text = case::format(&plan.to_case());
    let database = rusqlite::Connection::open_in_memory().unwrap();
    database.execute_batch("pragma foreign_keys = on").unwrap();
    for sql in plan.create_sql().iter().chain(&plan.reset_sql()) {
        database.execute_batch(sql).unwrap_or_else(|e| panic!("{e}: {sql}\n{text}"));
    }
    for transaction in &plan.transactions {
        database.execute_batch("savepoint all_of_it").unwrap();
        for planned in &transaction.statements {
            let statement = &planned.statement;
            let sql = statement.render(&Dialect::for_engine(ENGINES[0].0, ENGINES[0].1));
            // What the rows forbid may fail; what makes no sense may not.
            let control = statement.provides().is_some() || statement.needs().is_some();
            let done = match control || statement.is_ddl() {
                true => database.execute_batch(&sql),
                false => database.prepare(&sql).map(drop),
            };
            done.unwrap_or_else(|e| panic!("{e}: {sql}\n{text}"));
        }
        database.execute_batch("rollback to all_of_it; release all_of_it").unwrap();
    }
}

#[test]
fn every_reduction_is_smaller_and_whole() {
    for plan in plans(36) {
        let whole = case::format(&plan.to_case());
        for pass in Pass::ALL {
            for smaller in reductions(&plan, pass) {
                is_whole(&smaller);
                let text = case::format(&smaller.to_case());
                // What is plainer may be longer: `begin` instead of a word.
                let plainer = pass != Pass::Data;
                assert!(text != whole && (plainer || text.len() < whole.len()), "{text}");
            }
        }
    }
}

#[test]
fn what_a_reduction_leaves_names_only_what_is_there() {
    for seed in 0..12 {
        let plan = generator(0, seed).plan(seed % 100);
        names_only_what_is_there(&plan);
        for pass in Pass::ALL {
            reductions(&plan, pass).iter().for_each(names_only_what_is_there);
        }
    }
}

#[test]
fn reducing_goes_on_until_nothing_is_left_to_take() {
    for plan in plans(18) {
        let mut smallest = plan;
        loop {
            let before = smallest.clone();
            // Operations go first, as far as one of them stays.
            let graph = smallest.graph();
            for node in (0..graph.len()).rev() {
                let mut kept = vec![true; graph.len()];
                graph.take(&[node], &mut kept);
                let fewer = before.keeping(&kept);
                if !fewer.transactions.is_empty() && fewer != before {
                    smallest = fewer;
                    break;
                }
            }
            for pass in Pass::ALL {
                let mut candidates = Candidates::of(&smallest, pass);
                while let Some(next) = candidates.next(&smallest) {
                    smallest = next;
                    candidates.taken();
                }
            }
            if smallest == before {
                break;
            }
        }
        assert_eq!(smallest.transactions.len(), 1);
        assert_eq!(smallest.schema.tables.len(), 1);
        assert!(smallest.rows[0].is_empty());
    }
}
