//! What went wrong: the one statement that no rule allows, in words without
//! sessions, tables and values, so that it is the same for every case that the
//! same defect fails.
//!
//! The rules say it best ([`crate::semantics::Account`]). Where there are none,
//! the differences to a serial run say it, with what the run shows of the
//! transaction that they hang on.
//!
//! What it does not see: which code of the engine is at fault. Two defects that
//! break one rule for the same rows in the same way are one here.

use super::rows::{self, Apart, Tables};
use super::run::Run;
use crate::history::{ErrorClass, TxEnd};
use crate::oracle::{Difference, NO_SERIAL_ORDER};
use crate::semantics::StepVerdict;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Deviation {
    /// The rule that is broken; none where no rule says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rule: Option<String>,
    /// `it went through, but another has deleted a row that it has changed`
    pub how: String,
    /// The kind of statement that it shows at, or `final rows`.
    pub at: String,
    /// What kind of statements met there, in no order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub between: Vec<String>,
    /// Whose rows are too many, missing or others.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rows: Vec<String>,
    /// Where the others stood that had written what it touches.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub holders: Vec<String>,
    /// What had happened to the transactions behind it that may matter.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub after: Vec<String>,
    pub waited: bool,
}

impl Deviation {
    /// What two findings of one defect have in common: everything but what
    /// varies from case to case (what exactly was read, whether one waited).
    pub fn key(&self) -> String {
        let mut parts = vec![self.how.clone()];
        parts.extend(self.rule.as_ref().map(|rule| format!("rule {rule}")));
        let mut add = |name: &str, all: &[String]| {
            if !all.is_empty() {
                parts.push(format!("{name} {}", all.join(" and ")));
            }
        };
        add("between", &self.between);
        add("rows:", &self.rows);
        add("others:", &self.holders);
        add("after", &self.after);
        parts.join("; ")
    }
}

pub fn of(run: &Run<'_>) -> Deviation {
    let first = rows::first_rows(run);
    let broken = run.of.differences.iter().find_map(|d| match d {
        Difference::Broken { error, .. } => Some(error),
        _ => None,
    });
    if let Some(error) = broken {
        let how = format!("the engine broke: {}", without_numbers(error));
        return Deviation { how, at: "the engine".into(), ..Deviation::default() };
    }
    of_rules(run, &first).unwrap_or_else(|| of_differences(run, &first))
}

/// What the rules say, where they have something against the run.
fn of_rules(run: &Run<'_>, first: &Tables) -> Option<Deviation> {
    let told = run.of.account.and_then(|account| {
        let outside = account.steps.iter().find(|s| s.verdict == StepVerdict::Outside)?;
        Some((outside.step.clone(), outside.rules.first().cloned(), outside.why.clone()))
    });
    let (label, rule, why) = told.or_else(|| {
        run.of.differences.iter().find_map(|d| match d {
            Difference::Rule { label, rule, why, .. } => {
                Some((label.clone(), Some(rule.clone()), why.clone()))
            }
            _ => None,
        })
    })?;
    let step = run.step_of(&label);
    let mut found = Deviation {
        rule,
        at: step.map_or("final rows", |s| run.said[s].kind).into(),
        waited: step.is_some_and(|s| run.waited(s)),
        ..Deviation::default()
    };
    if why.starts_with("no serial order") || found.rule.as_deref() == Some(NO_SERIAL_ORDER) {
        // Which statement it shows at hangs on the order that came farthest.
        found.rule = None;
        found.how = "no serial order explains it".into();
        found.between = unseen_reads(run);
        return Some(found);
    }
    if let Some((table, said)) = final_rows(&why) {
        if undone_by_a_failure(run, first) {
            return Some(undone(found));
        }
        found.how = "the final rows are others".into();
        found.rows = Apart::of_sentence(said).unwrap_or_default().told(&table, run, first);
        found.after = circumstances(run, &table);
        return Some(found);
    }
    let step = step?;
    if let Some(obstacle) = why.strip_prefix("it went through, but ") {
        let plain = run.without_names(obstacle);
        found.between = met(run, step, obstacle);
        found.how = format!("it went through, but {}", either_way(&plain));
        return Some(found);
    }
    found.holders = holders(run, step);
    if let Some((seen, said)) = counts(&why) {
        let more = if seen > said { "more" } else { "fewer" };
        found.how = format!("a {} changed {more} rows", run.said[step].class());
        return Some(found);
    }
    if Apart::of_sentence(&why).is_some() {
        found.how = format!("a {} found other rows", run.said[step].class());
        return Some(found);
    }
    if why.starts_with("it failed with ") {
        let class = run.failed(step).map_or("an error", class_word);
        found.how = format!("a {} failed with {class}", run.said[step].class());
        found.holders.clear();
        return Some(found);
    }
    found.holders.clear();
    found.how = run.without_names(&why);
    Some(found)
}

