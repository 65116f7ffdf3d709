//! Write-specific serializability (Cui et al., "Simple Testing Can Expose
//! Most Critical Transaction Bugs", VLDB 2025).
//!
//! What it does not verify: reads below SERIALIZABLE, and anything about a
//! transaction that did not commit but that it left no trace. A violation is
//! not yet a bug: the theorem behind it assumes that the engine finds every
//! conflict between writes, which weak levels do not promise. The caller must
//! look for the cause.

use crate::compare;
use crate::description::OracleDescription;
use crate::judgement::{Judgement, OracleVerdict};
use crate::replay::{
    Replay, SERIAL_STATEMENTS, SERIAL_TRANSACTIONS, serial_statements, serial_transactions,
    unseen_orders,
};
use crate::run::{ConcurrentRun, unknown_serial};
use isolde_model::History;
use isolde_model::difference::Difference;
use isolde_model::inquiry::Channel;

/// The most orders to try of transactions that ended between the same two submissions: all orders
/// of five.
const UNSEEN_ORDERS: usize = 120;

const IN_COMMIT_ORDER: &str = "with a serial run of the committed transactions in commit order";

pub(crate) static TRANSACTIONS: OracleDescription = OracleDescription {
    name: "tx-wss",
    about: "the final rows and the effect of every write are those of the committed transactions \
        run one after the other",
    reference: IN_COMMIT_ORDER,
    judge: |run, channel| Box::pin(judge_transactions(run, channel)),
    serial_runs: &[SERIAL_TRANSACTIONS],
    ..OracleDescription::PLAIN
};

/// Some bugs need a transaction around a statement, and show in the serial run of transactions as
/// well.
pub(crate) static STATEMENTS: OracleDescription = OracleDescription {
    name: "stmt-wss",
    about: "the final rows and the effect of every write are those of the committed statements \
        run one after the other, each by itself",
    reference: "with the same statements run one by one in autocommit",
    judge: |run, channel| Box::pin(judge_statements(run, channel)),
    serial_runs: &[SERIAL_STATEMENTS],
    ..OracleDescription::PLAIN
};

pub(crate) static READS: OracleDescription = OracleDescription {
    name: "serial-reads",
    about: "at SERIALIZABLE, where the serial order is the commit order, every read of a \
        committed transaction returns what it returns in the serial run",
    reference: IN_COMMIT_ORDER,
    judge: |run, channel| Box::pin(judge_reads(run, channel)),
    serial_runs: &[SERIAL_TRANSACTIONS],
    ..OracleDescription::PLAIN
};

/// Compares the final rows and the effect of each write with a serial run of the transactions.
async fn judge_transactions(run: &ConcurrentRun<'_>, channel: &Channel) -> Judgement {
    let replay = |run: &ConcurrentRun<'_>| {
        Some(serial_transactions(run, &run.committed(), run.commit_ordered))
    };
    compared(run, channel, replay, write_differences).await
}

/// Compares the same with a serial run of the statements in autocommit.
async fn judge_statements(run: &ConcurrentRun<'_>, channel: &Channel) -> Judgement {
    let replay = |run: &ConcurrentRun<'_>| serial_statements(run, &run.committed());
    compared(run, channel, replay, write_differences).await
}

/// Compares what each read returned, where the serial order is the commit order.
async fn judge_reads(run: &ConcurrentRun<'_>, channel: &Channel) -> Judgement {
    if !run.commit_ordered {
        let why = "the serial order need not be the commit order";
        return Judgement::unknown(why);
    }
    let replay = |run: &ConcurrentRun<'_>| Some(serial_transactions(run, &run.committed(), true));
    compared(run, channel, replay, compare::reads).await
}

fn write_differences(
    run: &ConcurrentRun<'_>,
    replay: &Replay,
    serial: &History,
) -> Vec<Difference> {
    let mut differences = compare::final_rows(run.history, serial);
    differences.extend(compare::writes(run, replay, serial));
    differences
}

/// Compares with the serial run in commit order. A difference counts only if the serial runs in
/// all other orders that the observations allow differ as well.
async fn compared(
    run: &ConcurrentRun<'_>,
    channel: &Channel,
    replay: impl Fn(&ConcurrentRun<'_>) -> Option<Replay>,
    differences: impl Fn(&ConcurrentRun<'_>, &Replay, &History) -> Vec<Difference>,
) -> Judgement {
    let Some(first) = replay(run) else {
        let why = "the effect of a statement by itself is not known";
        return Judgement::unknown(why);
    };
    let serial = channel.run(first.case.clone()).await;
    if let Some(why) = unknown_serial(&serial) {
        return Judgement::with_replay(OracleVerdict::Unknown(why.into()), (first, serial));
    }
    let found = differences(run, &first, &serial);
    if found.is_empty() {
        return Judgement::with_replay(OracleVerdict::Consistent, (first, serial));
    }
    for order in unseen_orders(run, UNSEEN_ORDERS) {
        let run = run.with_order(order);
        let Some(replay) = replay(&run) else { continue };
        let serial = channel.run(replay.case.clone()).await;
        if unknown_serial(&serial).is_none() && differences(&run, &replay, &serial).is_empty() {
            return Judgement::with_replay(OracleVerdict::Consistent, (replay, serial));
        }
    }
    Judgement::with_replay(OracleVerdict::Violated(found), (first, serial))
}
