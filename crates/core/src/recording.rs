//! What a run showed, as claims: what `expect` blocks hold once a case has
//! been recorded, and how a later run is compared with them.
//!
//! A recording is an `expect` block whose targets name one version each, at
//! levels that it lists. It is complete: a wait or an error that it does not
//! hold is a difference. Blocks that were written by hand claim only what
//! they say.

use crate::case::{Case, Claim, Condition, Expectation, Expected, Line, Selector, Subject};
use crate::history::{History, TxEnd, What};
use crate::judge;
use crate::sql::Kind;
use crate::value::{Row, Value, compare_rows, same_multiset};
use crate::{Level, transcript};
use std::cmp::Ordering;

/// More rows than this are counted, not listed.
const LISTED_ROWS: usize = 20;
/// A longer row is nobody's to read, and mostly a server's report of itself.
const LISTED_TEXT: usize = 600;

/// Where a recording was made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    pub on: Selector,
    pub level: Level,
}

impl Place {
    pub fn new(engine: &str, version: &str, level: Level) -> Place {
        let fits = |c: char| c.is_ascii_alphanumeric() || c == '.';
        let version: String = version.chars().take_while(|c| fits(*c)).collect();
        let version = (!version.is_empty()).then_some(version);
        Place { on: Selector { engine: engine.into(), from: version.clone(), to: version }, level }
    }

    fn order(&self) -> (String, Vec<u64>, Level) {
        let version = self.on.from.as_deref().unwrap_or("");
        let parts = version.split('.').map(|p| p.parse().unwrap_or(u64::MAX)).collect();
        (self.on.engine.clone(), parts, self.level)
    }
}

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
            Some(What::Rows { rows, .. }) => claim(rows_claim(rows)),
            Some(What::Affected { count }) => claim(Expected::Affects(*count)),
            Some(What::Error(error)) => claim(Expected::Error(Some(error.code.clone()))),
            Some(What::NotSent { .. }) => claim(Expected::NotSent),
            // How a transaction ended says it for the statements around it.
            Some(What::Done)
                if !matches!(step.kind(), Kind::Begin | Kind::Commit | Kind::Rollback) =>
            {
                claim(Expected::Ok);
            }
            _ => {}
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

/// What two runs agree on: clocks and counters are left out of a recording.
pub fn agreed(first: Vec<Claim>, second: &[Claim]) -> Vec<Claim> {
    first.into_iter().filter(|claim| second.iter().any(|c| same_claim(c, claim))).collect()
}

fn same_claim(a: &Claim, b: &Claim) -> bool {
    a.subject == b.subject
        && match (&a.expected, &b.expected) {
            (Expected::Rows(x), Expected::Rows(y)) => same_multiset(x, y),
            (x, y) => x == y,
        }
}

/// The places where the case has been recorded, with what was.
pub fn recordings(case: &Case) -> Vec<(Place, Vec<Claim>)> {
    let mut found = Vec::new();
    for block in case.expectations.iter().filter(|e| is_recording(e)) {
        for on in &block.on {
            for level in &block.levels {
                found.push((Place { on: on.clone(), level: *level }, block.claims.clone()));
            }
        }
    }
    found.sort_by_key(|(place, _)| place.order());
    found
}

fn is_recording(block: &Expectation) -> bool {
    !block.on.is_empty()
        && !block.levels.is_empty()
        && block.on.iter().all(Selector::is_one_version)
}

pub fn recorded_at(case: &Case, engine: &str, version: &str, level: Level) -> Option<Vec<Claim>> {
    recordings(case)
        .into_iter()
        .find(|(place, _)| place.level == level && place.on.expects(engine, version))
        .map(|(_, claims)| claims)
}

/// Replaces what was recorded at these places; the rest of the case stays.
/// Places and levels that showed the same share a block.
pub fn record(case: &mut Case, new: Vec<(Place, Vec<Claim>)>) {
    let mut all = recordings(case);
    all.retain(|(place, _)| !new.iter().any(|(p, _)| p == place));
    all.extend(new.into_iter().filter(|(_, claims)| !claims.is_empty()));
    all.sort_by_key(|(place, _)| place.order());
    case.expectations.retain(|e| !is_recording(e));
    case.expectations.extend(blocks(all));
}

