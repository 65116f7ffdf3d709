//! Write-specific serializability (Cui et al., "Simple Testing Can Expose
//! Most Critical Transaction Bugs", VLDB 2025).
//!
//! What it does not verify: reads below SERIALIZABLE, and anything about a
//! transaction that did not commit but that it left no trace. A violation is
//! not yet a bug: the theorem behind it assumes that the engine finds every
//! conflict between writes, which weak levels do not promise. Whoever asks
//! must look for the cause.

use super::{Concurrent, Difference, Oracle, Replay, Verdict, compare};
use super::{serial_statements, serial_transactions, unknown_serial};
use crate::History;

/// The final state, and what each write did, as in a serial run.
pub struct TxWss;

/// The same with each statement in autocommit: some bugs need a transaction
/// around a statement, and show in the serial run of transactions as well.
pub struct StmtWss;

/// At SERIALIZABLE what each read returned, too, where the serial order is
/// the commit order.
pub struct SerialReads;

impl Oracle for TxWss {
    fn name(&self) -> &'static str {
        "tx-wss"
    }

    fn about(&self) -> &'static str {
        "the final rows and the effect of every write are those of the committed transactions \
         run one after the other"
    }

    fn replays(&self, run: &Concurrent<'_>) -> Vec<Replay> {
        if run.unknown().is_some() {
            return Vec::new();
        }
        vec![serial_transactions(run, &run.committed(), run.commit_ordered)]
    }

    fn judge(&self, run: &Concurrent<'_>, replays: &[Replay], histories: &[&History]) -> Verdict {
        judge_writes(run, replays, histories)
    }
}

impl Oracle for StmtWss {
    fn name(&self) -> &'static str {
        "stmt-wss"
    }

    fn about(&self) -> &'static str {
        "the final rows and the effect of every write are those of the committed statements run \
         one after the other, each by itself"
    }

    fn replays(&self, run: &Concurrent<'_>) -> Vec<Replay> {
        if run.unknown().is_some() {
            return Vec::new();
        }
        serial_statements(run, &run.committed()).into_iter().collect()
    }

    fn judge(&self, run: &Concurrent<'_>, replays: &[Replay], histories: &[&History]) -> Verdict {
        judge_writes(run, replays, histories)
    }
}

fn judge_writes(run: &Concurrent<'_>, replays: &[Replay], histories: &[&History]) -> Verdict {
    if let Some(why) = run.unknown() {
        return Verdict::Unknown(why.into());
    }
    let (Some(replay), Some(serial)) = (replays.first(), histories.first()) else {
        return Verdict::Unknown("the effect of a statement by itself is not known".into());
    };
    if let Some(why) = unknown_serial(serial) {
        return Verdict::Unknown(why.into());
    }
    let mut differences = compare::final_rows(run.history, serial);
    differences.extend(compare::writes(run, replay, serial));
    verdict(differences)
}

impl Oracle for SerialReads {
    fn name(&self) -> &'static str {
        "serial-reads"
    }

    fn about(&self) -> &'static str {
        "at SERIALIZABLE, where the serial order is the commit order, every read of a committed \
         transaction returns what it returns in the serial run"
    }

    fn replays(&self, run: &Concurrent<'_>) -> Vec<Replay> {
        if !run.commit_ordered || run.unknown().is_some() {
            return Vec::new();
        }
        vec![serial_transactions(run, &run.committed(), true)]
    }

    fn judge(&self, run: &Concurrent<'_>, replays: &[Replay], histories: &[&History]) -> Verdict {
        if let Some(why) = run.unknown() {
            return Verdict::Unknown(why.into());
        }
        let (Some(replay), Some(serial)) = (replays.first(), histories.first()) else {
            return Verdict::Unknown("the serial order need not be the commit order".into());
        };
        if let Some(why) = unknown_serial(serial) {
            return Verdict::Unknown(why.into());
        }
        verdict(compare::reads(run, replay, serial))
    }
}

fn verdict(differences: Vec<Difference>) -> Verdict {
    if differences.is_empty() { Verdict::Consistent } else { Verdict::Violated(differences) }
}
