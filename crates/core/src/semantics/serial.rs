//! Is there a serial order of the committed transactions that explains all
//! they read, all they changed and the rows at the end?
//!
//! The search adds one transaction after the other and walks through it alone;
//! the first statement that would not have come out as it did ends this
//! beginning of an order, and with it all orders that begin so. A search that
//! is cut off says so.

use super::choice::Choices;
use super::memory::Memory;
use super::walk::Walk;
use super::{Stop, Subject};
use crate::generate::BeginForm;
use crate::inquiry::Desk;
use crate::oracle::{Executed, executed};
use crate::sql::Stmt;

/// Beginnings of orders that are tried before nothing is said.
const MOST_BEGINNINGS: usize = 3000;

#[derive(Clone, Debug, PartialEq)]
pub enum SerialOrder {
    /// The sessions in an order that explains the run.
    Found(Vec<String>),
    /// There is none; the statement that the farthest attempt broke off at.
    None {
        step: Option<usize>,
        why: String,
    },
    CutOff,
    NotModelled {
        step: Option<usize>,
        why: String,
    },
}

pub async fn serial_order(subject: &Subject<'_>, desk: Desk) -> SerialOrder {
    let committed: Vec<Executed> =
        executed(subject.history).into_iter().filter(Executed::committed).collect();
    let (mut memory, mut choices) = (Memory::default(), Choices::default());
    let mut farthest: (usize, Option<usize>, String) = (0, None, String::new());
    for _ in 0..MOST_BEGINNINGS {
        let mut walk = Walk::new(subject, &desk, &mut memory, &mut choices);
        match walk.run_serially(&committed).await {
            Ok(order) => return SerialOrder::Found(order),
            Err(Stop::Outside { step, why, .. }) => {
                if farthest.2.is_empty() || walk.now > farthest.0 {
                    farthest = (walk.now, step, why);
                }
            }
            Err(Stop::Tried) => {}
            Err(Stop::NotModelled { step, why }) => {
                return SerialOrder::NotModelled { step: Some(step), why };
            }
            Err(Stop::Refused { step, error }) => {
                let why = format!("it cannot be evaluated: {error}");
                return SerialOrder::NotModelled { step: Some(step), why };
            }
        }
        if !choices.advance() {
            return SerialOrder::None { step: farthest.1, why: farthest.2 };
        }
    }
    SerialOrder::CutOff
}

impl<'a> Walk<'a> {
    /// The committed transactions one after the other; which comes next is a
    /// choice, the order of the commits first.
    async fn run_serially(&mut self, committed: &[Executed]) -> Result<Vec<String>, Stop> {
        self.serial = true;
        self.load().await?;
        let mut left: Vec<&Executed> = committed.iter().collect();
        let mut order = Vec::new();
        while !left.is_empty() {
            // What belongs to one session stays in its order.
            // Where commits make the order, only what nobody saw is open.
            let commits =
                self.subject.conduct(0, Some(BeginForm::Plain)).is_some_and(|c| c.commit_ordered);
            let first = |n: &usize| {
                let (next, earlier) = (left[*n], &left[..*n]);
                !earlier.iter().any(|t| t.session == next.session)
                    && (!commits || earlier.iter().all(|t| t.moment == next.moment))
            };
            let next: Vec<usize> = (0..left.len()).filter(first).collect();
            let chosen = next[self.choices.choose(next.len())];
            let transaction = left.remove(chosen);
            self.alone(transaction).await?;
            order.push(transaction.session.clone());
        }
        self.now += 1;
        self.final_rows()?;
        self.final_queries().await?;
        Ok(order)
    }

    async fn alone(&mut self, transaction: &Executed) -> Result<(), Stop> {
        let subject = self.subject;
        let Some(first) = transaction.steps.first() else { return Ok(()) };
        let session = subject.history.steps[*first].session.as_str();
        self.now += 1;
        self.begin_with(session, *first);
        let tx = self.tx_of(session);
        if let Some(tx) = tx {
            // The step that began it may have failed, and not be among these.
            self.txs[tx].autocommit = transaction.autocommit;
        }
        for step in &transaction.steps {
            // What was taken back has no effect that an order would have to show.
            let of_savepoints = matches!(
                self.operation(*step),
                Some(Stmt::Savepoint(_) | Stmt::RollbackTo(_) | Stmt::Release(_))
            );
            if of_savepoints || transaction.undone.contains(step) {
                continue;
            }
            self.now += 1;
            self.started.insert(*step, self.now);
            self.replied(session, *step).await?;
        }
        self.now += 1;
        if let Some(tx) = tx {
            self.end_tx(tx, true);
        }
        Ok(())
    }
}