/// What differs from a serial run, where no rule says more.
fn of_differences(run: &Run<'_>, first: &Tables) -> Deviation {
    let mut found = Deviation::default();
    if let Some(class) = run.of.differences.iter().find_map(|d| match d {
        Difference::Anomaly { class, .. } => Some(class),
        _ => None,
    }) {
        found.how = format!("{class}, which the level rules out");
        found.at = "a cycle".into();
        return found;
    }
    if undone_by_a_failure(run, first) {
        return undone(found);
    }
    let mut how: BTreeSet<String> = BTreeSet::new();
    let mut rows: BTreeSet<String> = BTreeSet::new();
    for difference in run.of.differences {
        let step = difference.label().and_then(|label| run.step_of(label));
        let class = step.map_or("statement", |s| run.said[s].class());
        match difference {
            Difference::Final { query, only_concurrent, only_serial, .. } => {
                let table = run.table_in(query);
                how.insert("the final rows are others".into());
                let apart = Apart::of_rows(only_concurrent, only_serial);
                rows.extend(apart.told(&table, run, first));
                found.after = circumstances(run, &table);
            }
            Difference::Affected { concurrent, serial, .. } => {
                let more = if concurrent > serial { "more" } else { "fewer" };
                how.insert(format!("a {class} changed {more} rows"));
            }
            Difference::Success { concurrent, .. } => {
                let fails = if concurrent.starts_with("error") { "fails" } else { "goes through" };
                how.insert(format!("a {class} {fails}"));
            }
            Difference::Read { .. } => {
                how.insert(format!("a {class} found other rows"));
            }
            Difference::Rule { .. } | Difference::Anomaly { .. } | Difference::Broken { .. } => {}
        }
        if let Some(step) = step {
            found.at = run.said[step].kind.into();
            found.waited |= run.waited(step);
        }
    }
    if found.at.is_empty() {
        found.at = "final rows".into();
    }
    let unmodelled = run.of.account.and_then(|account| account.why.split_once("not modelled: "));
    if let Some((_, why)) = unmodelled {
        how.insert(format!("not modelled: {}", run.without_names(why)));
    }
    found.how = how.into_iter().collect::<Vec<_>>().join(", ");
    found.rows = rows.into_iter().collect();
    found
}

fn undone(found: Deviation) -> Deviation {
    let how = "a statement failed, and nothing that its committed transaction wrote is there";
    Deviation { rule: None, how: how.into(), at: "final rows".into(), ..found }
}

/// A statement failed by a constraint, its transaction committed all the same,
/// and the rows are those from before it: it has been undone as a whole. That
/// rows of the failed statement itself may be there is another thing.
fn undone_by_a_failure(run: &Run<'_>, first: &Tables) -> bool {
    let Some(history) = run.of.history else { return false };
    let committed = |t: &&super::run::Transaction| {
        t.end == Some(TxEnd::Committed) && t.steps.iter().any(|s| run.said[*s].writes.is_some())
    };
    let committed: Vec<_> = run.transactions.iter().filter(committed).collect();
    let failed = committed.iter().flat_map(|t| &t.steps).find(|s| {
        run.failed(**s) == Some(ErrorClass::Constraint)
            && !run.transaction_of(**s).is_some_and(|t| t.autocommit)
    });
    let (Some(failed), [_]) = (failed, &committed[..]) else { return false };
    let may_have_stayed = match run.case.steps[*failed].statement() {
        Some(crate::sql::Stmt::Insert(insert)) => {
            let given = rows::given(insert, &run.schema);
            given.len() > 1
                && given.iter().any(|row| final_of(history, run, &insert.table).contains(row))
        }
        _ => false,
    };
    let unchanged = run.schema.tables.iter().all(|table| {
        let name = table.name.to_ascii_lowercase();
        let mut then = first.get(&name).cloned().unwrap_or_default();
        let mut now = final_of(history, run, &table.name);
        then.sort();
        now.sort();
        then == now
    });
    unchanged && !may_have_stayed && !run.schema.tables.is_empty()
}

