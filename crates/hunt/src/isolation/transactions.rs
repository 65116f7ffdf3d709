//! The transactions of a round as they were sent: for each statement its probe and the result of
//! the probe.

use crate::error::HuntError;
use isolde_engines::engine::{Outcome, Reply};
use isolde_engines::free_run::{Answer, FreeRun, Statements};
use isolde_engines::runner::Runner;
use isolde_generator::{Item, Plan, Round, TxPlan};
use isolde_model::trace::Trace;
use isolde_oracles::instrument::{
    Instrument, Probe, ProbeResult, Sent, StatementObservation, TransactionObservations, plain,
};
use isolde_sql::Control;
use isolde_sql::Stmt;

/// A transaction as it was sent, with the result of each statement's probe; none for a statement
/// that failed or was not answered.
pub(super) struct SentTransaction {
    pub plan: TxPlan,
    pub sent: Vec<SentStatement>,
    pub results: Vec<Option<ProbeResult>>,
}

/// One statement that a session sent.
pub(super) struct SentStatement {
    /// Its place in the transaction, counting the statements that begin and end it.
    pub place: usize,
    pub id: u64,
    pub probe: Probe,
}

/// Runs the transactions of a round at full speed.
pub(super) fn run(
    runner: &mut Runner,
    free: &FreeRun,
    instrument: &Instrument,
    round: &mut Round,
) -> Result<(Vec<SentTransaction>, Trace), HuntError> {
    // Both closures use the transactions, but never at the same time.
    let drawn: std::cell::RefCell<Vec<SentTransaction>> = std::cell::RefCell::default();
    let mut next_id = 1;
    let mut next = |session: usize| {
        let plan = round.transaction(&format!("s{}", session + 1));
        let (sent, texts) = instrument_transaction(instrument, &plan, &mut next_id);
        let results = vec![None; sent.len()];
        drawn.borrow_mut().push(SentTransaction { plan, sent, results });
        Some(Statements::from(texts))
    };
    let mut watch = |answer: &Answer<'_>| {
        let mut drawn = drawn.borrow_mut();
        let Some(of) = drawn.get_mut(answer.transaction as usize) else { return };
        let Some(place) = answer.statement.filter(|place| *place < of.sent.len()) else { return };
        of.results[place] = probe_result(instrument, &of.sent[place].probe, answer.reply);
    };
    let trace = free.run_watched(runner, &mut next, &mut watch)?;
    Ok((drawn.into_inner(), trace))
}

fn probe_result(instrument: &Instrument, probe: &Probe, reply: &Reply) -> Option<ProbeResult> {
    match &reply.outcome {
        Outcome::Rows { rows, .. } => Some(instrument.decode(probe, rows)),
        Outcome::Affected(count) => Some(probe.counted(Some(*count))),
        Outcome::Done => Some(probe.counted(None)),
        Outcome::Error(_) => None,
    }
}

/// The statements that a session sends for a transaction. Writes that cannot be instrumented are
/// not sent at all.
fn instrument_transaction(
    instrument: &Instrument,
    plan: &TxPlan,
    next_id: &mut u64,
) -> (Vec<SentStatement>, Vec<String>) {
    let (mut statements, mut texts) = (Vec::new(), Vec::new());
    for (place, (_, item)) in plan.sequence().into_iter().enumerate() {
        let statement = item.statement();
        let id = *next_id;
        *next_id += 1;
        let sent = match &item {
            Item::Start(_) | Item::End(_) => vec![plain(&statement)],
            Item::Statement(statement) => match instrument.statement(id, statement) {
                Ok(sent) => sent,
                Err(_) if statement.written_table().is_none() => vec![plain(statement)],
                Err(_) => continue,
            },
        };
        for Sent { statement, probe, .. } in sent {
            texts.push(statement.render(&instrument.dialect));
            statements.push(SentStatement { place, id, probe });
        }
    }
    (statements, texts)
}

/// The observations of each transaction.
pub(super) fn observations(
    drawn: &[SentTransaction],
    trace: &Trace,
    plan: &Plan,
) -> Vec<TransactionObservations> {
    let times = times(trace);
    let mut count = vec![0; trace.sessions.len()];
    let mut all = Vec::new();
    for ((traced, drawn), times) in trace.transactions.iter().zip(drawn).zip(times) {
        let session = &trace.sessions[traced.session as usize];
        count[traced.session as usize] += 1;
        all.push(TransactionObservations {
            name: format!("{session}.{}", count[traced.session as usize]),
            session: session.clone(),
            how: traced.how,
            times: Some(times),
            statements: statements(drawn, plan),
        });
    }
    all
}

fn statements(transaction: &SentTransaction, plan: &Plan) -> Vec<StatementObservation> {
    let sequence = transaction.plan.sequence();
    let mut all: Vec<StatementObservation> = Vec::new();
    // Savepoints, and how many statements there were before each.
    let mut savepoints: Vec<(String, usize)> = Vec::new();
    for (sent, result) in transaction.sent.iter().zip(&transaction.results) {
        let Some((_, item)) = sequence.get(sent.place) else { continue };
        let statement = item.statement();
        let Some(result) = result else {
            // The statement failed, so what was read before it means nothing. If another
            // transaction observes its effect all the same, that effect counts as undone.
            match all.last_mut() {
                Some(last) if last.id == sent.id => {
                    (last.results, last.undone) = (Vec::new(), true)
                }
                _ => all.push(StatementObservation {
                    id: sent.id,
                    text: statement.render(&plan.dialect),
                    results: Vec::new(),
                    undone: true,
                }),
            }
            continue;
        };
        match &*statement {
            Stmt::Control(Control::Savepoint(name)) => savepoints.push((name.clone(), all.len())),
            Stmt::Control(Control::RollbackTo(name)) => {
                let from =
                    savepoints.iter().rev().find(|(n, _)| n == name).map_or(all.len(), |s| s.1);
                all[from..].iter_mut().for_each(|statement| statement.undone = true);
            }
            _ => {}
        }
        if sent.probe == Probe::Nothing {
            continue;
        }
        let entry = (sent.probe.clone(), result.clone());
        match all.last_mut() {
            Some(last) if last.id == sent.id => last.results.push(entry),
            _ => all.push(StatementObservation {
                id: sent.id,
                text: statement.render(&plan.dialect),
                results: vec![entry],
                undone: false,
            }),
        }
    }
    all
}

/// When each transaction began and ended.
pub(super) fn times(trace: &Trace) -> Vec<(u64, u64)> {
    let mut times = vec![(u64::MAX, 0); trace.transactions.len()];
    for operation in &trace.operations {
        let (begin, end) = &mut times[operation.transaction as usize];
        *begin = (*begin).min(operation.start);
        *end = (*end).max(operation.end);
    }
    times
}
