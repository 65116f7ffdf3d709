//! At SERIALIZABLE it does not matter where one transaction ends and the next of the same
//! client begins: three transactions one after the other leave and return the same as the
//! first two merged into one with the third overlapping it, in one of the two orders that
//! the engine may then have chosen.

use crate::compare;
use crate::description::OracleDescription;
use crate::judgement::{Judgement, OracleVerdict};
use crate::replay::{Replay, SerialRun, is_numbered};
use crate::run::ConcurrentRun;
use isolde_model::case::{Line, Step};
use isolde_model::difference::Difference;
use isolde_model::executed_transactions::ExecutedTransaction;
use isolde_model::history::{History, TxEnd};
use isolde_model::inquiry::Channel;
use isolde_model::{Case, Level, Verdict};
use isolde_reference::cause::Cause;
use isolde_sql::{LockPatience, Schema, Stmt};

const SERIAL: SerialRun =
    SerialRun { name: "merged", file: "merged.json", about: "the three transactions serially" };

pub(crate) static ORACLE: OracleDescription = OracleDescription {
    name: "merged",
    about: "at SERIALIZABLE two transactions merged into one, with a third overlapping them, \
        return and leave what the three do one after the other, in one of the two orders",
    reference: "with a serial run of three transactions, two of which were merged here and \
        overlapped by the third",
    judge: |run, channel| Box::pin(judge(run, channel)),
    judges_own_runs: true,
    serial_runs: &[SERIAL],
    cause: |_, _| {
        let text = "SERIALIZABLE is broken: neither order of the two transactions explains their \
                    results and the final rows";
        Some(Cause::new(Verdict::Bug, vec![text.into()]))
    },
    ..OracleDescription::PLAIN
};

const MERGED: &str = "merged";
const OTHER: &str = "other";

/// The run in which two are one, and where each statement stands in it.
struct Merged {
    case: Case,
    /// The steps of the two, and those of the third.
    steps: [Vec<usize>; 2],
    /// How many of the first belong to the first transaction.
    first: usize,
}

async fn judge(run: &ConcurrentRun<'_>, channel: &Channel) -> Judgement {
    let unknown = |why: &str| Judgement::unknown(why);
    let Some(reading) = run.reading else {
        return unknown("the tables of the case are not understood");
    };
    let strict = run.allows.as_ref().is_some_and(Vec::is_empty)
        && reading.levels.iter().all(|level| *level == Level::Serializable);
    if !strict {
        return unknown("transactions may only be merged where everything is serializable");
    }
    let data = |t: &ExecutedTransaction| statements(t, run.case, &reading.schema);
    let mut three: Vec<Vec<&str>> = Vec::new();
    for transaction in run.committed() {
        match data(transaction) {
            Some(statements) if statements.is_empty() => {}
            Some(statements) => three.push(statements),
            None => return unknown("what a statement does in another transaction is not known"),
        }
    }
    let [a, b, c, ..] = &three[..] else {
        return unknown("fewer than three transactions committed");
    };
    let merged = Merged::of(run.case, [a, b, c]);
    let history = channel.run(merged.case.clone()).await;
    let together = ConcurrentRun::new(&merged.case, &history, false);
    if let Some(why) = together.unknown() {
        return unknown(why);
    }
    let committed = [MERGED, OTHER].map(|s| history.ending(s) == Some(TxEnd::Committed));
    let lasting = merged.steps.iter().zip(committed).filter(|(_, committed)| *committed);
    if lasting.flat_map(|(steps, _)| steps).any(|step| failed(&history, *step)) {
        return unknown("a statement failed, which in a transaction of its own may not");
    }
    let mut found: Option<Vec<Difference>> = None;
    let mut replays = Vec::new();
    for other_first in [false, true] {
        let replay = merged.serial(committed, other_first);
        let serial = channel.run(replay.case.clone()).await;
        if let Some(why) = super::unknown_serial(&serial) {
            return unknown(why);
        }
        let mut differences = compare::writes(&together, &replay, &serial);
        differences.extend(compare::reads(&together, &replay, &serial));
        differences.extend(compare::final_rows(&history, &serial));
        replays = vec![(replay, serial)];
        if differences.is_empty() {
            return Judgement { replays, ..Judgement::of(OracleVerdict::Consistent) };
        }
        found.get_or_insert(differences);
    }
    let verdict = OracleVerdict::Violated(found.unwrap_or_default());
    Judgement { replays, ..Judgement::of(verdict) }
}

fn failed(history: &History, step: usize) -> bool {
    history.outcome(step).reply.is_none_or(|what| what.error().is_some())
}

/// The statements of a transaction that would do the same in another; none where one of
/// them may not.
fn statements<'c>(
    of: &ExecutedTransaction,
    case: &'c Case,
    schema: &Schema,
) -> Option<Vec<&'c str>> {
    let mut all = Vec::new();
    for step in of.steps.iter().filter(|s| !of.undone.contains(s)) {
        let step = &case.steps[*step];
        match step.statement()? {
            statement if is_numbered(statement, schema) => return None,
            Stmt::Select(select)
                if select.locking.as_ref().is_some_and(|l| l.patience != LockPatience::Wait) =>
            {
                return None;
            }
            statement if statement.is_data() => all.push(step.sql.as_str()),
            statement if statement.is_ddl() => return None,
            Stmt::Prepare { .. } | Stmt::Execute(_) => return None,
            _ => {}
        }
    }
    Some(all)
}

impl Merged {
    fn of(case: &Case, [a, b, c]: [&[&str]; 3]) -> Merged {
        let two: Vec<&str> = a.iter().chain(b).copied().collect();
        let mut steps = vec![step(MERGED, "begin"), step(OTHER, "begin")];
        let mut places = [Vec::new(), Vec::new()];
        // One statement of each in turn.
        for turn in 0..two.len().max(c.len()) {
            for (part, sql) in [two.get(turn), c.get(turn)].into_iter().enumerate() {
                if let Some(sql) = sql {
                    places[part].push(steps.len());
                    steps.push(step([MERGED, OTHER][part], sql));
                }
            }
        }
        steps.extend([step(MERGED, "commit"), step(OTHER, "commit")]);
        let case = Case {
            steps,
            session_levels: Vec::new(),
            expectations: Vec::new(),
            level: Some(Level::Serializable),
            ..case.clone()
        };
        Merged { case, steps: places, first: a.len() }
    }

    /// The transactions that committed, one after the other.
    fn serial(&self, [two, other]: [bool; 2], other_first: bool) -> Replay {
        let (a, b) = self.steps[0].split_at(self.first);
        let mut parts: Vec<&[usize]> = if two { vec![a, b] } else { Vec::new() };
        if other {
            let at = if other_first { 0 } else { parts.len() };
            parts.insert(at, &self.steps[1]);
        }
        let mut case = Case { steps: Vec::new(), ..self.case.clone() };
        let mut origin = Vec::new();
        for part in parts {
            let last = self.case.steps.len() - 1;
            case.steps.push(step(MERGED, "begin"));
            case.steps.extend(part.iter().map(|s| step(MERGED, &self.case.steps[*s].sql)));
            case.steps.push(step(MERGED, "commit"));
            origin.push(0);
            origin.extend(part);
            origin.push(last);
        }
        Replay { kind: SERIAL, case, origin }
    }
}

fn step(session: &str, sql: &str) -> Step {
    Step::plain(session, sql, Line::default())
}
