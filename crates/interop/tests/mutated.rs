//! Well-formed files with random damage: a piece removed, doubled or inserted, a
//! byte changed, the end cut off. Each parser returns a result or an error with
//! a position, and never panics.

#![allow(clippy::disallowed_methods)]

use isolde_interop::script::{read_mtr, read_replbug};
use isolde_interop::spec;
use isolde_model::case;
use isolde_model::case::{ParseError, text_of};
use isolde_sql as sql;
use isolde_sql::dialect::Family;
use proptest::prelude::*;
use proptest::sample::Index;
use proptest::test_runner::Config;
use std::path::Path;
use std::sync::LazyLock;

const MTR: &str = "--source include/have_innodb.inc\ncreate table t (a int) engine=innodb;\n\
                   connect (con1,localhost,root,,);\nbegin;\n--send update t set a = 'x;y'\n\
                   connection default;\n--error 1205, ER_LOCK_DEADLOCK\nselect a from t;\n\
                   connection con1;\n--reap\ndisconnect con1;\ndrop table t;\n";
const REPLBUG: &str = "BUG_ID = \"1\"\nLINK = \"x\"\nDBMS = \"MySQL\"\nSETUP_SQL_SCRIPT = \"\"\"\n\
                       create table t (a int);\n\"\"\"\n\ndef get_scenarios(isolation_level):\n    \
                       return [\"\"\"\nconn_0> SET SESSION TRANSACTION ISOLATION LEVEL \
                       {isolation_level.value};\nconn_0> begin;\nconn_1> select 'it''s' -- x\n;\n\
                       \"\"\"]\n";
const BODIES: &str = "create trigger g before insert on t for each row begin set new.a = 1; end; \
                      select $f$ ; $f$, `a;b`, \"c;d\", e'\\';' /* ; /* nested */ */ # ;\n;";

/// The library, the specs of the tests, and one script of each kind.
static FILES: LazyLock<Vec<String>> = LazyLock::new(|| {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut files = vec![MTR.to_string(), REPLBUG.to_string(), BODIES.to_string()];
    gather(&root.join("cases"), &mut files);
    gather(&root.join("crates/cli/tests/specs"), &mut files);
    assert!(files.len() > 100, "the files have moved");
    files
});

fn gather(dir: &Path, files: &mut Vec<String>) {
    let mut entries: Vec<_> = std::fs::read_dir(dir).unwrap().flatten().map(|e| e.path()).collect();
    entries.sort();
    for path in entries {
        match std::fs::read_to_string(&path) {
            Ok(text) => files.push(text),
            Err(_) if path.is_dir() => gather(&path, files),
            Err(_) => {}
        }
    }
}