fn final_of(history: &crate::History, run: &Run<'_>, table: &str) -> Vec<rows::Cells> {
    let of_table =
        history.final_state.iter().find(|f| run.table_in(&f.query).eq_ignore_ascii_case(table));
    of_table.map_or_else(Vec::new, |f| f.rows.iter().map(rows::cells).collect())
}

/// Which reads of committed transactions others then wrote over: of those a
/// serial order hangs on. An INSERT that leaves a row out has read it.
fn unseen_reads(run: &Run<'_>) -> Vec<String> {
    let left_out = |step: usize| {
        let said = &run.said[step];
        let given = said.rows_given.map(|n| n as u64);
        said.kind == "insert or nothing"
            && run.affected(step).zip(given).is_some_and(|(a, g)| a < g)
    };
    if (0..run.said.len()).any(left_out) {
        return vec!["an insert that left a row out".into()];
    }
    let mut kinds: BTreeSet<String> = BTreeSet::new();
    for (step, said) in run.said.iter().enumerate() {
        let session = &run.case.steps[step].session;
        let written = run.said.iter().enumerate().any(|(other, by)| {
            run.case.steps[other].session != *session
                && by.writes.as_ref().is_some_and(|table| said.reads.contains(table))
        });
        if written && run.failed(step).is_none() {
            kinds.insert(said.kind.into());
        }
    }
    kinds.into_iter().collect()
}

/// What had happened to who wrote the table.
fn circumstances(run: &Run<'_>, table: &str) -> Vec<String> {
    let mut found: BTreeSet<String> = BTreeSet::new();
    for transaction in &run.transactions {
        let steps = &transaction.steps;
        let writes = |s: &usize| run.said[*s].writes.as_deref() == Some(table);
        if !steps.iter().any(writes) {
            continue;
        }
        if transaction.end == Some(TxEnd::RolledBack) {
            found.insert("a rollback".into());
        }
        let kinds = |kind: &str| steps.iter().any(|s| run.said[*s].kind == kind);
        if kinds("rollback to") {
            found.insert("a rollback to a savepoint".into());
        }
        if steps.iter().any(|s| run.failed(*s) == Some(ErrorClass::Constraint)) {
            found.insert("a statement that failed".into());
        }
    }
    found.into_iter().collect()
}

/// Where others stood that had written what the statement touches, when it
/// had finished.
fn holders(run: &Run<'_>, step: usize) -> Vec<String> {
    let tables = run.tables(step);
    let place = run.place(step).unwrap_or(run.order.len());
    let session = &run.case.steps[step].session;
    let mut found: BTreeSet<String> = BTreeSet::new();
    for transaction in run.transactions.iter().filter(|t| t.session != *session) {
        let wrote = transaction.steps.iter().any(|s| {
            run.place(*s).is_some_and(|at| at < place)
                && run.failed(*s).is_none()
                && run.said[*s].writes.as_ref().is_some_and(|table| tables.contains(table))
        });
        if wrote {
            let word = match (transaction.end, transaction.ended <= place) {
                (_, false) => "an open writer",
                (Some(TxEnd::Committed), true) => "a committed writer",
                (_, true) => "a writer that was rolled back",
            };
            found.insert(word.into());
        }
    }
    found.into_iter().collect()
}

