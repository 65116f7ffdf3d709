//! Exports of recorded runs, run by the tools that they are made for: the real
//! isolationtester, the real mysqltest, Python.

use isolde_engines::engine::ClientInfo;
use isolde_engines::runner::Runner;
use isolde_interop::script::{Deviation, Spot, mtr_of_run, python_of_run, spec_of_run};
use isolde_model::{Case, History, Level};
use isolde_testing::program::{all_output, isolde, text};
use isolde_testing::servers::{open, tool};
use isolde_testing::tools;
use isolde_testing::tools::{MysqlTest, python};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The cases of these folders of the library, in the order of their files.
fn library(folders: &[&str]) -> Vec<Case> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("cases");
    let files = folders.iter().flat_map(|f| std::fs::read_dir(root.join(f)).unwrap().flatten());
    let mut files: Vec<PathBuf> = files.map(|f| f.path()).collect();
    files.sort();
    let parse = |f: &PathBuf| isolde_model::case::parse(&std::fs::read_to_string(f).unwrap());
    files.iter().map(|f| parse(f).unwrap()).collect()
}

/// What isolationtester prints for an exported spec.
fn isolation_output(program: &Path, client: &ClientInfo, spec: &str) -> String {
    tools::isolation_output(program, client, spec, "repro", Duration::from_secs(5))
}

/// Runs the cases of these folders of the library at their own level, or else at
/// READ COMMITTED and SERIALIZABLE.
fn runs(runner: &mut Runner, folders: &[&str]) -> Vec<(Case, History)> {
    let chosen = std::env::var("ISOLDE_TEST_CASE").unwrap_or_default();
    let mut all = Vec::new();
    for case in library(folders) {
        let info = runner.engine.info().clone();
        if !case.runs_on(&info.engine, &info.version)
            || !case.server_options.is_empty()
            || !case.id.contains(&chosen)
        {
            continue;
        }
        let case = case.read_as(info.family());
        let levels = match case.level {
            Some(_) => vec![None],
            None => vec![Some(Level::ReadCommitted), Some(Level::Serializable)],
        };
        for level in levels {
            match runner.run(&case, level) {
                Ok(history) => all.push((case.clone(), history)),
                Err(error) => eprintln!("{} does not run: {error}", case.id),
            }
        }
    }
    all
}

#[test]
fn specs_of_recorded_runs_print_what_was_recorded_under_isolationtester() {
    let Some(mut runner) = open("postgres") else { return };
    let Some(program) = tool("isolationtester") else { return };
    let client = runner.engine.client().unwrap();
    let (mut same, mut unsupported, mut different) = (0, 0, Vec::new());
    for (case, history) in
        runs(&mut runner, &["postgres", "hermitage", "papers", "mariadb", "mysql", "tidb"])
    {
        let name = format!("{} at {:?}", case.id, history.level);
        let export = match spec_of_run(&case, &history) {
            Ok(export) => export,
            Err(why) => {
                eprintln!("{name}: no spec: {}", why.message);
                unsupported += 1;
                continue;
            }
        };
        runner.clear().unwrap();
        let theirs = isolation_output(&program, &client, &export.text);
        match theirs == export.result {
            true => same += 1,
            false => {
                eprintln!(
                    "=== {name}\n{}\n=== isolationtester\n{theirs}\n=== recorded\n{}",
                    export.text, export.result
                );
                different.push(name);
            }
        }
    }
    eprintln!("{same} specs as recorded, {unsupported} unsupported");
    assert!(different.is_empty(), "{different:?}");
    assert!(same > 20, "{same}");
}

#[test]
fn mysqltest_passes_scripts_of_recorded_runs_with_their_results() {
    let Some(mut runner) = open("mariadb") else { return };
    let Some(tool) = MysqlTest::on(runner.engine.as_mut()) else { return };
    let (mut passed, mut unsupported, mut failed) = (0, 0, Vec::new());
    for (case, history) in runs(&mut runner, &["mariadb", "mysql", "hermitage", "papers"]) {
        if case.steps.iter().any(|s| s.sql.contains("innodb status")) {
            // Its output has times and counters.
            continue;
        }
        let name = format!("{} at {:?}", case.id, history.level);
        let export = match mtr_of_run(&case, &history) {
            Ok(export) => export,
            Err(why) => {
                eprintln!("{name}: no script: {}", why.message);
                unsupported += 1;
                continue;
            }
        };
        let mut result = tool.run(runner.engine.as_mut(), &export.text, &export.result);
        if result.is_err() {
            // A lock wait that ends by itself may be recorded or not: once more.
            runner.clear().unwrap();
            let again = runner.run(&case, history.level).unwrap();
            if let Ok(export) = mtr_of_run(&case, &again) {
                result = tool.run(runner.engine.as_mut(), &export.text, &export.result);
            }
        }
        match result {
            Ok(()) => passed += 1,
            Err(printed) => {
                eprintln!("=== {name}\n{}\n=== mysqltest\n{printed}", export.text);
                failed.push(name);
            }
        }
    }
    eprintln!("{passed} scripts pass, {unsupported} unsupported");
    assert!(failed.is_empty(), "{failed:?}");
    assert!(passed > 20, "{passed}");
}