#[derive(Clone, Debug)]
enum Harm {
    Lose(Index, usize),
    Double(Index, usize),
    Insert(Index, &'static str),
    Cut(Index),
    Byte(Index, u8),
    /// Windows line endings.
    Returns,
}

fn harm() -> impl Strategy<Value = Harm> {
    let pieces = vec![
        "{",
        "}",
        "(",
        ")",
        "*",
        "\"",
        "'",
        "`",
        ";",
        "\n",
        "\r",
        "\t",
        "#",
        "--",
        "/*",
        "*/",
        ":",
        ">",
        "$",
        "$$",
        "\u{feff}",
        "\u{0}",
        "é",
        "𝄞",
        "notices",
        "session",
        "step",
        "permutation",
        "setup",
        "final:",
        "expect:",
        "level:",
        "s1>",
        "99999999999999999999",
        "  ",
        "|",
        "\"\"\"",
        "--reap",
    ];
    prop_oneof![
        (any::<Index>(), 1..40usize).prop_map(|(at, n)| Harm::Lose(at, n)),
        (any::<Index>(), 1..80usize).prop_map(|(at, n)| Harm::Double(at, n)),
        (any::<Index>(), prop::sample::select(pieces)).prop_map(|(at, p)| Harm::Insert(at, p)),
        any::<Index>().prop_map(Harm::Cut),
        (any::<Index>(), any::<u8>()).prop_map(|(at, b)| Harm::Byte(at, b)),
        Just(Harm::Returns),
    ]
}

fn do_harm(bytes: &mut Vec<u8>, harm: &Harm) {
    if bytes.is_empty() {
        return;
    }
    let len = bytes.len();
    match harm {
        Harm::Lose(at, n) => {
            let at = at.index(len);
            bytes.drain(at..len.min(at + n));
        }
        Harm::Double(at, n) => {
            let at = at.index(len);
            let piece = bytes[at..len.min(at + n)].to_vec();
            bytes.splice(at..at, piece);
        }
        Harm::Insert(at, piece) => {
            let at = at.index(len);
            bytes.splice(at..at, piece.bytes());
        }
        Harm::Cut(at) => bytes.truncate(at.index(len)),
        Harm::Byte(at, b) => bytes[at.index(len)] = *b,
        Harm::Returns => {
            let text = String::from_utf8_lossy(bytes).replace('\n', "\r\n");
            *bytes = text.into_bytes();
        }
    }
}

/// The number of damaged files; `PROPTEST_CASES=100000` tests more.
fn cases() -> u32 {
    std::env::var("PROPTEST_CASES").ok().and_then(|n| n.parse().ok()).unwrap_or(1000)
}

fn has_a_place(error: &ParseError, lines: usize) {
    assert!((1..=lines.max(1) + 1).contains(&error.line), "line {} of {lines}", error.line);
    assert!(error.column >= 1 && !error.message.is_empty());
    assert!(error.to_string().ends_with('^'));
}

const FAMILIES: [Family; 5] =
    [Family::Sqlite, Family::Postgres, Family::Mysql, Family::Duckdb, Family::Other];

/// Asserts that a parsed statement renders to a text that parses to the same
/// statement.
fn has_a_text_of_its_own(text: &str, family: Family) {
    let engine = match family {
        Family::Sqlite => "sqlite",
        Family::Postgres => "postgres",
        Family::Mysql => "mysql",
        Family::Duckdb => "duckdb",
        Family::Other => "another",
    };
    let dialect = sql::Dialect::for_engine(engine, "9");
    if let Some(read) = sql::read::statement(text, family) {
        let written = read.render(&dialect);
        let again = sql::read::statement(&written, family);
        let again = again.unwrap_or_else(|| panic!("{text}\nis written as\n{written}"));
        assert_eq!(again.render(&dialect), written, "{text}");
    }
}

proptest! {
    #![proptest_config(Config { cases: cases(), failure_persistence: None, ..Config::default() })]

    #[test]
    fn every_parser_reads_or_refuses_a_damaged_file_with_a_position(
        file in any::<Index>(),
        family in any::<Index>(),
        harms in prop::collection::vec(harm(), 1..5),
    ) {
        let mut bytes = file.get(&FILES).clone().into_bytes();
        harms.iter().for_each(|h| do_harm(&mut bytes, h));
        let lines = bytes.split(|b| *b == b'\n').count();
        let text = match text_of(bytes.clone()) {
            Ok(text) => text,
            Err(error) => {
                has_a_place(&error, lines);
                String::from_utf8_lossy(&bytes).into_owned()
            }
        };
        match case::parse(&text) {
            Ok(read) => {
                let written = case::format(&read);
                prop_assert_eq!(case::parse(&written), Ok(read), "{}", written);
            }
            Err(error) => has_a_place(&error, lines),
        }
        match spec::parse(&text) {
            Ok(read) => {
                let written = spec::format(&read);
                prop_assert_eq!(spec::parse(&written), Ok(read), "{}", written);
            }
            Err(error) => has_a_place(&error, lines),
        }
        for error in [read_mtr(&text, "x").err(), read_replbug(&text, "x").err()] {
            error.iter().for_each(|e| has_a_place(e, lines));
        }
        // No statement is longer than the text, and none is empty.
        let split = sql::split(&text);
        let total: usize = split.statements.iter().map(|(_, s)| s.len()).sum();
        prop_assert!(total <= text.len());
        prop_assert!(split.statements.iter().all(|(_, s)| !s.trim().is_empty()));
        let family = *family.get(&FAMILIES);
        let texts = split.statements.iter().map(|(_, s)| s.as_str());
        let _ = sql::read::schema(texts.clone(), family);
        for text in texts {
            has_a_text_of_its_own(text, family);
        }
    }
}
