//! One permutation of a spec, as a case.

use super::{Unsupported, fitting_id, fitting_session, is_cleanup, session_level_of, statements};
use crate::spec::{Block, Spec, StepId};
use isolde_model::case::{Case, Line, Setup, Statement, Step};
use isolde_sql as sql;
use isolde_sql::Kind;

/// Interleavings are not counted beyond this; there may be billions.
const MOST_COUNTED: usize = 100_000;

/// `permutation` counts from 1; it may be left out where there is only one.
pub fn case_of_spec(
    spec: &Spec,
    id: &str,
    permutation: Option<usize>,
) -> Result<Case, Unsupported> {
    let order = chosen(spec, permutation)?;
    let mut case = Case { id: fitting_id(id), ..Case::default() };
    let mut setup: Vec<Statement> = Vec::new();
    for block in &spec.setups {
        setup.extend(statements_of(block)?);
    }
    if !setup.is_empty() {
        case.setups.push(Setup { on: Vec::new(), statements: setup, notes: Vec::new() });
    }
    let names = session_names(spec);
    for (session, name) in spec.sessions.iter().zip(&names) {
        for statement in optional(session.setup.as_ref())? {
            match session_level_of(&statement.sql) {
                Some(level) => case.session_levels.push((name.clone(), level)),
                None => case.steps.push(Step::plain(name, &statement.sql, statement.line)),
            }
        }
    }
    let finals = final_steps(spec, &order);
    for id in &order[..order.len() - finals] {
        for statement in step_statements(spec, *id)? {
            case.steps.push(Step::plain(&names[id.session], &statement.sql, statement.line));
        }
    }
    for id in &order[order.len() - finals..] {
        case.finals.extend(step_statements(spec, *id)?);
    }
    for (session, name) in spec.sessions.iter().zip(&names) {
        let teardown = optional(session.teardown.as_ref())?.into_iter();
        for statement in teardown.filter(|s| !is_cleanup(&s.sql)) {
            case.steps.push(Step::plain(name, &statement.sql, statement.line));
        }
    }
    for statement in optional(spec.teardown.as_ref())? {
        if !is_cleanup(&statement.sql) {
            let message = "a case has no teardown; only DROP is left out, since runs start empty";
            return Err(Unsupported::at(statement.line.0, message));
        }
    }
    case.session_levels.retain(|(s, _)| case.steps.iter().any(|step| step.session == *s));
    match case.steps.is_empty() {
        true => Err(Unsupported::at(1, "its steps hold no statement")),
        false => Ok(case),
    }
}

fn chosen(spec: &Spec, permutation: Option<usize>) -> Result<Vec<StepId>, Unsupported> {
    let wanted = permutation.unwrap_or(1);
    if let Some(second) = spec.permutations.get(1)
        && permutation.is_none()
    {
        let message = "a case is one schedule and here is a second: choose with --permutation N";
        return Err(Unsupported::at(second.line.0, message));
    }
    if spec.permutations.is_empty() {
        let first = spec.sessions.first().and_then(|s| s.steps.first()).map_or(1, |s| s.line.0);
        if permutation.is_none() && spec.interleavings().nth(1).is_some() {
            let message = "all interleavings are meant, and a case is one: choose with \
                           --permutation N";
            return Err(Unsupported::at(first, message));
        }
        let order = wanted.checked_sub(1).and_then(|n| spec.interleavings().nth(n));
        return order.ok_or_else(|| {
            let count = spec.interleavings().take(MOST_COUNTED).count();
            let more = if count == MOST_COUNTED { "more than " } else { "" };
            let message = format!("there is no permutation {wanted}; there are {more}{count}");
            Unsupported::at(first, message)
        });
    }
    let Some(found) = wanted.checked_sub(1).and_then(|n| spec.permutations.get(n)) else {
        let count = spec.permutations.len();
        let line = spec.permutations[count - 1].line.0;
        let message = format!("there is no permutation {wanted}; there are {count}");
        return Err(Unsupported::at(line, message));
    };
    if found.steps.iter().any(|s| !s.blockers.is_empty()) {
        let message = "a case cannot say what holds back the report of a step, as in `s1(*)`";
        return Err(Unsupported::at(found.line.0, message));
    }
    Ok(found.steps.iter().map(|s| s.id).collect())
}

/// How many steps at the end belong to a session that only looks at the
/// outcome, as [`super::spec_of_case`] writes it.
fn final_steps(spec: &Spec, order: &[StepId]) -> usize {
    let reads = |id: &StepId| {
        spec.sessions[id.session].name == super::spec_write::FINAL
            && sql::split(&spec.step(*id).sql)
                .statements
                .iter()
                .all(|(_, s)| sql::kind(s) == Kind::Select)
    };
    let count = order.iter().rev().take_while(|id| reads(id)).count();
    let elsewhere = order[..order.len() - count]
        .iter()
        .any(|id| spec.sessions[id.session].name == super::spec_write::FINAL);
    if elsewhere || count == order.len() { 0 } else { count }
}

fn session_names(spec: &Spec) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for session in &spec.sessions {
        let mut name = fitting_session(&session.name);
        while names.contains(&name) {
            name.push('_');
        }
        names.push(name);
    }
    names
}

fn optional(block: Option<&Block>) -> Result<Vec<Statement>, Unsupported> {
    block.map_or(Ok(Vec::new()), statements_of)
}

fn step_statements(spec: &Spec, id: StepId) -> Result<Vec<Statement>, Unsupported> {
    let script = spec.step(id);
    statements_of(&Block { sql: script.sql.clone(), line: script.line })
}

fn statements_of(block: &Block) -> Result<Vec<Statement>, Unsupported> {
    let place = |offset: usize| block.line.0 + block.sql[..offset].matches('\n').count();
    let Some(found) = statements(&block.sql) else {
        return Err(Unsupported::at(block.line.0, "a quote or comment of this SQL is not closed"));
    };
    let statement = |(offset, sql)| Statement { sql, line: Line(place(offset)) };
    Ok(found.into_iter().map(statement).collect())
}
