//! What a round at full speed adds to the counts of a hunt, and how its anomaly is reported.

use crate::finding;
use crate::isolation::{Excerpt, OrderSource, RoundRecord};
use crate::output::tally::Tally;
use crate::run::Rate;
use isolde_checker::{Anomaly, Class, Witness};
use isolde_histories::write_own;
use isolde_model::Case;
use isolde_model::history::ErrorClass;
use isolde_model::trace::OperationResult;

/// Counts a round: one case with its transactions and statements.
pub(super) fn count(tally: &mut Tally, round: &RoundRecord) {
    let trace = &round.trace;
    let ends = trace.ends();
    tally.cases += 1;
    tally.transactions += trace.transactions.len() as u64;
    tally.aborted += ends.aborted + ends.lost;
    tally.statements += trace.operations.len() as u64;
    tally.statements_in_all += trace.operations.len() as u64;
    let refused =
        |result: &OperationResult| matches!(result, OperationResult::Error(ErrorClass::Rejected));
    tally.invalid += trace.operations.iter().filter(|o| refused(&o.result)).count() as u64;
}

/// Counts the anomalies of the data that are not forbidden: the level allows them, or its
/// documentation does not say.
pub(super) fn count_allowed(
    tally: &mut Tally,
    round: &RoundRecord,
    forbidden: &[&Anomaly],
    is_documented: bool,
) {
    let of_data = round.report.anomalies.iter().filter(|a| a.through.is_none());
    for allowed in of_data.filter(|a| !forbidden.iter().any(|f| f.class == a.class)) {
        let (name, count) = (format!("{} at {}", allowed.class, round.level), allowed.count as u64);
        if is_documented {
            *tally.by_behaviour.entry(name).or_default() += count;
            tally.violations.documented += count;
        } else {
            let why = format!("{name}: the driver does not say whether the level allows it");
            *tally.unknown.entry(why).or_default() += count;
            tally.violations.undecided += count;
        }
    }
}

/// The anomaly with the fewest transactions; the first of several.
pub(super) fn shortest<'a>(found: &[&'a Anomaly]) -> Option<&'a Anomaly> {
    let size = |anomaly: &&&Anomaly| match &anomaly.witness {
        Witness::Cycle(edges) => edges.len(),
        Witness::Operation { .. } => 1,
    };
    found.iter().min_by_key(size).copied()
}

pub(super) fn signature(case: &Case, round: &RoundRecord, class: Class) -> String {
    let level = round.level.short();
    format!("bug / {level} / {class} / {}", finding::shape(case))
}

pub(super) fn sentences(
    round: &RoundRecord,
    seen: &Anomaly,
    excerpt: &Excerpt,
    rate: Rate,
) -> Vec<String> {
    let sessions = round.trace.sessions.len();
    let count = round.trace.transactions.len();
    let level = round.level;
    let mut all = vec![format!(
        "{count} transactions ran in {sessions} sessions at full speed at {level}; what they read \
         and wrote has a cycle that the level rules out: {}, {}.",
        seen.name(),
        seen.class.meaning()
    )];
    all.extend(seen.sentences(&round.account.history).into_iter().map(|s| s + "."));
    match &excerpt.replayed {
        Some(shown) => {
            all.push(format!(
                "The case, in {}, shows {} again, in {} of {} runs:",
                match excerpt.order {
                    OrderSource::Inferred => "the order that times, versions and locks tell",
                    OrderSource::Clocks => "the order in which its statements were sent",
                },
                shown.anomaly.name(),
                rate.seen,
                rate.runs
            ));
            let history = &shown.examination.history;
            all.extend(shown.anomaly.sentences(history).into_iter().map(|s| s + "."));
        }
        None => all.push(
            "Played in the order that times, versions and locks tell, and in that in which their \
             statements were sent, the transactions of the cycle do not show it again: the engine \
             needs the load, or something that the trace does not tell. history.jsonl has the \
             whole round, for `isolde check`, and trace.jsonl for `isolde order`."
                .into(),
        ),
    }
    all.push("Cause: bug.".into());
    all
}

/// The trace of the round, as `trace.jsonl` holds it.
pub(super) fn traced(round: &RoundRecord) -> String {
    round.trace.lines().map(|line| line + "\n").collect()
}

/// The history of the round, as `history.jsonl` holds it.
pub(super) fn recorded(round: &RoundRecord) -> String {
    let mut bytes = Vec::new();
    match write_own(&round.account.history, &mut bytes) {
        Ok(()) => String::from_utf8_lossy(&bytes).into_owned(),
        Err(_) => String::new(),
    }
}
