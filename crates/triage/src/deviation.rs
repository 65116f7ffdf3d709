//! A deviation: what went wrong in a run, without sessions, tables and values,
//! so that it is the same for every case that the same defect fails.
//!
//! It is taken from the breach that the reference model reports
//! ([`isolde_model::breach::Breach`]). Where an engine has no rules, it is taken
//! from the differences between the run and a serial one.
//!
//! What it does not see: which code of the engine is at fault. Two defects that
//! break one rule for the same rows in the same way are one here.

use super::rows::{self, CellDiff, Tables};
use super::run::Run;
use isolde_model::breach::{Breach, Obstacle, RowChange, RowDiff};
use isolde_model::difference::Difference;
use isolde_model::history::{ErrorClass, TxEnd};
use isolde_reference::StepVerdict;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Deviation {
    /// The rule that is broken; none where no rule says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rule: Option<String>,
    /// A stable name of what went wrong ([`Breach::id`]), for comparisons.
    #[serde(default)]
    pub id: String,
    /// The same as a sentence for people.
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
        let mut parts = vec![self.id.clone()];
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

impl Deviation {
    /// The deviation as a sentence for people: `a write changed fewer rows than
    /// predicted (rule S1), next to a committed writer`.
    pub fn describe(&self) -> String {
        let mut text = self.how.clone();
        if let Some(rule) = &self.rule {
            text.push_str(&format!(" (rule {rule})"));
        }
        let list = |all: &[String]| all.join(" and ");
        for (name, all) in [
            ("between", &self.between),
            ("rows:", &self.rows),
            ("next to", &self.holders),
            ("after", &self.after),
        ] {
            if !all.is_empty() {
                text.push_str(&format!(", {name} {}", list(all)));
            }
        }
        text
    }
}

pub fn of(run: &Run<'_>) -> Deviation {
    let first = rows::first_rows(run);
    let broken = run.of.differences.iter().find_map(|d| match d {
        Difference::Broken { error, .. } => Some(error),
        _ => None,
    });
    if let Some(error) = broken {
        let error = without_numbers(error);
        let (id, how) = (format!("failure/{error}"), format!("the engine failed: {error}"));
        return Deviation { id, how, at: "the engine".into(), ..Deviation::default() };
    }
    of_breach(run, &first).unwrap_or_else(|| of_differences(run, &first))
}

/// The breach of a run, with the label of the statement to blame and the rule.
fn breach_of(run: &Run<'_>) -> Option<(String, Option<String>, Breach)> {
    let of_account = run.of.account.and_then(|account| {
        let outside = account.steps.iter().find(|s| s.verdict == StepVerdict::Broken)?;
        let rule = outside.rules.first().cloned();
        Some((outside.step.clone(), rule, account.breach.clone()?))
    });
    let of_difference = |d: &Difference| match d {
        Difference::Rule { label, rule, breach: Some(breach), .. } => {
            Some((label.clone(), Some(rule.clone()), (**breach).clone()))
        }
        _ => None,
    };
    of_account.or_else(|| run.of.differences.iter().find_map(of_difference))
}

/// What the breach says, where there is one.
fn of_breach(run: &Run<'_>, first: &Tables) -> Option<Deviation> {
    let (label, rule, breach) = breach_of(run)?;
    let step = run.step_of(&label);
    if let Some(found) = replace_of_a_parent(run, step, &breach) {
        return Some(found);
    }
    let class = step.map_or("statement", |s| run.statements[s].class());
    let mut found = Deviation {
        rule,
        id: breach.id(),
        how: breach.summary(class),
        at: step.map_or("final rows", |s| run.statements[s].kind).into(),
        waited: step.is_some_and(|s| run.waited(s)),
        ..Deviation::default()
    };
    match &breach {
        Breach::NoSerialOrder { .. } => {
            // Which statement it shows at depends on the order that came farthest.
            found.rule = None;
            found.between = unseen_reads(run);
        }
        Breach::FinalRows { .. } if undone_by_a_failure(run, first) => return Some(undone(found)),
        Breach::FinalRows { table, diff: RowDiff { extra, missing } } => {
            let table = table.to_ascii_lowercase();
            found.rows = CellDiff::between(extra, missing).describe(&table, run, first);
            found.after = circumstances(run, &table);
        }
        Breach::Proceeded { obstacle } => found.between = met(run, step?, obstacle),
        Breach::RowCount { .. } | Breach::Rows { .. } => {
            // More and fewer rows are two defects for a write, one for a read.
            found.id = format!("{}/{class}", found.id);
            found.holders = holders(run, step?);
        }
        Breach::UnexpectedError { .. } => found.id = format!("{}/{class}", found.id),
        Breach::StaleVersion { .. }
        | Breach::UnexpectedWait { .. }
        | Breach::CommittedDespiteReader { .. }
        | Breach::FinalQuery { .. } => {}
    }
    Some(found)
}

/// A REPLACE of a row that foreign keys refer to, where the breach shows at the
/// REPLACE or, later, in the rows of its table and the tables that refer to it.
///
/// Whether such a REPLACE deletes its row, and what becomes of the rows that
/// refer to it, is one decision of an engine. It shows as a count, as an error
/// that is missing, or in any later read or write of those rows: one defect with
/// as many deviations as there are statements.
fn replace_of_a_parent(run: &Run<'_>, step: Option<usize>, breach: &Breach) -> Option<Deviation> {
    let wrong: BTreeSet<String> = match (breach, step) {
        // Waits and serial orders have reasons of their own.
        (Breach::UnexpectedWait { .. } | Breach::NoSerialOrder { .. }, _) => return None,
        (Breach::Proceeded { obstacle: Obstacle::ChildExists { .. } }, Some(step)) => {
            run.tables(step)
        }
        (Breach::Proceeded { .. } | Breach::CommittedDespiteReader { .. }, _) => return None,
        (Breach::FinalRows { table, .. }, _) => [table.to_ascii_lowercase()].into(),
        (Breach::FinalQuery { query, .. }, _) => [run.table_in(query)].into(),
        (_, Some(step)) => run.tables(step),
        (_, None) => return None,
    };
    let place = step.and_then(|s| run.place(s)).unwrap_or(run.order.len());
    let replaces = |s: &usize| {
        let statement = &run.statements[*s];
        let Some(parent) = statement.writes.as_deref().filter(|_| statement.kind == "replace")
        else {
            return false;
        };
        let refers = |table: &&isolde_sql::Table| {
            table.foreign_keys.iter().any(|key| key.parent.eq_ignore_ascii_case(parent))
        };
        let children: Vec<_> = run.schema.tables.iter().filter(refers).collect();
        let touched = |name: &str| wrong.iter().any(|table| table.eq_ignore_ascii_case(name));
        let earlier = run.place(*s).is_some_and(|at| at < place) && run.failed(*s).is_none();
        !children.is_empty()
            && (step == Some(*s)
                || earlier && (touched(parent) || children.iter().any(|c| touched(&c.name))))
    };
    (0..run.statements.len()).find(replaces)?;
    Some(Deviation {
        id: "replace-of-a-parent".into(),
        how: "a REPLACE of a row that a foreign key refers to does not delete it".into(),
        at: step.map_or("final rows", |s| run.statements[s].kind).into(),
        waited: step.is_some_and(|s| run.waited(s)),
        ..Deviation::default()
    })
}

/// What differs from a serial run, where no rule says more.
fn of_differences(run: &Run<'_>, first: &Tables) -> Deviation {
    let mut found = Deviation::default();
    if let Some(class) = run.of.differences.iter().find_map(|d| match d {
        Difference::Anomaly { class, .. } => Some(class),
        _ => None,
    }) {
        found.id = format!("anomaly/{class}");
        found.how = format!("{class}, which the level rules out");
        found.at = "a cycle".into();
        return found;
    }
    if undone_by_a_failure(run, first) {
        return undone(found);
    }
    let mut how: BTreeSet<(String, String)> = BTreeSet::new();
    let mut rows: BTreeSet<String> = BTreeSet::new();
    for difference in run.of.differences {
        let step = difference.label().and_then(|label| run.step_of(label));
        let class = step.map_or("statement", |s| run.statements[s].class());
        match difference {
            Difference::Final { query, only_concurrent, only_serial, .. } => {
                let table = run.table_in(query);
                how.insert(("final-rows".into(), "the final rows differ".into()));
                let diff = CellDiff::between(only_concurrent, only_serial);
                rows.extend(diff.describe(&table, run, first));
                found.after = circumstances(run, &table);
            }
            Difference::Affected { concurrent, serial, .. } => {
                let more = if concurrent > serial { "more" } else { "fewer" };
                let id = format!("row-count/{more}/{class}");
                how.insert((id, format!("a {class} changed {more} rows")));
            }
            Difference::Success { concurrent, .. } => {
                let does = if concurrent.starts_with("error") { "fails" } else { "succeeds" };
                how.insert((format!("{does}/{class}"), format!("a {class} {does}")));
            }
            Difference::Read { .. } => {
                how.insert((format!("rows/{class}"), format!("a {class} found other rows")));
            }
            Difference::Rule { .. } | Difference::Anomaly { .. } | Difference::Broken { .. } => {}
        }
        if let Some(step) = step {
            found.at = run.statements[step].kind.into();
            found.waited |= run.waited(step);
        }
    }
    if found.at.is_empty() {
        found.at = "final rows".into();
    }
    let unmodelled = run.of.account.and_then(|account| account.why.split_once("not modelled: "));
    if let Some((_, why)) = unmodelled {
        let why = run.without_names(why);
        how.insert((format!("not-modelled/{why}"), format!("not modelled: {why}")));
    }
    let (ids, how): (Vec<String>, Vec<String>) = how.into_iter().unzip();
    (found.id, found.how) = (ids.join("+"), how.join(", "));
    found.rows = rows.into_iter().collect();
    found
}

fn undone(found: Deviation) -> Deviation {
    let how = "a statement failed, and nothing that its committed transaction wrote is there";
    let id = "undone-by-failure".into();
    Deviation { rule: None, id, how: how.into(), at: "final rows".into(), ..found }
}

/// A statement failed by a constraint, its transaction committed all the same,
/// and the rows are those from before it: it has been undone as a whole. That
/// rows of the failed statement itself may be there is another thing.
fn undone_by_a_failure(run: &Run<'_>, first: &Tables) -> bool {
    let Some(history) = run.of.history else { return false };
    let committed = |t: &&super::run::Transaction| {
        t.end == Some(TxEnd::Committed)
            && t.steps.iter().any(|s| run.statements[*s].writes.is_some())
    };
    let committed: Vec<_> = run.transactions.iter().filter(committed).collect();
    let failed = committed.iter().flat_map(|t| &t.steps).find(|s| {
        run.failed(**s) == Some(ErrorClass::Constraint)
            && !run.transaction_of(**s).is_some_and(|t| t.autocommit)
    });
    let (Some(failed), [_]) = (failed, &committed[..]) else { return false };
    let may_have_stayed = match run.case.steps[*failed].statement() {
        Some(isolde_sql::Stmt::Write(isolde_sql::Write::Insert(insert))) => {
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

fn final_of(history: &isolde_model::History, run: &Run<'_>, table: &str) -> Vec<rows::Cells> {
    let of_table =
        history.final_state.iter().find(|f| run.table_in(&f.query).eq_ignore_ascii_case(table));
    of_table.map_or_else(Vec::new, |f| f.rows.iter().map(rows::cells).collect())
}

/// The reads of committed transactions whose rows other transactions then
/// overwrote: the serial order depends on them. An INSERT that skips a row has
/// read it.
fn unseen_reads(run: &Run<'_>) -> Vec<String> {
    let left_out = |step: usize| {
        let statement = &run.statements[step];
        let given = statement.rows_given.map(|n| n as u64);
        statement.kind == "insert or nothing"
            && run.affected(step).zip(given).is_some_and(|(a, g)| a < g)
    };
    if (0..run.statements.len()).any(left_out) {
        return vec!["an insert that left a row out".into()];
    }
    let mut kinds: BTreeSet<String> = BTreeSet::new();
    for (step, statement) in run.statements.iter().enumerate() {
        let session = &run.case.steps[step].session;
        let written = run.statements.iter().enumerate().any(|(other, by)| {
            run.case.steps[other].session != *session
                && by.writes.as_ref().is_some_and(|table| statement.reads.contains(table))
        });
        if written && run.failed(step).is_none() {
            kinds.insert(statement.kind.into());
        }
    }
    kinds.into_iter().collect()
}

/// What had happened to the transactions that wrote the table.
fn circumstances(run: &Run<'_>, table: &str) -> Vec<String> {
    let mut found: BTreeSet<String> = BTreeSet::new();
    for transaction in &run.transactions {
        let steps = &transaction.steps;
        let writes = |s: &usize| run.statements[*s].writes.as_deref() == Some(table);
        if !steps.iter().any(writes) {
            continue;
        }
        if transaction.end == Some(TxEnd::RolledBack) {
            found.insert("a rollback".into());
        }
        let kinds = |kind: &str| steps.iter().any(|s| run.statements[*s].kind == kind);
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
                && run.statements[*s].writes.as_ref().is_some_and(|table| tables.contains(table))
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

/// The kinds of the two statements that changed one row, where the obstacle is
/// a concurrent change of it.
fn met(run: &Run<'_>, step: usize, obstacle: &Obstacle) -> Vec<String> {
    let session = run.case.steps[step].session.as_str();
    let (other, table, theirs, ours) = match obstacle {
        Obstacle::ConcurrentChange { other, table, theirs, ours } => {
            (other, table, Some(*theirs), Some(*ours))
        }
        Obstacle::RowChanged { by: Some(other), table: Some(table), .. } => {
            (other, table, None, None)
        }
        _ => return Vec::new(),
    };
    let table = table.to_ascii_lowercase();
    // Where values conflict, it matters whether one is NULL; a deleted row has none.
    let values = theirs == Some(RowChange::Value);
    let kinds = |session: &str, change: Option<RowChange>| {
        let fits = |kind: &str| match change {
            None => true,
            Some(RowChange::Delete) => matches!(kind, "delete" | "replace" | "update of a key"),
            Some(RowChange::Update | RowChange::Value) => {
                matches!(kind, "update" | "insert or update" | "update of a key")
            }
        };
        let mine = |n: &usize| {
            run.case.steps[*n].session == session
                && run.statements[*n].writes.as_deref() == Some(&table)
        };
        let kind = |n: usize| match values && run.statements[n].sets_null {
            true => "update to null",
            false => run.statements[n].kind,
        };
        let all: BTreeSet<&str> = (0..run.statements.len())
            .filter(mine)
            .filter(|n| fits(run.statements[*n].kind))
            .map(kind)
            .collect();
        all.into_iter().collect::<Vec<_>>().join(" or ")
    };
    let mut kinds = vec![kinds(other, theirs), kinds(session, ours)];
    kinds.sort();
    kinds
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
    /// The reason why a statement is not modelled, without sessions, tables and
    /// values. Tables follow `of` or `in` there.
    fn without_names(&self, text: &str) -> String {
        let sessions = self.case.sessions();
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
            isolde_sql::pieces(text).iter().map(|w| w.to_ascii_lowercase()).collect();
        let named = self.schema.tables.iter().map(|t| t.name.to_ascii_lowercase());
        named.into_iter().find(|name| words.contains(name)).unwrap_or_default()
    }
}
