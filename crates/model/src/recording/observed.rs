//! What runs showed, as claims, and which of it another run can be held to.

use super::{Outcomes, text};
use crate::case::{Case, Claim, Expected, Subject};
use crate::expectations;
use crate::history::{EventKind, History, TxEnd};
use crate::value::{Row, Value, compare_rows};
use isolde_sql::Kind;

/// More rows than this are counted, not listed.
const LISTED_ROWS: usize = 20;
/// A longer row is unreadable, and mostly a status report of the server.
const LISTED_TEXT: usize = 600;

/// All that a run showed and that another run can be held to.
pub fn claims_of(case: &Case, history: &History) -> Vec<Claim> {
    let mut claims = Vec::new();
    for (i, step) in case.steps.iter().enumerate() {
        let nth = case.steps[..=i].iter().filter(|s| s.session == step.session).count();
        let subject = Subject::Step { session: step.session.clone(), nth };
        let mut claim = |expected| claims.push(Claim { subject: subject.clone(), expected });
        let outcome = history.outcome(i);
        if outcome.waited {
            claim(Expected::Waits);
        }
        match outcome.reply {
            Some(EventKind::Rows { rows, .. }) => claim(rows_claim(rows)),
            Some(EventKind::Affected { count }) => claim(Expected::Affects(*count)),
            Some(EventKind::Error(error)) => claim(Expected::Error(Some(error.code.clone()))),
            Some(EventKind::NotSent { .. }) => claim(Expected::NotSent),
            // How a transaction ended says it for the statements around it.
            Some(EventKind::Done)
                if !matches!(step.kind(), Kind::Begin | Kind::Commit | Kind::Rollback) =>
            {
                claim(Expected::Ok);
            }
            _ => {}
        }
    }
    // A text too long to record is looked through for what the case asks.
    let asked = case.when_it_shows().iter().flat_map(|c| &c.claims);
    for claim in asked.filter(|c| matches!(c.expected, Expected::Contains(_))) {
        if !claims.contains(claim) && expectations::holds(claim, case, history).is_ok() {
            claims.push(claim.clone());
        }
    }
    for session in case.sessions() {
        let explicit = history.transactions.iter().any(|t| t.session == session && !t.autocommit);
        let expected = match history.ending(session).filter(|_| explicit) {
            Some(TxEnd::Committed) => Expected::Commits,
            Some(TxEnd::RolledBack) => Expected::RollsBack,
            Some(TxEnd::Aborted) => Expected::Aborts,
            Some(TxEnd::Lost) => Expected::DoesNotCommit,
            Some(TxEnd::Unknown) | None => continue,
        };
        claims.push(Claim { subject: Subject::Session(session.into()), expected });
    }
    for (i, found) in history.final_state.iter().enumerate() {
        let expected = match &found.error {
            Some(error) => Expected::Error(Some(error.code.clone())),
            None => rows_claim(&found.rows),
        };
        claims.push(Claim { subject: Subject::Final(i + 1), expected });
    }
    claims
}

fn rows_claim(rows: &[Row]) -> Expected {
    let listable = |value: &Value| match value {
        Value::Text(text) => !text.chars().any(char::is_control),
        _ => true,
    };
    let text: usize = rows.iter().flatten().map(|v| v.to_string().len() + 2).sum();
    if rows.len() > LISTED_ROWS || text > LISTED_TEXT || !rows.iter().flatten().all(listable) {
        return Expected::Counts(rows.len() as u64);
    }
    let mut rows = rows.to_vec();
    rows.sort_by(|a, b| compare_rows(a, b));
    Expected::Rows(rows)
}

/// A setup that the target refuses, as a recording.
pub fn refused_setup(code: &str) -> Vec<Claim> {
    vec![Claim { subject: Subject::Setup, expected: Expected::Error(Some(code.into())) }]
}

/// What several runs come to. What never came back to an earlier value (a
/// clock, a counter) is left out; what did varies, and gives several outcomes.
pub fn settle(runs: &[Vec<Claim>]) -> Outcomes {
    let noise: Vec<Key> = keys(runs)
        .into_iter()
        .filter(|key| matches!(course(&values(runs, key)), Course::Drifts))
        .collect();
    let mut outcomes: Outcomes = Vec::new();
    for run in runs {
        let kept: Vec<Claim> = run.iter().filter(|c| !noise.contains(&key(c))).cloned().collect();
        if !outcomes.iter().any(|o| text(o) == text(&kept)) {
            outcomes.push(kept);
        }
    }
    // The order in which they happened to come says nothing.
    outcomes.sort_by_key(|o| text(o));
    outcomes
}

/// Whether something changed from run to run and was not yet seen to come
/// back, so that more runs could distinguish a counter from an open outcome.
pub fn unsettled(runs: &[Vec<Claim>]) -> bool {
    keys(runs).iter().any(|key| matches!(course(&values(runs, key)), Course::Drifts))
}

/// What was seen before and what is seen now, each once.
pub fn united(old: &Outcomes, mut new: Outcomes) -> Outcomes {
    for outcome in old {
        let within = |n: &Vec<Claim>| {
            let there = text(n);
            text(outcome).iter().all(|claim| there.contains(claim))
        };
        if !new.iter().any(within) {
            new.push(outcome.clone());
        }
    }
    new.sort_by_key(|o| text(o));
    new
}

/// A step's wait and its reply are two things: a clock may be read late.
type Key = (Subject, bool);

fn key(claim: &Claim) -> Key {
    (claim.subject.clone(), claim.expected == Expected::Waits)
}

fn keys(runs: &[Vec<Claim>]) -> Vec<Key> {
    let mut keys: Vec<Key> = Vec::new();
    for key in runs.iter().flatten().map(key) {
        if !keys.contains(&key) {
            keys.push(key);
        }
    }
    keys
}

fn values(runs: &[Vec<Claim>], wanted: &Key) -> Vec<Vec<String>> {
    let of = |run: &Vec<Claim>| {
        run.iter().filter(|c| key(c) == *wanted).map(ToString::to_string).collect()
    };
    runs.iter().map(of).collect()
}

enum Course {
    Same,
    /// It came back to an earlier value.
    Varies,
    Drifts,
}

fn course<T: PartialEq>(values: &[T]) -> Course {
    let Some(change) = values.iter().position(|v| *v != values[0]) else { return Course::Same };
    let came_back = (change + 1..values.len()).any(|i| {
        let before = values[..i].iter().rposition(|v| *v == values[i]);
        before.is_some_and(|b| b + 1 < i)
    });
    if came_back { Course::Varies } else { Course::Drifts }
}
