use super::*;
use crate::reduce::Reducible;
use isolde_model::case;
use isolde_model::random::fingerprint;

const ENGINES: [(&str, &str); 11] = [
    ("sqlite", "3.54.1"),
    ("postgres", "15.18"),
    ("mariadb", "10.11.19"),
    ("mysql", "5.7.19"),
    ("tidb", "8.5"),
    ("dolt", "2.2.0"),
    ("turso+mvcc", "0.8.3"),
    ("duckdb", "2.0.0"),
    ("an unknown engine", "1"),
    ("mysql", "8.0.36"),
    ("mysql", "9.7.1"),
];

/// Fingerprints of the first cases that each engine gets.
const FIRST_CASES: [(&str, u64); 11] = [
    ("sqlite", 15382175853214760111),
    ("postgres", 5254890830790744936),
    ("mariadb", 7313266439679672984),
    ("mysql", 16983155288155738534),
    ("tidb", 9976628460169939136),
    ("dolt", 11811971781398593496),
    ("turso+mvcc", 11544580156324070681),
    ("duckdb", 11324545230142415846),
    ("an unknown engine", 9846470004801500362),
    ("mysql", 424183779720404732),
    ("mysql", 424183779720404732),
];

/// The same for `--depth 0`.
const FIRST_FLAT_CASES: [(&str, u64); 11] = [
    ("sqlite", 1462533347128683961),
    ("postgres", 11099147681028527372),
    ("mariadb", 4092049115707012355),
    ("mysql", 17923824427153140798),
    ("tidb", 2769429438724819005),
    ("dolt", 8974276910460487774),
    ("turso+mvcc", 2779392737400126213),
    ("duckdb", 6000272860133136490),
    ("an unknown engine", 9846470004801500362),
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
fn first_case_of_a_seed_never_changes() {
    let text = case::format(&generator(0, 1).plan(0).to_case());
    assert_eq!(fingerprint(&text), 9192804749387914871, "\n{text}");
}

fn first_cases(depth: Option<usize>) -> Vec<(&'static str, u64)> {
    let mut found = Vec::new();
    for (engine, (name, _)) in ENGINES.iter().enumerate() {
        let mut generator = generator(engine, 7);
        generator.options.depth = depth;
        let text = |number| case::format(&generator.plan(number).to_case());
        let all: Vec<String> = (0..300).step_by(3).map(text).collect();
        found.push((*name, fingerprint(&all.concat())));
    }
    found
}

/// The cases of a seed must not change when the types of statements do.
#[test]
fn first_flat_cases_of_every_dialect_never_change() {
    assert_eq!(first_cases(Some(0)), FIRST_FLAT_CASES);
}

#[test]
fn first_cases_of_every_dialect_never_change() {
    assert_eq!(first_cases(None), FIRST_CASES);
}

/// The constructs that the public bugs of TxCheck need: each can be drawn.
#[test]
fn deep_statements_nest_and_combine_every_construct() {
    let mut options = Options::new(vec![Level::Serializable], Level::Serializable);
    options.depth = Some(DEEPEST);
    let dialect = Dialect::for_engine("mysql", "8.0.36");
    let generator = Generator::new(dialect, 3, options);
    let texts: Vec<String> = (0..900)
        .step_by(3)
        .flat_map(|n| generator.plan(n).to_case().steps.into_iter().map(|s| s.sql))
        .collect();
    let wanted = [
        ("a window function over a join", vec![" over (", " join "]),
        ("a set operation in a condition", vec!["where ", " in (select ", " union "]),
        ("a join in parentheses", vec![" join (t", " on "]),
        ("a right join", vec![" right join "]),
        ("a derived table with groups", vec!["from (select ", " group by "]),
        ("two CTEs", vec!["with q", "), q"]),
        ("EXISTS in the value of an UPDATE", vec!["update ", " set ", "case when exists (select "]),
        ("a subquery in VALUES", vec!["insert into ", " values (", "(select "]),
        ("an upsert with a subquery", vec!["on duplicate key update", "(select "]),
        ("a DELETE with NOT IN a query", vec!["delete from ", " not in (select "]),
        ("FOR UPDATE with a subquery", vec![" in (select ", " for update"]),
        ("bit operators", vec![" & "]),
        ("a shift", vec![" << "]),
        ("NULLIF of a subquery", vec!["nullif((select "]),
        ("a string function of a subquery", vec!["substr(", "(select "]),
        ("a date function", vec!["dayofyear("]),
        ("CRC32", vec!["crc32("]),
        ("GREATEST", vec!["greatest("]),
        ("NOT BETWEEN of values", vec![" not between "]),
        ("HAVING", vec![" having "]),
        ("DISTINCT in a subquery", vec!["(select distinct "]),
        ("three levels of queries", vec!["(select ", "(select ", "(select "]),
        ("a named window", vec![" over w", " window w"]),
        ("a frame", vec![" over (", " rows between "]),
        ("LIMIT in a subquery", vec!["(select ", " limit 1"]),
        ("LIMIT in a derived table", vec!["from (select ", " limit "]),
        ("a cross join", vec![" cross join "]),
        ("two joins", vec![" join ", " join "]),
        ("USING", vec![" using ("]),
        ("ROLLUP", vec![" with rollup"]),
        ("VALUES", vec!["(values row("]),
        ("LATERAL", vec!["lateral (select "]),
        ("a recursive CTE", vec!["with recursive "]),
        ("ANY", vec![" = any (select "]),
        ("a row value", vec!["(r", ", r", ") in (select "]),
        ("CAST", vec!["cast("]),
        ("CASE in VALUES", vec!["insert into ", " values (", "case when "]),
        ("a set operation of three", vec![" union ", " union "]),
        ("an ordered aggregate", vec!["group_concat(distinct "]),
        ("a subquery in CASE", vec!["case when exists (select "]),
    ];
    for (what, parts) in wanted {
        let has_all = |text: &&String| {
            let mut rest = text.as_str();
            parts.iter().all(|part| match rest.find(part) {
                Some(at) => {
                    rest = &rest[at + part.len()..];
                    true
                }
                None => false,
            })
        };
        assert!(texts.iter().any(|text| has_all(&text)), "{what} is never drawn");
    }
}

#[test]
fn generated_case_survives_formatting_and_parsing() {
    for plan in plans(500) {
        let case = plan.to_case();
        let text = case::format(&case);
        let again = case::parse(&text).unwrap_or_else(|e| panic!("{e}\n{text}"));
        assert_eq!(again, case, "{text}");
        assert_eq!(plan.features().len(), case.steps.len());
    }
}

#[test]
fn statement_of_a_step_is_the_one_that_its_text_parses_to() {
    for plan in plans(60) {
        for (step, (_, item)) in plan.to_case().steps.iter().zip(plan.steps()) {
            assert_eq!(step.statement(), Some(item.statement().as_ref()), "{}", step.sql);
        }
    }
}

#[test]
fn plan_depends_only_on_its_number() {
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
fn schedule_has_every_operation_exactly_once() {
    for plan in plans(500) {
        assert_consistent(&plan);
        let steps = plan.to_case().steps;
        let origins: Vec<u32> = steps.iter().filter_map(|s| s.origin.0).collect();
        assert_eq!(origins, plan.schedule.iter().map(|id| id.0).collect::<Vec<_>>());
    }
}

#[test]
fn kind_of_every_generated_statement_is_recognised() {
    for plan in plans(300) {
        for (step, (_, item)) in plan.to_case().steps.iter().zip(plan.steps()) {
            if let Item::Statement(statement) = item {
                let writes = statement.written_table().is_some();
                let prepared = matches!(statement, isolde_sql::Stmt::Prepare { .. });
                assert_eq!(step.kind() == isolde_sql::Kind::Write, writes && !prepared);
                assert_eq!(step.kind() == isolde_sql::Kind::Ddl, statement.is_ddl());
            }
            assert!(!step.sql.contains('\n'));
        }
    }
}

#[test]
fn names_of_features_are_unique() {
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

fn assert_consistent(plan: &Plan) {
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

/// Lets SQLite resolve every name: the plan must not refer to a table, column, index or savepoint
/// that was removed.
fn assert_names_resolve(plan: &Plan) {
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
            // A statement may violate constraints, but must be valid.
            let control = statement.provides().is_some() || statement.needs().is_some();
            let done = match control || statement.is_ddl() {
                true => database.execute_batch(&sql),
                false => database.prepare(&sql).map(drop),
            };
            // Rows may violate a new unique index.
            let done = done.or_else(|e| match e.sqlite_error_code() {
                Some(rusqlite::ErrorCode::ConstraintViolation) => Ok(()),
                _ => Err(e),
            });
            done.unwrap_or_else(|e| panic!("{e}: {sql}\n{text}"));
        }
        database.execute_batch("rollback to all_of_it; release all_of_it").unwrap();
    }
}

#[test]
fn every_simplification_is_smaller_and_consistent() {
    for plan in plans(36) {
        let whole = case::format(&plan.to_case());
        for pass in Pass::ALL {
            for smaller in reductions(&plan, pass) {
                assert_consistent(&smaller);
                let text = case::format(&smaller.to_case());
                // A simpler text may be longer: `begin` instead of a mode.
                let plainer = pass != Pass::Data;
                assert!(text != whole && (plainer || text.len() < whole.len()), "{text}");
            }
        }
    }
}

#[test]
fn names_in_a_simplified_plan_resolve() {
    for seed in 0..12 {
        let plan = generator(0, seed).plan(seed % 100);
        assert_names_resolve(&plan);
        for pass in Pass::ALL {
            reductions(&plan, pass).iter().for_each(assert_names_resolve);
        }
    }
}

#[test]
fn repeated_simplification_ends_with_one_empty_table() {
    for plan in plans(18) {
        let mut smallest = plan;
        loop {
            let before = smallest.clone();
            // Operations go first, as far as one of them stays.
            let graph = smallest.graph();
            for node in (0..graph.len()).rev() {
                let mut kept = vec![true; graph.len()];
                graph.remove(&[node], &mut kept);
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
                    candidates.accept();
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
