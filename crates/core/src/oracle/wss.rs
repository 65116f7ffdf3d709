//! Write-specific serializability (Cui et al., "Simple Testing Can Expose
//! Most Critical Transaction Bugs", VLDB 2025).
//!
//! What it does not verify: reads below SERIALIZABLE, and anything about a
//! transaction that did not commit but that it left no trace. A violation is
//! not yet a bug: the theorem behind it assumes that the engine finds every
//! conflict between writes, which weak levels do not promise. Whoever asks
//! must look for the cause.

use super::{Concurrent, Difference, Judgement, Replay, Verdict, compare};
use super::{serial_statements, serial_transactions, unknown_serial, unseen_orders};
use crate::History;
use crate::inquiry::Desk;

/// Orders to try of what ended between the same two submissions: all of five.
const UNSEEN_ORDERS: usize = 120;

pub const ABOUT_TRANSACTIONS: &str = "the final rows and the effect of every write are those of \
    the committed transactions run one after the other";

/// Some bugs need a transaction around a statement, and show in the serial run
/// of transactions as well.
pub const ABOUT_STATEMENTS: &str = "the final rows and the effect of every write are those of the \
    committed statements run one after the other, each by itself";

pub const ABOUT_READS: &str = "at SERIALIZABLE, where the serial order is the commit order, every \
    read of a committed transaction returns what it returns in the serial run";

/// The final state, and what each write did, as in a serial run.
pub async fn transactions(run: &Concurrent<'_>, desk: &Desk) -> Judgement {
    let replay =
        |run: &Concurrent<'_>| Some(serial_transactions(run, &run.committed(), run.commit_ordered));
    compared(run, desk, replay, write_differences).await
}

/// The same with each statement in autocommit.
pub async fn statements(run: &Concurrent<'_>, desk: &Desk) -> Judgement {
    let replay = |run: &Concurrent<'_>| serial_statements(run, &run.committed());
    compared(run, desk, replay, write_differences).await
}

/// What each read returned, where the serial order is the commit order.
pub async fn reads(run: &Concurrent<'_>, desk: &Desk) -> Judgement {
    if !run.commit_ordered {
        let why = "the serial order need not be the commit order";
        return Judgement::of(Verdict::Unknown(why.into()));
    }
    let replay = |run: &Concurrent<'_>| Some(serial_transactions(run, &run.committed(), true));
    compared(run, desk, replay, compare::reads).await
}

fn write_differences(run: &Concurrent<'_>, replay: &Replay, serial: &History) -> Vec<Difference> {
    let mut differences = compare::final_rows(run.history, serial);
    differences.extend(compare::writes(run, replay, serial));
    differences
}

/// Compares with the serial run, and with those of the orders that nobody saw
/// before a difference is one.
async fn compared(
    run: &Concurrent<'_>,
    desk: &Desk,
    replay: impl Fn(&Concurrent<'_>) -> Option<Replay>,
    differences: impl Fn(&Concurrent<'_>, &Replay, &History) -> Vec<Difference>,
) -> Judgement {
    let Some(first) = replay(run) else {
        let why = "the effect of a statement by itself is not known";
        return Judgement::of(Verdict::Unknown(why.into()));
    };
    let serial = desk.run(first.case.clone()).await;
    if let Some(why) = unknown_serial(&serial) {
        return Judgement::with(Verdict::Unknown(why.into()), (first, serial));
    }
    let found = differences(run, &first, &serial);
    if found.is_empty() {
        return Judgement::with(Verdict::Consistent, (first, serial));
    }
    for order in unseen_orders(run, UNSEEN_ORDERS) {
        let run = run.with_order(order);
        let Some(replay) = replay(&run) else { continue };
        let serial = desk.run(replay.case.clone()).await;
        if unknown_serial(&serial).is_none() && differences(&run, &replay, &serial).is_empty() {
            return Judgement::with(Verdict::Consistent, (replay, serial));
        }
    }
    Judgement::with(Verdict::Violated(found), (first, serial))
}
