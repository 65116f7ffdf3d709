//! What a run showed, as claims: what `expect` blocks hold once a case has
//! been recorded, and how a later run is compared with them.
//!
//! A recording is an `expect` block whose targets name one version each, at
//! levels that it lists. It is complete: a wait or an error that it does not
//! hold is a difference. Blocks that were written by hand claim only what
//! they say. Where an engine leaves open what happens, the block has several
//! outcomes, and a run must be one of them.

mod observed;
#[cfg(test)]
mod tests;

pub use observed::{claims_of, refused_setup, settle, united, unsettled};

use crate::case::{Case, Claim, Condition, Expectation, Expected, Line, Step, Subject};
use crate::expectations;
use crate::history::History;
use crate::value::{Row, compare_rows, same_multiset};
use crate::{Level, transcript};
use isolde_sql::Kind;
use isolde_sql::selector::Selector;
use std::cmp::Ordering;

/// What was seen at one place: one outcome, or each of those that the engine
/// leaves open.
pub type Outcomes = Vec<Vec<Claim>>;

/// The engine, version and level that a recording was made on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordingTarget {
    pub on: Selector,
    pub level: Level,
}

impl RecordingTarget {
    pub fn new(engine: &str, version: &str, level: Level) -> RecordingTarget {
        let fits = |c: char| c.is_ascii_alphanumeric() || c == '.';
        let version: String = version.chars().take_while(|c| fits(*c)).collect();
        let version = (!version.is_empty()).then_some(version);
        RecordingTarget {
            on: Selector { engine: engine.into(), from: version.clone(), to: version },
            level,
        }
    }

    fn order(&self) -> (String, Vec<u64>, Level) {
        let version = self.on.from.as_deref().unwrap_or("");
        let parts = version.split('.').map(|p| p.parse().unwrap_or(u64::MAX)).collect();
        (self.on.engine.clone(), parts, self.level)
    }
}

/// The places where the case has been recorded, with what was.
pub fn recordings(case: &Case) -> Vec<(RecordingTarget, Outcomes)> {
    let mut found = Vec::new();
    for block in case.expectations.iter().filter(|e| is_recording(e)) {
        let outcomes: Outcomes = block.outcomes().into_iter().map(<[Claim]>::to_vec).collect();
        found.extend(places(block).into_iter().map(|place| (place, outcomes.clone())));
    }
    found.sort_by_key(|(place, _)| place.order());
    found
}

fn places(block: &Expectation) -> Vec<RecordingTarget> {
    let at = |on: &Selector, level: &Level| RecordingTarget { on: on.clone(), level: *level };
    block.on.iter().flat_map(|on| block.levels.iter().map(move |l| at(on, l))).collect()
}

fn is_recording(block: &Expectation) -> bool {
    !block.on.is_empty()
        && !block.levels.is_empty()
        && block.on.iter().all(Selector::is_one_version)
}

pub fn recorded_at(case: &Case, engine: &str, version: &str, level: Level) -> Option<Outcomes> {
    recordings(case)
        .into_iter()
        .find(|(place, _)| place.level == level && place.on.expects(engine, version))
        .map(|(_, outcomes)| outcomes)
}

/// Replaces what was recorded at these places; the rest of the case stays,
/// and so do comments on the blocks. Places and levels that showed the same
/// share a block.
pub fn record(case: &mut Case, new: Vec<(RecordingTarget, Outcomes)>) {
    let mut all = recordings(case);
    all.retain(|(place, _)| !new.iter().any(|(p, _)| p == place));
    all.extend(new.into_iter().filter(|(_, outcomes)| outcomes.iter().any(|o| !o.is_empty())));
    all.sort_by_key(|(place, _)| place.order());
    let (old, rest) = std::mem::take(&mut case.expectations).into_iter().partition(is_recording);
    case.expectations = rest;
    let mut made = blocks(all);
    keep_notes(old, &mut made, &mut case.trailing_notes);
    case.expectations.append(&mut made);
}

