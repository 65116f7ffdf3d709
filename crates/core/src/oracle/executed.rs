//! The transactions of a history with the steps that ran in each, in the
//! order in which they ended.

use crate::history::{ErrorClass, History, TxEnd, What};
use std::collections::BTreeMap;

#[derive(Clone, Debug, PartialEq)]
pub struct Executed {
    pub session: String,
    /// Its place in the history's list.
    pub transaction: usize,
    pub autocommit: bool,
    pub how: TxEnd,
    /// The steps that were sent and did not fail for reasons of concurrency.
    pub steps: Vec<usize>,
    /// How many statements had been sent when it ended: transactions with the
    /// same number ended between the same two submissions, in an order that
    /// nobody saw.
    pub moment: usize,
    ended_at: usize,
}

impl Executed {
    pub fn committed(&self) -> bool {
        self.how == TxEnd::Committed
    }

    pub fn is_unknown(&self) -> bool {
        matches!(self.how, TxEnd::Lost | TxEnd::Unknown)
    }
}

/// Reads a history: which step belonged to which transaction, and when each
/// transaction ended.
pub fn executed(history: &History) -> Vec<Executed> {
    let mut all: Vec<Executed> = history
        .transactions
        .iter()
        .enumerate()
        .map(|(transaction, t)| Executed {
            session: t.session.clone(),
            transaction,
            autocommit: t.autocommit,
            how: t.how,
            steps: Vec::new(),
            moment: 0,
            ended_at: usize::MAX,
        })
        .collect();
    let mut open: BTreeMap<&str, usize> = BTreeMap::new();
    let mut sent = 0;
    for (at, event) in history.events.iter().enumerate() {
        match &event.what {
            What::Sent { .. } => sent += 1,
            What::Ended { transaction, .. } => {
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
                let belongs = begins.or_else(|| open.get(event.session.as_str()).copied());
                if let Some(t) = belongs
                    && !failed_by_others(what)
                {
                    all[t].steps.push(step);
                }
            }
        }
    }
    all.sort_by_key(|t| t.ended_at);
    all
}

fn is_reply(what: &What) -> bool {
    matches!(what, What::Rows { .. } | What::Affected { .. } | What::Done | What::Error(_))
}

/// A statement that failed because of another transaction, or because its own
/// may not write, did nothing; in a serial run it would do something. Its
/// transaction may have committed all the same, after ROLLBACK TO.
fn failed_by_others(what: &What) -> bool {
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
