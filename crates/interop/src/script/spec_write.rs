//! A case as a spec with one permutation.

use super::sql_write::{LevelWords, level_words, session_level};
use super::{Unsupported, ended, general_setup, remarks};
use crate::spec;
use crate::spec::{Block, Permutation, PermutationStep, Spec, SpecSession, SpecStep, StepId};
use isolde_model::Level;
use isolde_model::case::{Case, Line};
use isolde_sql as sql;

/// The session that reads the final state.
pub(super) const FINAL: &str = "final";

/// The text of a spec, with the case's remarks above it.
pub fn spec_of_case(case: &Case) -> Result<String, Unsupported> {
    let mut spec = Spec::default();
    if let Some(setup) = general_setup(case)? {
        let statements: Vec<(&str, usize)> =
            setup.statements.iter().map(|s| (s.sql.as_str(), s.line.0)).collect();
        for (text, line) in &statements {
            check(text, *line)?;
        }
        let body: String = statements.iter().map(|(s, _)| format!("\n  {}", ended(s))).collect();
        spec.setups.push(Block { sql: body + "\n", line: Line(0) });
        // In the opposite order: a table may refer to those made before it.
        let drops: String = statements.iter().rev().filter_map(|(s, _)| drop_of(s)).collect();
        if !drops.is_empty() {
            spec.teardown = Some(Block { sql: drops + "\n", line: Line(0) });
        }
    }
    // Specs are PostgreSQL's; the words of others are for cases of theirs.
    let whose = level_words(case).unwrap_or(LevelWords::Postgres);
    let mut order = Vec::new();
    for name in case.sessions() {
        if name == FINAL && !case.finals.is_empty() {
            let line = case.steps.iter().find(|s| s.session == name).map_or(0, |s| s.line.0);
            return Err(Unsupported::at(line, "a spec needs the session name `final` for itself"));
        }
        let level = case.session_level(name, None);
        let setup =
            level.map(|level| Block { sql: session_level(whose, level) + ";", line: Line(0) });
        spec.sessions.push(SpecSession {
            name: name.into(),
            setup,
            steps: Vec::new(),
            teardown: None,
        });
    }
    if level_is_unknown(case.level)
        || case.session_levels.iter().any(|(_, l)| level_is_unknown(Some(*l)))
    {
        return Err(Unsupported::key("level", "PostgreSQL has no level snapshot"));
    }
    for step in &case.steps {
        check(&step.sql, step.line.0)?;
        let text = match step.level {
            Some(level) if level_is_unknown(Some(level)) => {
                return Err(Unsupported::at(step.line.0, "PostgreSQL has no level snapshot"));
            }
            Some(level) => match whose {
                LevelWords::Postgres => format!("{} isolation level {}", step.sql, words(level)),
                LevelWords::Mysql => {
                    format!("set transaction isolation level {}; {}", words(level), step.sql)
                }
            },
            None => step.sql.clone(),
        };
        let session = spec.sessions.iter().position(|s| s.name == step.session).unwrap_or(0);
        order.push(add_step(&mut spec, session, &ended(&text)));
    }
    if !case.finals.is_empty() {
        spec.sessions.push(SpecSession {
            name: FINAL.into(),
            setup: None,
            steps: Vec::new(),
            teardown: None,
        });
        for statement in &case.finals {
            check(&statement.sql, statement.line.0)?;
            let session = spec.sessions.len() - 1;
            order.push(add_step(&mut spec, session, &ended(&statement.sql)));
        }
    }
    let steps = order.into_iter().map(|id| PermutationStep { id, blockers: Vec::new() });
    spec.permutations.push(Permutation { steps: steps.collect(), line: Line(0) });
    Ok(format!("{}\n{}", remarks(case, "#"), spec::format(&spec)))
}

fn add_step(spec: &mut Spec, session: usize, sql: &str) -> StepId {
    let own = &mut spec.sessions[session];
    let step = own.steps.len();
    let name = format!("{}_{}", own.name, step + 1);
    own.steps.push(SpecStep { name, sql: sql.into(), line: Line(0) });
    StepId { session, step }
}

pub(super) fn check(sql: &str, line: usize) -> Result<(), Unsupported> {
    match sql.contains('}') {
        true => {
            Err(Unsupported::at(line, "a spec's SQL ends at the first }, so it cannot hold one"))
        }
        false => Ok(()),
    }
}

fn words(level: Level) -> String {
    level.name().to_lowercase()
}

fn level_is_unknown(level: Option<Level>) -> bool {
    level == Some(Level::Snapshot)
}

/// `create table t …` is undone by `drop table t`, and so are views and
/// routines.
pub(super) fn drop_of(statement: &str) -> Option<String> {
    const KINDS: [&str; 4] = ["table", "view", "procedure", "function"];
    if sql::kind(statement) != sql::Kind::Ddl {
        return None;
    }
    let words: Vec<&str> = statement.split_whitespace().collect();
    let [create, kind, rest @ ..] = words.as_slice() else { return None };
    let kind = KINDS.iter().find(|k| kind.eq_ignore_ascii_case(k))?;
    if !create.eq_ignore_ascii_case("create") {
        return None;
    }
    let skipped =
        if rest.first()?.eq_ignore_ascii_case("if") { rest.get(3)? } else { rest.first()? };
    let name = skipped.split('(').next().filter(|n| !n.is_empty())?;
    Some(format!("\n  drop {kind} {name};"))
}
