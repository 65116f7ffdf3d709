//! `isolde explain --fix`: the case again, with each remedy for its anomaly.

use super::advice::{Remedy, remedies};
use super::{ExplainedRun, explain_run};
use crate::exit_code::Failure;
use isolde_hunt::executor::Executor;
use isolde_model::case::{Parsed, Step};
use isolde_model::history::{EventKind, History};
use isolde_model::{Case, Value};
use isolde_reference::NamedAnomaly;
use isolde_sql::render::Renderer;
use isolde_sql::{
    Binary, Dialect, Expr, Literal, LockPatience, LockStrength, Locking, Select, SelectItem, Stmt,
    Write,
};

/// The runs that show that the advice helps.
pub fn runs(
    executor: &mut Executor,
    case: &Case,
    first: &ExplainedRun,
    anomaly: &NamedAnomaly,
) -> Result<Vec<ExplainedRun>, Failure> {
    let mut runs = Vec::new();
    let (engine, level) = (&executor.runner.engine, first.level);
    let (info, profile) = (engine.info().clone(), engine.profile().clone());
    let case = case.clone().read_as(info.family());
    for remedy in remedies(&info, &profile, level, anomaly) {
        let (title, fixed, level) = match remedy {
            Remedy::LockingReads => {
                let title = format!("With SELECT … FOR UPDATE, at {level}");
                (title, Some(with_locking_reads(&case, &info.dialect())), level)
            }
            Remedy::AtomicUpdates => {
                let title = format!("With an UPDATE that computes the new value, at {level}");
                (title, with_atomic_updates(&case, &first.history, &info.dialect()), level)
            }
            Remedy::Level(level) => (format!("At {level}"), Some(at_one_level(&case)), level),
        };
        let Some(fixed) = fixed else { continue };
        let run = explain_run(executor, &fixed, level)?;
        runs.push(ExplainedRun { variant: Some(title), ..run });
    }
    Ok(runs)
}

fn rewrite(step: &mut Step, sql: String, dialect: &Dialect) {
    step.sql = sql;
    step.parsed = Parsed::later(dialect.family);
}

/// The case without levels of single sessions and transactions.
fn at_one_level(case: &Case) -> Case {
    let mut case = case.clone();
    case.session_levels.clear();
    case.steps.iter_mut().for_each(|step| step.level = None);
    case
}

/// The case with FOR UPDATE at the end of its plain queries.
fn with_locking_reads(case: &Case, dialect: &Dialect) -> Case {
    let mut case = case.clone();
    for step in &mut case.steps {
        let Some(Stmt::Select(select)) = step.statement() else { continue };
        if select.locking.is_some() || select.from.is_none() || select.set_operation.is_some() {
            continue;
        }
        let sql = match locks_its_rows(select) {
            true => format!("{} for update", step.sql.trim_end_matches([';', ' '])),
            false => Renderer::new(dialect).select(&locking_rows(select)),
        };
        rewrite(step, sql, dialect);
    }
    case
}

/// Whether the rows of a query are rows of its tables, so that FOR UPDATE may follow.
fn locks_its_rows(select: &Select) -> bool {
    let mut aggregates = false;
    for item in select.items.iter().filter_map(SelectItem::expression) {
        item.visit(&mut |e| {
            aggregates |= matches!(e, Expr::Aggregate { .. } | Expr::Window { .. });
        });
    }
    !aggregates && !select.distinct && select.group_by.is_empty()
}

/// A query that locks the rows which an aggregate is computed from.
fn locking_rows(select: &Select) -> Select {
    let (strength, patience) = (LockStrength::Update, LockPatience::Wait);
    Select {
        distinct: false,
        items: vec![SelectItem::All],
        group_by: Vec::new(),
        having: None,
        order: Default::default(),
        locking: Some(Locking { strength, of: Vec::new(), patience }),
        ..select.clone()
    }
}

/// The case with `set v = v + 10` where a transaction read 100 and wrote 110, without
/// the reads. None if there is no such write.
fn with_atomic_updates(case: &Case, history: &History, dialect: &Dialect) -> Option<Case> {
    let mut fixed = case.clone();
    let mut reads: Vec<usize> = Vec::new();
    for (at, step) in fixed.steps.iter_mut().enumerate() {
        let Some(Stmt::Write(Write::Update(update))) = step.statement() else { continue };
        let mut update = update.clone();
        let mut changed = false;
        for (column, value) in &mut update.sets {
            let Expr::Literal(Literal::Int(new)) = value else { continue };
            let Some((read, old)) = value_read(case, history, at, column) else { continue };
            let by = new.saturating_sub(old);
            let sign = if by < 0 { Binary::Minus } else { Binary::Plus };
            *value = Expr::binary(sign, Expr::column(column), Expr::int(by.saturating_abs()));
            reads.push(read);
            changed = true;
        }
        if changed {
            let sql = Renderer::new(dialect).update(&update);
            rewrite(step, sql, dialect);
        }
    }
    let mut at = 0;
    fixed.steps.retain(|_| {
        at += 1;
        !reads.contains(&(at - 1))
    });
    (!reads.is_empty()).then_some(fixed)
}

/// The last read before a step in its session that returned one integer of a column: its
/// place, and the integer.
fn value_read(case: &Case, history: &History, at: usize, column: &str) -> Option<(usize, i64)> {
    let session = &case.steps[at].session;
    let label = |step: usize| {
        let nth = case.steps[..=step].iter().filter(|s| s.session == *session).count();
        format!("{session}.{nth}")
    };
    (0..at).rev().filter(|step| case.steps[*step].session == *session).find_map(|step| {
        let Some(Stmt::Select(_)) = case.steps[step].statement() else { return None };
        let label = label(step);
        let sent = history.steps.iter().position(|s| s.label == label)?;
        let Some(EventKind::Rows { columns, rows }) = history.outcome(sent).reply else {
            return None;
        };
        let place = columns.iter().position(|name| name.eq_ignore_ascii_case(column))?;
        match (&rows[..], rows.first().and_then(|row| row.get(place))) {
            ([_], Some(Value::Int(old))) => Some((step, *old)),
            _ => None,
        }
    })
}
