//! A case as SQL for the engine's own client: one statement after another, the
//! session that each belongs to in a comment before it.

use super::{Unsupported, ended, general_setup, remarks};
use isolde_model::Level;
use isolde_model::case::Case;
use isolde_sql::Family;

/// Whose words set a level.
#[derive(Clone, Copy)]
pub(super) enum LevelWords {
    Postgres,
    Mysql,
}

/// What stands in a comment behind a statement, by its place in the case.
#[derive(Default)]
pub struct Results {
    pub steps: Vec<String>,
    pub finals: Vec<String>,
}

pub fn write_sql(case: &Case) -> Result<String, Unsupported> {
    write_sql_with(case, &Results::default())
}

/// The same with what came of each statement behind it.
pub fn write_sql_with(case: &Case, results: &Results) -> Result<String, Unsupported> {
    let behind = |texts: &[String], place: usize| {
        let text = texts.get(place).filter(|t| !t.is_empty());
        text.map_or(String::new(), |t| format!("  -- {}", t.replace(['\n', '\r'], " ")))
    };
    let mut out = remarks(case, "--");
    out.push_str("--\n-- Open a client for each session named in /* */ and give each its lines,\n");
    out.push_str("-- in this order. A statement that waits is left waiting.\n");
    if let Some(setup) = general_setup(case)? {
        out.push_str("\n-- setup\n");
        for statement in &setup.statements {
            out.push_str(&format!("{}\n", ended(&statement.sql)));
        }
    }
    out.push('\n');
    let words = level_words(case);
    for session in case.sessions() {
        if let Some(level) = case.session_level(session, None) {
            let statement = match words {
                Some(words) => session_level(words, level),
                None => return Err(Unsupported::key("level", NO_ENGINE)),
            };
            out.push_str(&format!("/* {session} */ {statement};\n"));
        }
    }
    for (place, step) in case.steps.iter().enumerate() {
        for note in &step.notes {
            out.push_str(format!("-- {note}").trim_end());
            out.push('\n');
        }
        if step.anyway {
            out.push_str("-- even if its transaction has ended or failed by now:\n");
        }
        let text = match (step.level, words) {
            (None, _) => step.sql.clone(),
            (Some(level), Some(LevelWords::Postgres)) => {
                format!("{} isolation level {}", step.sql, level.name().to_lowercase())
            }
            (Some(level), Some(LevelWords::Mysql)) => {
                let level = level.name().to_lowercase();
                let session = &step.session;
                out.push_str(&format!(
                    "/* {session} */ set transaction isolation level {level};\n"
                ));
                step.sql.clone()
            }
            (Some(_), None) => return Err(Unsupported::at(step.line.0, NO_ENGINE)),
        };
        let result = behind(&results.steps, place);
        out.push_str(&format!("/* {} */ {}{result}\n", step.session, ended(&text)));
    }
    if !case.finals.is_empty() {
        out.push_str("\n-- finally, in any session\n");
        for (place, statement) in case.finals.iter().enumerate() {
            let result = behind(&results.finals, place);
            out.push_str(&format!("{}{result}\n", ended(&statement.sql)));
        }
    }
    Ok(out)
}

const NO_ENGINE: &str = "how a level is set depends on the engine: name one with `engines:`, \
                          such as `engines: postgres`";

pub(super) fn level_words(case: &Case) -> Option<LevelWords> {
    match Family::of(&case.engines.first()?.engine) {
        Family::Postgres => Some(LevelWords::Postgres),
        Family::Mysql => Some(LevelWords::Mysql),
        _ => None,
    }
}

pub(super) fn session_level(words: LevelWords, level: Level) -> String {
    let level = level.name().to_lowercase();
    match words {
        LevelWords::Postgres => {
            format!("set session characteristics as transaction isolation level {level}")
        }
        LevelWords::Mysql => format!("set session transaction isolation level {level}"),
    }
}