/// A recorded result with its last digit changed.
fn falsified(result: &str) -> String {
    let at = result.rfind(|c: char| c.is_ascii_digit()).expect("there are numbers in it");
    let other = if &result[at..=at] == "7" { "8" } else { "7" };
    format!("{}{other}{}", &result[..at], &result[at + 1..])
}

/// A lock wait, a deadlock, a constraint error, an aborted transaction, and a
/// transaction that is left open.
const EVERY_KIND: &str = "case: exports/kinds\n\nsetup:\n  create table t (a int primary key, b \
    varchar(20));\n  insert into t values (1, 'x'), (2, null);\n\ns1> begin;\ns2> begin;\n\
    s1> update t set b = 'one' where a = 1;\ns2> update t set b = 'two' where a = 2;\n\
    s1> update t set b = 'one' where a = 2;\ns2> update t set b = 'two' where a = 1;\n\
    s2> select * from t;\ns2> rollback;\ns1> insert into t values (1, 'again');\ns1> commit;\n\
    s3> begin;\ns3> update t set b = 'three' where a = 1;\ns4> select b from t where a = 1;\n\
    s4> update t set b = 'four' where a = 1;\n";

fn every_kind() -> Case {
    isolde_model::case::parse(EVERY_KIND).unwrap()
}

#[test]
fn a_falsified_output_is_not_that_of_isolationtester() {
    let Some(mut runner) = open("postgres") else { return };
    let Some(program) = tool("isolationtester") else { return };
    let client = runner.engine.client().unwrap();
    let case = every_kind();
    let history = runner.run(&case, Some(Level::ReadCommitted)).unwrap();
    let export = spec_of_run(&case, &history).unwrap();
    for word in ["<waiting ...>", "<... completed>", "deadlock detected", "s3_end", "s2_3(*)"] {
        assert!(
            format!("{}{}", export.text, export.result).contains(word),
            "{word}\n{}",
            export.text
        );
    }
    runner.clear().unwrap();
    let theirs = isolation_output(&program, &client, &export.text);
    assert_eq!(theirs, export.result, "{}", export.text);
    assert_ne!(theirs, falsified(&export.result));
}

#[test]
fn a_falsified_result_does_not_pass_mysqltest() {
    let Some(mut runner) = open("mariadb") else { return };
    let Some(tool) = MysqlTest::on(runner.engine.as_mut()) else { return };
    let case = every_kind();
    let history = runner.run(&case, Some(Level::ReadCommitted)).unwrap();
    let export = mtr_of_run(&case, &history).unwrap();
    for word in ["\nsend ", "--reap", "--error 1213", "--error 1062", "rollback;", "is left out"] {
        assert!(export.text.contains(word), "{word}\n{}", export.text);
    }
    let mut run = |result: &str| tool.run(runner.engine.as_mut(), &export.text, result);
    assert_eq!(run(&export.result), Ok(()), "{}", export.text);
    assert!(run(&falsified(&export.result)).is_err());
    assert!(run(&export.result.replacen("# s1\n", "# s2\n", 1)).is_err());
}

/// A program exits with 1 when every marked deviation occurs again; without marks
/// the whole run must recur.
#[test]
fn python_programs_do_on_sqlite_what_was_recorded() {
    if tool("python3").is_none() {
        return;
    }
    let mut compared = 0;
    for (third, mode) in ["sqlite", "sqlite+wal", "sqlite+shared-cache"].iter().enumerate() {
        let Some(mut runner) = open(mode) else { return };
        for case in library(&["hermitage"]).into_iter().skip(third).step_by(3) {
            let history = runner.run(&case, None).unwrap();
            let program = python_of_run(&case, &history, &[]).unwrap();
            let (code, printed) = python(&program, None);
            assert_eq!(code, Some(1), "{mode} {}: {printed}\n{program}", case.id);
            compared += 1;
        }
    }
    assert_eq!(compared, library(&["hermitage"]).len());
    assert!(compared > 10, "only {compared} programs were compared");
}

#[test]
fn a_python_program_distinguishes_a_deviation_from_its_absence() {
    if tool("python3").is_none() {
        return;
    }
    let Some(mut runner) = open("sqlite") else { return };
    let text = "case: x\n\nsetup:\n  create table t (a int primary key, b text);\n  \
                insert into t values (1, 'it''s \\\"so\\\"');\n\ns1> select b, 1.5, null, x'00ff' from t;\n\
                s1> insert into t values (1, '');\n";
    let case = isolde_model::case::parse(text).unwrap();
    let history = runner.run(&case, None).unwrap();
    let marked = |spot| [Deviation { spot, expected: "other rows".into() }];
    for spot in [Spot::Step(0), Spot::Step(1), Spot::Final(0)] {
        let (code, printed) = python(&python_of_run(&case, &history, &marked(spot)).unwrap(), None);
        assert_eq!(code, Some(1), "{printed}");
        assert!(printed.contains("expected: other rows"), "{printed}");
    }
    // The same program where the engine behaves otherwise.
    let program = python_of_run(&case, &history, &marked(Spot::Final(0))).unwrap();
    let changed = program.replace("insert into t values (1, 'it", "insert into t values (2, 'it");
    assert_ne!(program, changed);
    let (code, printed) = python(&changed, None);
    assert_eq!((code, printed.contains("does not show")), (Some(0), true), "{printed}");
    // A program that cannot run reports neither.
    let broken = program.replace("create table t (", "create tabel t (");
    assert_eq!(python(&broken, None).0, Some(2));
}

