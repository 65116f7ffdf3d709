//! Fuzz targets: one function per parser and wire decoder. Each takes arbitrary
//! bytes and must return, whatever they are: a panic is a defect. The result says
//! whether the input was accepted.
//!
//! Where a format can be written too, the target also checks that what was read
//! can be written and read again with the same result.
//!
//! `fuzz/` runs the targets under libFuzzer (`cargo +nightly fuzz run
//! case_file`). The test `fuzz_corpus` runs them over the corpus in
//! `fuzz/corpus` and seeded mutations of it.

use isolde_checker::check;
use isolde_engines::connect::url::ServerUrl;
use isolde_engines::driver::{DriverCommand, read_line};
use isolde_engines::engine::TxStatus;
use isolde_engines::{mysql, postgres};
use isolde_histories::{Format, read, read_bytes, write_own};
use isolde_hunt::baseline::Baseline;
use isolde_hunt::finding::{Finding, KnownBug};
use isolde_hunt::summary::Summary;
use isolde_interop::script::{read_mtr, read_replbug};
use isolde_interop::spec;
use isolde_model::case::{self, text_of};
use isolde_model::{History, Profile, Trace};
use isolde_order::{infer, leopard};
use isolde_sql::dialect::Family;
use isolde_sql::{self as sql, Dialect};

/// A fuzz target.
pub type Target = fn(&[u8]) -> bool;

/// All targets, by name. Each has a program in `fuzz/fuzz_targets` and a folder
/// in `fuzz/corpus`.
pub const TARGETS: &[(&str, Target)] = &[
    ("baseline", baseline),
    ("case_file", case_file),
    ("driver_message", driver_message),
    ("finding_json", finding_json),
    ("history_awdit", |data| history(data, "awdit")),
    ("history_cobra", history_cobra),
    ("history_dbcop_binary", |data| history(data, "dbcop-binary")),
    ("history_dbcop_json", |data| history(data, "dbcop-json")),
    ("history_dbcop_text", |data| history(data, "dbcop-text")),
    ("history_detected", history_detected),
    ("history_elle_edn", |data| history(data, "elle-edn")),
    ("history_elle_json", |data| history(data, "elle-json")),
    ("history_isolde", |data| history(data, "isolde")),
    ("history_plume", |data| history(data, "plume")),
    ("hunt_json", hunt_json),
    ("known_json", known_json),
    ("leopard", leopard),
    ("mtr", mtr),
    ("mysql_wire", mysql_wire),
    ("postgres_wire", postgres_wire),
    ("recorded_history", recorded_history),
    ("replbug", replbug),
    ("spec", spec),
    ("sql", sql),
    ("target", target),
    ("trace", trace),
];

/// Runs the target of this name.
pub fn run(name: &str, data: &[u8]) -> bool {
    let (_, target) = TARGETS.iter().find(|(n, _)| *n == name).expect("a name of the table");
    target(data)
}

/// The text of a case file or a script. Invalid UTF-8 is refused with a position;
/// the targets then continue with replacement characters, to reach the parser.
fn text(data: &[u8]) -> String {
    text_of(data.to_vec()).unwrap_or_else(|error| {
        assert!(error.line >= 1 && error.column >= 1, "{error}");
        String::from_utf8_lossy(data).into_owned()
    })
}

/// Case files.
pub fn case_file(data: &[u8]) -> bool {
    let Ok(case) = case::parse(&text(data)) else { return false };
    let written = case::format(&case);
    assert_eq!(case::parse(&written), Ok(case), "{written}");
    true
}

/// PostgreSQL's isolation specs.
pub fn spec(data: &[u8]) -> bool {
    let Ok(spec) = spec::parse(&text(data)) else { return false };
    let written = spec::format(&spec);
    assert_eq!(spec::parse(&written), Ok(spec), "{written}");
    true
}

/// MySQL's test scripts.
pub fn mtr(data: &[u8]) -> bool {
    read_mtr(&text(data), "x").map(|case| case::format(&case)).is_ok()
}

/// The scripts of bug reports.
pub fn replbug(data: &[u8]) -> bool {
    read_replbug(&text(data), "x").map(|case| case::format(&case)).is_ok()
}

/// The SQL lexer, reader and renderer, in every dialect.
pub fn sql(data: &[u8]) -> bool {
    const FAMILIES: [(Family, &str); 5] = [
        (Family::Sqlite, "sqlite"),
        (Family::Postgres, "postgres"),
        (Family::Mysql, "mysql"),
        (Family::Duckdb, "duckdb"),
        (Family::Other, "other"),
    ];
    let text = text(data);
    let split = sql::split(&text);
    let mut accepted = false;
    let statements = || split.statements.iter().map(|(_, statement)| statement.as_str());
    for statement in statements().chain([text.as_str()]) {
        let _ = (sql::kind(statement), sql::hides_its_end(statement));
        let _ = (sql::taints_session(statement), sql::pieces(statement));
        let _ = (sql::outer_words(statement), sql::without_trailing_comment(statement));
        for (family, engine) in FAMILIES {
            let dialect = Dialect::for_engine(engine, "9");
            if let Some(read) = sql::read::statement(statement, family) {
                let written = read.render(&dialect);
                let again = sql::read::statement(&written, family);
                let again = again.unwrap_or_else(|| panic!("{statement}\nwritten as\n{written}"));
                assert_eq!(again.render(&dialect), written, "{statement}");
                accepted = true;
            }
        }
    }
    for (family, _) in FAMILIES {
        accepted |= !sql::read::schema(statements(), family).schema.tables.is_empty();
    }
    accepted
}

