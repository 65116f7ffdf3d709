//! Serial runs of what a concurrent run committed, one transaction after the
//! other, in the order that the caller gives.
//!
//! The oracles give the order of the commits, as First-Commit/Rollback-First-
//! Scheduled does (WriteCheck, section 3.3); what did not commit is left out
//! here, since it must have had no effect. The search for a cause tries other
//! orders, too.

use super::{Concurrent, Executed};
use crate::Case;
use crate::case::Step;
use crate::sql::Kind;

/// A serial run to make: a case, and which step of the concurrent one each of
/// its steps is.
#[derive(Clone, Debug, PartialEq)]
pub struct Replay {
    pub name: Serial,
    pub case: Case,
    pub origin: Vec<usize>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Serial {
    Transactions,
    Statements,
    /// Statements in an order that follows from what they saw.
    Topological,
    /// Transactions one after the other that were merged and overlapped.
    Merged,
}

impl Serial {
    pub fn name(self) -> &'static str {
        match self {
            Serial::Transactions => "serial-tx",
            Serial::Statements => "serial-stmt",
            Serial::Topological => "topological",
            Serial::Merged => "merged",
        }
    }
}

/// The committed transactions, whole, one after the other. Reads are left out
/// unless they are compared: by construction no write depends on one.
pub fn serial_transactions(run: &Concurrent<'_>, order: &[&Executed], reads: bool) -> Replay {
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
    replay(run, Serial::Transactions, origin, |step| step)
}

/// The writes of the committed transactions, each in autocommit, without what
/// ROLLBACK TO took back. None when a statement is of a kind whose effect is
/// not known, such as EXECUTE.
pub fn serial_statements(run: &Concurrent<'_>, order: &[&Executed]) -> Option<Replay> {
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
    Some(replay(run, Serial::Statements, origin, |mut step: Step| {
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
    run: &Concurrent<'_>,
    name: Serial,
    origin: Vec<usize>,
    change: impl Fn(Step) -> Step,
) -> Replay {
    let mut case = run.case.clone();
    case.expectations.clear();
    case.steps = origin.iter().map(|i| change(run.case.steps[*i].clone())).collect();
    if name == Serial::Statements {
        for (session, level) in &mut case.session_levels {
            *session = format!("autocommit_{}", level.short());
        }
        case.session_levels.sort();
        case.session_levels.dedup();
    }
    // Of some sessions nothing is left: a case names none without a step.
    let steps = &case.steps;
    case.session_levels.retain(|(session, _)| steps.iter().any(|s| s.session == *session));
    Replay { name, case, origin }
}

fn steps_in_transactions(run: &Concurrent<'_>) -> Vec<bool> {
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
pub fn unseen_orders<'r>(run: &'r Concurrent<'_>, most: usize) -> Vec<Vec<&'r Executed>> {
    let writes = |t: &&Executed| t.steps.iter().any(|s| run.case.steps[*s].kind() != Kind::Select);
    let committed: Vec<&Executed> = run.committed().into_iter().filter(writes).collect();
    let mut found = Vec::new();
    permute(&committed, &mut Vec::new(), most + 1, &mut found);
    // The first in lexicographic order is the order of commits itself.
    found.drain(..found.len().min(1));
    found
}

fn permute<'r>(
    all: &[&'r Executed],
    chosen: &mut Vec<usize>,
    most: usize,
    found: &mut Vec<Vec<&'r Executed>>,
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
