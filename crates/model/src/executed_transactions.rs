//! The transactions of a history with the steps that ran in each, in the
//! order in which they ended.

use crate::history::{ErrorClass, EventKind, History, TxEnd};
use isolde_sql as sql;
use isolde_sql::{Control, Kind, Stmt, read};
use std::collections::BTreeMap;

#[derive(Clone, Debug, PartialEq)]
pub struct ExecutedTransaction {
    pub session: String,
    pub autocommit: bool,
    pub how: TxEnd,
    /// The steps that were sent and did not fail for reasons of concurrency.
    pub steps: Vec<usize>,
    /// Those of its steps that ROLLBACK TO took back.
    pub undone: Vec<usize>,
    /// How many statements had been sent when it ended: transactions with the
    /// same number ended between the same two submissions, in an order that
    /// was not observed.
    pub moment: usize,
    /// The event that ended it.
    pub ended_at: usize,
}

impl ExecutedTransaction {
    pub fn committed(&self) -> bool {
        self.how == TxEnd::Committed
    }

    pub fn is_unknown(&self) -> bool {
        matches!(self.how, TxEnd::Lost | TxEnd::Unknown)
    }
}

/// Reads a history: which step belonged to which transaction, and when each
/// transaction ended.
pub fn executed_transactions(history: &History) -> Vec<ExecutedTransaction> {
    let mut all: Vec<ExecutedTransaction> = history
        .transactions
        .iter()
        .map(|t| ExecutedTransaction {
            session: t.session.clone(),
            autocommit: t.autocommit,
            how: t.how,
            steps: Vec::new(),
            undone: Vec::new(),
            moment: 0,
            ended_at: usize::MAX,
        })
        .collect();
    let mut open: BTreeMap<&str, usize> = BTreeMap::new();
    let mut savepoints: BTreeMap<&str, Savepoints> = BTreeMap::new();
    let mut sent = 0;
    // For each step the event that submitted it, and how many there were by then.
    let mut submitted: BTreeMap<usize, (usize, usize)> = BTreeMap::new();
    for (at, event) in history.events.iter().enumerate() {
        match &event.what {
            EventKind::Sent { .. } => {
                sent += 1;
                submitted.extend(event.step.map(|step| (step, (at, sent))));
            }
            EventKind::Ended { transaction, .. } => {
                let implicit =
                    history.implicit_commit(*transaction).and_then(|s| submitted.get(&s));
                let (at, sent) = implicit.copied().unwrap_or((at, sent));
                all[*transaction].ended_at = at;
                all[*transaction].moment = sent;
                open.retain(|_, t| t != transaction);
            }
            what => {
                let Some(step) = event.step.filter(|_| is_reply(what)) else { continue };
                let begins = history
                    .transactions
                    .iter()
                    .position(|t| t.begin == step && t.session == event.session);
                if let Some(t) = begins
                    && !open.values().any(|o| *o == t)
                    && all[t].ended_at == usize::MAX
                {
                    if history.transactions[t].autocommit {
                        all[t].ended_at = at;
                        all[t].moment = sent;
                    } else {
                        open.insert(&event.session, t);
                    }
                }
                let mine = savepoints.entry(event.session.as_str()).or_default();
                let belongs = begins.or_else(|| open.get(event.session.as_str()).copied());
                if let Some(t) = belongs
                    && !failed_by_others(what)
                {
                    all[t].steps.push(step);
                } else if belongs.is_none() && runs_prepared(&history.steps[step].sql) {
                    let failed = what.error().is_some();
                    let how = if failed { TxEnd::Aborted } else { TxEnd::Committed };
                    all.push(ExecutedTransaction {
                        session: event.session.clone(),
                        autocommit: true,
                        how,
                        steps: vec![step],
                        undone: Vec::new(),
                        moment: sent,
                        ended_at: at,
                    });
                }
                if what.error().is_none()
                    && matches!(
                        sql::two_phase(&history.steps[step].sql),
                        Some(sql::TwoPhase::Prepare(_))
                    )
                {
                    // It goes on without its session.
                    open.remove(event.session.as_str());
                }
                if what.error().is_none() {
                    let back_to = mine.heed(&history.steps[step].sql, step);
                    if let (Some(t), Some(since)) = (belongs, back_to) {
                        let taken_back = |s: &usize| *s > since && *s < step;
                        let undone: Vec<usize> =
                            all[t].steps.iter().copied().filter(taken_back).collect();
                        all[t].undone.extend(undone);
                    }
                }
            }
        }
    }
    all.sort_by_key(|t| t.ended_at);
    all
}

/// EXECUTE by itself is a transaction of its own, whatever it executes; the
/// history does not know what that is and has none.
fn runs_prepared(text: &str) -> bool {
    match read::control(text) {
        Some(statement) => matches!(statement, Stmt::Execute(_)),
        // With values for its parameters.
        None => sql::first_word(text).eq_ignore_ascii_case("execute"),
    }
}

/// The savepoints of a session. MySQL takes one before its transaction has
/// begun, so they are followed by session.
#[derive(Default)]
struct Savepoints(Vec<(String, usize)>);

impl Savepoints {
    /// Follows a statement that succeeded; for ROLLBACK TO the step of its
    /// savepoint.
    fn heed(&mut self, text: &str, step: usize) -> Option<usize> {
        let place = |all: &[(String, usize)], name: &str| all.iter().rposition(|(n, _)| n == name);
        match read::control(text) {
            Some(Stmt::Control(Control::Savepoint(name))) => self.0.push((name, step)),
            Some(Stmt::Control(Control::Release(name))) => self.0.truncate(place(&self.0, &name)?),
            Some(Stmt::Control(Control::RollbackTo(name))) => {
                let place = place(&self.0, &name)?;
                self.0.truncate(place + 1);
                return Some(self.0[place].1);
            }
            // COMMIT AND CHAIN and XA COMMIT are not read, but they end it.
            _ => match sql::kind(text) {
                Kind::Begin | Kind::Commit | Kind::Rollback => self.0.clear(),
                Kind::Savepoint
                | Kind::RollbackTo
                | Kind::Release
                | Kind::Select
                | Kind::Write
                | Kind::Ddl
                | Kind::Other => {}
            },
        }
        None
    }
}

fn is_reply(what: &EventKind) -> bool {
    matches!(
        what,
        EventKind::Rows { .. } | EventKind::Affected { .. } | EventKind::Done | EventKind::Error(_)
    )
}

/// A statement that failed because of another transaction, or because its own
/// may not write, did nothing; in a serial run it would do something. Its
/// transaction may have committed all the same, after ROLLBACK TO.
fn failed_by_others(what: &EventKind) -> bool {
    what.error().is_some_and(|error| {
        matches!(
            error.class,
            ErrorClass::Deadlock
                | ErrorClass::Serialization
                | ErrorClass::WriteConflict
                | ErrorClass::LockTimeout
                | ErrorClass::Busy
                | ErrorClass::Cancelled
                | ErrorClass::ReadOnly
        )
    })
}