fn blocks(all: Vec<(Place, Vec<Claim>)>) -> Vec<Expectation> {
    let mut blocks: Vec<Expectation> = Vec::new();
    let mut rest = all.as_slice();
    while let Some((first, _)) = rest.first() {
        let end = rest.iter().position(|(p, _)| p.on != first.on).unwrap_or(rest.len());
        let (mine, others) = rest.split_at(end);
        rest = others;
        let mut groups: Vec<(Vec<Level>, &Vec<Claim>)> = Vec::new();
        for (place, claims) in mine {
            match groups.iter_mut().find(|(_, c)| same_text(c, claims)) {
                Some((levels, _)) => levels.push(place.level),
                None => groups.push((vec![place.level], claims)),
            }
        }
        for (levels, claims) in groups {
            match blocks.iter_mut().find(|b| b.levels == levels && same_text(&b.claims, claims)) {
                Some(block) => block.on.push(first.on.clone()),
                None => blocks.push(Expectation {
                    on: vec![first.on.clone()],
                    levels,
                    claims: claims.clone(),
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
fn same_text(a: &[Claim], b: &[Claim]) -> bool {
    let text = |claims: &[Claim]| claims.iter().map(ToString::to_string).collect::<Vec<_>>();
    text(a) == text(b)
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    pub expected: String,
    pub observed: String,
}

/// Where a run departs from what was recorded.
pub fn differences(case: &Case, recorded: &[Claim], history: &History) -> Vec<Difference> {
    let mut found: Vec<Difference> = recorded
        .iter()
        .filter_map(|claim| {
            let observed = judge::holds(claim, case, history).err()?;
            Some(Difference { expected: claim.to_string(), observed })
        })
        .collect();
    for claim in claims_of(case, history) {
        let Subject::Step { session, nth } = &claim.subject else { continue };
        let new = match claim.expected {
            Expected::Waits => !implied(&claim, recorded),
            // A step with another outcome is reported above.
            Expected::Error(_) => !recorded
                .iter()
                .any(|c| c.subject == claim.subject && !matches!(c.expected, Expected::Waits)),
            _ => false,
        };
        if new && let Some(step) = case.step_of_label(session, *nth) {
            let expected = match claim.expected {
                Expected::Waits => format!("{} does not wait", claim.subject),
                _ => format!("{} ok", claim.subject),
            };
            found.push(Difference { expected, observed: transcript::summary(history, step) });
        }
    }
    found
}

/// Whether the bug shows in a recording; `None` when the case does not say
/// what showing means, or could not be set up there.
pub fn shows(case: &Case, recorded: &[Claim], level: Level) -> Option<bool> {
    let counts = |c: &Condition| c.levels.is_empty() || c.levels.contains(&level);
    let met = |c: &Condition| counts(c) && c.claims.iter().all(|claim| implied(claim, recorded));
    let refused = recorded.iter().any(|c| c.subject == Subject::Setup);
    let conditions = case.when_it_shows();
    (!conditions.is_empty() && !refused).then(|| conditions.iter().any(met))
}

/// Whether a claim follows from a complete recording.
fn implied(claim: &Claim, recorded: &[Claim]) -> bool {
    let mut about = recorded.iter().filter(|c| c.subject == claim.subject).map(|c| &c.expected);
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
        Expected::Counts(n) => about.any(|e| match e {
            Expected::Rows(rows) => rows.len() as u64 == *n,
            other => *other == claim.expected,
        }),
        Expected::DoesNotCommit => about
            .any(|e| matches!(e, Expected::RollsBack | Expected::Aborts | Expected::DoesNotCommit)),
        expected => about.any(|e| e == expected),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::case::{format, parse};

    const TEXT: &str = "case: x\n\ns1> begin;\ns1> select 1;\ns2> begin;\ns2> select 2;\n";

    fn claims(text: &str) -> Vec<Claim> {
        let whole = format!("{TEXT}\nexpect sqlite@1 at serializable:\n{text}\n");
        parse(&whole).unwrap().expectations[0].claims.clone()
    }

    fn place(target: &str, version: &str, level: Level) -> Place {
        Place::new(target, version, level)
    }

    #[test]
    fn places_that_showed_the_same_share_a_block_and_recording_again_changes_nothing() {
        let mut case = parse(TEXT).unwrap();
        let (rc, rr) = (Level::ReadCommitted, Level::RepeatableRead);
        let waits = || claims("  s1.2 waits");
        let new = || {
            vec![
                (place("mysql", "9.7.4", rr), waits()),
                (place("mysql", "9.7.4", rc), waits()),
                (place("mysql", "5.7.19", rc), waits()),
                (place("mysql", "5.7.19", rr), waits()),
                (place("mariadb", "10.11.19-MariaDB", rr), claims("  s1.2 rows (1)")),
            ]
        };
        record(&mut case, new());
        let text = format(&case);
        assert!(text.contains("expect mysql@5.7.19, mysql@9.7.4 at read committed, repeatable read:\n  s1.2 waits\n"), "{text}");
        assert_eq!(text.matches("expect").count(), 2);
        let mut again = parse(&text).unwrap();
        record(&mut again, new());
        assert_eq!(format(&again), text);
    }

    #[test]
    fn targets_that_did_not_run_and_hand_written_blocks_stay() {
        let text = format!(
            "{TEXT}\nexpect postgres:\n  s1.2 ok\n\nexpect mysql@5.7.19, mysql@9.7.4 at repeatable read:\n  s1.2 waits\n"
        );
        let mut case = parse(&text).unwrap();
        let level = Level::RepeatableRead;
        record(&mut case, vec![(place("mysql", "9.7.4", level), claims("  s1.2 rows (1)"))]);
        let at = |version: &str| recorded_at(&case, "mysql", version, level).unwrap();
        assert_eq!(at("5.7.19"), claims("  s1.2 waits"));
        assert_eq!(at("9.7.4"), claims("  s1.2 rows (1)"));
        assert!(case.expectations[0].on[0].engine == "postgres");
    }

    #[test]
    fn a_condition_is_judged_on_what_was_recorded() {
        let recorded =
            claims("  s1.2 waits\n  s1.2 rows (1, 'a') (2, 'b')\n  s2.2 error 1213\n  s2 aborts");
        for (claim, holds) in [
            ("s1.2 waits for s2", true),
            ("s2.2 does not wait", true),
            ("s1.2 rows (2, 'b') (1, 'a')", true),
            ("s1.2 has (2, 'b')", true),
            ("s1.2 counts 3", false),
            ("s1.2 counts 2", true),
            ("s1.2 ok", true),
            ("s2.2 ok", false),
            ("s2.2 error", true),
            ("s2.2 error 1205", false),
            ("s2 does not commit", true),
        ] {
            assert_eq!(implied(&claims(&format!("  {claim}"))[0], &recorded), holds, "{claim}");
        }
    }

    #[test]
    fn what_two_runs_do_not_agree_on_is_left_out() {
        let first = claims("  s1.2 rows (1)\n  s2.2 rows (17)");
        let second = claims("  s1.2 rows (1)\n  s2.2 rows (18)");
        assert_eq!(agreed(first, &second), claims("  s1.2 rows (1)"));
    }
}