/// The folder of the first bug of short hunts with a planted fault.
fn planted(target: &str, dir: &Path) -> PathBuf {
    let fault = ["--fault", "statement-dropped", "--fault-rate", "1", "--cases", "12"];
    for seed in 1..20 {
        let (seed, out) = (seed.to_string(), dir.join(format!("{target}-{seed}")));
        let arguments = ["hunt", target, "--seed", &seed, "--out", text(&out)];
        let output = isolde(&[&arguments[..], &fault].concat());
        let folders = std::fs::read_dir(out.join("findings"))
            .unwrap_or_else(|_| panic!("{}", all_output(&output)));
        let is_bug = |folder: &PathBuf| {
            let finding = std::fs::read_to_string(folder.join("finding.json")).unwrap();
            let finding: serde_json::Value = serde_json::from_str(&finding).unwrap();
            finding["cause"]["label"] == "bug"
        };
        if let Some(first) = folders.map(|f| f.unwrap().path()).filter(is_bug).min() {
            return first;
        }
    }
    panic!("the fault is not found on {target}")
}

fn converted(folder: &Path, to: &str) -> String {
    let output = isolde(&["convert", text(folder), "--to", to]);
    assert_eq!(output.status.code(), Some(0), "{to}: {}", all_output(&output));
    String::from_utf8(output.stdout).unwrap()
}

/// The engine without the fault is sound, so the recorded result fails in its
/// tools.
#[test]
fn exports_of_a_planted_fault_do_not_reproduce_without_it() {
    let dir = tempfile::tempdir().unwrap();
    let read = |folder: &Path, name: &str| std::fs::read_to_string(folder.join(name)).unwrap();
    if tool("python3").is_some() {
        let folder = planted("sqlite", dir.path());
        let (code, printed) = python(&read(&folder, "repro.py"), None);
        assert_eq!((code, printed.contains("does not show")), (Some(0), true), "{printed}");
        assert_eq!(converted(&folder, "python"), read(&folder, "repro.py"));
        assert_eq!(converted(&folder, "report"), read(&folder, "report.md"));
        assert!(read(&folder, "report.md").contains("was planted"));
        let output = isolde(&["convert", text(dir.path()), "--to", "report"]);
        assert_eq!(output.status.code(), Some(5), "{output:?}");
    }
    if let Some(runner) = open("postgres")
        && let Some(program) = tool("isolationtester")
    {
        let folder = planted("postgres", dir.path());
        let client = runner.engine.client().unwrap();
        let theirs = isolation_output(&program, &client, &read(&folder, "repro.spec"));
        assert!(theirs.contains("starting permutation"), "{theirs}");
        assert_ne!(theirs, read(&folder, "repro.out"));
        assert_eq!(converted(&folder, "spec-out"), read(&folder, "repro.out"));
    }
    let Some(mut runner) = open("mariadb") else { return };
    let Some(tool) = MysqlTest::on(runner.engine.as_mut()) else { return };
    let folder = planted("mariadb", dir.path());
    let (test, result) = (read(&folder, "repro.test"), read(&folder, "repro.result"));
    assert!(tool.run(runner.engine.as_mut(), &test, &result).is_err());
    assert_eq!(converted(&folder, "mtr"), test);
}

#[test]
fn formats_with_results_require_a_recorded_run() {
    let dir = tempfile::tempdir().unwrap();
    let (file, run) = (dir.path().join("a.case"), dir.path().join("run.json"));
    std::fs::write(
        &file,
        "case: a\n\nsetup:\n  create table t (a int);\n\ns1> insert into t values (1);\n",
    )
    .unwrap();
    let output = isolde(&["convert", text(&file), "--to", "python"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(all_output(&output).contains("--history"), "{}", all_output(&output));
    let output = isolde(&["replay", text(&file), "--on", "sqlite", "--json"]);
    std::fs::write(&run, &output.stdout).unwrap();
    let with_run =
        |to: &str| isolde(&["convert", text(&file), "--to", to, "--history", text(&run)]);
    assert!(
        all_output(&with_run("python")).contains("affected 1"),
        "{}",
        all_output(&with_run("python"))
    );
    assert!(all_output(&with_run("report")).contains("## Steps"));
    assert!(all_output(&with_run("sql")).contains("-- 1 row"), "{}", all_output(&with_run("sql")));
    for bad in ["{", "{}", "{\"runs\": []}", "{\"case\": \"a\"}"] {
        std::fs::write(&run, bad).unwrap();
        assert_eq!(
            with_run("report").status.code(),
            Some(5),
            "{bad}: {}",
            all_output(&with_run("report"))
        );
    }
}