/// A history in one format.
pub fn history(data: &[u8], format: &str) -> bool {
    let format = Format::named(format).expect("a name of a format");
    read_bytes("input", data.to_vec(), Some(format)).map(|r| inspect_history(&r.history)).is_ok()
}

/// A history, plain or compressed, whose format is detected.
pub fn history_detected(data: &[u8]) -> bool {
    read_bytes("input", data.to_vec(), None).map(|r| inspect_history(&r.history)).is_ok()
}

/// A log of Cobra, which is a folder with one file per session.
pub fn history_cobra(data: &[u8]) -> bool {
    let folder = tempfile::tempdir().expect("a temporary folder");
    std::fs::write(folder.path().join("T1.log"), data).expect("a writable folder");
    read(folder.path(), Format::named("cobra")).map(|r| inspect_history(&r.history)).is_ok()
}

/// Checks a history that was read, and that it can be written and read again.
fn inspect_history(history: &isolde_checker::History) {
    let mut written = Vec::new();
    write_own(history, &mut written).expect("memory takes everything");
    let again = read_bytes("written", written.clone(), Format::named("isolde"));
    let again = again.unwrap_or_else(|e| panic!("{e}\n{}", String::from_utf8_lossy(&written)));
    assert_eq!(again.history.len(), history.len());
    // Deciding a long history takes longer than a fuzzer should spend on one input.
    if history.len() <= 50 {
        for anomaly in &check(history).anomalies {
            let _ = anomaly.sentences(history);
        }
    }
}

/// The lines of a trace.
pub fn trace(data: &[u8]) -> bool {
    let text = String::from_utf8_lossy(data);
    Trace::from_lines(text.lines()).map(|trace| inspect_trace(&trace)).is_ok()
}

/// Leopard's traces, one file per thread; here the files are separated by lines `---`.
pub fn leopard(data: &[u8]) -> bool {
    let text = String::from_utf8_lossy(data);
    let files = text.split("\n---\n").enumerate();
    let files: Vec<_> = files.map(|(n, text)| (format!("{n}.json"), text.to_string())).collect();
    leopard::read(&files).map(|trace| inspect_trace(&trace)).is_ok()
}

fn inspect_trace(trace: &Trace) {
    if infer(trace, None, 1000).is_ok() {
        let lines: Vec<String> = trace.lines().collect();
        let again = Trace::from_lines(lines.iter().map(String::as_str));
        assert_eq!(again.as_ref(), Ok(trace), "{}", lines.join("\n"));
    }
}

/// `finding.json`, with the case in it.
pub fn finding_json(data: &[u8]) -> bool {
    serde_json::from_slice::<Finding>(data).is_ok_and(|f| case_file(f.case.as_bytes()))
}

/// `known.json`.
pub fn known_json(data: &[u8]) -> bool {
    serde_json::from_slice::<Vec<KnownBug>>(data).is_ok()
}

/// `concurrent.json` and the other recorded runs of a finding.
pub fn recorded_history(data: &[u8]) -> bool {
    let Ok(history) = serde_json::from_slice::<History>(data) else { return false };
    serde_json::to_string(&history).expect("a history is JSON");
    true
}

/// `hunt.json`.
pub fn hunt_json(data: &[u8]) -> bool {
    let Ok(summary) = Summary::parse(data) else { return false };
    serde_json::to_string(&summary).expect("a summary is JSON");
    true
}

/// The file of `--baseline`.
pub fn baseline(data: &[u8]) -> bool {
    Baseline::parse(&String::from_utf8_lossy(data)).is_ok()
}

/// The lines that a driver sends.
pub fn driver_message(data: &[u8]) -> bool {
    let profile: Profile = serde_json::from_str(
        r#"{"levels":[{"level":"SERIALIZABLE"}],"default_level":"SERIALIZABLE","waiting":"never"}"#,
    )
    .expect("a profile");
    let mut accepted = true;
    for line in String::from_utf8_lossy(data).lines() {
        match read_line(line) {
            Ok((_, message)) => {
                let _ = message.describe();
                let _ = message.into_reply(&profile, Some(TxStatus::Open));
            }
            Err(_) => accepted = false,
        }
    }
    accepted
}

/// The names of targets on the command line: engines, URLs and drivers.
pub fn target(data: &[u8]) -> bool {
    let text = String::from_utf8_lossy(data);
    let text = text.trim_end();
    let accepted = isolde_engines::target::Target::parse(text).is_ok();
    let _ = ServerUrl::parse(text);
    let _ = DriverCommand::parse(text);
    accepted
}

/// How many bytes the wire targets take: as many as a socket surely buffers.
const LARGEST_INPUT: usize = 1 << 15;

/// The bytes of a PostgreSQL server.
pub fn postgres_wire(data: &[u8]) -> bool {
    postgres::fuzz(&data[..data.len().min(LARGEST_INPUT)]).expect("a loopback connection")
}

/// The bytes of a MySQL server.
pub fn mysql_wire(data: &[u8]) -> bool {
    mysql::fuzz(&data[..data.len().min(LARGEST_INPUT)]).expect("a loopback connection")
}