/// The kinds of the two statements that met at one row, where the rules say
/// that one has changed or deleted what the other has.
fn met(run: &Run<'_>, step: usize, obstacle: &str) -> Vec<String> {
    let Some((theirs, ours)) = obstacle.split_once(" that it ") else { return Vec::new() };
    if !["has changed", "has deleted"].iter().any(|verb| theirs.contains(verb)) {
        return Vec::new();
    }
    let session = &run.case.steps[step].session;
    let other = run.case.sessions().into_iter().find(|s| theirs.split(' ').next() == Some(s));
    let (Some(other), table) = (other, run.table_in(theirs)) else { return Vec::new() };
    let mut kinds: Vec<String> = Vec::new();
    for (who, what) in [(other, theirs), (session.as_str(), ours)] {
        let deletes = what.contains("delete");
        let fits = |kind: &str| match deletes {
            true => matches!(kind, "delete" | "replace" | "update of a key"),
            false => matches!(kind, "update" | "insert or update" | "update of a key"),
        };
        let mine = |n: &usize| {
            run.case.steps[*n].session == who && run.said[*n].writes.as_deref() == Some(&table)
        };
        // Where values meet, it matters whether one is NULL; a deleted row has none.
        let values = theirs.contains("value");
        let all: BTreeSet<&str> =
            (0..run.said.len())
                .filter(mine)
                .filter(|n| fits(run.said[*n].kind))
                .map(|n| {
                    if values && run.said[n].sets_null {
                        "update to null"
                    } else {
                        run.said[n].kind
                    }
                })
                .collect();
        kinds.push(all.into_iter().collect::<Vec<_>>().join(" or "));
    }
    kinds.sort();
    kinds
}

/// Who came first of two that met is chance.
fn either_way(obstacle: &str) -> String {
    let pair = [
        "another has changed a row that it has deleted",
        "another has deleted a row that it has changed",
    ];
    match pair.contains(&obstacle) {
        true => "of two the one has changed and the other deleted a row".into(),
        false => obstacle.into(),
    }
}

fn final_rows(why: &str) -> Option<(String, &str)> {
    let (table, said) = why.strip_prefix("the final rows of ")?.split_once(": ")?;
    Some((table.to_ascii_lowercase(), said))
}

/// `it changed 1 row; the rules say 0`
fn counts(why: &str) -> Option<(u64, u64)> {
    let (seen, said) = why.split_once("; the rules say ")?;
    let seen = seen.split(' ').find_map(|word| word.parse().ok())?;
    Some((seen, said.trim().parse().ok()?))
}

fn class_word(class: ErrorClass) -> &'static str {
    match class {
        ErrorClass::Deadlock => "a deadlock",
        ErrorClass::Serialization => "a serialization failure",
        ErrorClass::WriteConflict => "a write conflict",
        ErrorClass::LockTimeout | ErrorClass::Busy => "a lock that it did not get",
        ErrorClass::Constraint => "a constraint",
        ErrorClass::ReadOnly => "read only",
        _ => "an error",
    }
}

fn without_numbers(text: &str) -> String {
    let mut out = String::new();
    for c in text.chars() {
        match (c.is_ascii_digit(), out.ends_with('#')) {
            (true, true) => {}
            (true, false) => out.push('#'),
            (false, _) => out.push(c),
        }
    }
    out
}

impl Run<'_> {
    /// A sentence of the rules without sessions, tables, columns and values.
    /// Tables stand behind `of` or `in` there, a column at the beginning.
    fn without_names(&self, text: &str) -> String {
        let sessions = self.case.sessions();
        let text = match text.strip_suffix(" must not be null") {
            Some(_) => "a column must not be null",
            None => text,
        };
        let mut out: Vec<&str> = Vec::new();
        for word in text.split(' ') {
            let bare = word.trim_matches([',', ';', ':', '.']);
            let is_table = self.schema.tables.iter().any(|t| t.name == bare);
            let places = matches!(out.last(), Some(&"of" | &"in"));
            if sessions.contains(&bare) {
                out.push("another");
            } else if is_table && places {
                out.pop();
            } else if bare.starts_with(|c: char| c.is_ascii_digit() || c == '\'' || c == '(') {
                out.push("#");
            } else {
                out.push(word);
            }
        }
        out.join(" ")
    }

    /// The first table that a text names.
    fn table_in(&self, text: &str) -> String {
        let words: BTreeSet<String> =
            crate::sql::pieces(text).iter().map(|w| w.to_ascii_lowercase()).collect();
        let named = self.schema.tables.iter().map(|t| t.name.to_ascii_lowercase());
        named.into_iter().find(|name| words.contains(name)).unwrap_or_default()
    }
}
