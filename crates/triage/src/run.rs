//! A run as triage looks at it: the case, what each statement is, and what
//! became of each transaction.

use super::statement::StatementProfile;
use isolde_model::Level;
use isolde_model::case::Case;
use isolde_model::difference::Difference;
use isolde_model::executed_transactions::executed_transactions;
use isolde_model::history::{ErrorClass, EventKind, History, TxEnd};
use isolde_reference::Account;
use isolde_sql::dialect::Family;
use isolde_sql::{Schema, read};
use std::collections::{BTreeMap, BTreeSet};

/// What is known of a finding, or of a run of a known bug.
#[derive(Clone, Copy)]
pub struct Subject<'a> {
    pub case: &'a Case,
    /// The concurrent run; without it less is known.
    pub history: Option<&'a History>,
    /// What the rules say of it.
    pub account: Option<&'a Account>,
    pub differences: &'a [Difference],
    pub oracles: &'a [String],
    /// With its mode: `sqlite+wal`.
    pub engine: &'a str,
    pub version: &'a str,
    pub level: Option<Level>,
}

/// The same with what follows from it.
pub struct Run<'a> {
    pub of: Subject<'a>,
    pub case: Case,
    pub family: Family,
    pub setup: Vec<String>,
    pub schema: Schema,
    pub statements: Vec<StatementProfile>,
    pub transactions: Vec<Transaction>,
    waited: BTreeSet<usize>,
    failed: BTreeMap<usize, ErrorClass>,
    affected: BTreeMap<usize, u64>,
    /// Steps in the order in which they finished.
    pub order: Vec<usize>,
}

/// A transaction of the run with its steps.
pub struct Transaction {
    pub session: String,
    pub autocommit: bool,
    pub end: Option<TxEnd>,
    pub steps: Vec<usize>,
    /// Where in the order of finished steps it ended.
    pub ended: usize,
}

impl<'a> Run<'a> {
    pub fn of(subject: Subject<'a>) -> Run<'a> {
        let family = Family::of(subject.engine);
        let case = subject.case.clone().read_as(family);
        let setup: Vec<String> =
            case.setup_for(subject.engine, subject.version).iter().map(|s| s.sql.clone()).collect();
        let schema = read::schema(setup.iter().map(String::as_str), family).schema;
        let statements: Vec<StatementProfile> =
            case.steps.iter().map(|step| StatementProfile::of(step, &schema)).collect();
        let mut run = Run {
            of: subject,
            family,
            setup,
            schema,
            statements,
            transactions: Vec::new(),
            waited: BTreeSet::new(),
            failed: BTreeMap::new(),
            affected: BTreeMap::new(),
            order: (0..case.steps.len()).collect(),
            case,
        };
        // A history of another case says nothing of this one.
        match subject.history.filter(|h| h.steps.len() == run.case.steps.len()) {
            Some(history) => run.read(history),
            None => run.transactions = by_session(&run),
        }
        run
    }

    fn read(&mut self, history: &History) {
        self.order = history.actual_schedule();
        for step in 0..history.steps.len() {
            let outcome = history.outcome(step);
            if outcome.waited {
                self.waited.insert(step);
            }
            match outcome.reply {
                Some(EventKind::Error(error)) => {
                    self.failed.insert(step, error.class);
                }
                Some(EventKind::Affected { count }) => {
                    self.affected.insert(step, *count);
                }
                _ => {}
            }
        }
        let finished = |at: usize| {
            let before = history.events.iter().take(at.saturating_add(1));
            let replies = before.filter(|e| {
                matches!(
                    e.what,
                    EventKind::Rows { .. }
                        | EventKind::Affected { .. }
                        | EventKind::Done
                        | EventKind::Error(_)
                )
            });
            replies.count()
        };
        self.transactions = executed_transactions(history)
            .into_iter()
            .map(|t| Transaction {
                ended: finished(t.ended_at),
                session: t.session,
                autocommit: t.autocommit,
                end: Some(t.how),
                steps: t.steps,
            })
            .collect();
    }

    pub fn waited(&self, step: usize) -> bool {
        self.waited.contains(&step)
    }

    pub fn failed(&self, step: usize) -> Option<ErrorClass> {
        self.failed.get(&step).copied()
    }

    pub fn affected(&self, step: usize) -> Option<u64> {
        self.affected.get(&step).copied()
    }

    pub fn has_lock_wait(&self) -> bool {
        !self.waited.is_empty()
    }

    pub fn step_of(&self, label: &str) -> Option<usize> {
        (0..self.case.steps.len()).find(|n| self.case.label(*n) == label)
    }

    pub fn transaction_of(&self, step: usize) -> Option<&Transaction> {
        self.transactions.iter().find(|t| t.steps.contains(&step)).or_else(|| {
            let session = &self.case.steps.get(step)?.session;
            self.transactions.iter().find(|t| t.session == *session)
        })
    }

    pub fn end_of(&self, step: usize) -> Option<&'static str> {
        self.transaction_of(step)?.end.map(end_word)
    }

    /// Where in the order of finished steps this one stands.
    pub fn place(&self, step: usize) -> Option<usize> {
        self.order.iter().position(|s| *s == step)
    }

    /// The tables that a statement touches.
    pub fn tables(&self, step: usize) -> BTreeSet<String> {
        let statement = &self.statements[step];
        statement.reads.iter().chain(&statement.writes).cloned().collect()
    }
}

pub fn end_word(end: TxEnd) -> &'static str {
    match end {
        TxEnd::Committed => "commits",
        TxEnd::RolledBack => "rolls back",
        TxEnd::Aborted => "is aborted",
        TxEnd::Lost | TxEnd::Unknown => "is lost",
    }
}

/// Without a run, a session is taken for one transaction.
fn by_session(run: &Run<'_>) -> Vec<Transaction> {
    let sessions = run.case.sessions();
    let of = |session: &str| {
        let steps: Vec<usize> =
            (0..run.case.steps.len()).filter(|n| run.case.steps[*n].session == session).collect();
        Transaction {
            session: session.into(),
            autocommit: false,
            end: None,
            ended: run.case.steps.len(),
            steps,
        }
    };
    sessions.into_iter().map(of).collect()
}
