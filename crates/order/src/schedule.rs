//! An inferred order as a case that the runner can execute.
//!
//! No statement waits in this order, since each lock holder has ended before another transaction
//! needs the lock. So the victim of a deadlock would not fail. Other statements that failed by a
//! conflict need not fail either: the trace does not record which rows they tried to access. They
//! had no effect, so they are left out; where the failure ended their transaction, ROLLBACK is sent
//! in their place and nothing after it.

use super::Inferred;
use super::facts::Facts;
use isolde_model::Trace;
use isolde_model::case::{Case, Line, Setup, Statement, Step};
use isolde_model::history::ErrorClass;
use isolde_model::profile::Protocol;
use isolde_model::trace::OperationResult;
use isolde_sql::Kind;
use std::collections::HashSet;

/// Why a trace cannot become a case.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoSchedule {
    #[error("the trace has no setup: it is not known which tables its statements need")]
    NoSetup,
}

/// The operations in the order in which to send them.
pub struct Schedule {
    pub order: Vec<u32>,
    /// Those in whose place ROLLBACK is sent.
    pub rolled_back: HashSet<u32>,
}

impl Schedule {
    /// In the inferred order, without what failed only because others waited.
    pub fn of(trace: &Trace, inferred: &Inferred) -> Schedule {
        let facts = Facts::of(trace, Some(inferred.control.protocol));
        let mut sent = vec![false; inferred.order.len()];
        let mut order = Vec::with_capacity(inferred.order.len());
        let (mut rolled_back, mut over) = (HashSet::new(), HashSet::new());
        let mut early = inferred.early.iter().peekable();
        for (number, at) in inferred.order.iter().enumerate() {
            // Statements that took their snapshot when they were sent, and then waited.
            while let Some((waits, _)) = early.next_if(|(_, place)| *place as usize <= number) {
                if previous_sent(&facts, *waits, &sent) && !sent[*waits as usize] {
                    sent[*waits as usize] = true;
                    order.push(*waits);
                }
            }
            if std::mem::replace(&mut sent[*at as usize], true) {
                continue;
            }
            let transaction = facts.operation(*at).transaction;
            if over.contains(&transaction) {
                continue;
            }
            if !is_victim(&facts, *at) {
                order.push(*at);
            } else if facts.transaction_of(*at).doomed == Some(*at) {
                order.push(*at);
                rolled_back.insert(*at);
                over.insert(transaction);
            }
        }
        Schedule { order, rolled_back }
    }

    /// The case. Statements that only report that a transaction is over are kept.
    pub fn case(&self, trace: &Trace, id: &str) -> Result<Case, NoSchedule> {
        if trace.setup.is_empty() {
            return Err(NoSchedule::NoSetup);
        }
        let statement = |sql: &String| Statement { sql: sql.clone(), line: Line(0) };
        let setup = Setup {
            on: Vec::new(),
            statements: trace.setup.iter().map(statement).collect(),
            notes: Vec::new(),
        };
        let step = |at: &u32| {
            let operation = &trace.operations[*at as usize];
            let session = &trace.sessions[operation.session as usize];
            let text = match self.rolled_back.contains(at) {
                true => "rollback",
                false => &trace.statements[operation.statement as usize],
            };
            Step::plain(session, text, Line(0))
        };
        Ok(Case {
            id: id.into(),
            title: "the order inferred from a trace".into(),
            level: trace.level,
            setups: vec![setup],
            steps: self.order.iter().map(step).collect(),
            ..Case::default()
        })
    }
}

fn is_victim(facts: &Facts<'_>, at: u32) -> bool {
    let conflict = matches!(
        facts.operation(at).result,
        OperationResult::Error(
            ErrorClass::Deadlock
                | ErrorClass::LockTimeout
                | ErrorClass::Busy
                | ErrorClass::Serialization
                | ErrorClass::WriteConflict
        )
    );
    // Optimistic commits fail by the order alone.
    let optimistic = facts.control.protocol == Protocol::Occ;
    conflict && !(optimistic && facts.kind(at) == Kind::Commit)
}

/// Whether all that its transaction did before has been sent.
fn previous_sent(facts: &Facts<'_>, at: u32, sent: &[bool]) -> bool {
    let of = facts.operations_of(facts.operation(at).transaction as usize);
    let before = of.iter().take_while(|other| **other != at);
    before.into_iter().all(|other| sent[*other as usize])
}
