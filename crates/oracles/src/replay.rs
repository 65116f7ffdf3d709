//! Serial runs of what a concurrent run committed, one transaction after the
//! other, in the order that the caller gives.
//!
//! The oracles give the order of the commits, as First-Commit/Rollback-First-
//! Scheduled does (WriteCheck, section 3.3); what did not commit is left out
//! here, since it must have had no effect. The search for a cause tries other
//! orders, too.

use crate::run::ConcurrentRun;
use isolde_model::Case;
use isolde_model::case::Step;
use isolde_model::executed_transactions::ExecutedTransaction;
use isolde_sql::Write;
use isolde_sql::{InsertSource, Kind, Schema, Stmt};

/// A serial run to make: a case, and which step of the concurrent one each of
/// its steps is.
#[derive(Clone, Debug, PartialEq)]
pub struct Replay {
    pub kind: SerialRun,
    pub case: Case,
    pub origin: Vec<usize>,
}

/// A kind of serial run: an oracle declares those that it makes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SerialRun {
    pub name: &'static str,
    /// Its file in the folder of a finding: the name and `.json`.
    pub file: &'static str,
    /// What is run, as a phrase.
    pub about: &'static str,
}

/// The committed transactions, run serially.
pub(crate) const SERIAL_TRANSACTIONS: SerialRun = SerialRun {
    name: "serial-tx",
    file: "serial-tx.json",
    about: "the transactions serially, in commit order",
};

/// The statements of the committed transactions, each in autocommit.
pub(crate) const SERIAL_STATEMENTS: SerialRun = SerialRun {
    name: "serial-stmt",
    file: "serial-stmt.json",
    about: "the statements one by one, in autocommit",
};

/// The committed transactions, whole, one after the other. Reads are left out
/// unless they are compared: by construction no write depends on one.
pub fn serial_transactions(
    run: &ConcurrentRun<'_>,
    order: &[&ExecutedTransaction],
    reads: bool,
) -> Replay {
    let mut origin = Vec::new();
    let mut emitted = vec![false; run.case.steps.len()];
    let in_a_transaction = steps_in_transactions(run);
    for transaction in order {
        let Some(first) = transaction.steps.first() else { continue };
        // What a session did outside of transactions (SET autocommit = 0, a
        // SAVEPOINT before the first statement) comes before its next one.
        for step in 0..*first {
            let s = &run.case.steps[step];
            if s.session == transaction.session
                && !in_a_transaction[step]
                && !emitted[step]
                && (s.kind() == Kind::Other || of_savepoints(s.kind()))
            {
                emitted[step] = true;
                origin.push(step);
            }
        }
        for step in &transaction.steps {
            let wanted = reads || run.case.steps[*step].kind() != Kind::Select;
            if wanted && !emitted[*step] {
                emitted[*step] = true;
                origin.push(*step);
            }
        }
    }
    replay(run, SERIAL_TRANSACTIONS, origin, |step| step)
}

/// The writes of the committed transactions, each in autocommit, without what
/// ROLLBACK TO took back. None when a statement is of a kind whose effect is
/// not known, such as EXECUTE.
pub fn serial_statements(
    run: &ConcurrentRun<'_>,
    order: &[&ExecutedTransaction],
) -> Option<Replay> {
    let kind = |step: &usize| run.case.steps[*step].kind();
    let steps: Vec<usize> = order
        .iter()
        .flat_map(|t| t.steps.iter().copied().filter(|s| !t.undone.contains(s)))
        .collect();
    if steps.iter().any(|s| kind(s) == Kind::Other) {
        return None;
    }
    let origin: Vec<usize> =
        steps.into_iter().filter(|s| matches!(kind(s), Kind::Write | Kind::Ddl)).collect();
    // One session a level, so that each statement runs at the level that its
    // transaction had.
    Some(replay(run, SERIAL_STATEMENTS, origin, |mut step: Step| {
        step.session = match run.case.session_level(&step.session, None) {
            Some(own) if Some(own) != run.case.level => format!("autocommit_{}", own.short()),
            _ => "autocommit".into(),
        };
        step.level = None;
        step
    }))
}

fn of_savepoints(kind: Kind) -> bool {
    matches!(kind, Kind::Savepoint | Kind::RollbackTo | Kind::Release)
}

fn replay(
    run: &ConcurrentRun<'_>,
    kind: SerialRun,
    origin: Vec<usize>,
    change: impl Fn(Step) -> Step,
) -> Replay {
    let mut case = run.case.clone();
    case.expectations.clear();
    case.steps = origin.iter().map(|i| change(run.case.steps[*i].clone())).collect();
    if kind == SERIAL_STATEMENTS {
        for (session, level) in &mut case.session_levels {
            *session = format!("autocommit_{}", level.short());
        }
        case.session_levels.sort();
        case.session_levels.dedup();
    }
    // Of some sessions nothing is left: a case names none without a step.
    let steps = &case.steps;
    case.session_levels.retain(|(session, _)| steps.iter().any(|s| s.session == *session));
    Replay { kind, case, origin }
}

fn steps_in_transactions(run: &ConcurrentRun<'_>) -> Vec<bool> {
    let mut inside = vec![false; run.case.steps.len()];
    for step in run.executed.iter().flat_map(|t| &t.steps) {
        inside[*step] = true;
    }
    inside
}

/// Other serial orders of the committed transactions than the one that was
/// recorded, nearest first: what ended between the same two submissions may
/// have done so in any order, but for what belongs to one session. At most
/// `most` of them, since a case has at most a few transactions that write.
pub fn unseen_orders<'r>(
    run: &'r ConcurrentRun<'_>,
    most: usize,
) -> Vec<Vec<&'r ExecutedTransaction>> {
    let writes = |t: &&ExecutedTransaction| {
        t.steps.iter().any(|s| run.case.steps[*s].kind() != Kind::Select)
    };
    let committed: Vec<&ExecutedTransaction> = run.committed().into_iter().filter(writes).collect();
    let mut found = Vec::new();
    permute(&committed, &mut Vec::new(), most + 1, &mut found);
    // The first in lexicographic order is the order of commits itself.
    found.drain(..found.len().min(1));
    found
}

fn permute<'r>(
    all: &[&'r ExecutedTransaction],
    chosen: &mut Vec<usize>,
    most: usize,
    found: &mut Vec<Vec<&'r ExecutedTransaction>>,
) {
    if found.len() >= most {
        return;
    }
    if chosen.len() == all.len() {
        found.push(chosen.iter().map(|i| all[*i]).collect());
        return;
    }
    for next in 0..all.len() {
        let may_precede = |earlier: usize| {
            all[earlier].session != all[next].session && all[earlier].moment == all[next].moment
        };
        if !chosen.contains(&next) && (0..next).filter(|i| !chosen.contains(i)).all(may_precede) {
            chosen.push(next);
            permute(all, chosen, most, found);
            chosen.pop();
        }
    }
}

/// Whether an INSERT takes the value of a column from a counter of the engine. A rollback does not
/// reset the counter, so the statement inserts other values when it runs again.
pub(crate) fn is_numbered(statement: &Stmt, schema: &Schema) -> bool {
    let Stmt::Write(Write::Insert(insert)) = statement else { return false };
    let Some(table) = schema.table(&insert.table) else { return false };
    table.columns.iter().any(|column| {
        column.numbered.is_some()
            && (insert.source == InsertSource::Defaults
                || !insert.columns.is_empty() && !insert.columns.contains(&column.name))
    })
}
