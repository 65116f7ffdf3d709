//! Is there a serial order of the committed transactions that explains all
//! they read, all they changed and the rows at the end?
//!
//! The search appends one transaction after another and replays it alone; the
//! first statement whose result differs discards this prefix, and with it all
//! orders that begin so. A search that is cut off is reported as such.

use crate::model::ReferenceModel;
use crate::search::{Choices, EvalCache};
use crate::stop::Stop;
use crate::subject::Subject;
use isolde_catalog::SerialOrderPromise;
use isolde_model::breach::{Breach, SerialAttempt};
use isolde_model::executed_transactions::{ExecutedTransaction, executed_transactions};
use isolde_model::inquiry::Channel;
use isolde_sql::BeginForm;
use isolde_sql::{Conflict, Control, Stmt, Write};

/// Beginnings of orders that are tried before nothing is said.
const MOST_BEGINNINGS: usize = 3000;

/// If more orders than this fail, only the one that explains the most is reported.
const MOST_ATTEMPTS: usize = 6;

#[derive(Clone, Debug, PartialEq)]
pub enum SerialOrder {
    /// The sessions in an order that explains the run.
    Found(Vec<String>),
    /// There is none; where the attempt that came farthest broke off, and why.
    None {
        step: Option<usize>,
        nearest: Option<Box<Breach>>,
        /// What breaks each order, where there are few.
        attempts: Vec<SerialAttempt>,
    },
    CutOff,
    NotModelled {
        step: Option<usize>,
        why: String,
    },
}

/// The statement that is to blame for a missing serial order.
struct Blamed {
    /// How likely it is the one whose read the engine has not noticed, and how far its
    /// order came.
    suspicion: (Suspicion, usize),
    step: Option<usize>,
    breach: Breach,
    order: Vec<String>,
}

/// How likely an engine has overlooked what a statement read. In every order another
/// statement fails, and each of them read something that another transaction wrote.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Suspicion {
    /// Only the rows at the end differ.
    FinalRows,
    /// It finds rows by a condition.
    Search,
    /// What it did depends on a row with the same key, which it need not return or write.
    KeyConflict,
}

fn suspicion(model: &ReferenceModel<'_>, step: Option<usize>) -> Suspicion {
    match step.map(|step| model.operation(step)) {
        None => Suspicion::FinalRows,
        Some(Some(Stmt::Write(Write::Insert(insert)))) if insert.conflict != Conflict::Fail => {
            Suspicion::KeyConflict
        }
        Some(_) => Suspicion::Search,
    }
}

pub async fn serial_order(subject: &Subject<'_>, channel: Channel) -> SerialOrder {
    let committed: Vec<ExecutedTransaction> = executed_transactions(subject.history)
        .into_iter()
        .filter(ExecutedTransaction::committed)
        .filter(|t| !t.steps.iter().all(|s| subject.is_utility(*s)))
        .collect();
    let (mut cache, mut choices) = (EvalCache::default(), Choices::default());
    let mut blamed: Option<Blamed> = None;
    let mut attempts: Vec<SerialAttempt> = Vec::new();
    for _ in 0..MOST_BEGINNINGS {
        let mut model = ReferenceModel::new(subject, &channel, &mut cache, &mut choices);
        match model.run_serially(&committed).await {
            Ok(order) => return SerialOrder::Found(order),
            Err(Stop::Outside { step, breach, .. }) => {
                let order = model.serial_order.clone();
                let few = attempts.len() <= MOST_ATTEMPTS;
                if few && !attempts.iter().any(|a| a.order == order) {
                    let step = step.map(|s| subject.history.steps[s].label.clone());
                    attempts.push(SerialAttempt { order, step, breach: Box::new(breach.clone()) });
                }
                let suspicion = (suspicion(&model, step), model.world.now());
                if blamed.as_ref().is_none_or(|known| suspicion > known.suspicion) {
                    let order = model.serial_order.clone();
                    blamed = Some(Blamed { suspicion, step, breach, order });
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
            if attempts.len() > MOST_ATTEMPTS {
                attempts.clear();
            }
            let step = blamed.as_ref().and_then(|blamed| blamed.step);
            if let Some(blamed) = &blamed {
                // Its attempt explains why it is to blame.
                attempts.sort_by_key(|attempt| attempt.order != blamed.order);
            }
            let nearest = blamed.map(|blamed| Box::new(blamed.breach));
            return SerialOrder::None { step, nearest, attempts };
        }
    }
    SerialOrder::CutOff
}

impl<'a> ReferenceModel<'a> {
    /// The committed transactions one after the other; which comes next is a
    /// choice, the order of the commits first.
    async fn run_serially(
        &mut self,
        committed: &[ExecutedTransaction],
    ) -> Result<Vec<String>, Stop> {
        self.serial = true;
        self.load().await?;
        let mut left: Vec<&ExecutedTransaction> = committed.iter().collect();
        while !left.is_empty() {
            // What belongs to one session stays in its order.
            // Where the serial order is the commit order, only commits whose order
            // was not observed are open.
            let commits = self
                .subject
                .concurrency(0, Some(BeginForm::Plain))
                .is_some_and(|c| c.commit.serial_order == SerialOrderPromise::CommitOrder);
            let first = |n: &usize| {
                let (next, earlier) = (left[*n], &left[..*n]);
                !earlier.iter().any(|t| t.session == next.session)
                    && (!commits || earlier.iter().all(|t| t.moment == next.moment))
            };
            let next: Vec<usize> = (0..left.len()).filter(first).collect();
            let chosen = next[self.search.choose(next.len())];
            let transaction = left.remove(chosen);
            self.serial_order.push(transaction.session.clone());
            self.alone(transaction).await?;
        }
        self.world.tick();
        self.final_rows()?;
        self.final_queries().await?;
        Ok(self.serial_order.clone())
    }

    async fn alone(&mut self, transaction: &ExecutedTransaction) -> Result<(), Stop> {
        let subject = self.subject;
        let Some(first) = transaction.steps.first() else { return Ok(()) };
        let session = subject.history.steps[*first].session.as_str();
        self.world.tick();
        self.begin_with(session, *first);
        let tx = self.world.tx_of(session);
        if let Some(tx) = tx {
            // The step that began it may have failed, and not be among these.
            self.world.tx_mut(tx).autocommit = transaction.autocommit;
        }
        for step in &transaction.steps {
            // Statements that were rolled back have no effect that a serial order must
            // explain.
            let of_savepoints = matches!(
                self.operation(*step),
                Some(Stmt::Control(
                    Control::Savepoint(_) | Control::RollbackTo(_) | Control::Release(_)
                ))
            );
            if of_savepoints || transaction.undone.contains(step) {
                continue;
            }
            self.world.tick();
            self.world.start(*step, self.world.now());
            self.replied(session, *step).await?;
        }
        self.world.tick();
        if let Some(tx) = tx {
            self.world.end(tx, true);
        }
        Ok(())
    }
}