/// A comment stays on every block that holds a place which it stood on, and
/// goes to the end of the file when no block does.
fn keep_notes(old: Vec<Expectation>, made: &mut [Expectation], left: &mut Vec<String>) {
    for block in old.into_iter().filter(|b| !b.notes.is_empty()) {
        let stood_on = places(&block);
        let mut kept = false;
        for new in made.iter_mut() {
            if places(new).iter().any(|p| stood_on.contains(p)) {
                kept = true;
                // Two blocks that became one may carry the same comment.
                if !new.notes.windows(block.notes.len()).any(|w| w == block.notes) {
                    new.notes.extend(block.notes.iter().cloned());
                }
            }
        }
        if !kept {
            left.extend(block.notes);
        }
    }
}

fn blocks(all: Vec<(RecordingTarget, Outcomes)>) -> Vec<Expectation> {
    let mut blocks: Vec<Expectation> = Vec::new();
    let mut rest = all.as_slice();
    while let Some((first, _)) = rest.first() {
        let end = rest.iter().position(|(p, _)| p.on != first.on).unwrap_or(rest.len());
        let (mine, others) = rest.split_at(end);
        rest = others;
        let mut groups: Vec<(Vec<Level>, &Outcomes)> = Vec::new();
        for (place, outcomes) in mine {
            match groups.iter_mut().find(|(_, o)| same_text(o, outcomes)) {
                Some((levels, _)) => levels.push(place.level),
                None => groups.push((vec![place.level], outcomes)),
            }
        }
        for (levels, outcomes) in groups {
            let same = |b: &&mut Expectation| {
                b.levels == levels && same_text(&b.outcomes(), outcomes.as_slice())
            };
            match blocks.iter_mut().find(same) {
                Some(block) => block.on.push(first.on.clone()),
                None => blocks.push(Expectation {
                    on: vec![first.on.clone()],
                    levels,
                    claims: outcomes.first().cloned().unwrap_or_default(),
                    or: outcomes.iter().skip(1).cloned().collect(),
                    notes: Vec::new(),
                    line: Line(0),
                }),
            }
        }
    }
    blocks
}

/// Claims read from a file and claims of a run differ in the types of their
/// numbers, not in how they are written.
fn same_text<A: AsRef<[Claim]>, B: AsRef<[Claim]>>(a: &[A], b: &[B]) -> bool {
    a.len() == b.len() && a.iter().zip(b).all(|(a, b)| text(a.as_ref()) == text(b.as_ref()))
}

fn text(claims: &[Claim]) -> Vec<String> {
    claims.iter().map(ToString::to_string).collect()
}

/// One difference between a run and the recording.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordingMismatch {
    pub expected: String,
    pub observed: String,
}

/// The differences between a run and the recording: with several recorded
/// outcomes, those from the nearest one.
pub fn recording_mismatches(
    case: &Case,
    recorded: &Outcomes,
    history: &History,
) -> Vec<RecordingMismatch> {
    let outcomes: Vec<&[Claim]> = recorded.iter().map(Vec::as_slice).collect();
    expectations::nearest(&outcomes, |claims| from_outcome(case, claims, history))
}

fn from_outcome(case: &Case, recorded: &[Claim], history: &History) -> Vec<RecordingMismatch> {
    let mut found: Vec<RecordingMismatch> = recorded
        .iter()
        .filter_map(|claim| {
            let observed = expectations::holds(claim, case, history).err()?;
            Some(RecordingMismatch { expected: claim.to_string(), observed })
        })
        .collect();
    for claim in claims_of(case, history) {
        let Subject::Step { session, nth } = &claim.subject else { continue };
        let new = match claim.expected {
            Expected::Waits | Expected::Contains(_) => !implied(case, &claim, recorded),
            // A step with another outcome is reported above.
            Expected::Error(_) => !recorded
                .iter()
                .any(|c| c.subject == claim.subject && !matches!(c.expected, Expected::Waits)),
            _ => false,
        };
        if new && let Some(step) = case.step_of_label(session, *nth) {
            let expected = match claim.expected {
                Expected::Waits => format!("{} does not wait", claim.subject),
                Expected::Contains(_) => format!("not {claim}"),
                _ => format!("{} ok", claim.subject),
            };
            found
                .push(RecordingMismatch { expected, observed: transcript::summary(history, step) });
        }
    }
    found
}

/// Whether the bug shows in an outcome; `None` when the case does not say
/// what showing means, or could not be set up there.
pub fn shows(case: &Case, recorded: &[Claim], level: Level) -> Option<bool> {
    let counts = |c: &Condition| c.levels.is_empty() || c.levels.contains(&level);
    let met =
        |c: &Condition| counts(c) && c.claims.iter().all(|claim| implied(case, claim, recorded));
    let refused = recorded.iter().any(|c| c.subject == Subject::Setup);
    let conditions = case.when_it_shows();
    (!conditions.is_empty() && !refused).then(|| conditions.iter().any(met))
}

/// How the last statement of a session without a transaction of its own ended:
/// one that succeeded has committed. A recording has only how it was answered.
fn autocommit_ending(case: &Case, session: &str, recorded: &[Claim]) -> Option<Expected> {
    let mine = || case.steps.iter().filter(|s| s.session == session);
    let transaction = |s: &Step| s.kind() == Kind::Begin || s.turns_off_autocommit();
    if mine().any(transaction) {
        return None;
    }
    let works =
        |(_, s): &(usize, &Step)| matches!(s.kind(), Kind::Select | Kind::Write | Kind::Ddl);
    let (last, _) = mine().enumerate().filter(works).last()?;
    let subject = Subject::Step { session: session.into(), nth: last + 1 };
    let answer = recorded.iter().find(|c| c.subject == subject && c.expected != Expected::Waits)?;
    match &answer.expected {
        Expected::Error(_) => Some(Expected::Aborts),
        Expected::NotSent => None,
        _ => Some(Expected::Commits),
    }
}

/// Whether a claim follows from a complete recording.
fn implied(case: &Case, claim: &Claim, recorded: &[Claim]) -> bool {
    let by_itself = match &claim.subject {
        Subject::Session(session) => autocommit_ending(case, session, recorded),
        _ => None,
    };
    let recorded = recorded.iter().filter(|c| c.subject == claim.subject).map(|c| &c.expected);
    let mut about = recorded.chain(&by_itself);
    match &claim.expected {
        Expected::Waits | Expected::WaitsFor(_) => about.any(|e| *e == Expected::Waits),
        Expected::DoesNotWait => !about.any(|e| *e == Expected::Waits),
        Expected::Ok => about.any(|e| {
            use Expected::{Affects, Counts, Ok, Rows};
            matches!(e, Ok | Affects(_) | Rows(_) | Counts(_))
        }),
        Expected::Error(None) => about.any(|e| matches!(e, Expected::Error(_))),
        Expected::Rows(wanted) => {
            about.any(|e| matches!(e, Expected::Rows(rows) if same_multiset(rows, wanted)))
        }
        Expected::Has(wanted) => about.any(|e| {
            let equals = |row: &Row| compare_rows(row, wanted) == Ordering::Equal;
            matches!(e, Expected::Rows(rows) if rows.iter().any(equals))
        }),
        Expected::Contains(text) => about.any(|e| match e {
            Expected::Rows(rows) => expectations::contains(rows, text),
            other => *other == claim.expected,
        }),
        Expected::Counts(n) => about.any(|e| match e {
            Expected::Rows(rows) => rows.len() as u64 == *n,
            other => *other == claim.expected,
        }),
        Expected::DoesNotCommit => about
            .any(|e| matches!(e, Expected::RollsBack | Expected::Aborts | Expected::DoesNotCommit)),
        expected => about.any(|e| e == expected),
    }
}
